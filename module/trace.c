// SPDX-License-Identifier: GPL-2.0
/* What the trace events need besides their definitions: ids, and where they happen. */
#include <linux/atomic.h>
#include <linux/cgroup.h>
#include <linux/kprobes.h>
#include <linux/memcontrol.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>

#include "internal.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

/**
 * vmp_trace_id() - an id for something that begins now
 *
 * Return: one that the task has not had for long; not 0.
 */
u32 vmp_trace_id(void)
{
	static atomic_t last = ATOMIC_INIT(0);

	return (u32)atomic_inc_return(&last) ?: 1;
}

/**
 * vmp_own_id() - the id as trace events show it
 * @id: of the current task's, or 0
 *
 * Return: one that no other task has; 0 for 0.
 */
u64 vmp_own_id(u32 id)
{
	return id ? (u64)current->pid << 32 | id : 0;
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
 * @ops: the set in force
 * @policy: index of the policy in force at the point
 * @memcg: the memcg that pages are taken from, or NULL
 * @nid: the node
 *
 * Return: that.
 */
struct vmp_where vmp_where(const struct vmscan_policy_ops *ops, u32 policy,
			   struct mem_cgroup *memcg, int nid)
{
	return (struct vmp_where) {
		.policy = policy,
		.set = to_vmp_set(ops)->number,
		.cgroup = vmp_cgroup_id(memcg),
		.nid = nid,
	};
}

/* The cgroup of the current task. */
static u64 task_cgroup_id(void)
{
	u64 id;

	rcu_read_lock();
	id = vmp_cgroup_id(mem_cgroup_from_task(current));
	rcu_read_unlock();

	return id;
}

/*
 * Where a task begins to sleep the kernel has no tracepoint, and none of our code runs:
 * a probe, set while one of the two events is on. A task sleeps once at a time, so the
 * id of the last beginning with the task's pid in it is that of its end.
 */
static u64 throttled_ids[1024];

static u64 *throttled_id(void)
{
	return &throttled_ids[current->pid % ARRAY_SIZE(throttled_ids)];
}

static struct vmp_where throttled_where(int nid)
{
	struct vmp_where where = {
		.cgroup = task_cgroup_id(),
		.nid = nid,
	};

	vmp_control_in_force(VMP_POINT_THROTTLE, &where);

	return where;
}

static int reclaim_throttled(struct kprobe *p, struct pt_regs *regs)
{
	struct pglist_data *pgdat = (void *)regs_get_kernel_argument(regs, 0);
	u32 reason = regs_get_kernel_argument(regs, 1);
	struct vmp_where where = throttled_where(pgdat->node_id);
	u64 id = vmp_own_id(vmp_trace_id());

	WRITE_ONCE(*throttled_id(), id);
	trace_throttle_begin(&where, id, reason);

	return 0;
}

static struct kprobe throttle_probe;
static unsigned int throttle_traced;

/* The tracepoints' core calls these two for each event, one at a time. */
int vmp_throttle_trace(void)
{
	int err = 0;

	if (!throttle_traced) {
		throttle_probe = (struct kprobe) {
			.symbol_name = "reclaim_throttle",
			.pre_handler = reclaim_throttled,
		};
		err = register_kprobe(&throttle_probe);
	}
	if (!err)
		throttle_traced++;

	return err;
}

void vmp_throttle_untrace(void)
{
	if (!--throttle_traced)
		unregister_kprobe(&throttle_probe);
}

/**
 * vmp_trace_throttled() - the current task has slept
 * @nid: the node it slept on
 * @reason: why
 * @us: how long
 */
void vmp_trace_throttled(int nid, u32 reason, u32 us)
{
	struct vmp_where where;
	u64 id;

	if (!trace_throttle_end_enabled())
		return;

	where = throttled_where(nid);
	id = READ_ONCE(*throttled_id());
	trace_throttle_end(&where, id >> 32 == current->pid ? id : 0, reason, us);
}
