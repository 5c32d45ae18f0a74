// SPDX-License-Identifier: GPL-2.0
/*
 * The unmap and young points: how many page-table entries of a large folio reclaim
 * unmaps, and checks for accesses, at once.
 *
 * They are two, for unmapping in batches could lose data, and a batched check can only
 * take a folio for younger or older than it is.
 */
#include <linux/bits.h>
#include <linux/debugfs.h>
#include <linux/percpu.h>
#include <linux/pgtable.h>
#include <kunit/visibility.h>

#include "internal.h"
#include "trace.h"

enum vmp_rmap_stat {
	STAT_FOLIOS,		/* large folios that were handled in batches */
	STAT_PAGES,		/* base pages of these */
	STAT_PTES,		/* entries in batches */
	STAT_BATCHES,
	STAT_LEFT,		/* entries left to stock, one by one */
	STAT_KEPT,		/* batches that stay mapped */
	NR_RMAP_STATS,
};

static const char *const stat_names[NR_RMAP_STATS] = {
	[STAT_FOLIOS] = "folios",
	[STAT_PAGES] = "pages",
	[STAT_PTES] = "ptes",
	[STAT_BATCHES] = "batches",
	[STAT_LEFT] = "left",
	[STAT_KEPT] = "kept",
};

/* One for each of the two points. */
static DEFINE_PER_CPU(u64 [2][NR_RMAP_STATS], rmap_stats);

static const char *const kind_names[] = {
	[VMSCAN_LAZYFREE] = "lazyfree",
	[VMSCAN_ANON] = "anon",
	[VMSCAN_FILE] = "file",
};

static unsigned int kinds = BIT(VMSCAN_LAZYFREE) | BIT(VMSCAN_ANON) | BIT(VMSCAN_FILE);
static unsigned int unmap_max = PTRS_PER_PTE;
static unsigned int young_max = PTRS_PER_PTE;

static unsigned int unmap_ptes(const struct vmscan_walk *walk)
{
	return READ_ONCE(kinds) & BIT(walk->kind) ? READ_ONCE(unmap_max) : 1;
}

static unsigned int young_ptes(const struct vmscan_walk *walk)
{
	return READ_ONCE(young_max);
}

static void count(const struct vmscan_walk *walk, enum vmp_rmap_stat stat, unsigned int value)
{
	this_cpu_add(rmap_stats[walk->young][stat], value);
}

static void trace_walk(const struct vmscan_walk *walk)
{
	struct vmp_where where;

	if (!trace_unmap_folio_enabled() && !trace_young_folio_enabled())
		return;

	where = vmp_where(walk->ops, VMP_RMAP_BATCH, walk->memcg, walk->nid);
	if (walk->young)
		trace_young_folio(&where, walk);
	else
		trace_unmap_folio(&where, walk);
}

static void walk_done(const struct vmscan_walk *walk)
{
	count(walk, STAT_FOLIOS, 1);
	count(walk, STAT_PAGES, walk->nr_pages);
	count(walk, STAT_PTES, walk->nr_ptes);
	count(walk, STAT_BATCHES, walk->nr_batches);
	count(walk, STAT_LEFT, walk->nr_left);
	count(walk, STAT_KEPT, walk->nr_kept);
	trace_walk(walk);
}

static void unmap_fill(struct vmscan_policy_ops *ops)
{
	ops->unmap_ptes = unmap_ptes;
	ops->walk_done = walk_done;
}

static void young_fill(struct vmscan_policy_ops *ops)
{
	ops->young_ptes = young_ptes;
	ops->walk_done = walk_done;
}

static const struct vmp_policy unmap_policies[] = {
	[VMP_RMAP_STOCK] = { .name = "stock" },
	[VMP_RMAP_BATCH] = { .name = "batch", .fill = unmap_fill },
};

static const struct vmp_policy young_policies[] = {
	[VMP_RMAP_STOCK] = { .name = "stock" },
	[VMP_RMAP_BATCH] = { .name = "batch", .fill = young_fill },
};

static int stats_show(struct seq_file *m, void *v)
{
	const bool young = m->private;

	vmp_show_counters(m, stat_names, rmap_stats[young], NR_RMAP_STATS);

	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

static const struct vmp_option unmap_kinds = {
	.path = "unmap/kinds",
	.names = kind_names,
	.nr_names = ARRAY_SIZE(kind_names),
	.value = &kinds,
};

static const struct vmp_number unmap_number = {
	.path = "unmap/max_ptes",
	.min = 1,
	.max = PTRS_PER_PTE,
	.value = &unmap_max,
};

static const struct vmp_number young_number = {
	.path = "young/max_ptes",
	.min = 1,
	.max = PTRS_PER_PTE,
	.value = &young_max,
};

static void unmap_create_files(struct dentry *dir)
{
	vmp_create_options(dir, &unmap_kinds);
	vmp_create_number(dir, &unmap_number);
	debugfs_create_file("stats", 0444, dir, NULL, &stats_fops);
}

static void young_create_files(struct dentry *dir)
{
	vmp_create_number(dir, &young_number);
	debugfs_create_file("stats", 0444, dir, (void *)true, &stats_fops);
}

const struct vmp_point vmp_unmap_point = {
	.name = "unmap",
	.not_with = VMSCAN_TRAIT_UNMAP,
	.policies = unmap_policies,
	.nr_policies = ARRAY_SIZE(unmap_policies),
	.create_files = unmap_create_files,
};
EXPORT_SYMBOL_IF_KUNIT(vmp_unmap_point);

const struct vmp_point vmp_young_point = {
	.name = "young",
	.not_with = VMSCAN_TRAIT_YOUNG,
	.policies = young_policies,
	.nr_policies = ARRAY_SIZE(young_policies),
	.create_files = young_create_files,
};
EXPORT_SYMBOL_IF_KUNIT(vmp_young_point);
