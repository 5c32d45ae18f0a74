/* SPDX-License-Identifier: GPL-2.0 */
/* What the points count: for the machine, and for each memory cgroup with settings of its own. */
#ifndef _VMP_STATS_H
#define _VMP_STATS_H

#include <linux/cpumask.h>
#include <linux/minmax.h>
#include <linux/mmzone.h>
#include <linux/percpu.h>

enum vmp_flush_stat {
	VMP_FLUSH_DEFERRED,	/* folios that have waited for a flush */
	VMP_FLUSH_CALLS,	/* reclaim calls in which such a wait has ended */
	VMP_FLUSH_BATCHES,	/* groups of such folios */
	VMP_FLUSH_FLUSHES,	/* ... that had something to flush */
	VMP_FLUSH_MAPPED,	/* folios kept: mapped again by then */
	VMP_FLUSH_GONE,		/* ... out of the swap cache by then */
	VMP_NR_FLUSH_STATS,
};

/* Why a pass ends. */
enum vmp_end {
	VMP_END_BUDGET,		/* the budget is used up */
	VMP_END_NOTHING,	/* there was nothing to scan */
	VMP_END_BELOW_MIN,	/* the memcg fell below its memory.min */
	VMP_END_ENOUGH,		/* enough is reclaimed */
	VMP_END_AGED,		/* it has aged, and so had its turn */
	VMP_NR_ENDS,
	VMP_GO_ON = VMP_NR_ENDS,
};

/* A pass of 0, 1, 2 to 3, 4 to 7, ... pages; the last bucket takes the rest. */
#define VMP_NR_BUCKETS	16

enum vmp_scan_stat {
	VMP_SCAN_PASSES,
	VMP_SCAN_GRANTED,	/* pages granted */
	VMP_SCAN_SCANNED,	/* ... and used */
	VMP_SCAN_RECLAIMED,
	VMP_SCAN_BATCHES,
	VMP_SCAN_RESCUED,	/* passes that the stock loop had to follow */
	VMP_SCAN_ENDS,		/* passes by the reason they ended for */
	VMP_SCAN_PASS_SCANNED = VMP_SCAN_ENDS + VMP_NR_ENDS,
	VMP_SCAN_PASS_RECLAIMED = VMP_SCAN_PASS_SCANNED + VMP_NR_BUCKETS,
	VMP_NR_SCAN_STATS = VMP_SCAN_PASS_RECLAIMED + VMP_NR_BUCKETS,
};

enum vmp_aging_stat {
	VMP_AGING_SYNC,		/* generations made by a reclaimer */
	VMP_AGING_FAILED,	/* ... not made: another task was at it */
	VMP_AGING_WAITED,	/* waits for that task, of one tick each */
	VMP_NR_AGING_STATS,
};

enum vmp_writeback_stat {
	VMP_WRITEBACK_BATCHES,	/* batches that met a page */
	VMP_WRITEBACK_TAKEN,	/* pages: taken */
	VMP_WRITEBACK_DIRTY,	/* ... dirty or under writeback */
	VMP_WRITEBACK_WAKEUPS,	/* times that flushers were woken */
	VMP_WRITEBACK_WAITS,	/* ... and were to be waited for: a memcg of version 1 */
	VMP_NR_WRITEBACK_STATS,
};

enum vmp_throttle_stat {
	VMP_THROTTLE_EVENTS,	/* times that a task slept, by reason */
	VMP_THROTTLE_TIME = VMP_THROTTLE_EVENTS + NR_VMSCAN_THROTTLE,
	VMP_THROTTLE_KSWAPD = VMP_THROTTLE_TIME + NR_VMSCAN_THROTTLE,
	VMP_THROTTLE_MARK_WRITEBACK,	/* times that a node was marked */
	VMP_THROTTLE_MARK_CONGESTED,
	VMP_NR_THROTTLE_STATS,
};

enum vmp_rmap_stat {
	VMP_RMAP_FOLIOS,	/* times that it was asked at an entry of a large folio */
	VMP_RMAP_PAGES,		/* base pages of these folios */
	VMP_RMAP_PTES,		/* entries in batches */
	VMP_RMAP_BATCHES,
	VMP_RMAP_LEFT,		/* entries left to stock, one by one */
	VMP_RMAP_KEPT,		/* batches that stay mapped */
	VMP_NR_RMAP_STATS,
};

/**
 * struct vmp_stats - what a CPU has counted for one rule
 * @flush: by enum vmp_flush_stat
 * @scan: by enum vmp_scan_stat
 * @aging: by enum vmp_aging_stat
 * @writeback: by enum vmp_writeback_stat
 * @throttle: by enum vmp_throttle_stat
 * @rmap: by enum vmp_rmap_stat, for the unmap and for the young point
 * @largest_batch: folios of the largest group
 * @longest: the longest sleep by reason, in microseconds
 */
struct vmp_stats {
	u64 flush[VMP_NR_FLUSH_STATS];
	u64 scan[VMP_NR_SCAN_STATS];
	u64 aging[VMP_NR_AGING_STATS];
	u64 writeback[VMP_NR_WRITEBACK_STATS];
	u64 throttle[VMP_NR_THROTTLE_STATS];
	u64 rmap[2][VMP_NR_RMAP_STATS];
	unsigned int largest_batch;
	unsigned int longest[NR_VMSCAN_THROTTLE];
};

static inline void vmp_count(u64 __percpu *counter, u64 value)
{
	this_cpu_add(*counter, value);
}

/* A racy maximum: a task that migrates here may lose its own. */
static inline void vmp_count_largest(unsigned int __percpu *largest, unsigned int value)
{
	if (value > this_cpu_read(*largest))
		this_cpu_write(*largest, value);
}

static inline unsigned int vmp_largest(const unsigned int __percpu *largest)
{
	unsigned int value = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		value = max(value, READ_ONCE(*per_cpu_ptr(largest, cpu)));

	return value;
}

#endif /* _VMP_STATS_H */
