/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _VMP_COMPAT_H
#define _VMP_COMPAT_H

#include <linux/vmscan_policy.h>

#if VMSCAN_POLICY_ABI != 5
#error "vmscan_policy supports hook ABI 5: update it, or the hooks of this kernel."
#endif

/*
 * Weak: where the kernel that the module is loaded into has no hooks, these
 * are NULL instead of an unknown symbol, and the module can say what is missing.
 */
#pragma weak vmscan_policy_publish
#pragma weak vmscan_policy_set_bypass
#pragma weak vmscan_policy_bypassed
#pragma weak vmscan_age_memcg

#endif /* _VMP_COMPAT_H */
