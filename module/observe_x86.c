// SPDX-License-Identifier: GPL-2.0
/*
 * What observes TLB flushes on x86: two probes and a tracepoint. When
 * arch_tlbbatch_flush() is called, the entries that the task has pending are
 * still marked in current->tlb_ubc. What flushes the TLBs of other CPUs is
 * called from there, and from wherever else reclaim comes to it. It asks those
 * CPUs one by one, but for the lazy ones, which flush by themselves before they
 * use an mm again.
 */
#include <linux/kprobes.h>
#include <linux/smp.h>
#include <linux/tracepoint.h>

#include "observe.h"

/* What the last flush by reclaim hands to the other CPUs. */
static DEFINE_PER_CPU(void *, flush_info);

static int observe_flush(struct kprobe *p, struct pt_regs *regs)
{
	if (vmp_in_reclaim())
		vmp_observe_flush();

	return 0;
}

static int observe_remote(struct kprobe *p, struct pt_regs *regs)
{
	if (vmp_in_reclaim()) {
		this_cpu_inc(vmp_observed[OBSERVED_REMOTE]);
		this_cpu_write(flush_info, (void *)regs_get_kernel_argument(regs, 1));
	}

	return 0;
}

/* Linux 7.3 may move the task to another CPU meanwhile, and what it asks then is missed. */
static void observe_request(void *data, const unsigned int cpu, unsigned long callsite,
			    smp_call_func_t func, call_single_data_t *csd)
{
	if (vmp_in_reclaim() && csd->info == this_cpu_read(flush_info))
		this_cpu_inc(vmp_observed[OBSERVED_INTERRUPTS]);
}

static struct kprobe flush_probe, remote_probe;
static struct kprobe *probes[] = { &flush_probe, &remote_probe };
static struct tracepoint *requests;

int vmp_start_observing(void)
{
	int err;

	requests = vmp_tracepoint("csd_queue_cpu");
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

void vmp_stop_observing(void)
{
	tracepoint_probe_unregister(requests, observe_request, NULL);
	tracepoint_synchronize_unregister();
	unregister_kprobes(probes, ARRAY_SIZE(probes));
}
