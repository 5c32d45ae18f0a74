// SPDX-License-Identifier: GPL-2.0
/* What the guard sees of direct reclaims and of tasks that are killed for want of memory. */
#include <linux/array_size.h>
#include <linux/memcontrol.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/oom.h>
#include <linux/psi.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>
#include <linux/vmstat.h>
#include <linux/workqueue.h>

#include "internal.h"
#include "watch.h"

/* When tasks have begun a direct reclaim; two whose place is the same lose one. */
static struct {
	pid_t pid;
	unsigned long at;
} begun[1024];

#define begun_by(task)	(&begun[(task)->pid % ARRAY_SIZE(begun)])

static bool in_memstall(void)
{
#ifdef CONFIG_PSI
	return current->in_memstall;
#else
	return false;
#endif
}

/* Is it known who is short of memory? PSI may be off. */
static bool psi_tells;

static void ask_psi(void)
{
	unsigned long flags;

	psi_memstall_enter(&flags);
	psi_tells = in_memstall();
	psi_memstall_leave(&flags);
}

/*
 * Who is short of memory, not who was told to reclaim, by memory.reclaim or a new limit: that may
 * take as long as it wants to.
 */
static bool is_short(void)
{
	return !psi_tells || in_memstall();
}

/* Who has found, last, that the machine has no memory left: only then the notifier is called. */
static struct task_struct *killer;

static bool stock_decides(const struct vmp_rule *rule)
{
	return rule->stock || vmscan_policy_bypassed();
}

static void reclaim_begins(void *data, VMP_RECLAIM_BEGINS)
{
	pid_t pid = current->pid;

	/* Nobody was killed for that; if somebody is from now on, it is for another reason. */
	if (unlikely(READ_ONCE(killer) == current))
		WRITE_ONCE(killer, NULL);
	/* How long stock takes is not held against a policy that is put in force meanwhile. */
	scoped_guard(rcu)
		if (stock_decides(vmp_rule_now(vmp_memcg_of(current), NULL)))
			pid = 0;
	WRITE_ONCE(begun_by(current)->at, jiffies);
	WRITE_ONCE(begun_by(current)->pid, pid);
}

/*
 * Counts for the settings of who waits: 6.12 does not tell whose memory is taken. @machine: that of
 * all.
 */
static void waited(unsigned long nr_reclaimed, bool machine)
{
	typeof(begun[0]) *of_task = begun_by(current);
	const struct vmp_settings *settings;
	struct mem_cgroup *waiting;
	const struct vmp_rule *rule;
	struct vmp_window window;
	struct vmp_guard *guard;
	unsigned int ms;

	if (READ_ONCE(of_task->pid) != current->pid)
		return;
	ms = jiffies_to_msecs(jiffies - READ_ONCE(of_task->at));
	WRITE_ONCE(of_task->pid, 0);
	if (!is_short())
		return;

	guard(rcu)();
	waiting = vmp_memcg_of(current);
	rule = vmp_rule_now(waiting, NULL);
	guard = rule->guard;
	settings = &rule->settings;
	if (stock_decides(rule))
		return;
	/* Where policies make the passes, these tell. */
	if ((machine || rule->cgroup) && !vmp_guard_walks(rule)) {
		if (nr_reclaimed)
			WRITE_ONCE(guard->stall.began, 0);
		else
			vmp_guard_stall(rule, waiting, VMP_ANY_POINT);
	}
	if (!settings->wait || !settings->window)
		return;
	scoped_guard(raw_spinlock, &guard->lock) {
		vmp_guard_window(&guard->window, vmp_guard_ms(), settings->window);
		guard->window.waits++;
		guard->window.slow += ms > settings->wait;
		window = guard->window;
	}
	if (vmp_guard_waits(&window))
		vmp_trip(rule, waiting, VMP_CAUSE_WAIT, VMP_ANY_POINT, window.slow, window.waits,
			 "%u of %u direct reclaims in %u s took more than %u ms, the last one %u",
			 window.slow, window.waits, settings->window, settings->wait, ms);
}

static void reclaim_ends(void *data, VMP_RECLAIM_ENDS)
{
	waited(nr_reclaimed, true);
}

static void memcg_reclaim_ends(void *data, VMP_RECLAIM_ENDS)
{
	waited(nr_reclaimed, false);
}

static void count_kill(const struct vmp_rule *rule, struct mem_cgroup *memcg, bool global)
{
	const struct vmp_settings *settings = &rule->settings;
	struct vmp_guard *guard = rule->guard;
	const unsigned long asked = READ_ONCE(guard->asked);
	struct vmp_kills kills, before;

	if (vmscan_policy_bypassed())
		return;
	scoped_guard(raw_spinlock, &guard->lock) {
		vmp_guard_pass_time(guard, vmp_guard_ms());
		if (!guard->in_force) {
			guard->before.nr++;
			return;
		}
		if (!asked || time_after(jiffies, asked + settings->window * HZ))
			return;
		guard->now.nr++;
		kills = guard->now;
		before = guard->before;
	}
	if (settings->window && vmp_guard_kills(&kills, &before, settings))
		vmp_trip(rule, memcg, VMP_CAUSE_OOM, VMP_ANY_POINT, kills.nr, before.nr,
			 "%s OOM kill: %llu in %llu ms under the policies, %llu in %llu ms before",
			 global ? "a global" : "an", kills.nr, kills.ms, before.nr, before.ms);
}

static int machine_oom(struct notifier_block *nb, unsigned long unused, void *freed)
{
	WRITE_ONCE(killer, current);

	return NOTIFY_OK;
}

static struct notifier_block oom_notifier = { .notifier_call = machine_oom };

/* Processes that one task marks with no longer pause between them were killed together. */
#define TOGETHER	(HZ / 10)

/*
 * By the killer, after the notifier, with the lock of all that kill. A kill for a memory cgroup's
 * limit is a matter of the settings that hold for the victim; one for the machine, of all that have
 * reclaimed of late. Each thread of a victim may be marked, and each process of a cgroup: that is
 * one kill.
 */
static void victim_marked(void *data, struct task_struct *task, uid_t uid)
{
	static struct task_struct *last_killer;
	static unsigned long last;
	static pid_t last_victim;
	bool global = READ_ONCE(killer) == current;
	const struct vmp_set *set;
	struct mem_cgroup *memcg;
	bool known;
	unsigned int i;

	if (global)
		WRITE_ONCE(killer, NULL);
	known = task->tgid == last_victim ||
		(current == last_killer && time_before(jiffies, last + TOGETHER));
	last_victim = task->tgid;
	last_killer = current;
	last = jiffies;
	if (known)
		return;
	guard(rcu)();
	memcg = vmp_memcg_of(task);
	set = vmp_set_now();
	if (!set)
		return;
	if (!global)
		count_kill(vmp_find_rule(set, memcg), memcg, false);
	for (i = 0; global && i < set->nr_rules; i += 2)
		count_kill(vmp_unless_tripped(&set->rules[i]), memcg, true);
}

struct probe {
	const char *name;
	void *function;
	struct tracepoint *tracepoint;
};

/* Costs nothing until a task is killed: on as long as the module is loaded. */
static struct probe victim_probe = { "mark_victim", victim_marked };
/* Those of direct reclaims are on while some policy is in force, and for a while after that. */
static struct probe reclaim_probes[] = {
	{ "mm_vmscan_direct_reclaim_begin", reclaim_begins },
	{ "mm_vmscan_direct_reclaim_end", reclaim_ends },
	{ "mm_vmscan_memcg_reclaim_begin", reclaim_begins },
	{ "mm_vmscan_memcg_reclaim_end", memcg_reclaim_ends },
};

static void find(struct probe *probe)
{
	probe->tracepoint = vmp_tracepoint(probe->name);
	if (!probe->tracepoint)
		pr_warn("the kernel has no tracepoint %s: the guard sees less\n", probe->name);
}

static int begin(struct probe *probe)
{
	return probe->tracepoint ?
	       tracepoint_probe_register(probe->tracepoint, probe->function, NULL) : 0;
}

static void end(struct probe *probe)
{
	if (probe->tracepoint)
		tracepoint_probe_unregister(probe->tracepoint, probe->function, NULL);
}

/* As long as the kernel leaves a branch on, and for the same reason. */
#define WATCH_OFF_DELAY	(30 * HZ)

static bool watching;

static void stop_watching(void)
{
	unsigned int i;

	for (i = 0; watching && i < ARRAY_SIZE(reclaim_probes); i++)
		end(&reclaim_probes[i]);
	watching = false;
}

static void rest_workfn(struct work_struct *work)
{
	guard(mutex)(&vmp_control_lock);
	if (vmp_all_stock())
		stop_watching();
}

static DECLARE_DELAYED_WORK(rest_work, rest_workfn);

/**
 * vmp_guard_want() - look at direct reclaims, or no longer
 * @want: some policy is about to be in force
 *
 * Return: 0, or what tracepoint_probe_register() returned.
 */
int vmp_guard_want(bool want)
{
	unsigned int i;
	int err;

	lockdep_assert_held(&vmp_control_lock);
	if (!want && watching)
		mod_delayed_work(system_long_wq, &rest_work, WATCH_OFF_DELAY);
	if (!want || watching)
		return 0;

	for (i = 0; i < ARRAY_SIZE(reclaim_probes); i++) {
		err = begin(&reclaim_probes[i]);
		if (err) {
			while (i--)
				end(&reclaim_probes[i]);
			return err;
		}
	}
	watching = true;

	return 0;
}

/* The kills since the machine has booted: it has done without policies. */
static struct vmp_kills since_boot(void)
{
	struct vmp_kills kills = {};
#ifdef CONFIG_VM_EVENT_COUNTERS
	unsigned long *events = kcalloc(NR_VM_EVENT_ITEMS, sizeof(*events), GFP_KERNEL);

	if (!events)
		return kills;
	all_vm_events(events);
	kills.nr = events[OOM_KILL];
	kills.ms = vmp_guard_ms();
	kfree(events);
#endif
	return kills;
}

/**
 * vmp_guard_probes_init() - begin to count kills
 * @machine: the guard of the machine's settings
 *
 * Return: 0, or what register_oom_notifier() or tracepoint_probe_register() returned.
 */
int vmp_guard_probes_init(struct vmp_guard *machine)
{
	unsigned int i;
	int err;

	ask_psi();
	machine->before = since_boot();
	find(&victim_probe);
	for (i = 0; i < ARRAY_SIZE(reclaim_probes); i++)
		find(&reclaim_probes[i]);
	err = register_oom_notifier(&oom_notifier);
	if (err)
		return err;
	err = begin(&victim_probe);
	if (err)
		unregister_oom_notifier(&oom_notifier);

	return err;
}

/* Nothing is published any more. */
void vmp_guard_probes_exit(void)
{
	cancel_delayed_work_sync(&rest_work);
	scoped_guard(mutex, &vmp_control_lock)
		stop_watching();
	end(&victim_probe);
	unregister_oom_notifier(&oom_notifier);
	tracepoint_synchronize_unregister();
}
