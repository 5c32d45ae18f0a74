// SPDX-License-Identifier: GPL-2.0
/*
 * Counts the TLB flushes that reclaim issues, whoever decides on them.
 *
 * A stock policy has no code of ours in its path, yet its flushes are what the
 * others are compared with. Probes, in use only while somebody asks for them,
 * see them all; which ones, an architecture says.
 */
#include <linux/mutex.h>

#include "observe.h"

static const char *const stat_names[NR_OBSERVED] = {
	[OBSERVED_DIRTY] = "observed_dirty_flushes",
	[OBSERVED_CLEAN] = "observed_clean_flushes",
	[OBSERVED_REMOTE] = "observed_remote_flushes",
#ifdef CONFIG_X86
	[OBSERVED_INTERRUPTS] = "observed_interrupts",
#endif
};

DEFINE_PER_CPU(u64 [NR_OBSERVED], vmp_observed);
static DEFINE_MUTEX(observe_lock);
static bool observing;

/**
 * vmp_observe_set() - start or stop counting
 * @on: 1 to count from now on, 0 to stop
 *
 * Return: 0, or after a log line what the registration of
 * the probes returned.
 */
int vmp_observe_set(unsigned int on)
{
	int err = 0;

	mutex_lock(&observe_lock);
	if (on && !observing) {
		err = vmp_start_observing();
		if (err)
			pr_err_ratelimited("flush/observe can't probe %s: error %d\n",
					   VMP_OBSERVED, err);
		else
			observing = true;
	} else if (!on && observing) {
		vmp_stop_observing();
		observing = false;
	}
	mutex_unlock(&observe_lock);

	return err;
}

unsigned int vmp_observe_get(void)
{
	return READ_ONCE(observing);
}

void vmp_observe_show(struct seq_file *m)
{
	vmp_show_counters(m, stat_names, vmp_observed, ARRAY_SIZE(stat_names));
}
