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
#include <linux/bitops.h>
#include <linux/cleanup.h>
#include <linux/debugfs.h>
#include <linux/math64.h>
#include <linux/memcontrol.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/oom.h>
#include <linux/psi.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/tracepoint.h>
#include <linux/vmstat.h>
#include <linux/workqueue.h>
#include <kunit/visibility.h>

#include "internal.h"
#include "trace.h"
#include "watch.h"

/* A point that a cause is not about. */
#define ANY_POINT	VMP_NR_POINTS

static const char *const cause_names[VMP_NR_CAUSES] = {
	[VMP_CAUSE_OOM] = "oom",
	[VMP_CAUSE_STALL] = "stall",
	[VMP_CAUSE_WAIT] = "wait",
	[VMP_CAUSE_CALLBACK] = "callback",
	[VMP_CAUSE_CLAMPS] = "clamps",
};

static u64 now_ms(void)
{
	return ktime_to_ms(ktime_get());
}

/* A positive number, as @mantissa << @exponent. */
struct real {
	u64 mantissa;
	int exponent;
};

/* Multiply by a fraction. The mantissa keeps 32 bits. */
static void scale(struct real *x, u32 numerator, u32 denominator)
{
	u64 product = x->mantissa * numerator;
	int shift;

	if (!product) {
		x->mantissa = 0;
		return;
	}
	shift = 64 - fls64(product);
	product = div_u64(product << shift, denominator);
	x->exponent -= shift;
	shift = fls64(product) - 32;
	x->mantissa = shift > 0 ? product >> shift : product << -shift;
	x->exponent += shift;
}

/* In units of 2^-62; 0 if it is less than that. @x is at most 1. */
static u64 fixed(const struct real *x)
{
	int shift = x->exponent + 62;

	if (shift >= 0)
		return x->mantissa << shift;

	return shift > -64 ? x->mantissa >> -shift : 0;
}

/* More kills don't tell more than these do. */
#define MOST_KILLS	1000
/* Once in so many times it may be chance, however many kills there are to be looked at. */
#define CHANCE		1000

/*
 * How improbable a number of kills has to be, in units of 2^-62. It is looked at after each kill,
 * and each look may be wrong. So each doubling of their number has a part of what may be wrong in
 * all: of n doublings, 1 / (n * (n + 1)), which add up to one.
 */
static u64 too_improbable(u64 nr)
{
	const unsigned int doublings = fls64(nr);

	return BIT_ULL(62) / (CHANCE * doublings * (doublings + 1));
}

/**
 * vmp_guard_beyond_chance() - are tasks killed more often than before?
 * @now: the kills under the policies
 * @before: those before
 *
 * If kills come as often as before, each of all falls into the time of the policies with the
 * same probability, that time's share. So their number there has a binomial distribution, and
 * what is asked is how probable so many or more are: the exact comparison of two Poisson rates,
 * of Przyborowski and Wilenski, "Homogeneity of results in testing samples from Poisson series",
 * Biometrika 31 (1940), 313-323.
 *
 * Return: true if that is less than 1 in 1,000 times the part that looks after so many kills have.
 */
bool vmp_guard_beyond_chance(const struct vmp_kills *now, const struct vmp_kills *before)
{
	u64 ms = max(now->ms, 1), ms_before = before->ms, sum = 0;
	const u64 limit = too_improbable(now->nr);
	u64 nr = now->nr, nr_before = before->nr;
	struct real term = { .mantissa = 1 };
	u32 n, i;

	/* The rates are the same, and are known less well. */
	while (nr > MOST_KILLS) {
		nr /= 2;
		ms = max(ms / 2, 1);
	}
	while (nr_before > MOST_KILLS) {
		nr_before /= 2;
		ms_before /= 2;
	}
	while (ms + ms_before > U32_MAX) {
		ms = max(ms / 2, 1);
		ms_before /= 2;
	}
	n = nr + nr_before;

	/* So many: C(n, nr) * p^nr * (1 - p)^nr_before */
	for (i = 1; i <= nr; i++) {
		scale(&term, nr_before + i, i);
		scale(&term, ms, ms + ms_before);
	}
	for (i = 0; i < nr_before; i++)
		scale(&term, ms_before, ms + ms_before);
	/* ... or more. */
	for (i = nr; i <= n; i++) {
		sum += fixed(&term);
		if (sum >= limit)
			return false;
		if (i < n) {
			scale(&term, n - i, i + 1);
			scale(&term, ms, max(ms_before, 1));
		}
	}

	return true;
}
EXPORT_SYMBOL_IF_KUNIT(vmp_guard_beyond_chance);

/**
 * vmp_guard_kills() - is it the policies that tasks are killed for?
 * @now: the kills under them, one at least
 * @before: those before
 * @settings: the limits
 *
 * Return: true if it is, or if too little is known of the time before to tell.
 */
bool vmp_guard_kills(const struct vmp_kills *now, const struct vmp_kills *before,
		     const struct vmp_settings *settings)
{
	return settings->strict || before->ms < settings->window * MSEC_PER_SEC ||
	       vmp_guard_beyond_chance(now, before);
}
EXPORT_SYMBOL_IF_KUNIT(vmp_guard_kills);

/**
 * vmp_guard_stalls() - add a fruitless pass: since when have there been such alone?
 * @stall: those before
 * @now: in jiffies, not 0
 *
 * Return: how long they have gone on, in jiffies.
 */
unsigned long vmp_guard_stalls(struct vmp_stall *stall, unsigned long now)
{
	unsigned long began = READ_ONCE(stall->began);

	/* Not without need: by then, another pass may have reclaimed something. */
	if (!began || now - stall->last > VMP_GUARD_PAUSE) {
		began = now;
		WRITE_ONCE(stall->began, began);
	}
	stall->last = now;

	return now - began;
}
EXPORT_SYMBOL_IF_KUNIT(vmp_guard_stalls);

/**
 * vmp_guard_window() - begin the next window, if the present one is over
 * @window: the present one
 * @now: in ms
 * @seconds: its length
 */
void vmp_guard_window(struct vmp_window *window, u64 now, unsigned int seconds)
{
	if (now - window->began >= seconds * MSEC_PER_SEC)
		*window = (struct vmp_window) { .began = now };
}
EXPORT_SYMBOL_IF_KUNIT(vmp_guard_window);

/**
 * vmp_guard_waits() - are too many direct reclaims slow?
 * @window: with them
 *
 * Return: true if it is more than a quarter of a number that tells.
 */
bool vmp_guard_waits(const struct vmp_window *window)
{
	return window->waits >= VMP_GUARD_WAITS && 4 * window->slow > window->waits;
}
EXPORT_SYMBOL_IF_KUNIT(vmp_guard_waits);

/* A busy host may not have given a virtual CPU back so often. */
#define MANY_TIMES	8
#define FAR_BEYOND	10	/* times the limit */

/**
 * vmp_guard_slow() - do callbacks take too much CPU time?
 * @ns: what they took in a second
 * @times: how often they took some
 * @limit: in ms
 *
 * Where a host takes a CPU away for many ticks, these are charged to a callback, if one was under
 * way. So a few times tell nothing but of what is far beyond the limit.
 *
 * Return: true if they do.
 */
bool vmp_guard_slow(u64 ns, unsigned int times, unsigned int limit)
{
	return ns > limit * (u64)NSEC_PER_MSEC * (times < MANY_TIMES ? FAR_BEYOND : 1);
}
EXPORT_SYMBOL_IF_KUNIT(vmp_guard_slow);

static void teardown_workfn(struct work_struct *work);
static DECLARE_DELAYED_WORK(teardown_work, teardown_workfn);

/* The policies of settings that are not stock. */
static void list_policies(char *text, size_t size, const struct vmp_settings *settings)
{
	struct vmp_settings stock = *settings;
	unsigned int i;
	size_t len = 0;

	vmp_set_stock(&stock, vmp_traits());
	*text = '\0';
	for (i = 0; i < VMP_NR_POINTS; i++)
		if (settings->policy[i] != stock.policy[i])
			len += scnprintf(text + len, size - len, "%s%s=%s", len ? "," : "",
					 vmp_points[i]->name,
					 vmp_points[i]->policies[settings->policy[i]].name);
}

/*
 * In an RCU read-side section, so that who clears it can wait for that to be complete. Of several
 * that come at once, the first one does it.
 */
static __printf(7, 8)
void trip(const struct vmp_rule *rule, struct mem_cgroup *memcg, enum vmp_cause cause,
	  unsigned int point, u64 figure, u64 limit, const char *format, ...)
{
	const struct vmp_where where = {
		.policy = point == ANY_POINT ? 0 : rule->settings.policy[point],
		.set = vmp_set_number(),
		.cgroup = vmp_cgroup_id(memcg),
		.nid = NUMA_NO_NODE,
		.settings = rule->cgroup,
	};
	struct vmp_guard *guard = rule->guard;
	const time64_t now = ktime_get_real_seconds();
	struct va_format text = { .fmt = format };
	char policies[128];
	va_list args;

	if (rule->stock || rule->settings.unguarded || xchg(&guard->tripped, 1))
		return;

	list_policies(policies, sizeof(policies), &rule->settings);
	va_start(args, format);
	text.va = &args;
	scnprintf(guard->reason, sizeof(guard->reason),
		  "cause=%s when=%ptT point=%s policies=%s pid=%d cgroup=%llu settings=%llu: %pV",
		  cause_names[cause], &now, point == ANY_POINT ? "any" : vmp_points[point]->name,
		  policies, current->pid, where.cgroup, where.settings, &text);
	va_end(args);
	/* reason_show() sees all of the text, or none of it */
	smp_store_release(&guard->told, true);
	pr_warn("guard tripped, stock from now on: %s\n", guard->reason);
	trace_guard_tripped(&where, cause, point, figure, limit, current->pid);
	queue_delayed_work(system_long_wq, &teardown_work, 0);
}

/*
 * CPU time that callbacks have taken, by task, in a second: no pass is around all of them. Two
 * tasks whose place is the same lose some.
 */
static struct {
	pid_t pid;
	unsigned long since;
	u64 ns;
	unsigned int times;
} taken[1024];

/* A callback has taken that. Some clocks move more seldom than others, and then by more. */
void vmp_guard_took(const struct vmp_watch *watch, u64 ns)
{
	const unsigned int limit = watch->rule->settings.callback;
	typeof(taken[0]) *of_task = &taken[current->pid % ARRAY_SIZE(taken)];
	const unsigned long now = jiffies;
	unsigned int times;

	if (!limit)
		return;
	if (READ_ONCE(of_task->pid) != current->pid || now - READ_ONCE(of_task->since) > HZ) {
		WRITE_ONCE(of_task->pid, current->pid);
		WRITE_ONCE(of_task->since, watch->at);
		WRITE_ONCE(of_task->ns, 0);
		WRITE_ONCE(of_task->times, 0);
	}
	ns = min(ns, (now - watch->at + 1) * (u64)TICK_NSEC) + READ_ONCE(of_task->ns);
	WRITE_ONCE(of_task->ns, ns);
	times = READ_ONCE(of_task->times) + 1;
	WRITE_ONCE(of_task->times, times);
	if (vmp_guard_slow(ns, times, limit))
		trip(watch->rule, watch->memcg, VMP_CAUSE_CALLBACK, watch->point,
		     div_u64(ns, NSEC_PER_MSEC), limit,
		     "a task's callbacks took %llu ms of CPU time in a second, more than %u",
		     div_u64(ns, NSEC_PER_MSEC), limit);
}

/* An answer is beyond what the kernel takes. */
void vmp_guard_clamped(const struct vmp_watch *watch, u64 answer)
{
	const struct vmp_settings *settings = &watch->rule->settings;
	struct vmp_guard *guard = watch->rule->guard;
	u32 clamps;

	if (!settings->clamps || !settings->window)
		return;
	scoped_guard(raw_spinlock, &guard->lock) {
		vmp_guard_window(&guard->window, now_ms(), settings->window);
		clamps = ++guard->window.clamps;
	}
	if (clamps > settings->clamps)
		trip(watch->rule, watch->memcg, VMP_CAUSE_CLAMPS, watch->point, clamps,
		     settings->clamps,
		     "%u answers had to be limited in %u s, more than %u; the last was %#llx",
		     clamps, settings->window, settings->clamps, answer);
}

static void stalls(const struct vmp_rule *rule, struct mem_cgroup *memcg, unsigned int point)
{
	const unsigned int limit = rule->settings.stall;
	struct vmp_guard *guard = rule->guard;
	unsigned int ms;

	if (!limit)
		return;
	scoped_guard(raw_spinlock, &guard->lock)
		ms = jiffies_to_msecs(vmp_guard_stalls(&guard->stall, jiffies ?: 1));
	if (ms >= limit)
		trip(rule, memcg, VMP_CAUSE_STALL, point, ms, limit,
		     "no page was reclaimed for %u ms while passes went on, %u or more", ms,
		     limit);
}

/* Do policies make the passes? */
static bool walks(const struct vmp_rule *rule)
{
	return vmp_scan_walks(rule->settings.policy[VMP_POINT_SCAN],
			      rule->settings.policy[VMP_POINT_AGING], vmp_traits());
}

/* A pass at a priority at which reclaim is urgent has reclaimed nothing of what there was. */
void vmp_guard_fruitless(const struct vmp_rule *rule, const struct vmscan_pass *pass)
{
	if (rule->stock)
		return;
	if (rule->settings.stall && !pass->priority && pass->stock_follows && !pass->nr_moved &&
	    !pass->nr_aged && walks(rule))
		trip(rule, pass->memcg, VMP_CAUSE_STALL, VMP_POINT_SCAN, pass->begin_size, 0,
		     "a pass at priority 0 moved none of %lu pages, and stock has to follow",
		     pass->begin_size);
	else
		stalls(rule, pass->memcg, VMP_POINT_SCAN);
}

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

static void reclaim_begins(void *data, VMP_RECLAIM_BEGINS)
{
	/* Nobody was killed for that; if somebody is after this, it is for another reason. */
	if (unlikely(READ_ONCE(killer) == current))
		WRITE_ONCE(killer, NULL);
	WRITE_ONCE(begun_by(current)->at, jiffies);
	WRITE_ONCE(begun_by(current)->pid, current->pid);
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
	if (rule->stock)
		return;
	/* Where policies make the passes, these tell. */
	if (!walks(rule)) {
		if (nr_reclaimed)
			WRITE_ONCE(guard->stall.began, 0);
		else if (machine || rule->cgroup)
			stalls(rule, waiting, ANY_POINT);
	}
	if (!settings->wait || !settings->window)
		return;
	scoped_guard(raw_spinlock, &guard->lock) {
		vmp_guard_window(&guard->window, now_ms(), settings->window);
		guard->window.waits++;
		guard->window.slow += ms > settings->wait;
		window = guard->window;
	}
	if (vmp_guard_waits(&window))
		trip(rule, waiting, VMP_CAUSE_WAIT, ANY_POINT, window.slow, window.waits,
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

/* The time up to now belongs to what is in force. With the guard's lock. */
static void pass_time(struct vmp_guard *guard, u64 now)
{
	struct vmp_kills *kills = guard->in_force ? &guard->now : &guard->before;

	kills->ms += now - guard->since;
	guard->since = now;
}

static void count_kill(const struct vmp_rule *rule, struct mem_cgroup *memcg, bool global)
{
	const struct vmp_settings *settings = &rule->settings;
	struct vmp_guard *guard = rule->guard;
	const unsigned long asked = READ_ONCE(guard->asked);
	struct vmp_kills kills, before;

	scoped_guard(raw_spinlock, &guard->lock) {
		pass_time(guard, now_ms());
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
		trip(rule, memcg, VMP_CAUSE_OOM, ANY_POINT, kills.nr, before.nr,
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

static void find_tracepoint(struct tracepoint *tp, void *data)
{
	struct probe *probe = data;

	if (!strcmp(tp->name, probe->name))
		probe->tracepoint = tp;
}

static void find(struct probe *probe)
{
	for_each_kernel_tracepoint(find_tracepoint, probe);
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

/* What was seen of the policies in force. With the guard's lock. */
static void forget(struct vmp_guard *guard)
{
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
		pass_time(guard, now_ms());
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
	entry->guard.since = now_ms();
}

/* Nobody that looked at the policies before is at it any more: they are stock at each point. */
static void teardown_workfn(struct work_struct *work)
{
	/* for want of memory: the bypass holds meanwhile */
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
	char *text = vmp_copy_text(ubuf, count);
	int off;

	if (IS_ERR(text))
		return PTR_ERR(text);
	off = vmp_parse_choice("guard/state", text, names, ARRAY_SIZE(names));
	kfree(text);
	if (off < 0)
		return off;

	return vmp_change(to->entry, offsetof(struct vmp_settings, unguarded), off) ?: count;
}
DEFINE_SHOW_STORE_ATTRIBUTE(state);

static int reason_show(struct seq_file *m, void *v)
{
	const struct vmp_file *file = m->private;
	const struct vmp_guard *guard = &file->entry->guard;
	/* trip() has written the text before */
	bool told = smp_load_acquire(&guard->told);

	seq_printf(m, "%s\n", told ? guard->reason : "none");

	return 0;
}
DEFINE_SHOW_ATTRIBUTE(reason);

static ssize_t clear_write(struct file *file, const char __user *ubuf, size_t count, loff_t *ppos)
{
	const struct vmp_file *to = file_inode(file)->i_private;
	char *text = vmp_copy_text(ubuf, count);
	unsigned int value;
	int err;

	if (IS_ERR(text))
		return PTR_ERR(text);
	err = vmp_parse_number("guard/clear", text, 1, 1, &value);
	kfree(text);

	return err ?: vmp_control_clear(to->entry) ?: count;
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
	/* before trip() may write the next reason */
	smp_store_release(&guard->tripped, 0);
}

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
	kills.ms = now_ms();
	kfree(events);
#endif
	return kills;
}

/**
 * vmp_guard_init() - begin to count kills
 * @machine: the machine's entry
 *
 * Return: 0, or what register_oom_notifier() or tracepoint_probe_register() returned.
 */
int vmp_guard_init(struct vmp_entry *machine)
{
	unsigned int i;
	int err;

	ask_psi();
	vmp_guard_init_entry(machine);
	machine->guard.before = since_boot();
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
void vmp_guard_exit(void)
{
	cancel_delayed_work_sync(&rest_work);
	scoped_guard(mutex, &vmp_control_lock)
		stop_watching();
	end(&victim_probe);
	unregister_oom_notifier(&oom_notifier);
	tracepoint_synchronize_unregister();
	cancel_delayed_work_sync(&teardown_work);
}
