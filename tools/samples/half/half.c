// SPDX-License-Identifier: GPL-2.0
/* A policy of one's own: flush for half as many folios as "batch" does at first. */
#include <vmscan_policy_module.h>

static unsigned int half(const struct vmscan_call *call)
{
	return 32 | VMSCAN_FLUSH_SPAN;
}

static const struct vmscan_module_policy policy = {
	.abi = VMSCAN_POLICY_ABI,
	.owner = THIS_MODULE,
	.point = "flush",
	.name = "half",
	.about = "Flushes once for 32 dirty folios.",
	.flush_group = half,
};

module_vmscan_policy(policy);
MODULE_DESCRIPTION("A policy of page reclaim: half");
MODULE_LICENSE("GPL");
