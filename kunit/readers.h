/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _VMP_KUNIT_READERS_H
#define _VMP_KUNIT_READERS_H

#include <linux/jump_label.h>

/* The reclaimers' side of the registry, as in the private mm/vmscan_policy.h. */
DECLARE_STATIC_KEY_FALSE(vmscan_flush_key);
unsigned int vmscan_throttle_ask(struct vmscan_round *round);
bool vmscan_may_wait(gfp_t gfp_mask);

struct vmscan_kept {
	u64 number;
	struct vmscan_note note;
};

const struct vmscan_policy_ops *vmscan_in_force(struct vmscan_kept *kept);

#endif /* _VMP_KUNIT_READERS_H */
