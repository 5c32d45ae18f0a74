/* SPDX-License-Identifier: GPL-2.0 */
/* What mm/vmscan.c asks policies with. Every way in is a static branch, off by default. */
#ifndef _MM_VMSCAN_POLICY_H
#define _MM_VMSCAN_POLICY_H

#include <linux/jump_label.h>
#include <linux/list.h>
#include <linux/vmscan_policy.h>

struct lruvec;
struct pglist_data;
struct scan_control;

#ifdef CONFIG_VMSCAN_POLICY
DECLARE_STATIC_KEY_FALSE(vmscan_flush_key);
DECLARE_STATIC_KEY_FALSE(vmscan_scan_key);
DECLARE_STATIC_KEY_FALSE(vmscan_evicted_key);
DECLARE_STATIC_KEY_FALSE(vmscan_throttle_key);
DECLARE_STATIC_KEY_FALSE(vmscan_unmap_key);
DECLARE_STATIC_KEY_FALSE(vmscan_young_key);
#define vmscan_policy_enabled(point)	static_branch_unlikely(&vmscan_##point##_key)
#else
#define vmscan_policy_enabled(...)	false
#endif

/* What a policy keeps from call to call, and its module. */
struct vmscan_note {
	const struct module *owner;
	u64 words[2];
};

/*
 * One shrink_folio_list() call. @size is that of a group, 0 if none may wait. Folios are
 * @waiting for the flush, then gone over in the @second pass; @rest comes after the group.
 */
struct vmscan_flush {
	unsigned int size;
	bool second;
	struct list_head waiting;
	struct list_head rest;
	struct vmscan_group group;
	struct vmscan_note note;
};

/* How many pages the classic LRU isolates beside @nr_to_scan; so many of its share are @left. */
unsigned long vmscan_isolate(struct mem_cgroup *target, struct lruvec *lruvec,
			     unsigned long nr_to_scan, unsigned long *left);
void vmscan_flush_ask(struct vmscan_flush *flush, int nid, struct list_head *folio_list);
/*
 * True if the locked folio, about to be paged out, waits instead, unlocked. Until the flush, a
 * thread with a stale TLB entry goes on writing to it, which is safe as long as all look for
 * the content in this folio:
 * - a fault, swapoff and get_user_pages() map it again, and it is kept;
 * - munmap, mremap, mprotect, MADV_DONTNEED, MADV_FREE, MADV_COLD, MADV_PAGEOUT and
 *   UFFDIO_MOVE call flush_tlb_batched_pending() before they change an entry;
 * - fork flushes the parent's entries before the child runs;
 * - migration, compaction, khugepaged, KSM and memory_failure() need a present entry, a folio
 *   on the LRU or its lock; mincore, pagemap, MADV_WILLNEED and soft-dirty move nothing.
 * Shmem folios and files' don't wait: others write them out, who know of no flush.
 */
bool vmscan_flush_wait(struct vmscan_flush *flush, struct folio *folio,
		       struct list_head *folio_list);
/* True if the locked folio has waited, and is in use again or has left the swap cache. */
bool vmscan_flush_keep(struct vmscan_flush *flush, struct folio *folio);
/* True if there is more on @folio_list now, which was empty. Only with @flush->size. */
bool vmscan_flush_next(struct vmscan_flush *flush, struct list_head *folio_list);

#define VMSCAN_ASK	BIT(31)	/* a policy is to be asked about the batch */

/*
 * What policies want of the eviction batch at hand: to move @max_move pages, if not 0,
 * and to take @max_take of them. In all, @nr_before were reclaimed before the rounds at
 * this @priority.
 * VMSCAN_ASK, then the flags of the answer. Some point releases sort dirty folios out,
 * and forget which were met before: @again.
 */
struct vmscan_batch {
	unsigned int max_move;
	unsigned int max_take;
	unsigned int nr_moved;
	int priority;
	unsigned long nr_before;
	unsigned int flags;
	bool again;			/* the folio at hand */
	unsigned long nr_scanned;	/* sc->nr_scanned before the batch */
};

#define vmscan_batch_limited(batch)	(vmscan_policy_enabled(scan) && (batch)->max_move)
#define vmscan_batch_flag(batch, flag) \
	(vmscan_policy_enabled(evicted) && ((batch)->flags & (flag)))

/*
 * One pass over an lruvec. The caller does the steps until there is none. Then @nr_to_scan
 * is 0, or -1 to rotate, as in the stock loop, or 1 if that is to make the pass after all.
 */
struct vmscan_scan {
	struct vmscan_pass pass;
	struct lruvec *lruvec;
	struct mem_cgroup *target;
	bool low_reclaim, low_skipped;
	bool begun, asked;
	unsigned int nr_agings;
	unsigned int nr_dry;
	long nr_to_scan;
	struct vmscan_note note;
};

bool vmscan_scan_next(struct vmscan_scan *scan, struct vmscan_batch *batch);
/* In vmscan_pass.c: the steps of a policy. Returns what nr_to_scan ends with in the stock loop. */
long vmscan_shrink_lruvec(struct lruvec *lruvec, struct scan_control *sc, int swappiness);
/* There, too. True: made the generation after @seq, which was the youngest. */
bool vmscan_age(struct lruvec *lruvec, unsigned long seq, bool can_swap);

/* NULL: is there a policy to ask about the batch that begins? Then VMSCAN_ASK. */
unsigned int vmscan_evicted_ask(struct vmscan_evicted *evicted);

unsigned int vmscan_throttle_ask(struct vmscan_round *round);
/* In vmscan_pass.c: asks what follows a round over a node, and does it. */
void vmscan_throttle(struct pglist_data *pgdat, struct scan_control *sc,
		     unsigned long nr_reclaimed);

/* How many entries may be handled at once; 1: stock. */
unsigned int vmscan_walk_ask(struct vmscan_walk *walk, struct folio *folio);
void vmscan_walk_done(struct vmscan_walk *walk);

#endif /* _MM_VMSCAN_POLICY_H */
