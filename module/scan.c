// SPDX-License-Identifier: GPL-2.0
/*
 * The scan point: how much of an lruvec one pass of the multi-gen LRU scans.
 *
 * "budget" settles that once, when the pass begins, and applies the priority
 * whatever it is. The stock loop of 6.12 settles it anew in each iteration, from what
 * is left. The budget and the order of the loop follow the reclaim loop of Linux 7.2;
 * that each pass of memcg reclaim ends when it alone has enough, and the floors, do not.
 *
 * A kernel's own loop can't be asked when to age. Where that is the one of 7.2 and another
 * aging policy is wanted, ours stands in for it: "budget" with its floor and its batches.
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

/* Pages of an eviction batch; at first MIN_LRU_BATCH, as in the stock loop. */
#define STOCK_BATCH	64
static unsigned int batch_pages = STOCK_BATCH;
/* Pages that a pass of "budget" scans at least; by measurement, see docs/results/scan-floor.md. */
static unsigned int floor_pages = 256;

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
 * @floor: what to scan at least, where there is as much that is unprotected
 *
 * Return: the number of pages.
 */
unsigned long vmp_scan_budget(unsigned long evictable,
			      unsigned long unprotected,
			      int priority, bool online,
			      unsigned long floor)
{
	if (!online)
		return evictable;

	/* the kernel's is SWAP_CLUSTER_MAX at least */
	unprotected = min(unprotected, evictable);

	return max(unprotected >> priority, min(floor, unprotected));
}
EXPORT_SYMBOL_IF_KUNIT(vmp_scan_budget);

/**
 * vmp_scan_move() - how many pages may the next batch move?
 * @budget: pages that the pass may scan
 * @moved: those that it has; less than @budget
 * @floor: those that it scans at least
 * @batch: pages that a batch takes
 *
 * With a floor the last batch is whole: its pages share a TLB flush.
 *
 * Return: the number.
 */
unsigned long vmp_scan_move(unsigned long budget, unsigned long moved,
			    unsigned long floor, unsigned long batch)
{
	unsigned long whole = min3(floor, batch, budget);

	return min(max(budget - moved, whole), VMSCAN_MAX_BATCH);
}
EXPORT_SYMBOL_IF_KUNIT(vmp_scan_move);

/**
 * vmp_scan_end() - does a pass end before its next batch?
 * @pass: how far it is
 * @note: what else is known of it
 * @aging: the aging policy
 * @budget: pages it may scan
 * @floor: pages that it scans although it has enough, if the budget allows
 *
 * A pass that finds nothing to scan goes on when no cold generation is left either:
 * aging, which comes before the batch, may then make one. Not if it has enough.
 *
 * Return: why it ends, or VMP_GO_ON.
 */
enum vmp_end vmp_scan_end(const struct vmscan_pass *pass, const struct vmp_pass_note *note,
			  enum vmp_aging aging, unsigned long budget, unsigned long floor)
{
	bool dry = pass->last == VMSCAN_EVICT && !pass->progress;

	if (pass->enough && (pass->nr_moved >= floor || !vmp_aging_cold(pass)))
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

static void trace_begin(const struct vmscan_pass *pass, u64 budget)
{
	struct vmp_where where;

	if (!trace_scan_begin_enabled() && !trace_scan_end_enabled())
		return;

	where = vmp_where(pass->ops, to_vmp_set(pass->ops)->scan, pass->memcg, pass->nid);
	trace_scan_begin(&where, vmp_begin_id(VMP_SPAN_SCAN), budget, pass->priority);
}

static void trace_end(const struct vmscan_pass *pass, u64 budget, enum vmp_end end)
{
	struct vmp_where where;

	if (!trace_scan_end_enabled())
		return;

	where = vmp_where(pass->ops, to_vmp_set(pass->ops)->scan, pass->memcg, pass->nid);
	trace_scan_end(&where, vmp_end_id(VMP_SPAN_SCAN), pass, budget, end);
}

/* "budget" alone has one. */
static unsigned long pass_floor(const struct vmp_pass_note *note)
{
	return note->scan == VMP_SCAN_STOCK ? 0 : READ_ONCE(floor_pages);
}

/* Of the loop that made the last step. That of 6.12 may scan no more once it is to age. */
static unsigned long pass_budget(const struct vmscan_pass *pass, const struct vmp_pass_note *note)
{
	if (note->scan == VMP_SCAN_6_12)
		return note->to_age ? pass->nr_moved : note->budget;

	return vmp_scan_budget(pass->begin_size, pass->unprotected, pass->priority,
			       mem_cgroup_online(pass->memcg), pass_floor(note));
}

static enum vmp_end pass_end(const struct vmscan_pass *pass, const struct vmp_pass_note *note,
			     unsigned long budget)
{
	if (note->scan == VMP_SCAN_6_12)
		return vmp_scan_6_12_end(pass, note);

	return vmp_scan_end(pass, note, to_vmp_set(pass->ops)->aging, budget,
			    pass_floor(note));
}

/* Of "budget", or standing in for stock. */
static u64 budget_step(const struct vmscan_pass *pass, struct vmscan_note *words)
{
	struct vmp_pass_note *note = (struct vmp_pass_note *)words;
	unsigned int batch = READ_ONCE(batch_pages);
	unsigned long budget;

	note->scan = to_vmp_set(pass->ops)->scan;
	budget = pass_budget(pass, note);
	vmp_aging_result(pass, note);
	if (pass->last == VMSCAN_STOCK)
		trace_begin(pass, budget);

	if (pass_end(pass, note, budget) != VMP_GO_ON)
		return VMSCAN_STEP(VMSCAN_END, 0, 0);
	if (vmp_aging_step(pass, note))
		return VMSCAN_STEP(VMSCAN_AGE, 0, 0);

	if (note->scan == VMP_SCAN_STOCK)
		return VMSCAN_STEP(VMSCAN_EVICT, min(budget - pass->nr_moved, STOCK_BATCH),
				   STOCK_BATCH);

	return VMSCAN_STEP(VMSCAN_EVICT,
			   vmp_scan_move(budget, pass->nr_moved, pass_floor(note), batch), batch);
}

static u64 step_6_12(const struct vmscan_pass *pass, struct vmscan_note *words)
{
	struct vmp_pass_note *note = (struct vmp_pass_note *)words;
	bool begins = pass->last == VMSCAN_STOCK;
	u64 step;

	vmp_aging_result(pass, note);
	step = vmp_scan_6_12_step(pass, note, mem_cgroup_online(pass->memcg));
	if (begins)
		trace_begin(pass, pass_budget(pass, note));
	if (VMSCAN_STEP_ACTION(step) == VMSCAN_AGE)
		vmp_aging_begin(pass, note);

	return step;
}

/* Maybe not by us: there was nothing, or the memcg fell below its memory.min. */
static bool pass_ended(const struct vmscan_pass *pass, struct vmscan_note *words)
{
	struct vmp_pass_note *note = (struct vmp_pass_note *)words;
	unsigned long budget = pass_budget(pass, note);
	enum vmp_end end;

	vmp_aging_result(pass, note);
	end = pass_end(pass, note, budget);
	if (pass->below_min)
		end = VMP_END_BELOW_MIN;
	else if (end == VMP_GO_ON)
		end = VMP_END_NOTHING;
	count_pass(pass, budget, end);
	trace_end(pass, budget, end);

	return note->aged;
}

/**
 * vmp_scan_walks() - does a loop of ours go over an lruvec?
 * @scan: the scan policy
 * @aging: the aging policy
 * @traits: the kernel's
 *
 * Return: false if it is the kernel's own.
 */
bool vmp_scan_walks(enum vmp_scan scan, enum vmp_aging aging, unsigned long traits)
{
	return scan != VMP_SCAN_STOCK ||
	       (traits & VMSCAN_TRAIT_BUDGET && aging != VMP_AGING_CONTINUE);
}
EXPORT_SYMBOL_IF_KUNIT(vmp_scan_walks);

/**
 * vmp_scan_ages() - is the aging policy in effect?
 * @scan: the scan policy
 * @traits: the kernel's
 *
 * Return: false if the loop ages as it does, whatever is chosen.
 */
bool vmp_scan_ages(unsigned int scan, unsigned long traits)
{
	return scan == VMP_SCAN_BUDGET ||
	       (scan == VMP_SCAN_STOCK && traits & VMSCAN_TRAIT_BUDGET);
}
EXPORT_SYMBOL_IF_KUNIT(vmp_scan_ages);

/* A pass that began with another set is counted and traced to its end. */
static void stock_fill(struct vmscan_policy_ops *ops)
{
	const struct vmp_set *set = to_vmp_set(ops);

	if (vmp_scan_walks(set->scan, set->aging, vmp_traits()))
		ops->next_step = budget_step;
	ops->pass_ended = pass_ended;
}

static void budget_fill(struct vmscan_policy_ops *ops)
{
	ops->next_step = budget_step;
	ops->pass_ended = pass_ended;
}

static void fill_6_12(struct vmscan_policy_ops *ops)
{
	ops->next_step = step_6_12;
	ops->pass_ended = pass_ended;
}

static const struct vmp_policy scan_policies[] = {
	[VMP_SCAN_STOCK] = { .name = "stock", .fill = stock_fill },
	[VMP_SCAN_BUDGET] = { .name = "budget", .fill = budget_fill },
	[VMP_SCAN_6_12] = {
		.name = "v6.12",
		.only_with = VMSCAN_TRAIT_BUDGET,
		.fill = fill_6_12,
	},
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

static const struct vmp_number scan_floor = {
	.path = "scan/floor",
	.max = VMSCAN_MAX_BATCH,
	.value = &floor_pages,
};

static void scan_create_files(struct dentry *dir)
{
	vmp_create_number(dir, &scan_batch);
	vmp_create_number(dir, &scan_floor);
	debugfs_create_file("stats", 0444, dir, NULL, &stats_fops);
}

const struct vmp_point vmp_scan_point = {
	.name = "scan",
	.policies = scan_policies,
	.nr_policies = ARRAY_SIZE(scan_policies),
	.create_files = scan_create_files,
};
EXPORT_SYMBOL_IF_KUNIT(vmp_scan_point);
