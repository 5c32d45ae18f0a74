// SPDX-License-Identifier: GPL-2.0
/*
 * Probes that trace events need, set soon after the first of these is on. The tracepoints' core
 * asks for them with its lock held; what sets a probe takes ftrace's lock, and the function graph
 * takes the two the other way round. So a worker does it.
 */
#include <linux/cleanup.h>
#include <linux/mutex.h>
#include <linux/printk.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#include "internal.h"

static const struct {
	const char *what;
	int (*set)(void);
	void (*unset)(void);
} probes[VMP_NR_PROBES] = {
	[VMP_PROBE_SLEEPS] = { "where reclaim sleeps", vmp_sleeps_probe, vmp_sleeps_unprobe },
	[VMP_PROBE_UNMAP] = { "how stock unmaps", vmp_unmap_probe, vmp_unmap_unprobe },
	[VMP_PROBE_YOUNG] = { "how stock looks at entries", vmp_young_probe, vmp_young_unprobe },
};

static DEFINE_MUTEX(events_lock);
static unsigned int events[VMP_NR_PROBES];	/* that are on */
static bool leaving;

static void set_probes(struct work_struct *work)
{
	static bool is_set[VMP_NR_PROBES];
	unsigned int i;
	int err;

	for (i = 0; i < VMP_NR_PROBES; i++) {
		if (is_set[i] == !!READ_ONCE(events[i]))
			continue;
		is_set[i] = !is_set[i];
		if (!is_set[i]) {
			probes[i].unset();
			continue;
		}
		err = probes[i].set();
		if (err) {
			pr_warn("no trace of %s: %d\n", probes[i].what, err);
			is_set[i] = false;
		}
	}
}

static DECLARE_WORK(probes_work, set_probes);

/**
 * vmp_probe_want() - an event that needs a probe goes on or off
 * @id: the probe
 * @on: does the event go on?
 *
 * Context: process context, may sleep; also with the lock of the tracepoints' core.
 * Return: 0, or -ENODEV when the module goes.
 */
int vmp_probe_want(enum vmp_probe_id id, bool on)
{
	guard(mutex)(&events_lock);
	if (leaving)
		return -ENODEV;
	WRITE_ONCE(events[id], events[id] + (on ? 1 : -1));
	schedule_work(&probes_work);

	return 0;
}

/* Events that are still on are switched off after this. */
void vmp_probes_exit(void)
{
	scoped_guard(mutex, &events_lock) {
		leaving = true;
		memset(events, 0, sizeof(events));
	}
	cancel_work_sync(&probes_work);
	set_probes(NULL);
}
