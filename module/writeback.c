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

static const char *const gen_names[] = {
	[VMSCAN_DIRTY_YOUNGEST] = "youngest",
	[VMSCAN_DIRTY_SECOND_YOUNGEST] = "second-youngest",
	[VMSCAN_DIRTY_SECOND_OLDEST] = "second-oldest",
};

#define NR_GEN_NAMES	ARRAY_SIZE(gen_names)

static unsigned int dirty_gen = VMSCAN_DIRTY_SECOND_YOUNGEST;

enum vmp_writeback_stat {
	STAT_BATCHES,		/* batches that met a page */
	STAT_TAKEN,		/* pages: taken */
	STAT_DIRTY,		/* ... dirty or under writeback */
	STAT_WAKEUPS,		/* times that the flushers were woken */
	STAT_WAITS,		/* ... and waited for, for a memcg of version 1 */
	STAT_PUT_BACK,		/* pages put back by generation */
	NR_WRITEBACK_STATS = STAT_PUT_BACK + NR_GEN_NAMES,
};

static const char *const stat_names[NR_WRITEBACK_STATS] = {
	[STAT_BATCHES] = "batches",
	[STAT_TAKEN] = "taken",
	[STAT_DIRTY] = "dirty",
	[STAT_WAKEUPS] = "flusher_wakeups",
	[STAT_WAITS] = "waits",
	[STAT_PUT_BACK + VMSCAN_DIRTY_YOUNGEST] = "put_back_youngest",
	[STAT_PUT_BACK + VMSCAN_DIRTY_SECOND_YOUNGEST] = "put_back_second_youngest",
	[STAT_PUT_BACK + VMSCAN_DIRTY_SECOND_OLDEST] = "put_back_second_oldest",
};

static DEFINE_PER_CPU(u64 [NR_WRITEBACK_STATS], writeback_stats);

static void add_stat(unsigned int stat, unsigned int value)
{
	this_cpu_add(writeback_stats[stat], value);
}

/**
 * vmp_writeback_decide() - what to do after a batch
 * @stat: what the batch met
 * @writers_throttled: who makes pages dirty is slowed down elsewhere
 *
 * The rule is that of shrink_inactive_list() for the classic LRU.
 *
 * Return: whether to wake the flushers, and to wait for them then.
 */
enum vmp_feedback
vmp_writeback_decide(const struct vmscan_evict_stat *stat,
		     bool writers_throttled)
{
	if (!stat->taken || stat->unqueued_dirty != stat->taken)
		return VMP_FEEDBACK_NONE;

	return writers_throttled ? VMP_FEEDBACK_WAKE : VMP_FEEDBACK_WAIT;
}
EXPORT_SYMBOL_IF_KUNIT(vmp_writeback_decide);

static void give_feedback(struct vmscan_evicted_ctx *ctx, enum vmp_feedback feedback)
{
	switch (feedback) {
	case VMP_FEEDBACK_WAIT:
		add_stat(STAT_WAKEUPS, 1);
		add_stat(STAT_WAITS, 1);
		vmscan_evicted_wake_flusher(ctx);
		vmscan_evicted_wait(ctx);
		break;
	case VMP_FEEDBACK_WAKE:
		add_stat(STAT_WAKEUPS, 1);
		vmscan_evicted_wake_flusher(ctx);
		break;
	case VMP_FEEDBACK_NONE:
		break;
	}
}

static void trace_feedback(const struct vmscan_evicted_ctx *ctx,
			   const struct vmp_set *set, enum vmp_feedback feedback)
{
	struct vmp_where where;

	if (!trace_writeback_feedback_enabled())
		return;

	where = (struct vmp_where) {
		.policy = set->feedback,
		.set = set->number,
		.cgroup = vmp_cgroup_id(ctx->memcg),
		.nid = ctx->nid,
	};
	trace_writeback_feedback(&where, &ctx->stat,
				 feedback != VMP_FEEDBACK_NONE,
				 feedback == VMP_FEEDBACK_WAIT);
}

/* The callback of this point and of the throttle point: either may be stock. */
void vmp_evicted(struct vmscan_evicted_ctx *ctx)
{
	const struct vmp_set *set = container_of(ctx->ops, struct vmp_set, ops);
	unsigned int gen = set->feedback ? READ_ONCE(dirty_gen) :
					   VMSCAN_DIRTY_YOUNGEST;

	enum vmp_feedback feedback = VMP_FEEDBACK_NONE;

	add_stat(STAT_BATCHES, 1);
	add_stat(STAT_TAKEN, ctx->stat.taken);
	add_stat(STAT_DIRTY, ctx->stat.dirty);
	add_stat(STAT_PUT_BACK + gen, ctx->stat.put_back);

	if (vmp_throttle_accounts(set->throttle, ctx->root_reclaim))
		vmscan_evicted_account(ctx);
	if (set->feedback)
		feedback = vmp_writeback_decide(&ctx->stat,
						ctx->writers_throttled);
	trace_feedback(ctx, set, feedback);
	give_feedback(ctx, feedback);
}

static enum vmscan_dirty_gen
feedback_dirty_gen(const struct vmscan_evicted_ctx *ctx)
{
	return READ_ONCE(dirty_gen);
}

static void feedback_fill(struct vmscan_policy_ops *ops)
{
	ops->dirty_gen = feedback_dirty_gen;
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
	.nr_names = NR_GEN_NAMES,
	.value = &dirty_gen,
};

static void writeback_create_files(struct dentry *dir)
{
	vmp_create_option(dir, &writeback_dirty_gen);
	debugfs_create_file("stats", 0444, dir, NULL, &stats_fops);
}

const struct vmp_point vmp_writeback_point = {
	.name = "writeback",
	.policies = writeback_policies,
	.nr_policies = ARRAY_SIZE(writeback_policies),
	.create_files = writeback_create_files,
};
EXPORT_SYMBOL_IF_KUNIT(vmp_writeback_point);
