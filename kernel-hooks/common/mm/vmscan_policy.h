/* SPDX-License-Identifier: GPL-2.0 */
/* What mm/vmscan.c asks policies with. Every way in is a static branch, off by default. */
#ifndef _MM_VMSCAN_POLICY_H
#define _MM_VMSCAN_POLICY_H

#include <linux/jump_label.h>
#include <linux/list.h>
#include <linux/mmzone.h>
#include <linux/vmscan_policy.h>

#include "vmscan_stock.h"

struct folio;
struct lruvec;
struct pglist_data;
struct scan_control;

#ifdef CONFIG_VMSCAN_POLICY
/* Each is defined where it is asked by; some kernels don't have the last three. */
DECLARE_STATIC_KEY_FALSE(vmscan_flush_key);
DECLARE_STATIC_KEY_FALSE(vmscan_scan_key);
DECLARE_STATIC_KEY_FALSE(vmscan_throttle_key);
DECLARE_STATIC_KEY_FALSE(vmscan_evicted_key);
DECLARE_STATIC_KEY_FALSE(vmscan_unmap_key);
DECLARE_STATIC_KEY_FALSE(vmscan_young_key);
#define vmscan_policy_enabled(point)	static_branch_unlikely(&vmscan_##point##_key)
#else
#define vmscan_policy_enabled(...)	false
#endif

/* What a policy keeps from call to call: void with a set of another number. */
struct vmscan_kept {
	u64 number;
	struct vmscan_note note;
};

/* The set to ask, or NULL. In an RCU read-side section. @kept may be NULL. */
const struct vmscan_policy_ops *vmscan_in_force(struct vmscan_kept *kept);

/*
 * Folios that wait for a flush between calls, if they @may: of @lruvec, NULL for none. Before the
 * rounds at hand there were @goal pages to reclaim. By @delta more pages were gone over in the
 * last call than it was given.
 */
struct vmscan_span {
	bool may;
	struct lruvec *lruvec;
	struct list_head waiting;
	unsigned int nr_folios;
	unsigned int nr_pages;
	unsigned long goal;
	long delta;
};

/*
 * One shrink_folio_list() call. @size is that of a group, 0 if none may wait. Folios of @list are
 * @waiting for the flush, then gone over in the @second pass; @rest comes after the group. Or they
 * stay in @span, for which nothing else may have been unmapped: @nr_others, @unmapped the last.
 */
struct vmscan_flush {
	unsigned int size;
	bool second;
	bool stays;
	struct vmscan_span *span;
	unsigned int nr_others;
	struct folio *unmapped;
	struct list_head *list;
	struct list_head waiting;
	struct list_head rest;
	struct vmscan_group group;
	struct vmscan_kept kept;
};

/* Without @span, the group of a call ends with it. */
void vmscan_flush_ask(struct vmscan_flush *flush, int nid, struct list_head *folio_list,
		      struct vmscan_span *span);
/*
 * True if the locked folio, about to be paged out, waits instead, unlocked; it is counted as
 * scanned when it is gone over again. Until the flush, a thread with a stale TLB entry goes on
 * writing to it, which is safe as long as all look for the content in this folio:
 * - a fault, swapoff and get_user_pages() map it again, and it is kept;
 * - munmap, mremap, mprotect, MADV_DONTNEED, MADV_FREE, MADV_COLD, MADV_PAGEOUT and
 *   UFFDIO_MOVE call flush_tlb_batched_pending() before they change an entry;
 * - fork flushes the parent's entries before the child runs;
 * - migration, compaction, khugepaged, KSM and memory_failure() need a present entry, a folio
 *   on the LRU or its lock; mincore, pagemap, MADV_WILLNEED and soft-dirty move nothing.
 * Shmem folios and files' don't wait: others write them out, who know of no flush.
 */
bool vmscan_flush_wait(struct vmscan_flush *flush, struct folio *folio, unsigned long *nr_scanned);
/* True if the locked folio has waited, and is in use again or has left the swap cache. */
bool vmscan_flush_keep(struct vmscan_flush *flush, struct folio *folio);
/* True if there is more on the list now, which was empty. Only with @flush->size. */
bool vmscan_flush_next(struct vmscan_flush *flush);

/* The folio was unmapped, in part maybe. Not behind the branch: that may go on or off. */
static inline void vmscan_flush_unmapped(struct vmscan_flush *flush, struct folio *folio)
{
	if (!IS_ENABLED(CONFIG_VMSCAN_POLICY) || likely(!flush->size))
		return;
	flush->nr_others++;
	flush->unmapped = folio;
}

/* At the end of a call: may it do without a flush, since folios alone that stay need one? */
static inline bool vmscan_flush_stays(const struct vmscan_flush *flush)
{
	return IS_ENABLED(CONFIG_VMSCAN_POLICY) && unlikely(flush->size) && flush->stays &&
	       !flush->nr_others;
}

/*
 * Reclaim goes over @lruvec now, or over none (NULL), since it is to sleep or has come to its end.
 * What waits for another is gone over before, and counted there.
 */
void vmscan_span_over(struct lruvec *lruvec, struct scan_control *sc);

/* By how much the last call went over more pages than it was given. */
static inline long vmscan_delta(struct vmscan_span *span)
{
	long delta = span->delta;

	span->delta = 0;

	return delta;
}

/*
 * What a policy wants of the eviction batch at hand: to move @max_move pages, if not 0, and to
 * take @max_take of them. In all, @nr_before were reclaimed before the rounds at this @priority,
 * and @slept is one more than the last at which the task slept for writeback.
 */
struct vmscan_batch {
	int max_move;
	int max_take;
	int nr_moved;
	int priority;
	unsigned long nr_before;
	int slept;
	struct vmscan_span span;
};

bool vmscan_batch_enough(const struct vmscan_batch *batch, int taken, int moved);
/* Has the batch got what stock wants it to take, or passed over as much, or what a policy wants? */
static inline bool vmscan_full(const struct vmscan_batch *batch, int isolated, int sorted,
			       int skipped)
{
	if (vmscan_policy_enabled(scan) && batch->max_move)
		return vmscan_batch_enough(batch, max(isolated, skipped), isolated + sorted);

	return max(isolated, skipped) >= MIN_LRU_BATCH;
}

/* So many pages were moved for the batch. False: none, or for stock. */
static inline bool vmscan_moved(struct vmscan_batch *batch, int nr)
{
	if (!vmscan_policy_enabled(scan) || !batch->max_move)
		return false;
	batch->nr_moved += nr;

	return nr;
}

/* One pass over an lruvec. The caller does the steps until there is none. */
struct vmscan_scan {
	struct vmscan_pass pass;
	struct lruvec *lruvec;
	struct mem_cgroup *target;
	bool low_reclaim, low_skipped;
	bool begun, asked;
	unsigned int nr_agings;
	unsigned int nr_dry;
	bool rotate;
	struct vmscan_kept kept;
};

bool vmscan_scan_next(struct vmscan_scan *scan, struct vmscan_batch *batch);
/*
 * In vmscan_pass.c: the steps of a policy. False if the stock loop is to make the pass after all;
 * else @nr_to_scan is what it ends with in that loop, -1 to rotate.
 */
bool vmscan_shrink_lruvec(struct lruvec *lruvec, struct scan_control *sc, int swappiness,
			  long *nr_to_scan);

unsigned int vmscan_throttle_ask(struct vmscan_round *round);
/* In vmscan_pass.c: asks what follows a round over a node, and does it. */
void vmscan_throttle(struct pglist_data *pgdat, struct scan_control *sc,
		     unsigned long nr_reclaimed);
/* May the task sleep until something is written? Not if it may hold that up itself. */
bool vmscan_may_wait(gfp_t gfp_mask);

#endif /* _MM_VMSCAN_POLICY_H */
