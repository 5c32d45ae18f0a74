/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _VMP_COMPAT_H
#define _VMP_COMPAT_H

#include <linux/version.h>
#include <linux/vmscan_policy.h>

#if VMSCAN_POLICY_ABI != 12
#error "vmscan_policy supports hook ABI 12: update it, or the hooks of this kernel."
#endif

/* cdd30ebb1b9f ("module: Convert symbol namespace to string literal") */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
#define VMP_IMPORT_NS(ns)	MODULE_IMPORT_NS(ns)
#else
#define VMP_IMPORT_NS(ns)	MODULE_IMPORT_NS(#ns)
#endif

/* What the tracepoints of a direct reclaim's begin and end tell; 7.2 adds whose memory it takes. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)
#define VMP_RECLAIM_BEGINS	int order, gfp_t gfp_flags
#define VMP_RECLAIM_ENDS	unsigned long nr_reclaimed
#else
#define VMP_RECLAIM_BEGINS	gfp_t gfp_flags, int order, struct mem_cgroup *memcg
#define VMP_RECLAIM_ENDS	unsigned long nr_reclaimed, struct mem_cgroup *memcg
#endif

/* Probes with a function's arguments, for kernels whose stock has walks of its own. */
#if defined(CONFIG_FPROBE) && LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0)
#define VMP_WALK_PROBES
#endif

/*
 * Weak: where the kernel that the module is loaded into has no hooks, these
 * are NULL instead of an unknown symbol, and the module can say what is missing.
 */
#pragma weak vmscan_policy_publish
#pragma weak vmscan_policy_set_bypass
#pragma weak vmscan_policy_bypassed
#pragma weak vmscan_policy_traits

/* Hooks of an older ABI have none; publishing to them fails, and says why. */
static inline unsigned long vmp_traits(void)
{
	return vmscan_policy_traits ? vmscan_policy_traits() : 0;
}

#endif /* _VMP_COMPAT_H */
