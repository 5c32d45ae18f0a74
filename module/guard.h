/* SPDX-License-Identifier: GPL-2.0 */
/* What the guard of some settings has seen, and what it looks at in each decision. */
#ifndef _VMP_GUARD_H
#define _VMP_GUARD_H

#include <linux/compiler.h>
#include <linux/jiffies.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/types.h>

/* What it trips for. */
enum vmp_cause {
	VMP_CAUSE_OOM,		/* tasks were killed for want of memory */
	VMP_CAUSE_STALL,	/* no page was reclaimed */
	VMP_CAUSE_WAIT,		/* direct reclaims took long */
	VMP_CAUSE_CALLBACK,	/* the callbacks of a task did */
	VMP_CAUSE_CLAMPS,	/* answers were beyond what the kernel takes */
	VMP_NR_CAUSES,
};

/* Direct reclaims of a window that it takes to tell a share of them. */
#define VMP_GUARD_WAITS		8
/* Passes with a longer pause between them don't go on. */
#define VMP_GUARD_PAUSE		HZ

/**
 * struct vmp_kills - tasks killed for want of memory
 * @nr: how many
 * @ms: in how long
 */
struct vmp_kills {
	u64 nr;
	u64 ms;
};

/**
 * struct vmp_window - what was counted in a span of time of that length
 * @began: when it did, in ms
 * @clamps: answers beyond what the kernel takes
 * @waits: direct reclaims
 * @slow: those of them that took long
 */
struct vmp_window {
	u64 began;
	u32 clamps;
	u32 waits;
	u32 slow;
};

/**
 * struct vmp_stall - fruitless passes in a row
 * @began: the first of them, in jiffies; 0: the last pass was not
 * @last: the last of them
 */
struct vmp_stall {
	unsigned long began;
	unsigned long last;
};

#define VMP_REASON_MAX	320

/**
 * struct vmp_guard - of the settings of the machine, or of a cgroup
 * @tripped: their policies act stock since then, until it is cleared
 * @told: @reason is complete
 * @reason: why it has tripped
 * @asked: when a policy last decided something, in jiffies; 0: not since all were stock
 * @era: another one with each change of what it looks at: what callbacks took before is no matter
 * @lock: protects what follows
 * @before: kills under stock
 * @now: those under the policies in force, or that were in force last
 * @since: up to when time has been counted, in ms
 * @in_force: some policy is not stock
 * @window: the present one
 * @stall: the present one
 */
struct vmp_guard {
	unsigned int tripped;
	bool told;
	char reason[VMP_REASON_MAX];
	unsigned long asked;
	u32 era;
	raw_spinlock_t lock; /* see above */
	struct vmp_kills before;
	struct vmp_kills now;
	u64 since;
	bool in_force;
	struct vmp_window window;
	struct vmp_stall stall;
};

/* CPU time of the current task, in ns, as of the last tick or switch: read for nothing. */
static inline u64 vmp_runtime(void)
{
	return READ_ONCE(current->se.sum_exec_runtime);
}

#endif /* _VMP_GUARD_H */
