/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Policies of page reclaim that a module supplies.
 *
 * A policy is told what there is to know and answers with a number, an enum or flags; it does
 * nothing itself. All mechanism is the kernel's, and so is all that keeps reclaim correct and live:
 * it limits every answer, and one that it doesn't know means stock.
 *
 * A callback runs in the context of the reclaiming task (a direct reclaimer, kswapd,
 * madvise(MADV_PAGEOUT)), in an RCU read-side section of its own: it can't sleep or allocate. No
 * lock is held but, maybe, a folio's, and that of a page table, a spinlock, when unmap_ptes,
 * young_ptes and walk_done are called. What it is told belongs to that task and is valid until it
 * returns. The next call may be one of another set, in the middle of a pass, too. A
 * @note is the policy's own: it is kept as the point says, and is all 0 as soon as another set
 * comes in.
 *
 * Each context names the memory cgroup that the decision is about, so that a policy can decide for
 * some and leave the others to stock. Where it does, the kernel acts as if there were no policy: 0
 * or VMSCAN_STOCK is that answer, at each point.
 *
 * All this is to be fit for BPF's struct_ops, too:
 * - an answer is a number of 8 bytes at most; a step of a pass is packed in one by VMSCAN_STEP();
 * - a context has numbers, and pointers to structures that BPF knows: the set in force (@ops),
 *   a memory cgroup, which is NULL where there is none, struct reclaim_stat;
 * - a note is a structure of a known size;
 * - no callback has to find its own set: @ops is for a module that has more in it, and is there
 *   in calls that ask or tell the set, never NULL;
 * - no callback is called without a set that has it.
 */
#ifndef _LINUX_VMSCAN_POLICY_H
#define _LINUX_VMSCAN_POLICY_H

#include <linux/bits.h>
#include <linux/types.h>

struct mem_cgroup;
struct module;
struct reclaim_stat;
struct vmscan_policy_ops;

/* Changes with the layout or the meaning of anything here. */
#define VMSCAN_POLICY_ABI	12

/**
 * enum vmscan_trait - what the stock code of a kernel does by itself: bits
 * @VMSCAN_TRAIT_BUDGET: a pass of the multi-gen LRU settles once how much it scans, and
 *	aging does not end it
 * @VMSCAN_TRAIT_FEEDBACK: after each eviction batch it wakes the flushers and counts for
 *	throttling; evict and evicted are never called
 * @VMSCAN_TRAIT_UNMAP: it unmaps large folios in batches where it can; unmap_ptes is never called
 * @VMSCAN_TRAIT_YOUNG: it checks in batches if these were accessed; young_ptes is never called
 * @VMSCAN_TRAIT_DISCARD: it unmaps in batches what is not to be swapped out; unmap_ptes is
 *	called for VMSCAN_ANON alone
 */
enum vmscan_trait {
	VMSCAN_TRAIT_BUDGET	= BIT(0),
	VMSCAN_TRAIT_FEEDBACK	= BIT(1),
	VMSCAN_TRAIT_UNMAP	= BIT(2),
	VMSCAN_TRAIT_YOUNG	= BIT(3),
	VMSCAN_TRAIT_DISCARD	= BIT(4),
};

/**
 * struct vmscan_note - what a policy keeps from one call to the next
 * @words: its own; all 0 at first, and when another set has come in
 */
struct vmscan_note {
	u64 words[2];
};

/* A group ends with so many folios at the latest, and with no fewer pages than that. */
#define VMSCAN_FLUSH_MAX_FOLIOS	4096
#define VMSCAN_FLUSH_MIN_PAGES	512
/* Added to their number: in reclaim of a memory cgroup, the last group may span calls. */
#define VMSCAN_FLUSH_SPAN	BIT(31)

/* The generations that the multi-gen LRU can have; a pass may try to age once more than that. */
#define VMSCAN_MAX_GENS		4
/* An eviction batch moves and takes this many pages at most. */
#define VMSCAN_MAX_BATCH	4096
/* A pass at this priority or a higher one, a lower number, has to get something done. */
#define VMSCAN_LIVE_PRIORITY	6

/**
 * struct vmscan_call - a shrink_folio_list() call
 * @ops: the set in force
 * @memcg: memory cgroup of its first folio; those of MADV_PAGEOUT may have several
 * @nid: the node that the folios are of
 */
struct vmscan_call {
	const struct vmscan_policy_ops *ops;
	struct mem_cgroup *memcg;
	int nid;
};

/**
 * struct vmscan_group - folios of one shrink_folio_list() call that share a TLB flush
 * @ops: the set in force
 * @memcg: memory cgroup of the first one
 * @nid: the node that they are of
 * @nr_before: groups of the same call that came before
 * @nr_folios: folios that have waited
 * @nr_pages: base pages of these folios
 * @flushed: there is something to flush
 * @nr_mapped: folios kept because they were mapped again by then; 0 before the flush
 * @nr_gone: folios kept because they had left the swap cache; likewise
 */
struct vmscan_group {
	const struct vmscan_policy_ops *ops;
	struct mem_cgroup *memcg;
	int nid;
	unsigned int nr_before;
	unsigned int nr_folios;
	unsigned int nr_pages;
	bool flushed;
	unsigned int nr_mapped;
	unsigned int nr_gone;
};

/**
 * enum vmscan_action - the next step of a pass of the multi-gen LRU
 * @VMSCAN_STOCK: leave the pass, or what is left of it, to the kernel's own loop
 * @VMSCAN_END: end the pass
 * @VMSCAN_END_ROTATE: end it; the memory cgroup has had its turn in root reclaim
 * @VMSCAN_EVICT: evict a batch from the oldest generation
 * @VMSCAN_AGE: make a new youngest generation, which walks page tables. Fails while another
 *	task does; where nothing can be evicted either, the task waits for a tick then.
 *	The pass ends after one more than VMSCAN_MAX_GENS of them.
 */
enum vmscan_action {
	VMSCAN_STOCK,
	VMSCAN_END,
	VMSCAN_END_ROTATE,
	VMSCAN_EVICT,
	VMSCAN_AGE,
};

/**
 * VMSCAN_STEP() - what a pass is to do next, in one number
 * @action: one of enum vmscan_action
 * @max_move: for VMSCAN_EVICT: pages to take or to move to another generation, to within
 *	a folio; limited to 1 to VMSCAN_MAX_BATCH
 * @max_take: of these, pages to take; limited likewise
 *
 * Both numbers are to be less than 1 << 28. Any other step is its action alone.
 */
#define VMSCAN_STEP(action, max_move, max_take) \
	((u64)(action) | (u64)(max_move) << 8 | (u64)(max_take) << 36)
#define VMSCAN_STEP_ACTION(step)	((step) & GENMASK_ULL(7, 0))
#define VMSCAN_STEP_MOVE(step)		((step) >> 8 & GENMASK_ULL(27, 0))
#define VMSCAN_STEP_TAKE(step)		((step) >> 36)

/**
 * struct vmscan_pass - one pass of the multi-gen LRU over an lruvec
 * @ops: the set in force
 * @memcg: the lruvec's memory cgroup, NULL when they are disabled
 * @nid: the lruvec's node
 * @priority: the pass is meant to scan the lruvec's size shifted right by this, 12 when
 *	reclaim begins, 0 when it is about to fail
 * @root_reclaim: on behalf of the whole machine, else of a memory cgroup
 * @swappiness: how much anonymous folios are evicted, beside those of files: 1 to 200, or 0
 *	where they can't be, for want of swap, of I/O that is allowed, or by who asked for it
 * @begin_size: the sum of @nr_pages when the pass began
 * @unprotected: what of it memory.min and memory.low left, in proportion to the memory
 *	cgroup's size, as for the classic LRU; SWAP_CLUSTER_MAX at least
 * @max_seq: number of the youngest generation
 * @nr_gens: how many there are; the two youngest are not evicted from
 * @nr_pages: evictable base pages in each, the oldest first; read without a lock
 * @below_min: the memory cgroup has less than its memory.min: the pass ends
 * @enough: in root reclaim, for the whole reclaim or what kswapd is to balance; else
 *	this pass alone has reclaimed what was left to do when reclaim came to this
 *	priority, so that no node or memory cgroup gives all. Also when who asked for reclaim
 *	is to go. Known after a step.
 * @nr_batches: batches evicted
 * @nr_moved: pages that they took or moved to another generation
 * @nr_reclaimed: pages reclaimed
 * @nr_aged: generations made
 * @last: the step before, of which pass_ended() may be the first to hear; VMSCAN_STOCK if none
 * @progress: that made a generation; moved pages or emptied a generation
 * @waited: that waited for a tick
 * @stock_follows: the stock loop makes a pass after this one, which has ended
 */
struct vmscan_pass {
	const struct vmscan_policy_ops *ops;
	struct mem_cgroup *memcg;
	int nid;
	int priority;
	bool root_reclaim;
	int swappiness;
	unsigned long begin_size;
	unsigned long unprotected;
	unsigned long max_seq;
	unsigned int nr_gens;
	unsigned long nr_pages[VMSCAN_MAX_GENS];
	bool below_min;
	bool enough;
	unsigned int nr_batches;
	unsigned long nr_moved;
	unsigned long nr_reclaimed;
	unsigned int nr_aged;
	enum vmscan_action last;
	bool progress;
	bool waited;
	bool stock_follows;
};

/**
 * struct vmscan_evict - an eviction batch of the multi-gen LRU that is about to begin
 * @ops: the set in force
 * @memcg: the lruvec's memory cgroup, NULL when they are disabled
 * @nid: the lruvec's node
 * @target: memory cgroup that reclaim is for, NULL if for the whole machine
 */
struct vmscan_evict {
	const struct vmscan_policy_ops *ops;
	struct mem_cgroup *memcg;
	int nid;
	struct mem_cgroup *target;
};

/* What to do after an eviction batch: flags. */
#define VMSCAN_WAKE_FLUSHERS	BIT(0)	/* have what the lruvec's memory cgroup has dirty written */
#define VMSCAN_WAIT_WRITEBACK	BIT(1)	/* sleep until some is, or for HZ / 10; if it may */
#define VMSCAN_COUNT		BIT(2)	/* count it for struct vmscan_round */
/* Put what is dirty or under writeback back to that generation, not the youngest. */
#define VMSCAN_SECOND_YOUNGEST	BIT(3)

/**
 * struct vmscan_evicted - an eviction batch of the multi-gen LRU
 * @ops: the set in force
 * @memcg: the lruvec's memory cgroup, NULL when they are disabled
 * @nid: the lruvec's node
 * @target: memory cgroup that reclaim is for, NULL if for the whole machine
 * @writers_throttled: who makes pages dirty is slowed down in doing so, by
 *	balance_dirty_pages(); false in reclaim of a memory cgroup of version 1
 * @nr_taken: pages that shrink_folio_list() has looked at
 * @stat: what they were: nr_dirty (or under writeback), nr_unqueued_dirty of these,
 *	nr_congested (under writeback and met again), nr_writeback, and nr_immediate
 *	instead for what kswapd meets again on a node with VMSCAN_MARK_WRITEBACK
 */
struct vmscan_evicted {
	const struct vmscan_policy_ops *ops;
	struct mem_cgroup *memcg;
	int nid;
	struct mem_cgroup *target;
	bool writers_throttled;
	unsigned int nr_taken;
	const struct reclaim_stat *stat;
};

/* What follows a round over a node: flags. */
#define VMSCAN_MARK_WRITEBACK	BIT(0)	/* kswapd meets nothing but writeback there */
#define VMSCAN_MARK_CONGESTED	BIT(1)	/* direct reclaimers have to wait there */
/* Until some is written, or for HZ / 10; a direct reclaimer, if it may, once a priority. */
#define VMSCAN_SLEEP_WRITEBACK	BIT(2)
#define VMSCAN_SLEEP_CONGESTED	BIT(3)	/* for a tick, if much of the node waits for I/O */

/**
 * struct vmscan_round - a round of reclaim over a node
 * @ops: the set in force
 * @memcg: memory cgroup that reclaim is for, NULL if for the whole machine
 * @nid: the node
 * @priority: as in struct vmscan_pass
 * @root_reclaim: on behalf of the whole machine, else of a memory cgroup
 * @kswapd: the node's kswapd reclaims, else a task that allocates or was told to
 * @proactive: it was told to, by memory.reclaim
 * @may_enter_fs: it may wait for file systems: it holds none of their locks
 * @congested: the node has the mark VMSCAN_MARK_CONGESTED
 * @nr_reclaimed: pages reclaimed, those of slab caches too
 * @nr_write_pending: pages of the node that are dirty or under writeback now
 * @nr_taken: pages in the batches with VMSCAN_COUNT, or that the classic LRU took
 * @stat: what they were, as in struct vmscan_evicted; without nr_unqueued_dirty
 */
struct vmscan_round {
	const struct vmscan_policy_ops *ops;
	struct mem_cgroup *memcg;
	int nid;
	int priority;
	bool root_reclaim;
	bool kswapd;
	bool proactive;
	bool may_enter_fs;
	bool congested;
	unsigned long nr_reclaimed;
	unsigned long nr_write_pending;
	unsigned int nr_taken;
	const struct reclaim_stat *stat;
};

/* What unmapping a folio takes. */
enum vmscan_kind {
	VMSCAN_ANON,			/* its entries become swap entries */
	VMSCAN_LAZYFREE,		/* its pages are dropped: MADV_FREE */
	VMSCAN_FILE,			/* of a file, or shmem */
};

/**
 * struct vmscan_walk - an entry that maps a large folio, and the batch that begins with it
 * @ops: the set in force
 * @memcg: memory cgroup of the folio, NULL without one
 * @nid: its node
 * @young: to see whether the folio was accessed, else to unmap it
 * @kind: what kind of folio it is
 * @nr_pages: its base pages
 * @nr_ptes: entries handled in batches; this and what follows is 0 when a policy is asked
 * @nr_batches: how many batches that were
 * @nr_left: entries that were left to stock
 * @nr_kept: batches that stay mapped, since the folio can't be reclaimed
 */
struct vmscan_walk {
	const struct vmscan_policy_ops *ops;
	struct mem_cgroup *memcg;
	int nid;
	bool young;
	enum vmscan_kind kind;
	unsigned int nr_pages;
	unsigned int nr_ptes;
	unsigned int nr_batches;
	unsigned int nr_left;
	unsigned int nr_kept;
};

/**
 * struct vmscan_policy_ops - the implementations of the reclaim policy points
 * @abi: VMSCAN_POLICY_ABI of the header that the implementation was built with
 * @owner: the module that the callbacks live in
 * @name: for log lines, not empty
 * @number: the registry's: 1 for the first set that is published, one more for each after it
 * @flush_group: how many anonymous folios may wait for a common TLB flush; 0 for stock.
 *	Asked once per shrink_folio_list() call. A folio waits, unlocked, where it would
 *	have been flushed for and paged out. When so many do, or as many pages but
 *	VMSCAN_FLUSH_MIN_PAGES at least, or the list is empty, the kernel flushes and
 *	goes over the group again from the top, with nothing allowed to wait. The rest of
 *	the list follows in further groups. With VMSCAN_FLUSH_SPAN the last group of a call
 *	goes on waiting for the next call over the same lruvec, where that is of the memory
 *	cgroup that reclaim is for: until it is full, as much waits as there is left to
 *	reclaim, the call has to flush anyway, or the task sleeps or is done with reclaim.
 * @flush_begin: a group is about to be flushed for. @note is kept until @flush_end.
 * @flush_end: the group has been gone over again; maybe begun by another set.
 * @next_step: what a pass of the multi-gen LRU is to do next, as made by VMSCAN_STEP();
 *	@note is kept over a pass. It ends, whatever the answer, below memory.min, after two
 *	batches that did nothing, and when it has moved as much as the lruvec had. At
 *	VMSCAN_LIVE_PRIORITY or above, stock follows a pass that has not @enough, has made no
 *	generation, and moved less than its share by the priority, or than SWAP_CLUSTER_MAX
 *	if it reclaimed something: no policy can idle into an OOM kill. It follows, too, where
 *	no set is left to ask.
 *	Proactive reclaim of anonymous memory alone is left to stock where there is such.
 * @pass_ended: a pass of which this set, or one before it, has made a step has ended. True:
 *	rotate, in any case.
 * @evict: an eviction batch of the multi-gen LRU is about to begin: is @evicted to be asked
 *	about it? If not, dirty folios are handled as the kernel's point release does it.
 * @evicted: what to do after such a batch. There if @evict is.
 * @throttle: what follows when reclaim has gone over a node once. In reclaim of a memory
 *	cgroup it comes before what the kernel itself decides; in root reclaim by the
 *	multi-gen LRU the kernel decides nothing; not asked in that by the classic LRU.
 *	Tasks that others' writing depends on never sleep, and hibernation does not; nor does,
 *	for writeback, who may not do I/O or has a file system's transaction open.
 * @unmap_ptes: how many page-table entries of a large folio may be unmapped at once, from one
 *	on that reclaim has come to; up to 1 for stock. A batch has one page table, one VMA, and
 *	entries that are alike; what is unusual is unmapped one by one, and not asked about. A
 *	batch of MADV_FREE folios' pages is dropped or, when one was written to, kept as a whole.
 * @young_ptes: how many entries of a large folio may be looked at, and marked old, at once
 *	when reclaim asks whether it was accessed; up to 1 for stock.
 * @walk_done: what came of the batch that a policy was asked about. Not called if it was stock.
 *
 * One set is published at a time. It has to stay valid and unchanged until another, or
 * none, has been published in its place. A callback that is missing means stock there.
 * When its owner goes and has not taken it back, the kernel does, and logs that.
 */
struct vmscan_policy_ops {
	unsigned int abi;
	struct module *owner;
	const char *name;
	u64 number;
	unsigned int (*flush_group)(const struct vmscan_call *call);
	void (*flush_begin)(const struct vmscan_group *group, struct vmscan_note *note);
	void (*flush_end)(const struct vmscan_group *group, struct vmscan_note *note);
	u64 (*next_step)(const struct vmscan_pass *pass, struct vmscan_note *note);
	bool (*pass_ended)(const struct vmscan_pass *pass, struct vmscan_note *note);
	bool (*evict)(const struct vmscan_evict *evict);
	unsigned int (*evicted)(const struct vmscan_evicted *evicted);
	unsigned int (*throttle)(const struct vmscan_round *round);
	unsigned int (*unmap_ptes)(const struct vmscan_walk *walk);
	unsigned int (*young_ptes)(const struct vmscan_walk *walk);
	void (*walk_done)(const struct vmscan_walk *walk);
};

/**
 * vmscan_policy_publish() - put a set of policies in force, or take it back
 * @old: the set that is published, NULL if none is
 * @new: the set to publish in its place, NULL for none; all points change together
 *
 * When the function returns no reclaimer uses @old any more, and @new has its number. With
 * no @new, every point is stock then, and the bypass is off.
 *
 * Context: process context, may sleep; not from a callback.
 * Return: 0, or after one log line, and without effect: -EINVAL when @new has no name,
 * -EPROTONOSUPPORT when it is for another ABI, -ENODEV when it has no owner, -EBUSY when
 * another set than @old is published, -ENOENT when none is.
 */
int vmscan_policy_publish(const struct vmscan_policy_ops *old, struct vmscan_policy_ops *new);

/**
 * vmscan_policy_set_bypass() - make every point act stock, from its next decision on
 * @on: true to bypass the published set, false to use it again
 *
 * Context: any in which work can be queued, a callback included; not NMI.
 */
void vmscan_policy_set_bypass(bool on);

/**
 * vmscan_policy_traits() - what this kernel's stock does by itself
 *
 * Context: any.
 * Return: bits of enum vmscan_trait; they never change.
 */
unsigned long vmscan_policy_traits(void);

/* True while the points act stock in spite of a published set. Context: any. */
bool vmscan_policy_bypassed(void);

#endif /* _LINUX_VMSCAN_POLICY_H */
