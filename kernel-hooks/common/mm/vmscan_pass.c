// SPDX-License-Identifier: GPL-2.0
/*
 * What policies have done by the code of mm/vmscan.c, which includes this file: a pass of
 * the multi-gen LRU in their steps, and what follows a round over a node.
 */
#include "vmscan_stock.h"

#ifdef CONFIG_LRU_GEN

bool vmscan_age(struct lruvec *lruvec, unsigned long seq, bool can_swap)
{
	struct scan_control sc = { .may_swap = 1 };
	int type;

	for (type = !can_swap; type < ANON_AND_FILE; type++)
		if (get_nr_gens(lruvec, type) >= MAX_NR_GENS)
			return false;

	return try_to_inc_max_seq(lruvec, seq, get_swappiness(lruvec, &sc), false);
}

noinline long vmscan_shrink_lruvec(struct lruvec *lruvec, struct scan_control *sc, int swappiness)
{
	/* without I/O, anonymous folios are in the way, whoever ages them */
	bool can_swap = swappiness && (sc->gfp_mask & __GFP_IO);
	unsigned long nr_reclaimed = sc->nr_reclaimed;
	struct vmscan_scan scan = {
		.pass = {
			.memcg = lruvec_memcg(lruvec),
			.nid = lruvec_pgdat(lruvec)->node_id,
			.priority = sc->priority,
			.root_reclaim = root_reclaim(sc),
			.can_swap = can_swap,
		},
		.lruvec = lruvec,
		.target = sc->target_mem_cgroup,
		.low_reclaim = sc->memcg_low_reclaim,
	};
	struct vmscan_pass *pass = &scan.pass;

	/* the first pass of a round over all nodes */
	if (sc->batch.priority != sc->priority) {
		sc->batch.priority = sc->priority;
		sc->batch.nr_before = nr_reclaimed;
	}
	while (vmscan_scan_next(&scan, &sc->batch)) {
		pass->waited = false;
		if (pass->last == VMSCAN_AGE) {
			pass->done = vmscan_age(lruvec, pass->max_seq, can_swap);
			pass->nr_aged += pass->done;
			/* another task is at it: don't fail through all priorities meanwhile */
			pass->waited = !pass->done && pass->nr_gens <= MIN_NR_GENS;
			if (pass->waited)
				schedule_timeout_killable(1);
		} else {
			pass->done = vmscan_evict(lruvec, sc, can_swap ? swappiness : 0) ||
				     sc->batch.nr_moved;
			pass->nr_batches++;
			pass->nr_moved += sc->batch.nr_moved;
			scan.nr_dry = pass->done ? 0 : scan.nr_dry + 1;
		}
		pass->nr_reclaimed = sc->nr_reclaimed - nr_reclaimed;
		pass->enough = root_reclaim(sc) ? should_abort_scan(lruvec, sc) :
			       sc->batch.nr_before + pass->nr_reclaimed >= sc->nr_to_reclaim;
		cond_resched();
	}
	sc->memcg_low_skipped |= scan.low_skipped;

	return scan.nr_to_scan;
}

#endif /* CONFIG_LRU_GEN */

noinline void vmscan_throttle(struct pglist_data *pgdat, struct scan_control *sc,
			      unsigned long nr_reclaimed)
{
	unsigned long *marks = &mem_cgroup_lruvec(NULL, pgdat)->flags;
	const struct reclaim_stat stat = {
		.nr_dirty = sc->nr.dirty,
		.nr_congested = sc->nr.congested,
		.nr_writeback = sc->nr.writeback,
		.nr_immediate = sc->nr.immediate,
	};
	struct vmscan_round round = {
		.nid = pgdat->node_id,
		.priority = sc->priority,
		.root_reclaim = root_reclaim(sc),
		.kswapd = current_is_kswapd(),
		.congested = test_bit(LRUVEC_NODE_CONGESTED, marks),
		.nr_reclaimed = sc->nr_reclaimed - nr_reclaimed,
		.nr_write_pending = node_page_state(pgdat, NR_FILE_DIRTY) +
				    node_page_state(pgdat, NR_WRITEBACK),
		.nr_taken = sc->nr.taken,
		.stat = &stat,
	};
	unsigned int flags = vmscan_throttle_ask(&round);

	if (flags & VMSCAN_MARK_WRITEBACK)
		set_bit(PGDAT_WRITEBACK, &pgdat->flags);
	if (flags & VMSCAN_MARK_CONGESTED)
		set_bit(LRUVEC_NODE_CONGESTED, marks);
	if (sc->hibernation_mode || !current_may_throttle())
		return;
	if (flags & VMSCAN_SLEEP_WRITEBACK)
		reclaim_throttle(pgdat, VMSCAN_THROTTLE_WRITEBACK);
	else if (flags & VMSCAN_SLEEP_CONGESTED)
		reclaim_throttle(pgdat, VMSCAN_THROTTLE_CONGESTED);
}
