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
 * aging policy is wanted, ours stands in for it: "budget" without a floor, in batches of 64 pages.
 */
#include <linux/array_size.h>
#include <linux/limits.h>
#include <linux/log2.h>
#include <linux/memcontrol.h>
#include <linux/minmax.h>
#include <kunit/visibility.h>

#include "internal.h"
#include "trace.h"
#include "watch.h"

/* Pages of an eviction batch of the loop that stands in for stock: MIN_LRU_BATCH. */
#define STOCK_BATCH	64

static const char *const stat_names[] = {
	[VMP_SCAN_PASSES] = "passes",
	[VMP_SCAN_GRANTED] = "budget",
	[VMP_SCAN_SCANNED] = "scanned",
	[VMP_SCAN_RECLAIMED] = "reclaimed",
	[VMP_SCAN_BATCHES] = "batches",
	[VMP_SCAN_RESCUED] = "stock_followed",
	[VMP_SCAN_ENDS + VMP_END_BUDGET] = "end_budget",
	[VMP_SCAN_ENDS + VMP_END_NOTHING] = "end_nothing",
	[VMP_SCAN_ENDS + VMP_END_BELOW_MIN] = "end_below_min",
	[VMP_SCAN_ENDS + VMP_END_ENOUGH] = "end_enough",
	[VMP_SCAN_ENDS + VMP_END_AGED] = "end_aged",
};

static unsigned int bucket(unsigned long nr_pages)
{
	return nr_pages ? min(ilog2(nr_pages) + 1, VMP_NR_BUCKETS - 1) : 0;
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

/**
 * vmp_scan_decide() - what is a pass to do next, and why?
 * @settings: of the memory cgroup
 * @pass: how far it is
 * @note: what else is known of it
 * @online: the memcg has not been removed
 *
 * After a step that was to age, a batch comes first, whatever came of it. "budget" alone has
 * a floor; the loop that stands in for stock is the same without one.
 *
 * Return: the step, and why the pass ends with it.
 */
struct vmp_decision vmp_scan_decide(const struct vmp_settings *settings,
				    const struct vmscan_pass *pass,
				    const struct vmp_pass_note *note, bool online)
{
	bool budget = settings->policy[VMP_POINT_SCAN] == VMP_SCAN_BUDGET;
	unsigned long batch = budget ? settings->batch : STOCK_BATCH;
	unsigned long floor = budget ? settings->floor : 0;
	enum vmp_aging aging = vmp_aging_policy(settings);
	struct vmp_decision decision = {};

	if (settings->policy[VMP_POINT_SCAN] == VMP_SCAN_6_12)
		return vmp_scan_6_12_decide(pass, note, online);

	decision.budget = vmp_scan_budget(pass->begin_size, pass->unprotected, pass->priority,
					  online, floor);
	decision.end = vmp_scan_end(pass, note, aging, decision.budget, floor);
	if (decision.end != VMP_GO_ON) {
		decision.step = VMSCAN_STEP(VMSCAN_END, 0, 0);
		return decision;
	}
	if (pass->last != VMSCAN_AGE && vmp_aging_decide(aging, pass)) {
		decision.step = VMSCAN_STEP(VMSCAN_AGE, 0, 0);
		return decision;
	}
	decision.step = VMSCAN_STEP(VMSCAN_EVICT,
				    budget ? vmp_scan_move(decision.budget, pass->nr_moved, floor,
							   batch) :
					     min(decision.budget - pass->nr_moved, batch),
				    batch);

	return decision;
}
EXPORT_SYMBOL_IF_KUNIT(vmp_scan_decide);

static void count_pass(const struct vmp_rule *rule, const struct vmscan_pass *pass,
		       unsigned long budget, enum vmp_end end)
{
	vmp_count(&rule->stats->scan[VMP_SCAN_PASSES], 1);
	vmp_count(&rule->stats->scan[VMP_SCAN_GRANTED], budget);
	vmp_count(&rule->stats->scan[VMP_SCAN_SCANNED], pass->nr_moved);
	vmp_count(&rule->stats->scan[VMP_SCAN_RECLAIMED], pass->nr_reclaimed);
	vmp_count(&rule->stats->scan[VMP_SCAN_BATCHES], pass->nr_batches);
	vmp_count(&rule->stats->scan[VMP_SCAN_ENDS + end], 1);
	vmp_count(&rule->stats->scan[VMP_SCAN_PASS_SCANNED + bucket(pass->nr_moved)], 1);
	vmp_count(&rule->stats->scan[VMP_SCAN_PASS_RECLAIMED + bucket(pass->nr_reclaimed)], 1);
	vmp_count(&rule->stats->scan[VMP_SCAN_RESCUED], pass->stock_follows);
}

static struct vmp_where pass_where(const struct vmscan_pass *pass, const struct vmp_rule *rule)
{
	return vmp_where(to_vmp_set(pass->ops)->number, rule,
			 rule->settings.policy[VMP_POINT_SCAN], pass->memcg, pass->nid);
}

static void trace_begin(const struct vmscan_pass *pass, const struct vmp_rule *rule, u64 budget)
{
	struct vmp_where where;

	if (!trace_scan_begin_enabled() && !trace_scan_end_enabled())
		return;

	where = pass_where(pass, rule);
	trace_scan_begin(&where, vmp_begin_id(VMP_SPAN_SCAN), budget, pass->priority);
}

static void trace_end(const struct vmscan_pass *pass, const struct vmp_rule *rule, u64 budget,
		      enum vmp_end end)
{
	struct vmp_where where;

	if (!trace_scan_end_enabled())
		return;

	where = pass_where(pass, rule);
	trace_scan_end(&where, vmp_end_id(VMP_SPAN_SCAN), pass, budget, end);
}

/* Of the last step, if it was to age. Tells vmp_scan_end() where the first aging was. */
static void take_result(const struct vmp_rule *rule, const struct vmscan_pass *pass,
			struct vmp_pass_note *note)
{
	if (pass->last != VMSCAN_AGE)
		return;

	vmp_aging_result(rule, pass);
	if (pass->progress && !note->aged) {
		note->aged = true;
		note->batches_before = pass->nr_batches;
	}
}

/* Does the kernel limit a step, or not know it? */
static bool is_clamped(u64 step)
{
	unsigned int action = VMSCAN_STEP_ACTION(step);

	if (action != VMSCAN_EVICT)
		return action > VMSCAN_AGE;

	return !in_range(VMSCAN_STEP_MOVE(step), 1, VMSCAN_MAX_BATCH) ||
	       !in_range(VMSCAN_STEP_TAKE(step), 1, VMSCAN_MAX_BATCH);
}

/* The first word of a note is ours, the second that of another module's policy. */
static struct vmp_decision decide(const struct vmp_rule *rule, const struct vmscan_pass *pass,
				  struct vmscan_note *words)
{
	const struct vmp_plugin *plugin = rule->plugin[VMP_POINT_SCAN];
	struct vmp_decision decision = {};

	if (plugin) {
		decision.step = vmp_ask(plugin, next_step, pass, &words->words[1]);
		return decision;
	}

	return vmp_scan_decide(&rule->settings, pass, (struct vmp_pass_note *)words,
			       mem_cgroup_online(pass->memcg));
}

/* Why a pass has ended, which may be not by us: there was nothing, or it was below memory.min. */
static enum vmp_end why_ended(const struct vmp_rule *rule, const struct vmscan_pass *pass,
			      enum vmp_end decided)
{
	if (pass->below_min)
		return VMP_END_BELOW_MIN;
	if (rule->plugin[VMP_POINT_SCAN])
		return pass->enough ? VMP_END_ENOUGH : VMP_END_BUDGET;

	return decided == VMP_GO_ON ? VMP_END_NOTHING : decided;
}

static u64 next_step(const struct vmscan_pass *pass, struct vmscan_note *words)
{
	struct vmp_pass_note *note = (struct vmp_pass_note *)words;
	const struct vmp_rule *rule = vmp_rule(pass);
	enum vmp_scan scan = rule->settings.policy[VMP_POINT_SCAN];
	struct vmp_decision decision;

	take_result(rule, pass, note);
	if (!vmp_scan_walks(scan, rule->settings.policy[VMP_POINT_AGING], vmp_traits()))
		return VMSCAN_STEP(VMSCAN_STOCK, 0, 0);

	CLASS(vmp_watch, watch)(rule, pass->memcg, VMP_POINT_SCAN);
	decision = decide(rule, pass, words);
	if (pass->last == VMSCAN_STOCK && VMSCAN_STEP_ACTION(decision.step) != VMSCAN_STOCK)
		trace_begin(pass, rule, decision.budget);
	if (VMSCAN_STEP_ACTION(decision.step) == VMSCAN_AGE)
		vmp_aging_begins(rule, pass);
	note->scan = scan;
	note->budget = min(decision.budget, U32_MAX);
	note->end = decision.end;
	vmp_watch_answer(&watch, decision.step, is_clamped(decision.step));

	return decision.step;
}

static bool pass_ended(const struct vmscan_pass *pass, struct vmscan_note *words)
{
	struct vmp_pass_note *note = (struct vmp_pass_note *)words;
	const struct vmp_rule *rule = vmp_rule(pass);
	enum vmp_scan scan = rule->settings.policy[VMP_POINT_SCAN];
	struct vmp_decision decision = {};

	take_result(rule, pass, note);
	if (pass->last == VMSCAN_END && note->scan == scan)
		decision = (struct vmp_decision) { .end = note->end, .budget = note->budget };
	else if (!rule->plugin[VMP_POINT_SCAN])
		decision = decide(rule, pass, words);
	decision.end = why_ended(rule, pass, decision.end);
	count_pass(rule, pass, decision.budget, decision.end);
	trace_end(pass, rule, decision.budget, decision.end);
	vmp_watch_pass(rule, pass);

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
static void scan_fill(struct vmscan_policy_ops *ops, const struct vmp_settings *settings)
{
	ops->pass_ended = pass_ended;
	if (vmp_scan_walks(settings->policy[VMP_POINT_SCAN], settings->policy[VMP_POINT_AGING],
			   vmp_traits()))
		ops->next_step = next_step;
}

static const struct vmp_policy scan_policies[] = {
	[VMP_SCAN_STOCK] = { .name = "stock" },
	[VMP_SCAN_BUDGET] = { .name = "budget" },
	[VMP_SCAN_6_12] = { .name = "v6.12", .only_with = VMSCAN_TRAIT_BUDGET },
};

static void show_buckets(struct seq_file *m, const char *name, const u64 __percpu *counters)
{
	char names[VMP_NR_BUCKETS][32];
	const char *lines[VMP_NR_BUCKETS];
	unsigned int i;

	for (i = 0; i < VMP_NR_BUCKETS; i++) {
		snprintf(names[i], sizeof(names[i]), "%s_%lu", name,
			 i ? BIT(i - 1) : 0);
		lines[i] = names[i];
	}
	vmp_show_counters(m, lines, counters, VMP_NR_BUCKETS);
}

static void scan_stats(struct seq_file *m, const struct vmp_stats __percpu *stats, bool machine)
{
	vmp_show_counters(m, stat_names, stats->scan, VMP_SCAN_PASS_SCANNED);
	show_buckets(m, "pass_scanned", stats->scan + VMP_SCAN_PASS_SCANNED);
	show_buckets(m, "pass_reclaimed", stats->scan + VMP_SCAN_PASS_RECLAIMED);
}

static const struct vmp_number scan_numbers[] = {
	{
		.path = "scan/batch",
		.min = 1,
		.max = VMSCAN_MAX_BATCH,
		.setting = offsetof(struct vmp_settings, batch),
	},
	{
		.path = "scan/floor",
		.max = VMSCAN_MAX_BATCH,
		.setting = offsetof(struct vmp_settings, floor),
	},
};

const struct vmp_point vmp_scan_point = {
	.name = "scan",
	.policies = scan_policies,
	.nr_policies = ARRAY_SIZE(scan_policies),
	.numbers = scan_numbers,
	.nr_numbers = ARRAY_SIZE(scan_numbers),
	.fill = scan_fill,
	.show_stats = scan_stats,
};
EXPORT_SYMBOL_IF_KUNIT(vmp_scan_point);
