// SPDX-License-Identifier: GPL-2.0
/*
 * The scan point: how much of an lruvec one pass of the multi-gen LRU scans.
 *
 * "budget" settles that once, when the pass begins, and applies the priority
 * whatever it is. Stock settles it anew in each iteration, from what is left.
 * The budget and the order of the loop follow the reclaim loop of Linux 7.2;
 * that memcg reclaim ends when it has enough, too, and the floors do not.
 */
#include <linux/debugfs.h>
#include <linux/log2.h>
#include <linux/memcontrol.h>
#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/swap.h>
#include <kunit/visibility.h>

#include "internal.h"
#include "trace.h"

/* Pages of an eviction batch; MIN_LRU_BATCH, as in the stock loop. */
static unsigned int batch_pages = 64;
static unsigned int floor_choice = VMP_FLOOR_SMALL;

/* A pass of 0, 1, 2 to 3, 4 to 7, ... pages; the last bucket takes the rest. */
#define NR_BUCKETS	16

enum vmp_scan_stat {
	STAT_PASSES,
	STAT_BUDGET,		/* pages granted */
	STAT_SCANNED,		/* ... and used */
	STAT_RECLAIMED,
	STAT_BATCHES,
	STAT_ENDS,		/* passes by the reason they ended for */
	STAT_PASS_SCANNED = STAT_ENDS + VMP_NR_ENDS,
	STAT_PASS_RECLAIMED = STAT_PASS_SCANNED + NR_BUCKETS,
	NR_SCAN_STATS = STAT_PASS_RECLAIMED + NR_BUCKETS,
};

static const char *const stat_names[] = {
	[STAT_PASSES] = "passes",
	[STAT_BUDGET] = "budget",
	[STAT_SCANNED] = "scanned",
	[STAT_RECLAIMED] = "reclaimed",
	[STAT_BATCHES] = "batches",
	[STAT_ENDS + VMP_END_BUDGET] = "end_budget",
	[STAT_ENDS + VMP_END_NOTHING] = "end_nothing",
	[STAT_ENDS + VMP_END_BELOW_MIN] = "end_below_min",
	[STAT_ENDS + VMP_END_ENOUGH] = "end_enough",
	[STAT_ENDS + VMP_END_AGED] = "end_aged",
};

static DEFINE_PER_CPU(u64 [NR_SCAN_STATS], scan_stats);

static void add_stat(unsigned int stat, unsigned long value)
{
	this_cpu_add(scan_stats[stat], value);
}

static unsigned int bucket(unsigned long nr_pages)
{
	return nr_pages ? min(ilog2(nr_pages) + 1, NR_BUCKETS - 1) : 0;
}

/**
 * vmp_scan_budget() - how many pages may a pass scan?
 * @evictable: evictable pages of the lruvec
 * @unprotected: those of them that memory.min and memory.low leave
 * @priority: of the pass
 * @online: the memcg has not been removed
 * @floor: what to scan at least
 *
 * Return: the number of pages. It may be more than @evictable with a floor; the
 * pass then ends when there is nothing left to scan.
 */
unsigned long vmp_scan_budget(unsigned long evictable,
			      unsigned long unprotected,
			      int priority, bool online,
			      enum vmp_floor floor)
{
	unsigned long budget;

	if (!online || !evictable)
		return evictable;

	budget = unprotected >> priority;
	if (floor == VMP_FLOOR_SMALL && !budget)
		budget = min(evictable, SWAP_CLUSTER_MAX);
	if (floor == VMP_FLOOR_ALWAYS)
		budget = max(budget, SWAP_CLUSTER_MAX);

	return budget;
}
EXPORT_SYMBOL_IF_KUNIT(vmp_scan_budget);

/**
 * vmp_scan_end() - does a pass end before its next batch?
 * @pass: how far it is
 *
 * A pass that finds nothing to scan goes on once when no cold generation is left
 * either: aging, which comes before the batch, may then make one.
 *
 * Return: why it ends, or VMP_GO_ON.
 */
enum vmp_end vmp_scan_end(const struct vmp_pass *pass)
{
	if (pass->below_min)
		return VMP_END_BELOW_MIN;
	if (pass->enough)
		return VMP_END_ENOUGH;
	if (pass->aged && pass->aging == VMP_AGING_STOP)
		return VMP_END_AGED;
	if (pass->aged && pass->root_reclaim && pass->batches_aged)
		return VMP_END_AGED;
	if (pass->scanned >= pass->budget)
		return VMP_END_BUDGET;
	if (pass->dry && (pass->cold || pass->dry > 1))
		return VMP_END_NOTHING;

	return VMP_GO_ON;
}
EXPORT_SYMBOL_IF_KUNIT(vmp_scan_end);

/* Stock never stops memcg reclaim for this, and so takes too much. */
static bool enough_reclaimed(struct vmscan_scan_ctx *ctx)
{
	if (ctx->root_reclaim)
		return vmscan_scan_should_abort(ctx);

	return ctx->nr_reclaimed >= ctx->nr_to_reclaim;
}

static void count_pass(const struct vmp_pass *pass, unsigned long reclaimed,
		       enum vmp_end end)
{
	add_stat(STAT_PASSES, 1);
	add_stat(STAT_BUDGET, pass->budget);
	add_stat(STAT_SCANNED, pass->scanned);
	add_stat(STAT_RECLAIMED, reclaimed);
	add_stat(STAT_ENDS + end, 1);
	add_stat(STAT_PASS_SCANNED + bucket(pass->scanned), 1);
	add_stat(STAT_PASS_RECLAIMED + bucket(reclaimed), 1);
}

static void evict_batch(struct vmscan_scan_ctx *ctx, struct vmp_pass *pass)
{
	if (vmscan_scan_evict(ctx, pass->budget - pass->scanned,
			      READ_ONCE(batch_pages)))
		pass->dry = 0;
	else
		pass->dry++;

	pass->scanned = ctx->nr_scanned;
	pass->batches_aged += pass->aged;
	add_stat(STAT_BATCHES, 1);
}

static struct vmp_where where(const struct vmscan_scan_ctx *ctx)
{
	return (struct vmp_where) {
		.policy = VMP_SCAN_BUDGET,
		.set = container_of(ctx->ops, struct vmp_set, ops)->number,
		.cgroup = vmp_cgroup_id(ctx->memcg),
		.nid = ctx->nid,
	};
}

/* Return: the id of the pass, 0 if none is needed. */
static u64 trace_begin(const struct vmscan_scan_ctx *ctx, u64 budget)
{
	struct vmp_where here;
	u64 id;

	if (!trace_scan_begin_enabled() && !trace_scan_end_enabled())
		return 0;

	here = where(ctx);
	id = vmp_trace_id();
	trace_scan_begin(&here, id, budget, ctx->priority);

	return id;
}

static void trace_end(const struct vmscan_scan_ctx *ctx, u64 id,
		      const struct vmp_pass *pass, u64 reclaimed,
		      enum vmp_end end)
{
	struct vmp_where here;

	if (!trace_scan_end_enabled())
		return;

	here = where(ctx);
	trace_scan_end(&here, id, pass, reclaimed, ctx->priority, end);
}

static bool budget_shrink_lruvec(struct vmscan_scan_ctx *ctx)
{
	const struct vmp_set *set = container_of(ctx->ops, struct vmp_set, ops);
	unsigned long reclaimed = ctx->nr_reclaimed;
	struct vmp_pass pass = {
		.aging = set->aging,
		.root_reclaim = ctx->root_reclaim,
	};
	struct vmscan_gens gens;
	unsigned long evictable = vmscan_scan_gens(ctx, &gens);
	enum vmp_end end;
	u64 id;

	pass.budget = vmp_scan_budget(evictable,
				      vmscan_scan_unprotected(ctx, evictable),
				      ctx->priority,
				      mem_cgroup_online(ctx->memcg),
				      READ_ONCE(floor_choice));
	id = trace_begin(ctx, pass.budget);
	while (true) {
		pass.below_min = vmscan_scan_below_min(ctx);
		pass.enough = enough_reclaimed(ctx);
		pass.cold = vmp_aging_cold(&gens);
		end = vmp_scan_end(&pass);
		if (end != VMP_GO_ON)
			break;

		if (vmp_aging_step(ctx, set, &gens, evictable)) {
			pass.aged = true;
			if (set->aging == VMP_AGING_STOP)
				continue;
		}
		evict_batch(ctx, &pass);
		evictable = vmscan_scan_gens(ctx, &gens);
	}
	reclaimed = ctx->nr_reclaimed - reclaimed;
	count_pass(&pass, reclaimed, end);
	trace_end(ctx, id, &pass, reclaimed, end);

	return end == VMP_END_BELOW_MIN || pass.aged;
}

static void budget_fill(struct vmscan_policy_ops *ops)
{
	ops->shrink_lruvec = budget_shrink_lruvec;
}

static const struct vmp_policy scan_policies[] = {
	[VMP_SCAN_STOCK] = { .name = "stock" },
	[VMP_SCAN_BUDGET] = { .name = "budget", .fill = budget_fill },
};

static void show_buckets(struct seq_file *m, const char *name,
			 unsigned int stat)
{
	char names[NR_BUCKETS][32];
	const char *lines[NR_BUCKETS];
	unsigned int i;

	for (i = 0; i < NR_BUCKETS; i++) {
		snprintf(names[i], sizeof(names[i]), "%s_%lu", name,
			 i ? BIT(i - 1) : 0);
		lines[i] = names[i];
	}
	vmp_show_counters(m, lines, scan_stats + stat, NR_BUCKETS);
}

static int stats_show(struct seq_file *m, void *v)
{
	vmp_show_counters(m, stat_names, scan_stats, STAT_PASS_SCANNED);
	show_buckets(m, "pass_scanned", STAT_PASS_SCANNED);
	show_buckets(m, "pass_reclaimed", STAT_PASS_RECLAIMED);

	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

static const struct vmp_number scan_batch = {
	.path = "scan/batch",
	.min = 1,
	.max = VMP_SCAN_BATCH_MAX,
	.value = &batch_pages,
};

static const char *const floor_names[] = {
	[VMP_FLOOR_NONE] = "none",
	[VMP_FLOOR_SMALL] = "small",
	[VMP_FLOOR_ALWAYS] = "always",
};

static const struct vmp_option scan_floor = {
	.path = "scan/floor",
	.names = floor_names,
	.nr_names = ARRAY_SIZE(floor_names),
	.value = &floor_choice,
};

static void scan_create_files(struct dentry *dir)
{
	vmp_create_number(dir, &scan_batch);
	vmp_create_option(dir, &scan_floor);
	debugfs_create_file("stats", 0444, dir, NULL, &stats_fops);
}

const struct vmp_point vmp_scan_point = {
	.name = "scan",
	.policies = scan_policies,
	.nr_policies = ARRAY_SIZE(scan_policies),
	.create_files = scan_create_files,
};
EXPORT_SYMBOL_IF_KUNIT(vmp_scan_point);
