// SPDX-License-Identifier: GPL-2.0
/*
 * The loop that Linux 6.12 goes over an lruvec with, as a scan policy of kernels that have
 * another: what did the newer one bring?
 *
 * It works out before each batch how much a pass may scan, from what the lruvec has then,
 * and ends the pass when that is reached. It ages where its rules want that, but at the
 * default priority, and aging is the end of the pass. Reclaim of a memory cgroup does not
 * stop when it has enough.
 */
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/mmzone.h>
#include <kunit/visibility.h>

#include "internal.h"

/* MIN_LRU_BATCH; it looks at MAX_LRU_BATCH folios for that, our largest batch. */
#define BATCH	64

/* Does a pass end, and why? With the @budget that was settled last. */
static enum vmp_end pass_end(const struct vmscan_pass *pass, const struct vmp_pass_note *note)
{
	/* else the budget is not of this loop */
	bool mine = note->scan == VMP_SCAN_6_12;

	if (note->aged)
		return VMP_END_AGED;
	/* another task was at it */
	if (mine && pass->last == VMSCAN_AGE)
		return VMP_END_NOTHING;
	/* a batch that leaves nothing cold counts as nothing */
	if (pass->last == VMSCAN_EVICT && (!pass->progress || !vmp_aging_cold(pass)))
		return VMP_END_NOTHING;
	if (mine && pass->nr_batches && pass->nr_moved >= note->budget)
		return VMP_END_BUDGET;
	if (pass->root_reclaim && pass->enough)
		return VMP_END_ENOUGH;

	return VMP_GO_ON;
}

static unsigned long settle_budget(const struct vmscan_pass *pass, bool online)
{
	unsigned long total = 0;
	unsigned int i;

	if (!vmp_aging_cold(pass))
		return 0;
	for (i = 0; i < pass->nr_gens; i++)
		total += pass->nr_pages[i];

	return online ? total >> pass->priority : total;
}

/**
 * vmp_scan_6_12_decide() - what is a pass of the loop of 6.12 to do next, and why?
 * @pass: how far it is
 * @note: what else is known of it
 * @online: the memcg has not been removed: else all that can be evicted is
 *
 * Return: the step, why the pass ends with it, and what the pass may scan: no more than it has
 * once it is to age.
 */
struct vmp_decision vmp_scan_6_12_decide(const struct vmscan_pass *pass,
					 const struct vmp_pass_note *note, bool online)
{
	struct vmp_decision decision = {
		.step = VMSCAN_STEP(VMSCAN_END, 0, 0),
		.end = pass_end(pass, note),
		.budget = pass->nr_moved,
	};
	unsigned long budget;

	if (decision.end != VMP_GO_ON) {
		if (note->scan == VMP_SCAN_6_12 && pass->last == VMSCAN_EVICT)
			decision.budget = note->budget;
		return decision;
	}

	budget = settle_budget(pass, online);
	if ((online || !budget) && vmp_aging_decide(VMP_AGING_STOP, pass)) {
		decision.step = VMSCAN_STEP(VMSCAN_AGE, 0, 0);
	} else if (budget) {
		decision.step = VMSCAN_STEP(VMSCAN_EVICT, VMSCAN_MAX_BATCH, BATCH);
		decision.budget = min(budget, U32_MAX);
	} else {
		decision.end = pass->nr_batches ? VMP_END_BUDGET : VMP_END_NOTHING;
		decision.budget = 0;
	}

	return decision;
}
EXPORT_SYMBOL_IF_KUNIT(vmp_scan_6_12_decide);
