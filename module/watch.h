/* SPDX-License-Identifier: GPL-2.0 */
/* What the guard sees of each decision. It is in the path of reclaim, and so is short. */
#ifndef _VMP_WATCH_H
#define _VMP_WATCH_H

#include <linux/cleanup.h>

#include "internal.h"

/**
 * struct vmp_watch - a callback of a policy that is not stock
 * @rule: the rule that it decides by
 * @memcg: the memory cgroup that it decides about
 * @point: its point
 * @at: when it was called, in jiffies
 * @began: CPU time of the task then
 */
struct vmp_watch {
	const struct vmp_rule *rule;
	struct mem_cgroup *memcg;
	enum vmp_point_id point;
	unsigned long at;
	u64 began;
};

/* guard.c */
void vmp_guard_took(const struct vmp_watch *watch, u64 ns);
void vmp_guard_clamped(const struct vmp_watch *watch, u64 answer);
void vmp_guard_fruitless(const struct vmp_rule *rule, const struct vmscan_pass *pass);

static inline struct vmp_watch vmp_watch_begin(const struct vmp_rule *rule,
					       struct mem_cgroup *memcg, enum vmp_point_id point)
{
	const unsigned long now = jiffies;

	/* other CPUs read it, too */
	if (READ_ONCE(rule->guard->asked) != now)
		WRITE_ONCE(rule->guard->asked, now);

	return (struct vmp_watch) {
		.rule = rule, .memcg = memcg, .point = point, .at = now, .began = vmp_runtime(),
	};
}

/*
 * The clock moves with ticks alone, so a callback is charged for all of a tick, or for none of
 * it. In the long run that is what it takes; and what it waits for a CPU is not its own.
 */
static inline void vmp_watch_end(const struct vmp_watch *watch)
{
	const struct vmp_plugin *plugin = watch->rule->plugin[watch->point];
	const u64 ns = vmp_runtime() - watch->began;

	if (likely(!ns))
		return;
	if (plugin)
		this_cpu_add(plugin->stats->ns, ns);
	vmp_guard_took(watch, ns);
}

DEFINE_CLASS(vmp_watch, struct vmp_watch, vmp_watch_end(&_T), vmp_watch_begin(rule, memcg, point),
	     const struct vmp_rule *rule, struct mem_cgroup *memcg, enum vmp_point_id point)

/* An answer, and whether the kernel is to limit it. */
static inline void vmp_watch_answer(const struct vmp_watch *watch, u64 answer, bool clamped)
{
	const struct vmp_plugin *plugin = watch->rule->plugin[watch->point];

	if (plugin)
		this_cpu_inc(plugin->stats->answers);
	if (likely(!clamped))
		return;
	if (plugin)
		this_cpu_inc(plugin->stats->clamps);
	vmp_guard_clamped(watch, answer);
}

/*
 * A pass has ended that policies have made. The machine's settings are judged by reclaim for the
 * machine: a cgroup above its limit may have nothing to give, and others are well.
 */
static inline void vmp_watch_pass(const struct vmp_rule *rule, const struct vmscan_pass *pass)
{
	if (!pass->root_reclaim && !rule->cgroup)
		return;
	if (pass->nr_reclaimed) {
		if (READ_ONCE(rule->guard->stall.began))
			WRITE_ONCE(rule->guard->stall.began, 0);
	} else if (unlikely(pass->priority <= VMSCAN_LIVE_PRIORITY && pass->begin_size)) {
		vmp_guard_fruitless(rule, pass);
	}
}

#endif /* _VMP_WATCH_H */
