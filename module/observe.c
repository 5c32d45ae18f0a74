// SPDX-License-Identifier: GPL-2.0
/*
 * Counts the TLB flushes that reclaim issues, whoever decides on them.
 *
 * A stock policy has no code of ours in its path, yet its flushes are what the
 * others are compared with. Two probes and a tracepoint, in use only while
 * somebody asks for them, see them all. When arch_tlbbatch_flush() is called,
 * the entries that the task has pending are still marked in current->tlb_ubc.
 * What flushes the TLBs of other CPUs is called from there, and from wherever
 * else reclaim comes to it. It asks those CPUs one by one, but for the lazy
 * ones, which flush by themselves before they use an mm again.
 */
#include <linux/kprobes.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/tracepoint.h>

#include "internal.h"

enum {
	OBSERVED_DIRTY,
	OBSERVED_CLEAN,
	OBSERVED_REMOTE,
	OBSERVED_INTERRUPTS,
	NR_OBSERVED,
};

static const char *const stat_names[NR_OBSERVED] = {
	[OBSERVED_DIRTY] = "observed_dirty_flushes",
	[OBSERVED_CLEAN] = "observed_clean_flushes",
	[OBSERVED_REMOTE] = "observed_remote_flushes",
	[OBSERVED_INTERRUPTS] = "observed_interrupts",
};

static DEFINE_PER_CPU(u64 [NR_OBSERVED], observed);
/* What the last flush by reclaim hands to the other CPUs. */
static DEFINE_PER_CPU(void *, flush_info);
static DEFINE_MUTEX(observe_lock);
static bool observing;

/* Others flush, too: migration does without it. */
static bool in_reclaim(void)
{
	return current->flags & PF_MEMALLOC;
}

static int observe_flush(struct kprobe *p, struct pt_regs *regs)
{
	if (in_reclaim())
		this_cpu_inc(observed[current->tlb_ubc.writable ? OBSERVED_DIRTY : OBSERVED_CLEAN]);

	return 0;
}

static int observe_remote(struct kprobe *p, struct pt_regs *regs)
{
	if (in_reclaim()) {
		this_cpu_inc(observed[OBSERVED_REMOTE]);
		this_cpu_write(flush_info, (void *)regs_get_kernel_argument(regs, 1));
	}

	return 0;
}

/* Linux 7.3 may move the task to another CPU meanwhile, and what it asks then is missed. */
static void observe_request(void *data, const unsigned int cpu, unsigned long callsite,
			    smp_call_func_t func, call_single_data_t *csd)
{
	if (in_reclaim() && csd->info == this_cpu_read(flush_info))
		this_cpu_inc(observed[OBSERVED_INTERRUPTS]);
}

static struct kprobe flush_probe, remote_probe;
static struct kprobe *probes[] = { &flush_probe, &remote_probe };
static struct tracepoint *requests;

static void find_requests(struct tracepoint *tp, void *name)
{
	if (!strcmp(tp->name, name))
		requests = tp;
}

static int start_observing(void)
{
	int err;

	for_each_kernel_tracepoint(find_requests, "csd_queue_cpu");
	if (!requests)
		return -ENOENT;

	flush_probe = (struct kprobe) {
		.symbol_name = "arch_tlbbatch_flush",
		.pre_handler = observe_flush,
	};
	/* Without paravirt it is called once, and so is part of its caller. */
	remote_probe = (struct kprobe) {
		.symbol_name = IS_ENABLED(CONFIG_PARAVIRT) ? "native_flush_tlb_multi" :
							     "flush_tlb_multi",
		.pre_handler = observe_remote,
	};
	err = register_kprobes(probes, ARRAY_SIZE(probes));
	if (err)
		return err;

	err = tracepoint_probe_register(requests, observe_request, NULL);
	if (err)
		unregister_kprobes(probes, ARRAY_SIZE(probes));

	return err;
}

static void stop_observing(void)
{
	tracepoint_probe_unregister(requests, observe_request, NULL);
	tracepoint_synchronize_unregister();
	unregister_kprobes(probes, ARRAY_SIZE(probes));
}

/**
 * vmp_observe_set() - start or stop counting
 * @on: 1 to count from now on, 0 to stop
 *
 * Return: 0, or after a log line what register_kprobes() or
 * tracepoint_probe_register() returned.
 */
int vmp_observe_set(unsigned int on)
{
	int err = 0;

	mutex_lock(&observe_lock);
	if (on && !observing) {
		err = start_observing();
		if (err)
			pr_err_ratelimited("flush/observe can't probe arch_tlbbatch_flush, native_flush_tlb_multi or csd_queue_cpu: error %d\n",
					   err);
		else
			observing = true;
	} else if (!on && observing) {
		stop_observing();
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
