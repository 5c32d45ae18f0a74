/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _VMP_KUNIT_READERS_H
#define _VMP_KUNIT_READERS_H

#include <linux/jump_label.h>

/* The reclaimers' side of the registry, as in the private mm/vmscan_policy.h. */
DECLARE_STATIC_KEY_FALSE(vmscan_flush_key);
unsigned int vmscan_throttle_ask(struct vmscan_round *round);

#endif /* _VMP_KUNIT_READERS_H */
