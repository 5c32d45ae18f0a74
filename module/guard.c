// SPDX-License-Identifier: GPL-2.0
/*
 * The guard: takes policies that do harm out of the path, and says why.
 *
 * It trips once: a flag, which each decision reads, has the settings of one entry act stock from
 * its next decision on. That is all that happens where harm is seen, which may be anywhere in
 * reclaim: nothing is allocated, nothing sleeps, and no lock is taken but a guard's own, which is
 * held for a few instructions. What is left of the policies goes later, in a work.
 */
#include <linux/array_size.h>
#include <linux/atomic.h>
#include <linux/cleanup.h>
#include <linux/debugfs.h>
#include <linux/hash.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>
#include <linux/workqueue.h>
#include <kunit/visibility.h>

#include "internal.h"
#include "trace.h"
#include "watch.h"

static const char *const cause_names[VMP_NR_CAUSES] = {
	[VMP_CAUSE_OOM] = "oom",
	[VMP_CAUSE_STALL] = "stall",
	[VMP_CAUSE_WAIT] = "wait",
	[VMP_CAUSE_CALLBACK] = "callback",
	[VMP_CAUSE_CLAMPS] = "clamps",
};

static void teardown_workfn(struct work_struct *work);
static DECLARE_DELAYED_WORK(teardown_work, teardown_workfn);

/* The policies of settings that are not stock. */
static void list_policies(char *text, size_t size, const struct vmp_rule *rule)
{
	const struct vmp_settings *settings = &rule->settings;
	struct vmp_settings stock = *settings;
	unsigned int i;
	size_t len = 0;

	vmp_set_stock(&stock, vmp_traits());
	*text = '\0';
	for (i = 0; i < VMP_NR_POINTS; i++)
		if (settings->policy[i] != stock.policy[i])
			len += scnprintf(text + len, size - len, "%s%s=%s", len ? "," : "",
					 vmp_points[i]->name,
					 vmp_policy_name(i, settings->policy[i], rule->plugin[i]));
}

/**
 * vmp_trip() - have a rule's policies act stock from now on
 * @rule: the rule
 * @memcg: the memory cgroup that it was about
 * @cause: why
 * @point: the point that does harm, or VMP_ANY_POINT
 * @figure: what was seen
 * @limit: what it is beyond
 * @format: both in words
 *
 * In an RCU read-side section, so that who clears it can wait for that to be complete. Of several
 * that come at once, the first one does it.
 */
void vmp_trip(const struct vmp_rule *rule, struct mem_cgroup *memcg, enum vmp_cause cause,
	      unsigned int point, u64 figure, u64 limit, const char *format, ...)
{
	const u32 policy = point == VMP_ANY_POINT ? 0 : rule->settings.policy[point];
	const struct vmp_where where = vmp_where(vmp_set_number(), rule, policy, memcg,
						 NUMA_NO_NODE);
	struct vmp_guard *guard = rule->guard;
	const time64_t now = ktime_get_real_seconds();
	struct va_format text = { .fmt = format };
	char policies[128];
	va_list args;

	if (rule->stock || rule->settings.unguarded || xchg(&guard->tripped, 1))
		return;

	list_policies(policies, sizeof(policies), rule);
	va_start(args, format);
	text.va = &args;
	scnprintf(guard->reason, sizeof(guard->reason),
		  "cause=%s when=%ptT point=%s policies=%s pid=%d cgroup=%llu settings=%llu: %pV",
		  cause_names[cause], &now,
		  point == VMP_ANY_POINT ? "any" : vmp_points[point]->name, policies,
		  current->pid, where.cgroup, where.settings, &text);
	va_end(args);
	/* reason_show() sees all of the text, or none of it */
	smp_store_release(&guard->told, true);
	pr_warn("guard tripped, stock from now on: %s\n", guard->reason);
	trace_guard_tripped(&where, cause, point, figure, limit, current->pid);
	queue_delayed_work(system_long_wq, &teardown_work, 0);
}

/*
 * CPU time that callbacks have taken, by task and the era of a guard, in a second: no pass is
 * around all of them. Two whose place is the same lose some.
 */
static struct {
	u32 era;
	pid_t pid;
	unsigned long since;
	u64 ns;
	unsigned int times;
} taken[1024];

/* A callback has taken that. Some clocks move more seldom than others, and then by more. */
void vmp_guard_took(const struct vmp_watch *watch, u64 ns)
{
	const unsigned int limit = watch->rule->settings.callback;
	const u32 era = READ_ONCE(watch->rule->guard->era);
	const u32 place = current->pid + hash_32(era, 32);
	typeof(taken[0]) *of_task = &taken[place % ARRAY_SIZE(taken)];
	const unsigned long now = jiffies;
	unsigned long passed;
	unsigned int times;
	bool known;

	if (!limit)
		return;
	known = READ_ONCE(of_task->pid) == current->pid && READ_ONCE(of_task->era) == era;
	passed = now - READ_ONCE(of_task->since);
	if (!known || passed > HZ) {
		/* slow ones are few in a second, and add up while each is beyond the limit */
		if (!known || passed > 2 * HZ ||
		    !vmp_guard_slow(READ_ONCE(of_task->ns), UINT_MAX, limit))
			WRITE_ONCE(of_task->times, 0);
		WRITE_ONCE(of_task->era, era);
		WRITE_ONCE(of_task->pid, current->pid);
		WRITE_ONCE(of_task->since, watch->at);
		WRITE_ONCE(of_task->ns, 0);
	}
	ns = min(ns, (now - watch->at + 1) * (u64)TICK_NSEC) + READ_ONCE(of_task->ns);
	WRITE_ONCE(of_task->ns, ns);
	times = READ_ONCE(of_task->times) + 1;
	WRITE_ONCE(of_task->times, times);
	if (vmp_guard_slow(ns, times, limit))
		vmp_trip(watch->rule, watch->memcg, VMP_CAUSE_CALLBACK, watch->point,
			 div_u64(ns, NSEC_PER_MSEC), limit,
			 "a task's callbacks took %llu ms of CPU time in a second, more than %u",
			 div_u64(ns, NSEC_PER_MSEC), limit);
}
EXPORT_SYMBOL_IF_KUNIT(vmp_guard_took);

/* An answer is beyond what the kernel takes. */
void vmp_guard_clamped(const struct vmp_watch *watch, u64 answer)
{
	const struct vmp_settings *settings = &watch->rule->settings;
	struct vmp_guard *guard = watch->rule->guard;
	u32 clamps;

	if (!settings->clamps || !settings->window)
		return;
	scoped_guard(raw_spinlock, &guard->lock) {
		vmp_guard_window(&guard->window, vmp_guard_ms(), settings->window);
		clamps = ++guard->window.clamps;
	}
	if (clamps > settings->clamps)
		vmp_trip(watch->rule, watch->memcg, VMP_CAUSE_CLAMPS, watch->point, clamps,
			 settings->clamps,
			 "%u answers had to be limited in %u s, more than %u; the last was %#llx",
			 clamps, settings->window, settings->clamps, answer);
}

/* A pass over @memcg, or a direct reclaim, has reclaimed nothing: trips if that goes on. */
void vmp_guard_stall(const struct vmp_rule *rule, struct mem_cgroup *memcg, unsigned int point)
{
	const unsigned int limit = rule->settings.stall;
	struct vmp_guard *guard = rule->guard;
	unsigned int ms;

	if (!limit)
		return;
	scoped_guard(raw_spinlock, &guard->lock)
		ms = jiffies_to_msecs(vmp_guard_stalls(&guard->stall, jiffies ?: 1));
	if (ms >= limit)
		vmp_trip(rule, memcg, VMP_CAUSE_STALL, point, ms, limit,
			 "no page was reclaimed for %u ms while passes went on, %u or more", ms,
			 limit);
}

/* Do policies make the passes? */
bool vmp_guard_walks(const struct vmp_rule *rule)
{
	return vmp_scan_walks(rule->settings.policy[VMP_POINT_SCAN],
			      rule->settings.policy[VMP_POINT_AGING], vmp_traits());
}

/*
 * A pass at a priority at which reclaim is urgent has reclaimed nothing of what there was. Without
 * a generation to evict from it may have waited for who makes one.
 */
void vmp_guard_fruitless(const struct vmp_rule *rule, const struct vmscan_pass *pass)
{
	if (rule->stock)
		return;
	if (rule->settings.stall && !pass->priority && pass->stock_follows && !pass->nr_moved &&
	    !pass->nr_aged && vmp_aging_cold(pass) && vmp_guard_walks(rule))
		vmp_trip(rule, pass->memcg, VMP_CAUSE_STALL, VMP_POINT_SCAN, pass->begin_size, 0,
			 "a pass at priority 0 moved none of %lu pages, and stock has to follow",
			 pass->begin_size);
	else
		vmp_guard_stall(rule, pass->memcg, VMP_POINT_SCAN);
}

/* The time up to now belongs to what is in force, but for the bypass. With the guard's lock. */
void vmp_guard_pass_time(struct vmp_guard *guard, u64 now)
{
	struct vmp_kills *kills = guard->in_force ? &guard->now : &guard->before;

	if (!vmscan_policy_bypassed())
		kills->ms += now - guard->since;
	guard->since = now;
}
EXPORT_SYMBOL_IF_KUNIT(vmp_guard_pass_time);

/* Before the bypass is set or cleared: under it no kill counts, so its time doesn't either. */
void vmp_guard_before_bypass(void)
{
	const struct vmp_set *set;
	unsigned int i;

	guard(rcu)();
	set = vmp_set_now();
	for (i = 0; set && i < set->nr_rules; i += 2)
		scoped_guard(raw_spinlock, &set->rules[i].guard->lock)
			vmp_guard_pass_time(set->rules[i].guard, vmp_guard_ms());
}
EXPORT_SYMBOL_IF_KUNIT(vmp_guard_before_bypass);

static void begin_era(struct vmp_guard *guard)
{
	static atomic_t eras;

	WRITE_ONCE(guard->era, atomic_inc_return(&eras));
}

/* What was seen of the policies in force. With the guard's lock. */
static void forget(struct vmp_guard *guard)
{
	begin_era(guard);
	guard->now = (struct vmp_kills) {};
	guard->window = (struct vmp_window) {};
	guard->stall = (struct vmp_stall) {};
}

/**
 * vmp_guard_changed() - settings have been put in force
 * @entry: whose
 *
 * Kills count for the policies until there are others; what stock does in between is stock's.
 */
void vmp_guard_changed(struct vmp_entry *entry)
{
	const struct vmp_settings *settings = &entry->rule.settings;
	bool stock = vmp_is_stock(settings, vmp_traits());
	struct vmp_guard *guard = &entry->guard;

	lockdep_assert_held(&vmp_control_lock);
	scoped_guard(raw_spinlock, &guard->lock) {
		vmp_guard_pass_time(guard, vmp_guard_ms());
		guard->in_force = !stock;
		if (stock)
			WRITE_ONCE(guard->asked, 0);
		if (!stock && memcmp(&entry->tried, settings, sizeof(*settings)))
			forget(guard);
	}
	if (!stock)
		entry->tried = *settings;
}

/* Of an entry that is new. */
void vmp_guard_init_entry(struct vmp_entry *entry)
{
	raw_spin_lock_init(&entry->guard.lock);
	entry->guard.since = vmp_guard_ms();
	begin_era(&entry->guard);
}
EXPORT_SYMBOL_IF_KUNIT(vmp_guard_init_entry);

/* Nobody that looked at the policies before is at it any more: they are stock at each point. */
static void teardown_workfn(struct work_struct *work)
{
	/* for want of memory: that it has tripped holds meanwhile */
	if (vmp_control_teardown())
		mod_delayed_work(system_long_wq, &teardown_work, HZ);
}

static const char *const state_names[] = { "armed", "tripped", "off" };

enum { ARMED, TRIPPED, OFF };

static int state_show(struct seq_file *m, void *v)
{
	const struct vmp_file *file = m->private;
	const struct vmp_entry *entry = file->entry;
	unsigned int state = READ_ONCE(entry->rule.settings.unguarded) ? OFF : ARMED;

	if (READ_ONCE(entry->guard.tripped))
		state = TRIPPED;
	vmp_show_names(m, state_names, ARRAY_SIZE(state_names), state);

	return 0;
}

static ssize_t state_write(struct file *file, const char __user *ubuf, size_t count, loff_t *ppos)
{
	static const char *const names[] = { "armed", "off" };
	const struct vmp_file *to = file_inode(file)->i_private;
	char text[VMP_TEXT_MAX + 1];
	int off;

	off = vmp_copy_text(text, ubuf, count) ?:
	      vmp_parse_choice("guard/state", text, names, ARRAY_SIZE(names));
	if (off < 0)
		return off;

	return vmp_change(to->entry, offsetof(struct vmp_settings, unguarded), off) ?: count;
}
DEFINE_SHOW_STORE_ATTRIBUTE(state);

static int reason_show(struct seq_file *m, void *v)
{
	const struct vmp_file *file = m->private;
	const struct vmp_guard *guard = &file->entry->guard;
	/* vmp_trip() has written the text before */
	bool told = smp_load_acquire(&guard->told);

	seq_printf(m, "%s\n", told ? guard->reason : "none");

	return 0;
}
DEFINE_SHOW_ATTRIBUTE(reason);

static ssize_t clear_write(struct file *file, const char __user *ubuf, size_t count, loff_t *ppos)
{
	const struct vmp_file *to = file_inode(file)->i_private;
	char text[VMP_TEXT_MAX + 1];
	unsigned int value;

	return vmp_copy_text(text, ubuf, count) ?:
	       vmp_parse_number("guard/clear", text, 1, 1, &value) ?:
	       vmp_control_clear(to->entry) ?: count;
}

static const struct file_operations clear_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = clear_write,
};

/**
 * vmp_guard_clear() - arm a guard again
 * @guard: the guard, whose policies are stock, and in force as such
 */
void vmp_guard_clear(struct vmp_guard *guard)
{
	/* who has tripped it is done */
	synchronize_rcu();
	scoped_guard(raw_spinlock, &guard->lock)
		forget(guard);
	WRITE_ONCE(guard->told, false);
	/* before vmp_trip() may write the next reason */
	smp_store_release(&guard->tripped, 0);
}
EXPORT_SYMBOL_IF_KUNIT(vmp_guard_clear);

static const struct vmp_number numbers[] = {
	{
		.path = "guard/window",
		.max = 86400,
		.setting = offsetof(struct vmp_settings, window),
	},
	{
		.path = "guard/stall",
		.max = 3600000,
		.setting = offsetof(struct vmp_settings, stall),
	},
	{
		.path = "guard/wait",
		.max = 3600000,
		.setting = offsetof(struct vmp_settings, wait),
	},
	{
		.path = "guard/callback",
		.max = 3600000,
		.setting = offsetof(struct vmp_settings, callback),
	},
	{
		.path = "guard/clamps",
		.max = 1000000,
		.setting = offsetof(struct vmp_settings, clamps),
	},
	{
		.path = "guard/strict",
		.max = 1,
		.setting = offsetof(struct vmp_settings, strict),
	},
};

/**
 * vmp_guard_create() - create the files
 * @entry: whose; has its directory
 */
void vmp_guard_create(struct vmp_entry *entry)
{
	struct dentry *dir = debugfs_create_dir("guard", entry->dir);
	unsigned int i;

	vmp_create_file(entry, dir, "state", 0600, NULL, &state_fops);
	vmp_create_file(entry, dir, "reason", 0400, NULL, &reason_fops);
	vmp_create_file(entry, dir, "clear", 0200, NULL, &clear_fops);
	for (i = 0; i < ARRAY_SIZE(numbers); i++)
		vmp_create_number(entry, dir, &numbers[i]);
}

/**
 * vmp_guard_init() - begin to count kills
 * @machine: the machine's entry
 *
 * Return: 0, or what vmp_guard_probes_init() returned.
 */
int vmp_guard_init(struct vmp_entry *machine)
{
	vmp_guard_init_entry(machine);

	return vmp_guard_probes_init(&machine->guard);
}

/* Nothing is published any more. */
void vmp_guard_exit(void)
{
	vmp_guard_probes_exit();
	cancel_delayed_work_sync(&teardown_work);
}
