/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _VMP_OBSERVE_H
#define _VMP_OBSERVE_H

#include <linux/percpu.h>
#include <linux/sched.h>

#include "internal.h"

enum {
	OBSERVED_DIRTY,
	OBSERVED_CLEAN,
	OBSERVED_REMOTE,
#ifdef CONFIG_X86
	OBSERVED_INTERRUPTS,
#endif
	NR_OBSERVED,
};

DECLARE_PER_CPU(u64 [NR_OBSERVED], vmp_observed);

/* What an architecture probes. */
#ifdef CONFIG_X86
#define VMP_OBSERVED	"arch_tlbbatch_flush, native_flush_tlb_multi or csd_queue_cpu"
#else
#define VMP_OBSERVED	"try_to_unmap_flush or try_to_unmap_flush_dirty"
#endif

int vmp_start_observing(void);
void vmp_stop_observing(void);

/* Others flush, too: migration does without it. */
static inline bool vmp_in_reclaim(void)
{
	return current->flags & PF_MEMALLOC;
}

/* A flush begins; which entries the task has pending is still marked. */
static inline void vmp_observe_flush(void)
{
	this_cpu_inc(vmp_observed[current->tlb_ubc.writable ? OBSERVED_DIRTY : OBSERVED_CLEAN]);
}

#endif /* _VMP_OBSERVE_H */
