// SPDX-License-Identifier: GPL-2.0
/*
 * Counts the TLB flushes that reclaim issues, whoever decides on them.
 *
 * A stock policy has no code of ours in its path, yet its flushes are what the
 * others are compared with. A probe on arch_tlbbatch_flush(), set only while
 * somebody asks for it, sees them all: the entries that a task has pending are
 * still marked in current->tlb_ubc when it is called.
 */
#include <linux/kprobes.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/sched.h>

#include "internal.h"

struct vmp_observe_stats {
	u64 dirty_flushes;
	u64 clean_flushes;
};

static DEFINE_PER_CPU(struct vmp_observe_stats, observe_stats);
static DEFINE_MUTEX(observe_lock);
static bool observing;

static int observe_flush(struct kprobe *p, struct pt_regs *regs)
{
	/* Reclaim runs with PF_MEMALLOC; migration flushes without it too. */
	if (!(current->flags & PF_MEMALLOC))
		return 0;

	if (current->tlb_ubc.writable)
		this_cpu_inc(observe_stats.dirty_flushes);
	else
		this_cpu_inc(observe_stats.clean_flushes);

	return 0;
}

static struct kprobe observe_probe;

/**
 * vmp_observe_set() - start or stop counting
 * @on: 1 to count from now on, 0 to stop
 *
 * Return: 0, or after a log line what register_kprobe() returned.
 */
int vmp_observe_set(unsigned int on)
{
	int err = 0;

	mutex_lock(&observe_lock);
	if (on && !observing) {
		observe_probe = (struct kprobe) {
			.symbol_name = "arch_tlbbatch_flush",
			.pre_handler = observe_flush,
		};
		err = register_kprobe(&observe_probe);
		if (err)
			pr_err_ratelimited("flush/observe can't probe %s: error %d\n",
					   observe_probe.symbol_name, err);
		else
			observing = true;
	} else if (!on && observing) {
		unregister_kprobe(&observe_probe);
		observing = false;
	}
	mutex_unlock(&observe_lock);

	return err;
}

unsigned int vmp_observe_get(void)
{
	return READ_ONCE(observing);
}

void vmp_observe_show(struct seq_file *m)
{
	u64 dirty = 0, clean = 0;
	int cpu;

	for_each_possible_cpu(cpu) {
		dirty += READ_ONCE(per_cpu(observe_stats.dirty_flushes, cpu));
		clean += READ_ONCE(per_cpu(observe_stats.clean_flushes, cpu));
	}
	seq_printf(m, "observed_dirty_flushes %llu\n", dirty);
	seq_printf(m, "observed_clean_flushes %llu\n", clean);
}
