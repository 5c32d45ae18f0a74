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

static const char *const stat_names[] = {
	"observed_dirty_flushes",
	"observed_clean_flushes",
};

static DEFINE_PER_CPU(u64 [ARRAY_SIZE(stat_names)], observed);
static DEFINE_MUTEX(observe_lock);
static bool observing;

static int observe_flush(struct kprobe *p, struct pt_regs *regs)
{
	/* Reclaim runs with PF_MEMALLOC; migration flushes without it too. */
	if (current->flags & PF_MEMALLOC)
		this_cpu_inc(observed[!current->tlb_ubc.writable]);

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
	vmp_show_counters(m, stat_names, observed, ARRAY_SIZE(stat_names));
}
