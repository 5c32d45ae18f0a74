// SPDX-License-Identifier: GPL-2.0
/*
 * The throttle point: when a reclaimer that meets too much that waits for a disk
 * has to wait, too.
 *
 * "memcg" has the batches of the multi-gen LRU counted in reclaim of a memory
 * cgroup, where the kernel then throttles by its own rules, and adds two. "all" has
 * them counted in root reclaim too, where the kernel has no rules for the multi-gen
 * LRU. Those here follow the ones for the classic LRU.
 *
 * With VMSCAN_TRAIT_FEEDBACK stock counts all batches by itself, and throttles by that in
 * reclaim of a memory cgroup. What is left of "memcg" are its two rules.
 */
#include <linux/array_size.h>
#include <linux/cleanup.h>
#include <linux/memcontrol.h>
#include <linux/nodemask.h>
#include <linux/rcupdate.h>
#include <linux/swap.h>
#include <linux/tracepoint.h>
#include <kunit/visibility.h>

#include "internal.h"
#include "watch.h"

static const char *const stat_names[VMP_NR_THROTTLE_STATS] = {
	[VMP_THROTTLE_EVENTS + VMSCAN_THROTTLE_WRITEBACK] = "writeback",
	[VMP_THROTTLE_EVENTS + VMSCAN_THROTTLE_ISOLATED] = "isolated",
	[VMP_THROTTLE_EVENTS + VMSCAN_THROTTLE_NOPROGRESS] = "noprogress",
	[VMP_THROTTLE_EVENTS + VMSCAN_THROTTLE_CONGESTED] = "congested",
	[VMP_THROTTLE_TIME + VMSCAN_THROTTLE_WRITEBACK] = "writeback_us",
	[VMP_THROTTLE_TIME + VMSCAN_THROTTLE_ISOLATED] = "isolated_us",
	[VMP_THROTTLE_TIME + VMSCAN_THROTTLE_NOPROGRESS] = "noprogress_us",
	[VMP_THROTTLE_TIME + VMSCAN_THROTTLE_CONGESTED] = "congested_us",
	[VMP_THROTTLE_KSWAPD] = "kswapd",
	[VMP_THROTTLE_MARK_WRITEBACK] = "mark_writeback",
	[VMP_THROTTLE_MARK_CONGESTED] = "mark_congested",
};

static const char *const longest_names[NR_VMSCAN_THROTTLE] = {
	[VMSCAN_THROTTLE_WRITEBACK] = "writeback_longest_us",
	[VMSCAN_THROTTLE_ISOLATED] = "isolated_longest_us",
	[VMSCAN_THROTTLE_NOPROGRESS] = "noprogress_longest_us",
	[VMSCAN_THROTTLE_CONGESTED] = "congested_longest_us",
};

/* For each node, used by its kswapd only. */
static struct vmp_fruitless fruitless[MAX_NUMNODES];

/**
 * vmp_throttle_accounts() - does a batch count for throttling?
 * @throttle: the policy
 * @root_reclaim: on behalf of the whole machine, else of a memory cgroup
 *
 * Return: true if it does.
 */
bool vmp_throttle_accounts(enum vmp_throttle throttle,
			   bool root_reclaim)
{
	return throttle >= VMP_FIRST_PLUGIN || throttle == VMP_THROTTLE_ALL ||
	       (throttle == VMP_THROTTLE_MEMCG && !root_reclaim);
}
EXPORT_SYMBOL_IF_KUNIT(vmp_throttle_accounts);

/**
 * vmp_throttle_count() - add a round of kswapd's to the fruitless ones, or begin anew
 * @fruitless: the rounds before
 * @round: what the round met
 * @set: number of the set of policies in force
 */
void vmp_throttle_count(struct vmp_fruitless *fruitless, const struct vmscan_round *round,
			u32 set)
{
	if (round->nr_reclaimed || fruitless->set != set)
		*fruitless = (struct vmp_fruitless) { .set = set };
	if (round->nr_reclaimed)
		return;

	fruitless->taken += round->nr_taken;
	fruitless->pending = max(fruitless->pending, round->nr_write_pending);
}
EXPORT_SYMBOL_IF_KUNIT(vmp_throttle_count);

/*
 * The classic LRU has kswapd sleep as soon as it meets a folio under writeback for
 * the second time, even if others were clean. Here, it must have reclaimed nothing
 * for as many pages as have waited to be written since; what was written meanwhile
 * is among the first to be met. What it takes and can't evict goes to a younger
 * generation, and is not met again before all that is older; so by then it has met
 * all that waits, and has found nothing clean among or before it.
 */
static unsigned int decide_kswapd(const struct vmscan_round *round,
				  const struct vmp_fruitless *fruitless)
{
	const struct reclaim_stat *stat = round->stat;
	unsigned int flags = 0;

	if (stat->nr_writeback && stat->nr_writeback == round->nr_taken)
		flags |= VMSCAN_MARK_WRITEBACK;
	if (stat->nr_dirty && stat->nr_dirty == stat->nr_congested)
		flags |= VMSCAN_MARK_CONGESTED;
	if (stat->nr_immediate && !round->nr_reclaimed && fruitless->pending &&
	    fruitless->taken >= fruitless->pending)
		flags |= VMSCAN_SLEEP_WRITEBACK;

	return flags;
}

/*
 * The classic LRU deactivates pages by statistics of the memory cgroup that may be
 * seconds old. Fast reclaim empties the inactive lists before these tell it, then takes
 * no page at any priority, and all its retries fail within milliseconds. Without swap
 * there is more often nothing left indeed.
 */
static bool found_nothing(const struct vmscan_round *round, bool swap)
{
	return swap && !round->root_reclaim && !round->proactive && !round->priority &&
	       !round->nr_taken && !round->nr_reclaimed;
}

/*
 * The kernel has a congested reclaimer sleep for a tick, so in all, before it kills
 * a process, for less than a second. A slow disk may not have written anything by
 * then, and a flusher that gets no CPU, or waits for that disk, may not have begun.
 * So a round that has met nothing but what waits for a disk waits for it, too, if it
 * has looked at 1/32 of the pages. One at an earlier priority may have met two dirty
 * folios among thousands of clean ones; the flusher writes fewer pages then than wake
 * a sleeper, who sleeps for the whole 100 ms.
 */
static unsigned int decide_direct(const struct vmscan_round *round, bool swap)
{
	const struct reclaim_stat *stat = round->stat;

	if (found_nothing(round, swap))
		return VMSCAN_SLEEP_WRITEBACK;

	if (!round->nr_reclaimed && round->priority < DEF_PRIORITY / 2 &&
	    stat->nr_dirty && stat->nr_dirty == round->nr_taken)
		return VMSCAN_SLEEP_WRITEBACK;

	return round->root_reclaim && round->congested ? VMSCAN_SLEEP_CONGESTED : 0;
}

/**
 * vmp_throttle_decide() - what to do after a round over a node
 * @round: what the round met
 * @fruitless: for kswapd: its rounds since it last reclaimed a page, this included
 * @swap: there is swap space left
 *
 * Return: the marks to set on the node, and the reason to sleep for: the flags of the
 * throttle point.
 */
unsigned int vmp_throttle_decide(const struct vmscan_round *round,
				 const struct vmp_fruitless *fruitless, bool swap)
{
	return round->kswapd ? decide_kswapd(round, fruitless) : decide_direct(round, swap);
}
EXPORT_SYMBOL_IF_KUNIT(vmp_throttle_decide);

/* By the settings of the memory cgroup that reclaim is for. */
static unsigned int throttle_round(const struct vmscan_round *round)
{
	const struct vmp_rule *rule = vmp_rule(round);
	const struct vmp_plugin *plugin = rule->plugin[VMP_POINT_THROTTLE];
	unsigned int flags;

	if (!vmp_throttle_accounts(rule->settings.policy[VMP_POINT_THROTTLE],
				   round->root_reclaim))
		return 0;

	CLASS(vmp_watch, watch)(rule, round->memcg, VMP_POINT_THROTTLE);
	if (round->kswapd)
		vmp_throttle_count(&fruitless[round->nid], round, to_vmp_set(round->ops)->number);
	flags = plugin ? vmp_ask(plugin, throttle, round) :
			 vmp_throttle_decide(round, &fruitless[round->nid],
					     get_nr_swap_pages() > 0);
	vmp_count(&rule->stats->throttle[VMP_THROTTLE_MARK_WRITEBACK],
		  !!(flags & VMSCAN_MARK_WRITEBACK));
	vmp_count(&rule->stats->throttle[VMP_THROTTLE_MARK_CONGESTED],
		  !!(flags & VMSCAN_MARK_CONGESTED));
	vmp_watch_answer(&watch, flags, flags & ~(VMSCAN_MARK_WRITEBACK | VMSCAN_MARK_CONGESTED |
						  VMSCAN_SLEEP_WRITEBACK | VMSCAN_SLEEP_CONGESTED));

	return flags;
}

static void throttle_fill(struct vmscan_policy_ops *ops, const struct vmp_settings *settings)
{
	if (settings->policy[VMP_POINT_THROTTLE] == VMP_THROTTLE_STOCK)
		return;
	ops->evict = vmp_evict;
	ops->evicted = vmp_evicted;
	ops->throttle = throttle_round;
}

static const struct vmp_policy throttle_policies[] = {
	[VMP_THROTTLE_STOCK] = { .name = "stock" },
	[VMP_THROTTLE_MEMCG] = { .name = "memcg" },
	[VMP_THROTTLE_ALL] = { .name = "all" },
};

/*
 * Sees each sleep of any reclaimer, whoever has decided on it. Which memory cgroup that was
 * for isn't known here: it counts for the sleeper's.
 */
static void throttled(void *data, int nid, int usec_timeout, int usec_delayed,
		      int reason)
{
	const struct vmp_rule *rule;
	struct mem_cgroup *memcg;
	u32 set;

	if (reason < 0 || reason >= NR_VMSCAN_THROTTLE)
		return;

	guard(rcu)();
	memcg = vmp_memcg_of(current);
	rule = vmp_rule_now(memcg, &set);
	vmp_count(&rule->stats->throttle[VMP_THROTTLE_EVENTS + reason], 1);
	vmp_count(&rule->stats->throttle[VMP_THROTTLE_TIME + reason], usec_delayed);
	vmp_count(&rule->stats->throttle[VMP_THROTTLE_KSWAPD], !!current_is_kswapd());
	vmp_count_largest(&rule->stats->longest[reason], usec_delayed);
	vmp_trace_throttled(rule, set, memcg, nid, reason, usec_delayed);
}

static struct tracepoint *throttled_tracepoint;

/**
 * vmp_throttle_init() - begin to count who sleeps
 *
 * Return: 0, or what tracepoint_probe_register() returned.
 */
int vmp_throttle_init(void)
{
	throttled_tracepoint = vmp_tracepoint("mm_vmscan_throttled");
	if (!throttled_tracepoint) {
		pr_warn("the kernel has no tracepoint mm_vmscan_throttled: throttle/stats can't count\n");
		return 0;
	}

	return tracepoint_probe_register(throttled_tracepoint, throttled, NULL);
}

void vmp_throttle_exit(void)
{
	if (!throttled_tracepoint)
		return;

	tracepoint_probe_unregister(throttled_tracepoint, throttled, NULL);
	tracepoint_synchronize_unregister();
}

static void throttle_stats(struct seq_file *m, const struct vmp_stats __percpu *stats,
			   bool machine)
{
	unsigned int reason;

	vmp_show_counters(m, stat_names, stats->throttle, VMP_NR_THROTTLE_STATS);
	for (reason = 0; reason < NR_VMSCAN_THROTTLE; reason++)
		seq_printf(m, "%s %u\n", longest_names[reason],
			   vmp_largest(&stats->longest[reason]));
}

const struct vmp_point vmp_throttle_point = {
	.name = "throttle",
	.policies = throttle_policies,
	.nr_policies = ARRAY_SIZE(throttle_policies),
	.fill = throttle_fill,
	.show_stats = throttle_stats,
};
EXPORT_SYMBOL_IF_KUNIT(vmp_throttle_point);
