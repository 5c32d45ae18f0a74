// SPDX-License-Identifier: GPL-2.0
/*
 * The flush point: how many dirty folios share one TLB flush.
 *
 * "batch" has the kernel collect folios that are about to be paged out, flush once for
 * all of them, and go over them again.
 */
#include <linux/array_size.h>
#include <kunit/visibility.h>

#include "internal.h"
#include "trace.h"
#include "watch.h"

static const char *const stat_names[VMP_NR_FLUSH_STATS] = {
	[VMP_FLUSH_DEFERRED] = "deferred",
	[VMP_FLUSH_CALLS] = "calls",
	[VMP_FLUSH_BATCHES] = "batches",
	[VMP_FLUSH_FLUSHES] = "flushes",
	[VMP_FLUSH_MAPPED] = "bounce_mapped",
	[VMP_FLUSH_GONE] = "bounce_gone",
};

static unsigned int flush_group(const struct vmscan_call *call)
{
	const struct vmp_rule *rule = vmp_rule(call);
	const struct vmp_plugin *plugin = rule->plugin[VMP_POINT_FLUSH];
	const struct vmp_settings *settings = &rule->settings;
	unsigned int folios;

	if (settings->policy[VMP_POINT_FLUSH] == VMP_FLUSH_STOCK)
		return 0;

	CLASS(vmp_watch, watch)(rule, call->memcg, VMP_POINT_FLUSH);
	folios = plugin ? vmp_ask(plugin, flush_group, call) :
			  settings->max_folios | (settings->span ? VMSCAN_FLUSH_SPAN : 0);
	vmp_watch_answer(&watch, folios & ~VMSCAN_FLUSH_SPAN,
			 (folios & ~VMSCAN_FLUSH_SPAN) > VMSCAN_FLUSH_MAX_FOLIOS);

	return folios;
}

static struct vmp_where group_where(const struct vmscan_group *group, const struct vmp_rule *rule)
{
	return vmp_where(to_vmp_set(group->ops)->number, rule,
			 rule->settings.policy[VMP_POINT_FLUSH], group->memcg, group->nid);
}

static void flush_begin(const struct vmscan_group *group, struct vmscan_note *note)
{
	struct vmp_where where;

	if (!trace_flush_batch_begin_enabled() && !trace_flush_batch_end_enabled())
		return;

	where = group_where(group, vmp_rule(group));
	trace_flush_batch_begin(&where, vmp_begin_id(VMP_SPAN_FLUSH), group->nr_folios,
				group->nr_pages);
}

static void flush_end(const struct vmscan_group *group, struct vmscan_note *note)
{
	const struct vmp_rule *rule = vmp_rule(group);
	struct vmp_where where;

	vmp_count(&rule->stats->flush[VMP_FLUSH_DEFERRED], group->nr_folios);
	vmp_count(&rule->stats->flush[VMP_FLUSH_CALLS], !group->nr_before);
	vmp_count(&rule->stats->flush[VMP_FLUSH_BATCHES], 1);
	vmp_count(&rule->stats->flush[VMP_FLUSH_FLUSHES], group->flushed);
	vmp_count(&rule->stats->flush[VMP_FLUSH_MAPPED], group->nr_mapped);
	vmp_count(&rule->stats->flush[VMP_FLUSH_GONE], group->nr_gone);
	vmp_count_largest(&rule->stats->largest_batch, group->nr_folios);
	if (!trace_flush_batch_end_enabled())
		return;

	where = group_where(group, rule);
	trace_flush_batch_end(&where, vmp_end_id(VMP_SPAN_FLUSH), group);
}

/* A group that another set let come about is traced and counted, too. */
static void flush_fill(struct vmscan_policy_ops *ops, const struct vmp_settings *settings)
{
	ops->flush_begin = flush_begin;
	ops->flush_end = flush_end;
	if (settings->policy[VMP_POINT_FLUSH] != VMP_FLUSH_STOCK)
		ops->flush_group = flush_group;
}

static const struct vmp_policy flush_policies[] = {
	[VMP_FLUSH_STOCK] = { .name = "stock" },
	[VMP_FLUSH_BATCH] = { .name = "batch" },
};

/* What is observed is of the whole machine. */
static void flush_stats(struct seq_file *m, const struct vmp_stats __percpu *stats, bool machine)
{
	vmp_show_counters(m, stat_names, stats->flush, VMP_NR_FLUSH_STATS);
	seq_printf(m, "largest_batch %u\n", vmp_largest(&stats->largest_batch));
	if (machine)
		vmp_observe_show(m);
}

static const struct vmp_number flush_numbers[] = {
	{
		.path = "flush/max_folios",
		.min = 1,
		.max = VMSCAN_FLUSH_MAX_FOLIOS,
		.setting = offsetof(struct vmp_settings, max_folios),
	},
	{
		.path = "flush/span",
		.max = 1,
		.setting = offsetof(struct vmp_settings, span),
	},
	{
		.path = "flush/observe",
		.max = 1,
		.get = vmp_observe_get,
		.set = vmp_observe_set,
	},
};

const struct vmp_point vmp_flush_point = {
	.name = "flush",
	.policies = flush_policies,
	.nr_policies = ARRAY_SIZE(flush_policies),
	.numbers = flush_numbers,
	.nr_numbers = ARRAY_SIZE(flush_numbers),
	.fill = flush_fill,
	.show_stats = flush_stats,
};
EXPORT_SYMBOL_IF_KUNIT(vmp_flush_point);
