// SPDX-License-Identifier: GPL-2.0
/*
 * A flush that is sized by pressure: groups double as long as a CPU reclaims again soon, and are
 * small where it seldom does, so that few folios are unmapped long before they are written.
 */
#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/sched/clock.h>
#include <linux/time64.h>
#include <vmscan_policy_module.h>

static unsigned int least = 16;
module_param(least, uint, 0600);
MODULE_PARM_DESC(least, "folios of a group at first");

static unsigned int most = 512;
module_param(most, uint, 0600);
MODULE_PARM_DESC(most, "folios of a group at most");

static unsigned int soon = 10000;
module_param(soon, uint, 0600);
MODULE_PARM_DESC(soon, "microseconds within which the next call makes groups larger");

static DEFINE_PER_CPU(u64, last_call);
static DEFINE_PER_CPU(unsigned int, group);

static unsigned int by_pressure(const struct vmscan_call *call)
{
	unsigned int folios = READ_ONCE(least);
	u64 now = local_clock();

	/* A task that moves to another CPU meanwhile writes to that one's: no harm. */
	if (now - raw_cpu_read(last_call) < (u64)READ_ONCE(soon) * NSEC_PER_USEC)
		folios = max(folios, min(2 * raw_cpu_read(group), READ_ONCE(most)));
	raw_cpu_write(last_call, now);
	raw_cpu_write(group, folios);

	return folios | VMSCAN_FLUSH_SPAN;
}

static const struct vmscan_module_policy policy = {
	.abi = VMSCAN_POLICY_ABI,
	.owner = THIS_MODULE,
	.point = "flush",
	.name = "pressure",
	.about = "Flushes for the more folios the more often reclaim runs.",
	.flush_group = by_pressure,
};

module_vmscan_policy(policy);
MODULE_DESCRIPTION("A policy of page reclaim: pressure");
MODULE_LICENSE("GPL");
