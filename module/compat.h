/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _VMP_COMPAT_H
#define _VMP_COMPAT_H

#include <linux/vmscan_policy.h>

#if VMSCAN_POLICY_ABI != 3
#error "vmscan_policy supports hook ABI 3: update it, or the hooks of this kernel."
#endif

/*
 * Weak: where the kernel that the module is loaded into has no hooks, these
 * are NULL instead of an unknown symbol, and the module can say what is missing.
 */
#pragma weak vmscan_policy_register
#pragma weak vmscan_policy_replace
#pragma weak vmscan_policy_unregister
#pragma weak vmscan_policy_set_bypass
#pragma weak vmscan_policy_bypassed
#pragma weak vmscan_flush_dirty
#pragma weak vmscan_flush_take
#pragma weak vmscan_flush_pageout
#pragma weak vmscan_flush_activate
#pragma weak vmscan_flush_keep
#pragma weak vmscan_scan_gens
#pragma weak vmscan_scan_unprotected
#pragma weak vmscan_scan_below_min
#pragma weak vmscan_scan_age
#pragma weak vmscan_scan_evict
#pragma weak vmscan_scan_should_abort
#pragma weak vmscan_age_memcg
#pragma weak vmscan_evicted_wake_flusher
#pragma weak vmscan_evicted_wait
#pragma weak vmscan_evicted_account
#pragma weak vmscan_node_set_writeback
#pragma weak vmscan_node_set_congested
#pragma weak vmscan_node_throttle

#endif /* _VMP_COMPAT_H */
