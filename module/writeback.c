// SPDX-License-Identifier: GPL-2.0
/*
 * The writeback point: what happens after a batch of the multi-gen LRU that met
 * dirty folios.
 *
 * "feedback" wakes the flushers as soon as a batch has found nothing but dirty
 * folios that nobody writes, as the classic LRU does, and puts what can't be
 * evicted into a generation of choice.
 */
#include <linux/array_size.h>
#include <kunit/visibility.h>

#include "internal.h"
#include "trace.h"
#include "watch.h"

static const char *const gen_names[] = {
	[VMP_YOUNGEST] = "youngest",
	[VMP_SECOND_YOUNGEST] = "second-youngest",
};

static const char *const stat_names[VMP_NR_WRITEBACK_STATS] = {
	[VMP_WRITEBACK_BATCHES] = "batches",
	[VMP_WRITEBACK_TAKEN] = "taken",
	[VMP_WRITEBACK_DIRTY] = "dirty",
	[VMP_WRITEBACK_WAKEUPS] = "flusher_wakeups",
	[VMP_WRITEBACK_WAITS] = "waits",
};

/**
 * vmp_writeback_decide() - what to do after a batch
 * @nr_taken: pages that the batch has taken
 * @stat: what they were
 * @writers_throttled: who makes pages dirty is slowed down elsewhere
 *
 * The rule is that of shrink_inactive_list() for the classic LRU.
 *
 * Return: VMSCAN_WAKE_FLUSHERS, with VMSCAN_WAIT_WRITEBACK to wait for them, or 0.
 */
unsigned int vmp_writeback_decide(unsigned int nr_taken, const struct reclaim_stat *stat,
				  bool writers_throttled)
{
	if (!nr_taken || stat->nr_unqueued_dirty != nr_taken)
		return 0;

	return VMSCAN_WAKE_FLUSHERS | (writers_throttled ? 0 : VMSCAN_WAIT_WRITEBACK);
}
EXPORT_SYMBOL_IF_KUNIT(vmp_writeback_decide);

static void trace_feedback(const struct vmscan_evicted *evicted, const struct vmp_rule *rule,
			   unsigned int flags)
{
	struct vmp_where where;

	if (!trace_writeback_feedback_enabled())
		return;

	where = vmp_where(to_vmp_set(evicted->ops)->number, rule,
			  rule->settings.policy[VMP_POINT_WRITEBACK], evicted->memcg, evicted->nid);
	trace_writeback_feedback(&where, evicted, flags);
}

static bool feedback(const struct vmp_rule *rule)
{
	return rule->settings.policy[VMP_POINT_WRITEBACK] != VMP_WRITEBACK_STOCK;
}

static unsigned int decide(const struct vmscan_evicted *evicted, const struct vmp_rule *rule)
{
	const struct vmp_plugin *plugin = rule->plugin[VMP_POINT_WRITEBACK];

	if (plugin)
		return vmp_ask(plugin, evicted, evicted);

	return vmp_writeback_decide(evicted->nr_taken, evicted->stat, evicted->writers_throttled) |
	       (rule->settings.dirty_gen == VMP_SECOND_YOUNGEST ? VMSCAN_SECOND_YOUNGEST : 0);
}

/*
 * Does a batch count for throttling? That is a matter of whom reclaim is for; but what has stock
 * of its own is left to stock.
 */
static bool accounts(const struct vmscan_policy_ops *ops, const struct vmp_rule *own,
		     struct mem_cgroup *target)
{
	const struct vmp_rule *rule = vmp_find_rule(to_vmp_set(ops), target);

	return own->settings.policy[VMP_POINT_THROTTLE] != VMP_THROTTLE_STOCK &&
	       vmp_throttle_accounts(rule->settings.policy[VMP_POINT_THROTTLE], !target);
}

/* Callbacks of this point, which goes by the lruvec's memory cgroup, and of the throttle point. */
bool vmp_evict(const struct vmscan_evict *evict)
{
	const struct vmp_rule *rule = vmp_rule(evict);

	return feedback(rule) || accounts(evict->ops, rule, evict->target);
}

unsigned int vmp_evicted(const struct vmscan_evicted *evicted)
{
	const struct vmp_rule *rule = vmp_rule(evicted);
	unsigned int flags = 0;

	CLASS(vmp_watch, watch)(rule, evicted->memcg, VMP_POINT_WRITEBACK);
	if (feedback(rule))
		flags = decide(evicted, rule);
	if (accounts(evicted->ops, rule, evicted->target))
		flags |= VMSCAN_COUNT;

	vmp_count(&rule->stats->writeback[VMP_WRITEBACK_BATCHES], 1);
	vmp_count(&rule->stats->writeback[VMP_WRITEBACK_TAKEN], evicted->nr_taken);
	vmp_count(&rule->stats->writeback[VMP_WRITEBACK_DIRTY], evicted->stat->nr_dirty);
	vmp_count(&rule->stats->writeback[VMP_WRITEBACK_WAKEUPS], !!(flags & VMSCAN_WAKE_FLUSHERS));
	vmp_count(&rule->stats->writeback[VMP_WRITEBACK_WAITS], !!(flags & VMSCAN_WAIT_WRITEBACK));
	trace_feedback(evicted, rule, flags);
	vmp_watch_answer(&watch, flags, flags & ~(VMSCAN_WAKE_FLUSHERS | VMSCAN_WAIT_WRITEBACK |
						  VMSCAN_COUNT | VMSCAN_SECOND_YOUNGEST));

	return flags;
}

static void writeback_fill(struct vmscan_policy_ops *ops, const struct vmp_settings *settings)
{
	if (settings->policy[VMP_POINT_WRITEBACK] == VMP_WRITEBACK_STOCK)
		return;
	ops->evict = vmp_evict;
	ops->evicted = vmp_evicted;
}

static const struct vmp_policy writeback_policies[] = {
	[VMP_WRITEBACK_STOCK] = { .name = "stock" },
	[VMP_WRITEBACK_FEEDBACK] = { .name = "feedback" },
};

static void writeback_stats(struct seq_file *m, const struct vmp_stats __percpu *stats,
			    bool machine)
{
	vmp_show_counters(m, stat_names, stats->writeback, VMP_NR_WRITEBACK_STATS);
}

static const struct vmp_option writeback_dirty_gen = {
	.path = "writeback/dirty_gen",
	.names = gen_names,
	.nr_names = ARRAY_SIZE(gen_names),
	.setting = offsetof(struct vmp_settings, dirty_gen),
};

const struct vmp_point vmp_writeback_point = {
	.name = "writeback",
	.not_with = VMSCAN_TRAIT_FEEDBACK,
	.policies = writeback_policies,
	.nr_policies = ARRAY_SIZE(writeback_policies),
	.option = &writeback_dirty_gen,
	.fill = writeback_fill,
	.show_stats = writeback_stats,
};
EXPORT_SYMBOL_IF_KUNIT(vmp_writeback_point);
