// SPDX-License-Identifier: GPL-2.0
/*
 * What observes TLB flushes where a CPU invalidates the entries of all others by
 * itself, without interrupts: arm64. There a flush is the barrier that waits for
 * the invalidations which were sent before. It is inline in these functions, and
 * so is the one in the other.
 */
#include <linux/kprobes.h>

#include "observe.h"

static int observe_barrier(struct kprobe *p, struct pt_regs *regs)
{
	if (!vmp_in_reclaim() || !current->tlb_ubc.flush_required)
		return 0;

	vmp_observe_flush();
	this_cpu_inc(vmp_observed[OBSERVED_REMOTE]);

	return 0;
}

static int observe_dirty(struct kprobe *p, struct pt_regs *regs)
{
	return current->tlb_ubc.writable ? observe_barrier(p, regs) : 0;
}

static struct kprobe any_probe, dirty_probe;
static struct kprobe *probes[] = { &any_probe, &dirty_probe };

int vmp_start_observing(void)
{
	any_probe = (struct kprobe) {
		.symbol_name = "try_to_unmap_flush",
		.pre_handler = observe_barrier,
	};
	dirty_probe = (struct kprobe) {
		.symbol_name = "try_to_unmap_flush_dirty",
		.pre_handler = observe_dirty,
	};

	return register_kprobes(probes, ARRAY_SIZE(probes));
}

void vmp_stop_observing(void)
{
	unregister_kprobes(probes, ARRAY_SIZE(probes));
}
