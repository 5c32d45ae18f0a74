// SPDX-License-Identifier: GPL-2.0
/*
 * What observes TLB flushes where a CPU invalidates the entries of all others by
 * itself, without interrupts: arm64. There a flush is the barrier that waits for
 * the invalidations which were sent before.
 */
#include <linux/bitops.h>
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
static unsigned int nr_probes;

/* Is there a branch to @target, with a link or without, at the begin of @code? */
static bool branches_to(const kprobe_opcode_t *code, const kprobe_opcode_t *target)
{
	unsigned int i;

	for (i = 0; i < 64; i++) {
		u32 insn = le32_to_cpu((__force __le32)code[i]);
		int words = sign_extend32(insn, 25);

		if ((insn & 0x7c000000) == 0x14000000 && code + i + words == target)
			return true;
	}

	return false;
}

int vmp_start_observing(void)
{
	int err;

	any_probe = (struct kprobe) {
		.symbol_name = "try_to_unmap_flush",
		.pre_handler = observe_barrier,
	};
	dirty_probe = (struct kprobe) {
		.symbol_name = "try_to_unmap_flush_dirty",
		.pre_handler = observe_dirty,
	};

	err = register_kprobes(probes, ARRAY_SIZE(probes));
	if (err)
		return err;

	nr_probes = ARRAY_SIZE(probes);
	/* it has the other's code in it, or goes there, where the other's probe counts it */
	if (branches_to(dirty_probe.addr, any_probe.addr)) {
		unregister_kprobe(&dirty_probe);
		nr_probes--;
	}

	return 0;
}

void vmp_stop_observing(void)
{
	unregister_kprobes(probes, nr_probes);
}
