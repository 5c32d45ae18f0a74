// SPDX-License-Identifier: GPL-2.0
/*
 * Policies of page reclaim: the registry, and what follows from the answers.
 *
 * A reclaimer reads the published set in an RCU section for each decision. A writer
 * publishes under vmscan_policy_lock, then waits for the readers of what was there
 * before. Reclaim never takes the mutex.
 */
#define pr_fmt(fmt) "vmscan_policy: " fmt

#include <linux/export.h>
#include <linux/memcontrol.h>
#include <linux/mm_inline.h>
#include <linux/mutex.h>
#include <linux/sched/clock.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/swap.h>
#include <linux/workqueue.h>
#include <kunit/visibility.h>

#include "internal.h"
#include "vmscan_policy.h"
#include "vmscan_stock.h"

DEFINE_STATIC_KEY_FALSE(vmscan_scan_key);
DEFINE_STATIC_KEY_FALSE(vmscan_evicted_key);
DEFINE_STATIC_KEY_FALSE(vmscan_throttle_key);
DEFINE_STATIC_KEY_FALSE(vmscan_unmap_key);
DEFINE_STATIC_KEY_FALSE(vmscan_young_key);
DEFINE_STATIC_KEY_FALSE(vmscan_flush_key);
EXPORT_SYMBOL_IF_KUNIT(vmscan_flush_key);
static DEFINE_MUTEX(vmscan_policy_lock);
static const struct vmscan_policy_ops __rcu *vmscan_policy_ops __read_mostly;
static bool bypass __read_mostly;

#define published() \
	rcu_dereference_protected(vmscan_policy_ops, lockdep_is_held(&vmscan_policy_lock))

/* The set to ask, or NULL. */
static const struct vmscan_policy_ops *in_force(void)
{
	return vmscan_policy_bypassed() ? NULL : rcu_dereference(vmscan_policy_ops);
}

/* The same; the note is void if it is another module's. */
static const struct vmscan_policy_ops *in_force_with(struct vmscan_note *note)
{
	const struct vmscan_policy_ops *ops = in_force();

	if (ops && note->owner != ops->owner)
		*note = (struct vmscan_note) { .owner = ops->owner };

	return ops;
}

static void set_branch(struct static_key *key, bool on, bool off)
{
	if (on)
		static_key_enable(key);
	else if (off)
		static_key_disable(key);
}

/* A branch is on while a policy is in force at its point. */
static void set_branches(bool off)
{
	const struct vmscan_policy_ops *ops = vmscan_policy_bypassed() ? NULL : published();

	set_branch(&vmscan_flush_key.key, ops && ops->flush_group, off);
	set_branch(&vmscan_scan_key.key, ops && ops->next_step, off);
	set_branch(&vmscan_evicted_key.key, ops && ops->evicted, off);
	set_branch(&vmscan_throttle_key.key, ops && ops->throttle, off);
	set_branch(&vmscan_unmap_key.key, ops && ops->unmap_ptes, off);
	set_branch(&vmscan_young_key.key, ops && ops->young_ptes, off);
}

/*
 * Patching a branch interrupts every CPU, which is part of what somebody who switches to
 * and fro wants to count. So one that isn't needed any more goes off later; on, it finds
 * nothing to do. Two works: what postpones "off" must not postpone "on".
 */
#define BRANCH_OFF_DELAY	(30 * HZ)
static void branches_workfn(struct work_struct *work);
static DECLARE_WORK(on_work, branches_workfn);
static DECLARE_DELAYED_WORK(off_work, branches_workfn);

static void branches_workfn(struct work_struct *work)
{
	guard(mutex)(&vmscan_policy_lock);
	set_branches(work == &off_work.work);
}

static int validate(const struct vmscan_policy_ops *ops)
{
	if (!ops->name || !*ops->name) {
		pr_err("a policy set needs a name\n");
		return -EINVAL;
	}
	if (ops->abi != VMSCAN_POLICY_ABI) {
		pr_err("%s was built for hook ABI %u, this kernel has ABI %u\n",
		       ops->name, ops->abi, VMSCAN_POLICY_ABI);
		return -EPROTONOSUPPORT;
	}
	if (!ops->owner) {
		pr_err("%s has no owner: only a module can publish\n", ops->name);
		return -ENODEV;
	}

	return 0;
}

int vmscan_policy_publish(const struct vmscan_policy_ops *old, const struct vmscan_policy_ops *new)
{
	int err = new ? validate(new) : 0;

	if (err)
		return err;

	guard(mutex)(&vmscan_policy_lock);
	if (published() != old) {
		pr_err("%s can't be replaced: %s is published\n", old ? old->name : "nothing",
		       published() ? published()->name : "nothing");
		return published() ? -EBUSY : -ENOENT;
	}
	rcu_assign_pointer(vmscan_policy_ops, new);
	synchronize_rcu();
	if (!new)
		WRITE_ONCE(bypass, false);

	set_branches(false);
	mod_delayed_work(system_long_wq, &off_work, BRANCH_OFF_DELAY);

	return 0;
}
EXPORT_SYMBOL_NS_GPL(vmscan_policy_publish, VMSCAN_NAMESPACE);

void vmscan_policy_set_bypass(bool on)
{
	WRITE_ONCE(bypass, on);
	if (on)
		mod_delayed_work(system_long_wq, &off_work, BRANCH_OFF_DELAY);
	else
		queue_work(system_long_wq, &on_work);
}
EXPORT_SYMBOL_NS_GPL(vmscan_policy_set_bypass, VMSCAN_NAMESPACE);

bool vmscan_policy_bypassed(void)
{
	return READ_ONCE(bypass);
}
EXPORT_SYMBOL_NS_GPL(vmscan_policy_bypassed, VMSCAN_NAMESPACE);

unsigned long vmscan_policy_traits(void)
{
	return VMSCAN_TRAITS;
}
EXPORT_SYMBOL_NS_GPL(vmscan_policy_traits, VMSCAN_NAMESPACE);

void vmscan_flush_ask(struct vmscan_flush *flush, int nid, struct list_head *folio_list)
{
	struct vmscan_group *group = &flush->group;

	*flush = (struct vmscan_flush) {
		.group.nid = nid,
		.waiting = LIST_HEAD_INIT(flush->waiting),
		.rest = LIST_HEAD_INIT(flush->rest),
	};
	if (list_empty(folio_list))
		return;

	guard(rcu)();
	group->ops = in_force();
	group->memcg = folio_memcg(lru_to_folio(folio_list));
	if (group->ops && group->ops->flush_group)
		flush->size = min(group->ops->flush_group(group), VMSCAN_FLUSH_MAX_FOLIOS);
}

unsigned long vmscan_isolate(struct mem_cgroup *target, struct lruvec *lruvec,
			     unsigned long nr_to_scan, unsigned long *left)
{
	struct vmscan_group group = { .memcg = lruvec_memcg(lruvec) };
	unsigned long min, low, more;

	vmscan_protection(target, group.memcg, &min, &low);
	guard(rcu)();
	group.ops = in_force();
	/* What is protected may lie beyond the share. */
	if (min || low || !group.ops || !group.ops->flush_isolate)
		return 0;
	more = min(group.ops->flush_isolate(&group), VMSCAN_FLUSH_MAX_ISOLATE);
	more -= min(more, nr_to_scan);
	*left -= min(*left, more);

	return more;
}

/* @first of the folios that wait, NULL when they have been gone over. */
static void tell_state(struct vmscan_flush *flush, struct folio *first)
{
	struct vmscan_group *group = &flush->group;

	guard(rcu)();
	group->ops = in_force_with(&flush->note);
	group->memcg = first ? folio_memcg(first) : NULL;
	if (group->ops && group->ops->flush_state)
		group->ops->flush_state(group, flush->note.words);
}

bool vmscan_flush_wait(struct vmscan_flush *flush, struct folio *folio,
		       struct list_head *folio_list)
{
	struct vmscan_group *group = &flush->group;

	if (!flush->size || flush->second || !folio_test_anon(folio))
		return false;

	group->nr_folios++;
	group->nr_pages += folio_nr_pages(folio);
	list_add(&folio->lru, &flush->waiting);
	folio_unlock(folio);
	if (group->nr_folios >= flush->size ||
	    group->nr_pages >= max(flush->size, VMSCAN_FLUSH_MIN_PAGES))
		list_splice_init(folio_list, &flush->rest);

	return true;
}

bool vmscan_flush_keep(struct vmscan_flush *flush, struct folio *folio)
{
	bool mapped = folio_mapped(folio), gone = !folio_test_swapcache(folio);

	if (!flush->size || !flush->second || (!mapped && !gone))
		return false;

	flush->group.nr_mapped += mapped;
	flush->group.nr_gone += !mapped;

	return true;
}

bool vmscan_flush_next(struct vmscan_flush *flush, struct list_head *folio_list)
{
	struct vmscan_group *group = &flush->group;

	if (!list_empty(&flush->waiting)) {
		/* others may have been written out in the first pass */
		group->nr_written = 0;
		tell_state(flush, lru_to_folio(&flush->waiting));
		group->ns = -local_clock();
		group->flushed = current->tlb_ubc.writable;
		try_to_unmap_flush_dirty();
		list_splice_init(&flush->waiting, folio_list);
		flush->second = true;
		return true;
	}

	if (flush->second) {
		group->ns += local_clock();
		group->done = true;
		tell_state(flush, NULL);
		*group = (struct vmscan_group) { .nid = group->nid,
						 .nr_before = group->nr_before + 1 };
		flush->second = false;
	}
	list_splice_init(&flush->rest, folio_list);

	return !list_empty(folio_list);
}

#ifdef CONFIG_LRU_GEN

static_assert(VMSCAN_MAX_GENS == MAX_NR_GENS);

/* Look at the generations. Returns how much can be evicted. */
static unsigned long look(struct vmscan_pass *pass, const struct lru_gen_folio *lrugen)
{
	/* Without swap the anonymous generations don't count. */
	unsigned long first = min(READ_ONCE(lrugen->min_seq[!pass->can_swap]),
				  READ_ONCE(lrugen->min_seq[LRU_GEN_FILE])), total = 0;
	int i, type, zone;

	pass->max_seq = READ_ONCE(lrugen->max_seq);
	pass->nr_gens = clamp(pass->max_seq - first + 1, 1UL, (unsigned long)MAX_NR_GENS);
	memset(pass->nr_pages, 0, sizeof(pass->nr_pages));
	for (i = 0; i < pass->nr_gens; i++) {
		const long (*sizes)[MAX_NR_ZONES] = lrugen->nr_pages[(first + i) % MAX_NR_GENS];

		for (type = !pass->can_swap; type < ANON_AND_FILE; type++)
			for (zone = 0; zone < MAX_NR_ZONES; zone++)
				pass->nr_pages[i] += max(READ_ONCE(sizes[type][zone]), 0L);
		total += pass->nr_pages[i];
	}

	return total;
}

/* As get_scan_count() does it for the classic LRU. */
static unsigned long unprotected(struct vmscan_scan *scan, unsigned long nr_pages)
{
	unsigned long protected, size, min, low;

	size = vmscan_protection(scan->target, scan->pass.memcg, &min, &low);
	if (!min && !low)
		return nr_pages;

	scan->low_skipped = low > min && !scan->low_reclaim;
	protected = scan->low_skipped ? low : min;
	/* It may have shrunk since its protection was calculated. */
	size = max(size, protected);

	return max(nr_pages - nr_pages * protected / (size + 1), SWAP_CLUSTER_MAX);
}

static struct vmscan_step ask_step(struct vmscan_scan *scan)
{
	struct vmscan_pass *pass = &scan->pass;

	guard(rcu)();
	pass->ops = in_force_with(&scan->note);
	pass->stock_follows = !pass->ops || !pass->ops->next_step;
	if (pass->stock_follows)
		return (struct vmscan_step) { .action = VMSCAN_END };

	scan->asked = true;
	return pass->ops->next_step(pass, scan->note.words);
}

bool vmscan_scan_next(struct vmscan_scan *scan, struct vmscan_batch *batch)
{
	struct vmscan_step step = { .action = VMSCAN_END };
	struct vmscan_pass *pass = &scan->pass;
	unsigned long size, left, share;
	bool rotate;

	size = look(pass, &scan->lruvec->lrugen);
	if (!scan->begun) {
		pass->begin_size = size;
		pass->unprotected = unprotected(scan, size);
		scan->begun = true;
	}
	left = max(pass->begin_size, SWAP_CLUSTER_MAX);
	left -= min(left, pass->nr_moved);
	pass->below_min = mem_cgroup_below_min(scan->target, pass->memcg);
	if (left && scan->nr_dry < 2 && !pass->below_min) {
		step = ask_step(scan);
		if (step.action == VMSCAN_AGE && scan->nr_agings++ >= VMSCAN_MAX_GENS)
			step.action = VMSCAN_END;
		pass->last = step.action;
	}
	batch->max_move = 0;
	batch->nr_moved = 0;
	if (step.action == VMSCAN_AGE)
		return true;
	if (step.action == VMSCAN_EVICT) {
		batch->max_move = clamp(step.max_move, 1, min(left, VMSCAN_MAX_BATCH));
		batch->max_take = clamp(step.max_take, 1, VMSCAN_MAX_BATCH);
		return true;
	}

	share = pass->enough ? 0 : clamp(pass->unprotected >> pass->priority, 1, SWAP_CLUSTER_MAX);
	if (pass->priority <= VMSCAN_LIVE_PRIORITY && !pass->nr_aged && pass->nr_moved < share)
		pass->stock_follows = true;
	rotate = pass->below_min || step.action == VMSCAN_END_ROTATE;
	scoped_guard(rcu) {
		pass->ops = in_force_with(&scan->note);
		if (scan->asked && pass->ops && pass->ops->pass_ended)
			rotate |= pass->ops->pass_ended(pass, scan->note.words);
	}
	scan->nr_to_scan = pass->stock_follows ? 1 : -rotate;

	return false;
}

bool vmscan_age_memcg(struct mem_cgroup *memcg, int nid, unsigned long max_seq, bool can_swap)
{
	struct lruvec *lruvec = mem_cgroup_lruvec(memcg, NODE_DATA(nid));
	struct reclaim_state reclaim_state = {};
	unsigned int flags;
	bool aged;

	if (!lru_gen_enabled() || max_seq != READ_ONCE(lruvec->lrugen.max_seq))
		return false;

	flags = memalloc_noreclaim_save();
	current->reclaim_state = &reclaim_state;
	aged = vmscan_age(lruvec, max_seq, can_swap);
	current->reclaim_state = NULL;
	memalloc_noreclaim_restore(flags);
	kfree(reclaim_state.mm_walk);

	return aged;
}
EXPORT_SYMBOL_NS_GPL(vmscan_age_memcg, VMSCAN_NAMESPACE);

#endif /* CONFIG_LRU_GEN */

unsigned int vmscan_evicted_ask(struct vmscan_evicted *evicted)
{
	const struct vmscan_policy_ops *ops;

	guard(rcu)();
	ops = in_force();
	if (!ops || !ops->evicted)
		return 0;
	if (!evicted)
		return VMSCAN_ASK;
	evicted->ops = ops;

	return ops->evicted(evicted);
}

unsigned int vmscan_throttle_ask(struct vmscan_round *round)
{
	guard(rcu)();
	round->ops = in_force();

	return round->ops && round->ops->throttle ? round->ops->throttle(round) : 0;
}
EXPORT_SYMBOL_IF_KUNIT(vmscan_throttle_ask);

unsigned int vmscan_walk_ask(struct vmscan_walk *walk, struct folio *folio)
{
	unsigned int (*ask)(const struct vmscan_walk *walk);

	guard(rcu)();
	walk->ops = in_force();
	if (!walk->ops)
		return 1;
	ask = walk->young ? walk->ops->young_ptes : walk->ops->unmap_ptes;
	if (!ask)
		return 1;

	walk->memcg = folio_memcg(folio);
	walk->nid = folio_nid(folio);
	walk->kind = !folio_test_anon(folio) ? VMSCAN_FILE :
		     folio_test_swapbacked(folio) ? VMSCAN_ANON : VMSCAN_LAZYFREE;
	walk->nr_pages = folio_nr_pages(folio);

	return ask(walk);
}

void vmscan_walk_done(struct vmscan_walk *walk)
{
	guard(rcu)();
	walk->ops = in_force();
	if (walk->ops && walk->ops->walk_done)
		walk->ops->walk_done(walk);
}
