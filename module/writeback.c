// SPDX-License-Identifier: GPL-2.0
/*
 * The writeback point: what happens after a batch of the multi-gen LRU that met
 * dirty folios.
 *
 * "feedback" wakes the flushers as soon as a batch has found nothing but dirty
 * folios that nobody writes, as the classic LRU does, and puts what can't be
 * evicted into a generation of choice.
 */
#include <linux/debugfs.h>
#include <linux/percpu.h>
#include <kunit/visibility.h>

#include "internal.h"
#include "trace.h"

enum vmp_dirty_gen {
	YOUNGEST,
	SECOND_YOUNGEST,
};

static const char *const gen_names[] = {
	[YOUNGEST] = "youngest",
	[SECOND_YOUNGEST] = "second-youngest",
};

static unsigned int dirty_gen = SECOND_YOUNGEST;

enum vmp_writeback_stat {
	STAT_BATCHES,		/* batches that met a page */
	STAT_TAKEN,		/* pages: taken */
	STAT_DIRTY,		/* ... dirty or under writeback */
	STAT_WAKEUPS,		/* times that the flushers were woken */
	STAT_WAITS,		/* ... and waited for, for a memcg of version 1 */
	NR_WRITEBACK_STATS,
};

static const char *const stat_names[NR_WRITEBACK_STATS] = {
	[STAT_BATCHES] = "batches",
	[STAT_TAKEN] = "taken",
	[STAT_DIRTY] = "dirty",
	[STAT_WAKEUPS] = "flusher_wakeups",
	[STAT_WAITS] = "waits",
};

static DEFINE_PER_CPU(u64 [NR_WRITEBACK_STATS], writeback_stats);

static void add_stat(unsigned int stat, unsigned int value)
{
	this_cpu_add(writeback_stats[stat], value);
}

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

static void trace_feedback(const struct vmscan_evicted *evicted, const struct vmp_set *set,
			   unsigned int flags)
{
	struct vmp_where where;

	if (!trace_writeback_feedback_enabled())
		return;

	where = vmp_where(evicted->ops, set->feedback, evicted->memcg, evicted->nid);
	trace_writeback_feedback(&where, evicted, flags);
}

/* The callbacks of this point and of the throttle point: either may be stock. */
bool vmp_evict(const struct vmscan_evict *evict)
{
	const struct vmp_set *set = to_vmp_set(evict->ops);

	return set->feedback || vmp_throttle_accounts(set->throttle, evict->root_reclaim);
}

unsigned int vmp_evicted(const struct vmscan_evicted *evicted)
{
	const struct vmp_set *set = to_vmp_set(evicted->ops);
	unsigned int flags = 0;

	if (set->feedback)
		flags = vmp_writeback_decide(evicted->nr_taken, evicted->stat,
					     evicted->writers_throttled);
	if (set->feedback && READ_ONCE(dirty_gen) == SECOND_YOUNGEST)
		flags |= VMSCAN_SECOND_YOUNGEST;
	if (vmp_throttle_accounts(set->throttle, evicted->root_reclaim))
		flags |= VMSCAN_COUNT;

	add_stat(STAT_BATCHES, 1);
	add_stat(STAT_TAKEN, evicted->nr_taken);
	add_stat(STAT_DIRTY, evicted->stat->nr_dirty);
	add_stat(STAT_WAKEUPS, !!(flags & VMSCAN_WAKE_FLUSHERS));
	add_stat(STAT_WAITS, !!(flags & VMSCAN_WAIT_WRITEBACK));
	trace_feedback(evicted, set, flags);

	return flags;
}

static void feedback_fill(struct vmscan_policy_ops *ops)
{
	ops->evict = vmp_evict;
	ops->evicted = vmp_evicted;
}

static const struct vmp_policy writeback_policies[] = {
	[VMP_WRITEBACK_STOCK] = { .name = "stock" },
	[VMP_WRITEBACK_FEEDBACK] = { .name = "feedback", .fill = feedback_fill },
};

static int stats_show(struct seq_file *m, void *v)
{
	vmp_show_counters(m, stat_names, writeback_stats, NR_WRITEBACK_STATS);

	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

static const struct vmp_option writeback_dirty_gen = {
	.path = "writeback/dirty_gen",
	.names = gen_names,
	.nr_names = ARRAY_SIZE(gen_names),
	.value = &dirty_gen,
};

static void writeback_create_files(struct dentry *dir)
{
	vmp_create_option(dir, &writeback_dirty_gen);
	debugfs_create_file("stats", 0444, dir, NULL, &stats_fops);
}

const struct vmp_point vmp_writeback_point = {
	.name = "writeback",
	.not_with = VMSCAN_TRAIT_FEEDBACK,
	.policies = writeback_policies,
	.nr_policies = ARRAY_SIZE(writeback_policies),
	.create_files = writeback_create_files,
};
EXPORT_SYMBOL_IF_KUNIT(vmp_writeback_point);
