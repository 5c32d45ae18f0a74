// SPDX-License-Identifier: GPL-2.0
/*
 * The flush point: how many dirty folios share one TLB flush.
 *
 * "batch" has the kernel collect folios that are about to be paged out, flush once for
 * all of them, and go over them again.
 */
#include <linux/debugfs.h>
#include <linux/minmax.h>
#include <linux/percpu.h>
#include <kunit/visibility.h>

#include "internal.h"
#include "trace.h"

/*
 * Folios per flush. A reclaim call of the multi-gen LRU takes 64 folios at most, so a larger
 * number only matters to MADV_PAGEOUT and the classic LRU, whose calls make two groups then;
 * see docs/history/results.md for how sizes compare.
 */
static unsigned int max_folios = 64;

/* Whether a group that is not full waits for the next call over the same lruvec. */
static unsigned int span = 1;

enum vmp_flush_stat {
	STAT_DEFERRED,		/* folios that have waited for a flush */
	STAT_CALLS,		/* reclaim calls in which a folio has */
	STAT_BATCHES,		/* groups of such folios */
	STAT_FLUSHES,		/* ... that had something to flush */
	STAT_MAPPED,		/* folios kept: mapped again by then */
	STAT_GONE,		/* ... out of the swap cache by then */
	NR_FLUSH_STATS,
};

static const char *const stat_names[NR_FLUSH_STATS] = {
	[STAT_DEFERRED] = "deferred",
	[STAT_CALLS] = "calls",
	[STAT_BATCHES] = "batches",
	[STAT_FLUSHES] = "flushes",
	[STAT_MAPPED] = "bounce_mapped",
	[STAT_GONE] = "bounce_gone",
};

struct vmp_flush_stats {
	u64 count[NR_FLUSH_STATS];
	unsigned int largest_batch;
};

static DEFINE_PER_CPU(struct vmp_flush_stats, flush_stats);

static void add_stat(unsigned int stat, unsigned int value)
{
	this_cpu_add(flush_stats.count[stat], value);
}

static unsigned int batch_group(const struct vmscan_call *call)
{
	return READ_ONCE(max_folios) | (READ_ONCE(span) ? VMSCAN_FLUSH_SPAN : 0);
}

static void batch_begin(const struct vmscan_group *group, struct vmscan_note *note)
{
	struct vmp_where where;

	if (!trace_flush_batch_begin_enabled() && !trace_flush_batch_end_enabled())
		return;

	where = vmp_where(group->ops, VMP_FLUSH_BATCH, group->memcg, group->nid);
	trace_flush_batch_begin(&where, vmp_begin_id(VMP_SPAN_FLUSH), group->nr_folios,
				group->nr_pages);
}

static void batch_end(const struct vmscan_group *group, struct vmscan_note *note)
{
	struct vmp_where where;

	add_stat(STAT_DEFERRED, group->nr_folios);
	add_stat(STAT_CALLS, !group->nr_before);
	add_stat(STAT_BATCHES, 1);
	add_stat(STAT_FLUSHES, group->flushed);
	add_stat(STAT_MAPPED, group->nr_mapped);
	add_stat(STAT_GONE, group->nr_gone);
	/* A racy maximum: a task that migrates here may lose its own. */
	if (group->nr_folios > this_cpu_read(flush_stats.largest_batch))
		this_cpu_write(flush_stats.largest_batch, group->nr_folios);
	if (!trace_flush_batch_end_enabled())
		return;

	where = vmp_where(group->ops, VMP_FLUSH_BATCH, group->memcg, group->nid);
	trace_flush_batch_end(&where, vmp_end_id(VMP_SPAN_FLUSH), group);
}

/* A group that began with another set is counted and traced to its end. */
static void stock_fill(struct vmscan_policy_ops *ops)
{
	ops->flush_end = batch_end;
}

static void batch_fill(struct vmscan_policy_ops *ops)
{
	ops->flush_group = batch_group;
	ops->flush_begin = batch_begin;
	ops->flush_end = batch_end;
}

static const struct vmp_policy flush_policies[] = {
	[VMP_FLUSH_STOCK] = { .name = "stock", .fill = stock_fill },
	[VMP_FLUSH_BATCH] = { .name = "batch", .fill = batch_fill },
};

static int stats_show(struct seq_file *m, void *v)
{
	unsigned int largest = 0;
	int cpu;

	vmp_show_counters(m, stat_names, flush_stats.count, NR_FLUSH_STATS);
	for_each_possible_cpu(cpu)
		largest = max(largest,
			      READ_ONCE(per_cpu(flush_stats.largest_batch,
						cpu)));
	seq_printf(m, "largest_batch %u\n", largest);
	vmp_observe_show(m);

	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

static const struct vmp_number flush_numbers[] = {
	{
		.path = "flush/max_folios",
		.min = 1,
		.max = VMSCAN_FLUSH_MAX_FOLIOS,
		.value = &max_folios,
	},
	{
		.path = "flush/span",
		.max = 1,
		.value = &span,
	},
	{
		.path = "flush/observe",
		.max = 1,
		.get = vmp_observe_get,
		.set = vmp_observe_set,
	},
};

static void flush_create_files(struct dentry *dir)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(flush_numbers); i++)
		vmp_create_number(dir, &flush_numbers[i]);
	debugfs_create_file("stats", 0444, dir, NULL, &stats_fops);
}

const struct vmp_point vmp_flush_point = {
	.name = "flush",
	.policies = flush_policies,
	.nr_policies = ARRAY_SIZE(flush_policies),
	.create_files = flush_create_files,
};
EXPORT_SYMBOL_IF_KUNIT(vmp_flush_point);
