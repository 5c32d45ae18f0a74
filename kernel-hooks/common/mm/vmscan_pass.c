// SPDX-License-Identifier: GPL-2.0
/*
 * What policies have done by the code of mm/vmscan.c, which includes this file: a pass of
 * the multi-gen LRU in their steps, and what follows a round over a node.
 */
#ifdef CONFIG_VMSCAN_POLICY

/* True: made the generation after @seq, which was the youngest. */
static bool vmscan_age(struct lruvec *lruvec, unsigned long seq, int swappiness)
{
	int type;

	for (type = !swappiness; type < ANON_AND_FILE; type++)
		if (get_nr_gens(lruvec, type) >= MAX_NR_GENS)
			return false;

	return try_to_inc_max_seq(lruvec, seq, swappiness, false);
}

/* Grows with each generation that has been emptied. */
static unsigned long nr_emptied(struct lruvec *lruvec)
{
	return READ_ONCE(lruvec->lrugen.min_seq[LRU_GEN_ANON]) +
	       READ_ONCE(lruvec->lrugen.min_seq[LRU_GEN_FILE]);
}

static bool has_enough(struct lruvec *lruvec, struct scan_control *sc, unsigned long nr_reclaimed)
{
	if (root_reclaim(sc))
		return should_abort_scan(lruvec, sc);
	if (sc->proactive && signal_pending(current))
		return true;

	return sc->batch.nr_before + nr_reclaimed >= sc->nr_to_reclaim;
}

noinline bool vmscan_shrink_lruvec(struct lruvec *lruvec, struct scan_control *sc, int swappiness,
				   long *nr_to_scan)
{
	unsigned long nr_reclaimed = sc->nr_reclaimed, emptied;
	struct vmscan_scan scan = {
		.pass = {
			.memcg = lruvec_memcg(lruvec),
			.nid = lruvec_pgdat(lruvec)->node_id,
			.priority = sc->priority,
			.root_reclaim = root_reclaim(sc),
			.swappiness = vmscan_usable(sc, swappiness),
		},
		.lruvec = lruvec,
		.target = sc->target_mem_cgroup,
		.low_reclaim = sc->memcg_low_reclaim,
	};
	struct vmscan_pass *pass = &scan.pass;

	if (vmscan_anon_only(swappiness))
		return false;

	/* the first pass of a round over all nodes */
	if (sc->batch.priority != sc->priority) {
		sc->batch.priority = sc->priority;
		sc->batch.nr_before = nr_reclaimed;
	}
	while (vmscan_scan_next(&scan, &sc->batch)) {
		pass->waited = false;
		if (pass->last == VMSCAN_AGE) {
			pass->progress = vmscan_age(lruvec, pass->max_seq, pass->swappiness);
			pass->nr_aged += pass->progress;
			/* another task is at it: don't fail through all priorities meanwhile */
			pass->waited = !pass->progress && pass->nr_gens <= MIN_NR_GENS;
			if (pass->waited)
				schedule_timeout_killable(1);
		} else {
			emptied = nr_emptied(lruvec);
			vmscan_evict(lruvec, sc, pass->swappiness);
			pass->progress = sc->batch.nr_moved || nr_emptied(lruvec) != emptied;
			pass->nr_batches++;
			pass->nr_moved += sc->batch.nr_moved;
			scan.nr_dry = pass->progress ? 0 : scan.nr_dry + 1;
		}
		pass->nr_reclaimed = sc->nr_reclaimed - nr_reclaimed;
		pass->enough = has_enough(lruvec, sc, pass->nr_reclaimed);
		cond_resched();
	}
	if (scan.asked)
		sc->memcg_low_skipped |= scan.low_skipped;
	*nr_to_scan = -scan.rotate;

	return !pass->stock_follows;
}

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
		.memcg = sc->target_mem_cgroup,
		.nid = pgdat->node_id,
		.priority = sc->priority,
		.root_reclaim = root_reclaim(sc),
		.proactive = sc->proactive,
		.may_enter_fs = sc->gfp_mask & __GFP_FS,
		.congested = test_bit(LRUVEC_NODE_CONGESTED, marks),
		.nr_reclaimed = sc->nr_reclaimed - nr_reclaimed,
		.nr_taken = sc->nr.taken,
		.stat = &stat,
	};
	unsigned int flags = vmscan_throttle_ask(&round);

	if (flags & VMSCAN_MARK_WRITEBACK)
		set_bit(PGDAT_WRITEBACK, &pgdat->flags);
	if (flags & VMSCAN_MARK_CONGESTED)
		set_bit(LRUVEC_NODE_CONGESTED, marks);
	if (flags & VMSCAN_SLEEP_WRITEBACK) {
		/* a direct reclaimer comes by all nodes at each priority */
		if (!sc->hibernation_mode && vmscan_may_wait(sc->gfp_mask) &&
		    (round.kswapd || sc->batch.slept != sc->priority + 1)) {
			sc->batch.slept = sc->priority + 1;
			vmscan_before_sleep(sc);
			reclaim_throttle(pgdat, VMSCAN_THROTTLE_WRITEBACK);
		}
	} else if (flags & VMSCAN_SLEEP_CONGESTED && !sc->hibernation_mode &&
		   current_may_throttle()) {
		vmscan_before_sleep(sc);
		reclaim_throttle(pgdat, VMSCAN_THROTTLE_CONGESTED);
	}
}

#endif /* CONFIG_VMSCAN_POLICY */
