// SPDX-License-Identifier: GPL-2.0
/*
 * The aging point: when a pass of our own loop makes a new generation, and what
 * that means for the rest of the pass.
 *
 * Eviction takes from the oldest of at least three generations. Making the next
 * one walks the page tables of all processes of the memcg, which is the longest
 * wait that a reclaimer has. "async" has a worker do that while something cold
 * is left to evict.
 */
#include <linux/array_size.h>
#include <linux/cleanup.h>
#include <linux/memcontrol.h>
#include <linux/mmzone.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <kunit/visibility.h>

#include "internal.h"
#include "trace.h"

/*
 * "async" asks for a new generation when the last cold one has less than this
 * part of all evictable pages left. Reclaim evicts these while a worker walks.
 */
#define ASYNC_SHARE	32

static const char *const stat_names[VMP_NR_AGING_STATS] = {
	[VMP_AGING_SYNC] = "sync",
	[VMP_AGING_FAILED] = "failed",
	[VMP_AGING_WAITED] = "waited",
	[VMP_AGING_ASYNCED] = "async",
	[VMP_AGING_STALE] = "stale",
	[VMP_AGING_OFFLINE] = "offline",
	[VMP_AGING_REQUESTS + VMP_QUEUED] = "queued",
	[VMP_AGING_REQUESTS + VMP_MERGED] = "merged",
	[VMP_AGING_REQUESTS + VMP_FULL] = "full",
	[VMP_AGING_REQUESTS + VMP_GONE] = "gone",
};

static struct vmp_aging_queue aging_queue;

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
 * does. "async" asks a worker when the last cold generation is about to run out;
 * not earlier, because a generation made right after another one has no pages
 * and is no use.
 *
 * Return: whether it is, and who is to make it.
 */
enum vmp_age vmp_aging_decide(enum vmp_aging aging, const struct vmscan_pass *pass)
{
	bool raised = pass->priority < DEF_PRIORITY;
	bool few = pass->nr_gens == MIN_NR_GENS + 1;
	bool old_small, young_large, old_left;
	unsigned long evictable = 0;
	unsigned int i;

	if (!vmp_aging_cold(pass))
		return raised || aging != VMP_AGING_STOP ? VMP_AGE_NOW :
							   VMP_AGE_NO;
	if (!few)
		return VMP_AGE_NO;

	for (i = 0; i < pass->nr_gens; i++)
		evictable += pass->nr_pages[i];
	old_small = pass->nr_pages[0] * (MIN_NR_GENS + 2) < evictable;
	old_left = pass->nr_pages[0] >= evictable / ASYNC_SHARE;
	young_large = pass->nr_pages[MIN_NR_GENS] * MIN_NR_GENS > evictable;

	switch (aging) {
	case VMP_AGING_STOP:
		return raised && (young_large || old_small) ? VMP_AGE_NOW :
							      VMP_AGE_NO;
	case VMP_AGING_CONTINUE:
		return raised ? VMP_AGE_NOW : VMP_AGE_NO;
	case VMP_AGING_ASYNC:
		return old_left ? VMP_AGE_NO : VMP_AGE_LATER;
	}

	return VMP_AGE_NO;
}
EXPORT_SYMBOL_IF_KUNIT(vmp_aging_decide);

static void trace_begin(const struct vmp_where *where, bool async, u64 before)
{
	if (trace_aging_begin_enabled() || trace_aging_end_enabled())
		trace_aging_begin(where, vmp_begin_id(VMP_SPAN_AGING), async, before);
}

static struct vmp_where pass_where(const struct vmscan_pass *pass, const struct vmp_rule *rule)
{
	return vmp_where(pass->ops, rule, vmp_aging_policy(&rule->settings), pass->memcg,
			 pass->nid);
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
		trace_aging_end(&where, vmp_end_id(VMP_SPAN_AGING), false,
				pass->max_seq - pass->progress, pass->max_seq);
	}
}

static bool age_later(const struct vmp_rule *rule, const struct vmscan_pass *pass)
{
	const struct vmp_aging_request request = {
		.memcg = pass->memcg,
		.nid = pass->nid,
		.max_seq = pass->max_seq,
		.swappiness = pass->swappiness,
		.set = to_vmp_set(pass->ops)->number,
	};
	enum vmp_queued queued = vmp_aging_queue_add(&aging_queue, &request);

	vmp_count(&rule->stats->aging[VMP_AGING_REQUESTS + queued], 1);

	return queued == VMP_QUEUED;
}

/**
 * vmp_aging_follow() - trace that the next step is to age, or have a worker do it
 * @rule: the rule of the pass
 * @pass: the pass
 * @age: what was decided
 *
 * Return: true if a worker was told to.
 */
bool vmp_aging_follow(const struct vmp_rule *rule, const struct vmscan_pass *pass,
		      enum vmp_age age)
{
	struct vmp_where where;

	if (age == VMP_AGE_NOW) {
		where = pass_where(pass, rule);
		trace_begin(&where, false, pass->max_seq);
	}

	return age == VMP_AGE_LATER && age_later(rule, pass);
}

/* By a worker: the settings that hold now need not be those that asked. */
static void count_now(struct mem_cgroup *memcg, enum vmp_aging_stat stat)
{
	guard(rcu)();
	vmp_count(&vmp_rule_now(memcg, NULL)->stats->aging[stat], 1);
}

static u64 settings_now(struct mem_cgroup *memcg)
{
	guard(rcu)();

	return vmp_rule_now(memcg, NULL)->cgroup;
}

static void age_request(const struct vmp_aging_request *request)
{
	const struct vmp_where where = {
		.policy = VMP_AGING_ASYNC,
		.set = request->set,
		.cgroup = vmp_cgroup_id(request->memcg),
		.nid = request->nid,
		.settings = settings_now(request->memcg),
	};
	bool aged;

	if (!mem_cgroup_online(request->memcg)) {
		count_now(request->memcg, VMP_AGING_OFFLINE);
		return;
	}

	trace_begin(&where, true, request->max_seq);
	aged = vmscan_age_memcg(request->memcg, request->nid, request->max_seq,
				request->swappiness);
	count_now(request->memcg, aged ? VMP_AGING_ASYNCED : VMP_AGING_STALE);
	if (trace_aging_end_enabled())
		trace_aging_end(&where, vmp_end_id(VMP_SPAN_AGING), true, request->max_seq,
				request->max_seq + aged);
}

static void async_retire(void)
{
	vmp_aging_queue_drain(&aging_queue);
}

static const struct vmp_policy aging_policies[] = {
	[VMP_AGING_STOP] = { .name = "stop" },
	[VMP_AGING_CONTINUE] = { .name = "continue" },
	[VMP_AGING_ASYNC] = { .name = "async", .retire = async_retire },
};

/* Its callbacks are the scan point's. */
static void aging_fill(struct vmscan_policy_ops *ops, const struct vmp_settings *settings)
{
}

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
	.fill = aging_fill,
	.show_stats = aging_stats,
};
EXPORT_SYMBOL_IF_KUNIT(vmp_aging_point);

/**
 * vmp_aging_init() - get the workers ready
 *
 * Return: 0 or -ENOMEM.
 */
int vmp_aging_init(void)
{
	return vmp_aging_queue_init(&aging_queue, age_request);
}

/* Nothing may be queued any more: after vmp_control_exit(). */
void vmp_aging_exit(void)
{
	vmp_aging_queue_destroy(&aging_queue);
}
