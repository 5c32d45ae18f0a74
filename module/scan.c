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
	STAT_RESCUED,		/* passes that the stock loop had to follow */
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
	[STAT_RESCUED] = "stock_followed",
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
 * @note: what else is known of it
 * @aging: the aging policy
 * @budget: pages it may scan
 *
 * A pass that finds nothing to scan goes on when no cold generation is left either:
 * aging, which comes before the batch, may then make one.
 *
 * Return: why it ends, or VMP_GO_ON.
 */
enum vmp_end vmp_scan_end(const struct vmscan_pass *pass, const struct vmp_pass_note *note,
			  enum vmp_aging aging, unsigned long budget)
{
	bool dry = pass->last == VMSCAN_EVICT && !pass->done;

	if (pass->enough)
		return VMP_END_ENOUGH;
	if (note->aged && aging == VMP_AGING_STOP)
		return VMP_END_AGED;
	if (note->aged && pass->root_reclaim && pass->nr_batches > note->batches_before)
		return VMP_END_AGED;
	if (pass->nr_moved >= budget)
		return VMP_END_BUDGET;
	if (dry && vmp_aging_cold(pass))
		return VMP_END_NOTHING;

	return VMP_GO_ON;
}
EXPORT_SYMBOL_IF_KUNIT(vmp_scan_end);

static void count_pass(const struct vmscan_pass *pass, unsigned long budget,
		       enum vmp_end end)
{
	add_stat(STAT_PASSES, 1);
	add_stat(STAT_BUDGET, budget);
	add_stat(STAT_SCANNED, pass->nr_moved);
	add_stat(STAT_RECLAIMED, pass->nr_reclaimed);
	add_stat(STAT_BATCHES, pass->nr_batches);
	add_stat(STAT_ENDS + end, 1);
	add_stat(STAT_PASS_SCANNED + bucket(pass->nr_moved), 1);
	add_stat(STAT_PASS_RECLAIMED + bucket(pass->nr_reclaimed), 1);
	add_stat(STAT_RESCUED, pass->stock_follows);
}

static void trace_begin(const struct vmscan_pass *pass, struct vmp_pass_note *note,
			u64 budget)
{
	struct vmp_where where;

	if (!trace_scan_begin_enabled() && !trace_scan_end_enabled())
		return;

	where = vmp_where(pass->ops, VMP_SCAN_BUDGET, pass->memcg, pass->nid);
	note->id = vmp_trace_id();
	trace_scan_begin(&where, vmp_own_id(note->id), budget, pass->priority);
}

static void trace_end(const struct vmscan_pass *pass, const struct vmp_pass_note *note,
		      u64 budget, enum vmp_end end)
{
	struct vmp_where where;

	if (!trace_scan_end_enabled())
		return;

	where = vmp_where(pass->ops, VMP_SCAN_BUDGET, pass->memcg, pass->nid);
	trace_scan_end(&where, vmp_own_id(note->id), pass, budget, end);
}

static unsigned long pass_budget(const struct vmscan_pass *pass)
{
	return vmp_scan_budget(pass->begin_size, pass->unprotected, pass->priority,
			       mem_cgroup_online(pass->memcg), READ_ONCE(floor_choice));
}

static enum vmp_end pass_end(const struct vmscan_pass *pass, const struct vmp_pass_note *note,
			     unsigned long budget)
{
	return vmp_scan_end(pass, note, to_vmp_set(pass->ops)->aging, budget);
}

static struct vmscan_step budget_step(const struct vmscan_pass *pass, u64 *words)
{
	struct vmp_pass_note *note = (struct vmp_pass_note *)words;
	unsigned long budget = pass_budget(pass);

	vmp_aging_result(pass, note);
	if (pass->last == VMSCAN_END)
		trace_begin(pass, note, budget);

	if (pass_end(pass, note, budget) != VMP_GO_ON)
		return (struct vmscan_step) { .action = VMSCAN_END };
	if (vmp_aging_step(pass, note))
		return (struct vmscan_step) { .action = VMSCAN_AGE };

	return (struct vmscan_step) {
		.action = VMSCAN_EVICT,
		.max_move = min(budget - pass->nr_moved, VMSCAN_MAX_BATCH),
		.max_take = READ_ONCE(batch_pages),
	};
}

/* Maybe not by us: there was nothing, or the memcg fell below its memory.min. */
static bool pass_ended(const struct vmscan_pass *pass, u64 *words)
{
	struct vmp_pass_note *note = (struct vmp_pass_note *)words;
	unsigned long budget = pass_budget(pass);
	enum vmp_end end;

	vmp_aging_result(pass, note);
	end = pass_end(pass, note, budget);
	if (pass->below_min)
		end = VMP_END_BELOW_MIN;
	else if (end == VMP_GO_ON)
		end = VMP_END_NOTHING;
	count_pass(pass, budget, end);
	trace_end(pass, note, budget, end);

	return note->aged;
}

/* A pass that began with another set is counted and traced to its end. */
static void stock_fill(struct vmscan_policy_ops *ops)
{
	ops->pass_ended = pass_ended;
}

static void budget_fill(struct vmscan_policy_ops *ops)
{
	ops->next_step = budget_step;
	ops->pass_ended = pass_ended;
}

static const struct vmp_policy scan_policies[] = {
	[VMP_SCAN_STOCK] = { .name = "stock", .fill = stock_fill },
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
	.max = VMSCAN_MAX_BATCH,
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
