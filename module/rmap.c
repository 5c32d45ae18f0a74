// SPDX-License-Identifier: GPL-2.0
/*
 * The unmap and young points: how many page-table entries of a large folio reclaim
 * unmaps, and checks for accesses, at once.
 *
 * They are two, for unmapping in batches could lose data, and a batched check can only
 * take a folio for younger or older than it is.
 */
#include <linux/array_size.h>
#include <linux/bits.h>
#include <linux/pgtable.h>
#include <kunit/visibility.h>

#include "internal.h"
#include "trace.h"
#include "watch.h"

static const char *const stat_names[VMP_NR_RMAP_STATS] = {
	[VMP_RMAP_FOLIOS] = "folios",
	[VMP_RMAP_PAGES] = "pages",
	[VMP_RMAP_PTES] = "ptes",
	[VMP_RMAP_BATCHES] = "batches",
	[VMP_RMAP_LEFT] = "left",
	[VMP_RMAP_KEPT] = "kept",
};

static const char *const kind_names[] = {
	[VMSCAN_ANON] = "anon",
	[VMSCAN_LAZYFREE] = "lazyfree",
	[VMSCAN_FILE] = "file",
};

/* The kernel goes by runs of entries of one page table. */
static unsigned int answer(const struct vmscan_walk *walk, const struct vmp_rule *rule,
			   enum vmp_point_id point, unsigned int nr_ptes)
{
	const struct vmp_plugin *plugin = rule->plugin[point];

	CLASS(vmp_watch, watch)(rule, walk->memcg, point);
	if (plugin)
		nr_ptes = walk->young ? vmp_ask(plugin, young_ptes, walk) :
					vmp_ask(plugin, unmap_ptes, walk);
	vmp_watch_answer(&watch, nr_ptes, nr_ptes > PTRS_PER_PTE);

	return nr_ptes;
}

static unsigned int unmap_ptes(const struct vmscan_walk *walk)
{
	const struct vmp_rule *rule = vmp_rule(walk);
	const struct vmp_settings *settings = &rule->settings;

	if (settings->policy[VMP_POINT_UNMAP] == VMP_RMAP_STOCK ||
	    !(settings->kinds & BIT(walk->kind)))
		return 0;

	return answer(walk, rule, VMP_POINT_UNMAP, settings->unmap_ptes);
}

static unsigned int young_ptes(const struct vmscan_walk *walk)
{
	const struct vmp_rule *rule = vmp_rule(walk);

	if (rule->settings.policy[VMP_POINT_YOUNG] == VMP_RMAP_STOCK)
		return 0;

	return answer(walk, rule, VMP_POINT_YOUNG, rule->settings.young_ptes);
}

static void trace_walk(const struct vmscan_walk *walk, const struct vmp_rule *rule)
{
	struct vmp_where where;

	if (!trace_unmap_folio_enabled() && !trace_young_folio_enabled())
		return;

	where = vmp_where(to_vmp_set(walk->ops)->number, rule,
			  rule->settings.policy[walk->young ? VMP_POINT_YOUNG : VMP_POINT_UNMAP],
			  walk->memcg, walk->nid);
	if (walk->young)
		trace_young_folio(&where, walk);
	else
		trace_unmap_folio(&where, walk);
}

static void walk_done(const struct vmscan_walk *walk)
{
	const struct vmp_rule *rule = vmp_rule(walk);
	const bool young = walk->young;

	vmp_count(&rule->stats->rmap[young][VMP_RMAP_FOLIOS], 1);
	vmp_count(&rule->stats->rmap[young][VMP_RMAP_PAGES], walk->nr_pages);
	vmp_count(&rule->stats->rmap[young][VMP_RMAP_PTES], walk->nr_ptes);
	vmp_count(&rule->stats->rmap[young][VMP_RMAP_BATCHES], walk->nr_batches);
	vmp_count(&rule->stats->rmap[young][VMP_RMAP_LEFT], walk->nr_left);
	vmp_count(&rule->stats->rmap[young][VMP_RMAP_KEPT], walk->nr_kept);
	trace_walk(walk, rule);
}

static void unmap_fill(struct vmscan_policy_ops *ops, const struct vmp_settings *settings)
{
	if (settings->policy[VMP_POINT_UNMAP] == VMP_RMAP_STOCK)
		return;
	ops->unmap_ptes = unmap_ptes;
	ops->walk_done = walk_done;
}

static void young_fill(struct vmscan_policy_ops *ops, const struct vmp_settings *settings)
{
	if (settings->policy[VMP_POINT_YOUNG] == VMP_RMAP_STOCK)
		return;
	ops->young_ptes = young_ptes;
	ops->walk_done = walk_done;
}

static const struct vmp_policy rmap_policies[] = {
	[VMP_RMAP_STOCK] = { .name = "stock" },
	[VMP_RMAP_BATCH] = { .name = "batch" },
};

static void unmap_stats(struct seq_file *m, const struct vmp_stats __percpu *stats, bool machine)
{
	vmp_show_counters(m, stat_names, stats->rmap[false], VMP_NR_RMAP_STATS);
}

static void young_stats(struct seq_file *m, const struct vmp_stats __percpu *stats, bool machine)
{
	vmp_show_counters(m, stat_names, stats->rmap[true], VMP_NR_RMAP_STATS);
}

static const struct vmp_option unmap_kinds = {
	.path = "unmap/kinds",
	.names = kind_names,
	.nr_names = ARRAY_SIZE(kind_names),
	.one_with = VMSCAN_TRAIT_DISCARD,
	.several = true,
	.setting = offsetof(struct vmp_settings, kinds),
};

static const struct vmp_number unmap_number = {
	.path = "unmap/max_ptes",
	.min = 1,
	.max = PTRS_PER_PTE,
	.setting = offsetof(struct vmp_settings, unmap_ptes),
};

static const struct vmp_number young_number = {
	.path = "young/max_ptes",
	.min = 1,
	.max = PTRS_PER_PTE,
	.setting = offsetof(struct vmp_settings, young_ptes),
};

const struct vmp_point vmp_unmap_point = {
	.name = "unmap",
	.not_with = VMSCAN_TRAIT_UNMAP,
	.policies = rmap_policies,
	.nr_policies = ARRAY_SIZE(rmap_policies),
	.numbers = &unmap_number,
	.nr_numbers = 1,
	.option = &unmap_kinds,
	.fill = unmap_fill,
	.show_stats = unmap_stats,
};
EXPORT_SYMBOL_IF_KUNIT(vmp_unmap_point);

const struct vmp_point vmp_young_point = {
	.name = "young",
	.not_with = VMSCAN_TRAIT_YOUNG,
	.policies = rmap_policies,
	.nr_policies = ARRAY_SIZE(rmap_policies),
	.numbers = &young_number,
	.nr_numbers = 1,
	.fill = young_fill,
	.show_stats = young_stats,
};
EXPORT_SYMBOL_IF_KUNIT(vmp_young_point);
