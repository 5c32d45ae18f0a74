// SPDX-License-Identifier: GPL-2.0
/*
 * What the trace events need besides their definitions, ids and where they happen; and the kernel's
 * own tracepoints.
 */
#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/cgroup.h>
#include <linux/cleanup.h>
#include <linux/kprobes.h>
#include <linux/memcontrol.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#include "internal.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

struct wanted {
	const char *name;
	struct tracepoint *found;
};

static void find_tracepoint(struct tracepoint *tp, void *data)
{
	struct wanted *wanted = data;

	if (!strcmp(tp->name, wanted->name))
		wanted->found = tp;
}

/**
 * vmp_tracepoint() - a tracepoint of the kernel's own, modules left out
 * @name: its name
 *
 * Return: it, or NULL if there is none.
 */
struct tracepoint *vmp_tracepoint(const char *name)
{
	struct wanted wanted = { .name = name };

	for_each_kernel_tracepoint(find_tracepoint, &wanted);

	return wanted.found;
}

/*
 * What tasks have begun, by kind; a task does one of each at a time. Its end may be told to another
 * set than its beginning, whose notes are void. Two tasks whose place is the same lose an id. Tasks
 * that trace at the same time share no cache line.
 */
static struct {
	u64 begun[VMP_NR_SPANS];
	atomic_t last;
} ____cacheline_aligned places[1024];

static u64 *begun_id(enum vmp_span span)
{
	return &places[current->pid % ARRAY_SIZE(places)].begun[span];
}

/**
 * vmp_begin_id() - an id for something that the current task begins
 * @span: its kind
 *
 * Return: one that no other task has, and that this one has not had for long.
 */
u64 vmp_begin_id(enum vmp_span span)
{
	atomic_t *last = &places[current->pid % ARRAY_SIZE(places)].last;
	u64 id = (u64)current->pid << 32 | ((u32)atomic_inc_return(last) ?: 1);

	WRITE_ONCE(*begun_id(span), id);

	return id;
}

/**
 * vmp_end_id() - the id of what the current task ends
 * @span: its kind
 *
 * Return: that of its beginning; 0 if this was not traced.
 */
u64 vmp_end_id(enum vmp_span span)
{
	u64 id = READ_ONCE(*begun_id(span));

	if (id >> 32 != current->pid)
		return 0;
	WRITE_ONCE(*begun_id(span), 0);

	return id;
}

/**
 * vmp_cgroup_id() - the cgroup of a memcg
 * @memcg: the memcg, which is alive, or NULL
 *
 * Return: its id; 0 without one.
 */
u64 vmp_cgroup_id(struct mem_cgroup *memcg)
{
#ifdef CONFIG_MEMCG
	if (memcg)
		return cgroup_id(memcg->css.cgroup);
#endif
	return 0;
}

/**
 * vmp_where() - where something happens, for its trace event
 * @set: number of the set in force
 * @rule: the rule that holds there
 * @policy: index of the policy in force at the point
 * @memcg: the memcg that pages are taken from, or NULL
 * @nid: the node
 *
 * Return: that.
 */
struct vmp_where vmp_where(u32 set, const struct vmp_rule *rule, u32 policy,
			   struct mem_cgroup *memcg, int nid)
{
	return (struct vmp_where) {
		.policy = policy,
		.set = set,
		.cgroup = vmp_cgroup_id(memcg),
		.nid = nid,
		.settings = rule->cgroup,
	};
}

/*
 * Where a task begins to sleep the kernel has no tracepoint, and none of our code runs: a probe
 * tells of it.
 */
static int reclaim_throttled(struct kprobe *p, struct pt_regs *regs)
{
	struct pglist_data *pgdat = (void *)regs_get_kernel_argument(regs, 0);
	u32 reason = regs_get_kernel_argument(regs, 1), set;
	const struct vmp_rule *rule;
	struct mem_cgroup *memcg;
	struct vmp_where where;

	guard(rcu)();
	memcg = vmp_memcg_of(current);
	rule = vmp_rule_now(memcg, &set);
	where = vmp_where(set, rule, rule->settings.policy[VMP_POINT_THROTTLE], memcg,
			  pgdat->node_id);
	trace_throttle_begin(&where, vmp_begin_id(VMP_SPAN_THROTTLE), reason);

	return 0;
}

static struct kprobe sleeps_probe;

int vmp_sleeps_probe(void)
{
	sleeps_probe = (struct kprobe) {
		.symbol_name = "reclaim_throttle",
		.pre_handler = reclaim_throttled,
	};

	return register_kprobe(&sleeps_probe);
}

void vmp_sleeps_unprobe(void)
{
	unregister_kprobe(&sleeps_probe);
}

/* The tracepoints' core calls these for each event. */
#define PROBE_OF_EVENT(name, NAME) \
	int vmp_##name##_event_on(void) \
	{ \
		return vmp_probe_want(VMP_PROBE_##NAME, true); \
	} \
	void vmp_##name##_event_off(void) \
	{ \
		vmp_probe_want(VMP_PROBE_##NAME, false); \
	}

PROBE_OF_EVENT(sleeps, SLEEPS)
PROBE_OF_EVENT(unmap, UNMAP)
PROBE_OF_EVENT(young, YOUNG)

/**
 * vmp_trace_throttled() - the current task has slept
 * @rule: the rule that holds for its memcg
 * @set: number of the set that has it
 * @memcg: that memcg
 * @nid: the node it slept on
 * @reason: why
 * @us: how long
 */
void vmp_trace_throttled(const struct vmp_rule *rule, u32 set, struct mem_cgroup *memcg, int nid,
			 u32 reason, u32 us)
{
	struct vmp_where where;

	if (!trace_throttle_end_enabled())
		return;

	where = vmp_where(set, rule, rule->settings.policy[VMP_POINT_THROTTLE], memcg, nid);
	trace_throttle_end(&where, vmp_end_id(VMP_SPAN_THROTTLE), reason, us);
}
