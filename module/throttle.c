// SPDX-License-Identifier: GPL-2.0
/*
 * The throttle point: when a reclaimer that meets too much that waits for a disk
 * has to wait, too.
 *
 * "memcg" has the batches of the multi-gen LRU counted in reclaim of a memory
 * cgroup, where the kernel then throttles by its own rules, and adds one. "all" has
 * them counted in root reclaim too, where the kernel has no rules for the multi-gen
 * LRU. Those here follow the ones for the classic LRU.
 */
#include <linux/debugfs.h>
#include <linux/nodemask.h>
#include <linux/percpu.h>
#include <linux/swap.h>
#include <linux/tracepoint.h>
#include <kunit/visibility.h>

#include "internal.h"

enum vmp_throttle_stat {
	STAT_EVENTS,		/* times that a task slept, by reason */
	STAT_TIME = STAT_EVENTS + NR_VMSCAN_THROTTLE,
	STAT_KSWAPD = STAT_TIME + NR_VMSCAN_THROTTLE,
	STAT_MARK_WRITEBACK,	/* times that a node was marked */
	STAT_MARK_CONGESTED,
	NR_THROTTLE_STATS,
};

static const char *const stat_names[NR_THROTTLE_STATS] = {
	[STAT_EVENTS + VMSCAN_THROTTLE_WRITEBACK] = "writeback",
	[STAT_EVENTS + VMSCAN_THROTTLE_ISOLATED] = "isolated",
	[STAT_EVENTS + VMSCAN_THROTTLE_NOPROGRESS] = "noprogress",
	[STAT_EVENTS + VMSCAN_THROTTLE_CONGESTED] = "congested",
	[STAT_TIME + VMSCAN_THROTTLE_WRITEBACK] = "writeback_us",
	[STAT_TIME + VMSCAN_THROTTLE_ISOLATED] = "isolated_us",
	[STAT_TIME + VMSCAN_THROTTLE_NOPROGRESS] = "noprogress_us",
	[STAT_TIME + VMSCAN_THROTTLE_CONGESTED] = "congested_us",
	[STAT_KSWAPD] = "kswapd",
	[STAT_MARK_WRITEBACK] = "mark_writeback",
	[STAT_MARK_CONGESTED] = "mark_congested",
};

static const char *const longest_names[NR_VMSCAN_THROTTLE] = {
	[VMSCAN_THROTTLE_WRITEBACK] = "writeback_longest_us",
	[VMSCAN_THROTTLE_ISOLATED] = "isolated_longest_us",
	[VMSCAN_THROTTLE_NOPROGRESS] = "noprogress_longest_us",
	[VMSCAN_THROTTLE_CONGESTED] = "congested_longest_us",
};

struct vmp_throttle_stats {
	u64 count[NR_THROTTLE_STATS];
	unsigned int longest[NR_VMSCAN_THROTTLE];
};

static DEFINE_PER_CPU(struct vmp_throttle_stats, throttle_stats);

/* For each node, used by its kswapd only. */
static struct vmp_fruitless fruitless[MAX_NUMNODES];

static void add_stat(unsigned int stat, unsigned int value)
{
	this_cpu_add(throttle_stats.count[stat], value);
}

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
	return throttle == VMP_THROTTLE_ALL ||
	       (throttle == VMP_THROTTLE_MEMCG && !root_reclaim);
}
EXPORT_SYMBOL_IF_KUNIT(vmp_throttle_accounts);

/**
 * vmp_throttle_count() - add a round of kswapd's to the fruitless ones, or begin anew
 * @fruitless: the rounds before
 * @ctx: what the round met
 */
void vmp_throttle_count(struct vmp_fruitless *fruitless,
			const struct vmscan_node_ctx *ctx)
{
	if (ctx->nr_reclaimed) {
		*fruitless = (struct vmp_fruitless) {};
		return;
	}

	fruitless->taken += ctx->stat.taken;
	fruitless->pending = max(fruitless->pending, ctx->nr_write_pending);
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
static struct vmp_verdict decide_kswapd(const struct vmscan_node_ctx *ctx,
					const struct vmp_fruitless *fruitless)
{
	const struct vmscan_evict_stat *stat = &ctx->stat;
	bool stall = stat->immediate && !ctx->nr_reclaimed &&
		     fruitless->pending &&
		     fruitless->taken >= fruitless->pending;

	return (struct vmp_verdict) {
		.mark_writeback = stat->writeback &&
				  stat->writeback == stat->taken,
		.mark_congested = stat->dirty && stat->dirty == stat->congested,
		.stall = stall ? VMSCAN_THROTTLE_WRITEBACK : VMP_NO_STALL,
	};
}

/*
 * The kernel has a congested reclaimer sleep for a tick, so in all, before it kills
 * a process, for less than a second. A slow disk may not have written anything by
 * then. So a round that has tried harder than the first ones, and has met nothing
 * but what waits for a disk, some of it for the second time, waits for it, too.
 */
static enum vmscan_throttle_state decide_direct(const struct vmscan_node_ctx *ctx)
{
	const struct vmscan_evict_stat *stat = &ctx->stat;

	if (!ctx->may_throttle || ctx->hibernation)
		return VMP_NO_STALL;
	if (!ctx->nr_reclaimed && ctx->priority < DEF_PRIORITY - 2 &&
	    stat->congested && stat->dirty == stat->taken)
		return VMSCAN_THROTTLE_WRITEBACK;
	if (ctx->root_reclaim && ctx->congested)
		return VMSCAN_THROTTLE_CONGESTED;

	return VMP_NO_STALL;
}

/**
 * vmp_throttle_decide() - what to do after a round over a node
 * @ctx: what the round met
 * @fruitless: for kswapd: its rounds since it last reclaimed a page, this included
 *
 * Return: the marks to set on the node, and the reason to sleep for.
 */
struct vmp_verdict
vmp_throttle_decide(const struct vmscan_node_ctx *ctx,
		    const struct vmp_fruitless *fruitless)
{
	if (ctx->kswapd)
		return decide_kswapd(ctx, fruitless);

	return (struct vmp_verdict) { .stall = decide_direct(ctx) };
}
EXPORT_SYMBOL_IF_KUNIT(vmp_throttle_decide);

static void throttle_node(struct vmscan_node_ctx *ctx)
{
	const struct vmp_set *set = container_of(ctx->ops, struct vmp_set, ops);
	struct vmp_verdict verdict;

	if (!vmp_throttle_accounts(set->throttle, ctx->root_reclaim))
		return;

	if (ctx->kswapd)
		vmp_throttle_count(&fruitless[ctx->nid], ctx);
	verdict = vmp_throttle_decide(ctx, &fruitless[ctx->nid]);
	if (verdict.mark_writeback) {
		vmscan_node_set_writeback(ctx);
		add_stat(STAT_MARK_WRITEBACK, 1);
	}
	if (verdict.mark_congested) {
		vmscan_node_set_congested(ctx);
		add_stat(STAT_MARK_CONGESTED, 1);
	}
	if (verdict.stall != VMP_NO_STALL)
		vmscan_node_throttle(ctx, verdict.stall);
}

static void throttle_fill(struct vmscan_policy_ops *ops)
{
	ops->evicted = vmp_evicted;
	ops->throttle_node = throttle_node;
}

static const struct vmp_policy throttle_policies[] = {
	[VMP_THROTTLE_STOCK] = { .name = "stock" },
	[VMP_THROTTLE_MEMCG] = { .name = "memcg", .fill = throttle_fill },
	[VMP_THROTTLE_ALL] = { .name = "all", .fill = throttle_fill },
};

/* Sees each sleep of any reclaimer, whoever has decided on it. */
static void throttled(void *data, int nid, int usec_timeout, int usec_delayed,
		      int reason)
{
	unsigned int *longest;

	if (reason < 0 || reason >= NR_VMSCAN_THROTTLE)
		return;

	add_stat(STAT_EVENTS + reason, 1);
	add_stat(STAT_TIME + reason, usec_delayed);
	if (current_is_kswapd())
		add_stat(STAT_KSWAPD, 1);
	vmp_trace_throttled(nid, reason, usec_delayed);
	/* A racy maximum: a task that migrates here may lose its own. */
	longest = raw_cpu_ptr(&throttle_stats.longest[reason]);
	if (usec_delayed > READ_ONCE(*longest))
		WRITE_ONCE(*longest, usec_delayed);
}

static struct tracepoint *throttled_tracepoint;

static void find_tracepoint(struct tracepoint *tp, void *name)
{
	if (!strcmp(tp->name, name))
		throttled_tracepoint = tp;
}

/**
 * vmp_throttle_init() - begin to count who sleeps
 *
 * Return: 0, or what tracepoint_probe_register() returned.
 */
int vmp_throttle_init(void)
{
	for_each_kernel_tracepoint(find_tracepoint, "mm_vmscan_throttled");
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

static int stats_show(struct seq_file *m, void *v)
{
	unsigned int reason;
	int cpu;

	vmp_show_counters(m, stat_names, throttle_stats.count,
			  NR_THROTTLE_STATS);
	for (reason = 0; reason < NR_VMSCAN_THROTTLE; reason++) {
		unsigned int longest = 0;

		for_each_possible_cpu(cpu)
			longest = max(longest,
				      READ_ONCE(per_cpu(throttle_stats.longest[reason],
							cpu)));
		seq_printf(m, "%s %u\n", longest_names[reason], longest);
	}

	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

static void throttle_create_files(struct dentry *dir)
{
	debugfs_create_file("stats", 0444, dir, NULL, &stats_fops);
}

const struct vmp_point vmp_throttle_point = {
	.name = "throttle",
	.policies = throttle_policies,
	.nr_policies = ARRAY_SIZE(throttle_policies),
	.create_files = throttle_create_files,
};
EXPORT_SYMBOL_IF_KUNIT(vmp_throttle_point);
