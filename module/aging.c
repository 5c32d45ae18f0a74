// SPDX-License-Identifier: GPL-2.0
/*
 * The aging point: when a pass of our own loop makes a new generation, and what
 * that means for the rest of the pass.
 *
 * Eviction takes from the oldest of at least three generations. Making the next
 * one walks the page tables of all processes of the memcg.
 */
#include <linux/array_size.h>
#include <linux/mmzone.h>
#include <kunit/visibility.h>

#include "internal.h"
#include "trace.h"

static const char *const stat_names[VMP_NR_AGING_STATS] = {
	[VMP_AGING_SYNC] = "sync",
	[VMP_AGING_FAILED] = "failed",
	[VMP_AGING_WAITED] = "waited",
};

/**
 * vmp_aging_cold() - is there a generation to evict from?
 * @pass: the pass, with the generations
 *
 * Return: false if eviction is impossible until the next aging.
 */
bool vmp_aging_cold(const struct vmscan_pass *pass)
{
	return pass->nr_gens > MIN_NR_GENS;
}

/**
 * vmp_aging_policy() - which aging policy is in effect?
 * @settings: of the memory cgroup
 *
 * Return: the policy; the loop of 6.12 ages as it does, whatever is chosen.
 */
enum vmp_aging vmp_aging_policy(const struct vmp_settings *settings)
{
	return settings->policy[VMP_POINT_SCAN] == VMP_SCAN_6_12 ?
	       VMP_AGING_STOP : settings->policy[VMP_POINT_AGING];
}

/**
 * vmp_aging_decide() - is it time for a new generation?
 * @aging: the policy
 * @pass: the pass, with its priority and the generations
 *
 * "stop" decides as the loop of Linux 6.12 does, which never ages at the default
 * priority, and above that keeps the youngest and the oldest generation from
 * being too large and too small a part of all. "continue" decides as that of 7.2
 * does.
 *
 * Return: whether it is.
 */
bool vmp_aging_decide(enum vmp_aging aging, const struct vmscan_pass *pass)
{
	bool raised = pass->priority < DEF_PRIORITY;
	unsigned long evictable = 0;
	unsigned int i;

	if (!vmp_aging_cold(pass))
		return raised || aging == VMP_AGING_CONTINUE;
	if (!raised || pass->nr_gens > MIN_NR_GENS + 1)
		return false;
	if (aging == VMP_AGING_CONTINUE)
		return true;

	for (i = 0; i < pass->nr_gens; i++)
		evictable += pass->nr_pages[i];

	return pass->nr_pages[0] * (MIN_NR_GENS + 2) < evictable ||
	       pass->nr_pages[MIN_NR_GENS] * MIN_NR_GENS > evictable;
}
EXPORT_SYMBOL_IF_KUNIT(vmp_aging_decide);

static struct vmp_where pass_where(const struct vmscan_pass *pass, const struct vmp_rule *rule)
{
	return vmp_where(to_vmp_set(pass->ops)->number, rule, vmp_aging_policy(&rule->settings),
			 pass->memcg, pass->nid);
}

/**
 * vmp_aging_begins() - trace that the next step is to age
 * @rule: the rule of the pass
 * @pass: the pass
 */
void vmp_aging_begins(const struct vmp_rule *rule, const struct vmscan_pass *pass)
{
	struct vmp_where where;

	if (trace_aging_begin_enabled() || trace_aging_end_enabled()) {
		where = pass_where(pass, rule);
		trace_aging_begin(&where, vmp_begin_id(VMP_SPAN_AGING), pass->max_seq);
	}
}

/**
 * vmp_aging_result() - count and trace what has come of a step that was to age
 * @rule: the rule of the pass
 * @pass: the pass
 */
void vmp_aging_result(const struct vmp_rule *rule, const struct vmscan_pass *pass)
{
	struct vmp_where where;

	vmp_count(&rule->stats->aging[pass->progress ? VMP_AGING_SYNC : VMP_AGING_FAILED], 1);
	vmp_count(&rule->stats->aging[VMP_AGING_WAITED], pass->waited);
	if (trace_aging_end_enabled()) {
		where = pass_where(pass, rule);
		trace_aging_end(&where, vmp_end_id(VMP_SPAN_AGING),
				pass->max_seq - pass->progress, pass->max_seq);
	}
}

static const struct vmp_policy aging_policies[] = {
	[VMP_AGING_STOP] = { .name = "stop" },
	[VMP_AGING_CONTINUE] = { .name = "continue" },
};

static void aging_stats(struct seq_file *m, const struct vmp_stats __percpu *stats, bool machine)
{
	vmp_show_counters(m, stat_names, stats->aging, VMP_NR_AGING_STATS);
}

const struct vmp_point vmp_aging_point = {
	.name = "aging",
	.policies = aging_policies,
	.nr_policies = ARRAY_SIZE(aging_policies),
	.needs = VMP_POINT_SCAN,
	.in_effect = vmp_scan_ages,
	.show_stats = aging_stats,
};
EXPORT_SYMBOL_IF_KUNIT(vmp_aging_point);
