/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _VMP_KUNIT_READERS_H
#define _VMP_KUNIT_READERS_H

#include <linux/jump_label.h>

/* The readers' side of the registry, as in the private mm/vmscan_policy.h. */
DECLARE_STATIC_KEY_FALSE(vmscan_flush_key);
const struct vmscan_policy_ops *vmscan_policy_enter(int *idx);
void vmscan_policy_exit(int idx);

#endif /* _VMP_KUNIT_READERS_H */
