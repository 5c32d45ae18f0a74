// SPDX-License-Identifier: GPL-2.0
/*
 * The flush point: how many dirty folios share one TLB flush.
 *
 * "batch" defers the pageout of dirty folios, flushes once for all of them, and
 * then takes them one by one. A deferred folio is not locked, so what was known
 * about it has to be checked again once it is. Locking them all over the flush
 * and the I/O instead would stall every task that faults on one of them, and
 * keeping them frozen would make look-ups in the swap cache spin.
 */
#include <linux/debugfs.h>
#include <linux/memcontrol.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <kunit/visibility.h>

#include "internal.h"
#include "trace.h"

/*
 * Deferred folios per flush. A reclaim call of either LRU isolates 64 folios at
 * most, so a larger number only matters to MADV_PAGEOUT; see README for how
 * sizes compare.
 */
static unsigned int max_folios = 64;

enum vmp_flush_stat {
	STAT_DEFERRED,		/* folios put into a batch */
	STAT_CALLS,		/* reclaim calls that deferred a folio */
	STAT_BATCHES,		/* batches drained */
	STAT_FLUSHES,		/* ... that had to flush dirty TLB entries */
	STAT_PAGEOUTS,		/* deferred folios written out */
	STAT_UNWRITTEN,		/* ... that pageout kept or activated */
	STAT_RECHECKS,		/* ... by the outcome of the recheck */
	NR_FLUSH_STATS = STAT_RECHECKS + VMP_NR_RECHECKS,
};

static const char *const stat_names[NR_FLUSH_STATS] = {
	[STAT_DEFERRED] = "deferred",
	[STAT_CALLS] = "calls",
	[STAT_BATCHES] = "batches",
	[STAT_FLUSHES] = "flushes",
	[STAT_PAGEOUTS] = "pageouts",
	[STAT_UNWRITTEN] = "unwritten",
	[STAT_RECHECKS + VMP_DIRTY] = "recheck_dirty",
	[STAT_RECHECKS + VMP_CLEAN] = "recheck_clean",
	[STAT_RECHECKS + VMP_HWPOISON] = "bounce_hwpoison",
	[STAT_RECHECKS + VMP_NO_MAPPING] = "bounce_no_mapping",
	[STAT_RECHECKS + VMP_UNEVICTABLE] = "bounce_unevictable",
	[STAT_RECHECKS + VMP_MAPPED] = "bounce_mapped",
	[STAT_RECHECKS + VMP_WRITEBACK] = "bounce_writeback",
	[STAT_RECHECKS + VMP_PINNED] = "bounce_pinned",
	[STAT_RECHECKS + VMP_LOCKED] = "bounce_locked",
};

struct vmp_flush_stats {
	u64 count[NR_FLUSH_STATS];
	unsigned int largest_batch;
};

static DEFINE_PER_CPU(struct vmp_flush_stats, flush_stats);

static void count_stat(unsigned int stat)
{
	this_cpu_inc(flush_stats.count[stat]);
}

/**
 * vmp_flush_decide() - does a folio end its batch?
 * @nr_folios: folios in the batch, this one included
 * @nr_pages: base pages in the batch, this folio's included
 * @limit: flush/max_folios
 *
 * A batch ends with @limit folios or as many base pages, but may always
 * hold VMP_FLUSH_PAGES_MIN pages: one flush for a large folio is cheap already,
 * and every page in the batch is memory that nobody else can reclaim.
 *
 * Return: VMSCAN_DEFER_DRAIN if it does, else VMSCAN_DEFER.
 */
enum vmscan_defer vmp_flush_decide(unsigned int nr_folios,
				   unsigned int nr_pages,
				   unsigned int limit)
{
	if (nr_folios >= limit || nr_pages >= max(limit, VMP_FLUSH_PAGES_MIN))
		return VMSCAN_DEFER_DRAIN;

	return VMSCAN_DEFER;
}
EXPORT_SYMBOL_IF_KUNIT(vmp_flush_decide);

/**
 * vmp_flush_recheck() - lock a folio and see what became of it meanwhile
 * @folio: the folio, not locked; locked on return, unless that is VMP_LOCKED
 *
 * The mapping may be another one than before, or none: the folio has left the
 * swap cache (its last user exited, swapoff, a write that reused it) or was
 * truncated.
 *
 * Return: VMP_DIRTY or VMP_CLEAN if it can be reclaimed, else why not.
 */
enum vmp_recheck vmp_flush_recheck(struct folio *folio)
{
	struct address_space *mapping;

	if (!folio_trylock(folio))
		return VMP_LOCKED;

	mapping = folio_mapping(folio);
	if (folio_contain_hwpoisoned_page(folio))
		return VMP_HWPOISON;
	if (folio_test_mlocked(folio) || mapping_unevictable(mapping))
		return VMP_UNEVICTABLE;
	if (folio_mapped(folio))
		return VMP_MAPPED;
	if (!mapping)
		return VMP_NO_MAPPING;
	if (folio_test_writeback(folio))
		return VMP_WRITEBACK;
	if (folio_maybe_dma_pinned(folio))
		return VMP_PINNED;
	if (!folio_test_dirty(folio))
		return VMP_CLEAN;

	return VMP_DIRTY;
}
EXPORT_SYMBOL_IF_KUNIT(vmp_flush_recheck);

static enum vmscan_defer batch_defer(const struct vmscan_flush_ctx *ctx,
				     const struct folio *folio)
{
	return vmp_flush_decide(ctx->nr_folios + 1,
				ctx->nr_pages + folio_nr_pages(folio),
				READ_ONCE(max_folios));
}

/* The batch that a task drains, for its trace events. */
struct drain {
	struct vmp_where where;
	struct vmp_flush_batch batch;
	u64 id;
	u64 start;
};

/* @first: one of the folios. The core isolates them from one lruvec, mostly. */
static void trace_begin(struct drain *drain, const struct vmscan_flush_ctx *ctx,
			struct folio *first)
{
	const struct vmp_set *set = container_of(ctx->ops, struct vmp_set, ops);

	if (!trace_flush_batch_begin_enabled() &&
	    !trace_flush_batch_end_enabled() && !trace_flush_bounce_enabled())
		return;

	rcu_read_lock();
	drain->where = (struct vmp_where) {
		.policy = VMP_FLUSH_BATCH,
		.set = set->number,
		.cgroup = vmp_cgroup_id(folio_memcg(first)),
		.nid = ctx->nid,
	};
	rcu_read_unlock();
	drain->batch = (struct vmp_flush_batch) {
		.folios = ctx->nr_folios,
		.pages = ctx->nr_pages,
	};
	drain->id = vmp_trace_id();
	drain->start = local_clock();
	trace_flush_batch_begin(&drain->where, drain->id, ctx->nr_folios,
				ctx->nr_pages);
}

static void trace_end(struct drain *drain)
{
	if (drain->id)
		trace_flush_batch_end(&drain->where, drain->id, &drain->batch,
				      local_clock() - drain->start);
}

static void trace_bounce(struct drain *drain, const struct folio *folio,
			 enum vmp_recheck reason)
{
	if (!drain->id)
		return;

	drain->batch.bounced++;
	trace_flush_bounce(&drain->where, drain->id, reason,
			   folio_nr_pages(folio));
}

static bool flush_tlb(struct vmscan_flush_ctx *ctx)
{
	bool flushed = vmscan_flush_dirty(ctx);

	if (flushed)
		count_stat(STAT_FLUSHES);

	return flushed;
}

static void finish_folio(struct vmscan_flush_ctx *ctx, struct folio *folio,
			 struct drain *drain)
{
	enum vmp_recheck recheck = vmp_flush_recheck(folio);

	count_stat(STAT_RECHECKS + recheck);
	if (recheck != VMP_DIRTY && recheck != VMP_CLEAN)
		trace_bounce(drain, folio, recheck);

	switch (recheck) {
	case VMP_DIRTY:
	case VMP_CLEAN:
		if (vmscan_flush_pageout(ctx, folio)) {
			count_stat(STAT_PAGEOUTS);
			drain->batch.written++;
		} else if (recheck == VMP_DIRTY) {
			count_stat(STAT_UNWRITTEN);
		}
		break;
	case VMP_UNEVICTABLE:
	case VMP_PINNED:
		vmscan_flush_activate(ctx, folio);
		break;
	default:
		folio_unlock(folio);
		fallthrough;
	case VMP_LOCKED:
		vmscan_flush_keep(ctx, folio);
	}
}

static void batch_drain(struct vmscan_flush_ctx *ctx)
{
	struct folio *folio = vmscan_flush_take(ctx);
	struct drain drain = {};

	this_cpu_add(flush_stats.count[STAT_DEFERRED], ctx->nr_folios);
	count_stat(STAT_BATCHES);
	if (!ctx->nr_drains)
		count_stat(STAT_CALLS);
	/* A racy maximum: a task that migrates here may lose its own. */
	if (ctx->nr_folios > this_cpu_read(flush_stats.largest_batch))
		this_cpu_write(flush_stats.largest_batch, ctx->nr_folios);

	trace_begin(&drain, ctx, folio);
	drain.batch.flushed = flush_tlb(ctx);
	for (; folio; folio = vmscan_flush_take(ctx))
		finish_folio(ctx, folio, &drain);
	trace_end(&drain);
}

static void batch_fill(struct vmscan_policy_ops *ops)
{
	ops->defer_pageout = batch_defer;
	ops->drain = batch_drain;
}

static const struct vmp_policy flush_policies[] = {
	[VMP_FLUSH_STOCK] = { .name = "stock" },
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
		.min = VMP_FLUSH_FOLIOS_MIN,
		.max = VMP_FLUSH_FOLIOS_MAX,
		.value = &max_folios,
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
