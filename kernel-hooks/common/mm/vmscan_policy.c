// SPDX-License-Identifier: GPL-2.0
/*
 * Policies of page reclaim: the registry, and what follows from the answers.
 *
 * A reclaimer reads the published set in an RCU section for each decision. A writer
 * publishes under vmscan_policy_lock, then waits for the readers of what was there
 * before. Reclaim never takes the mutex.
 */
#define pr_fmt(fmt) "vmscan_policy: " fmt

#include <linux/memcontrol.h>
#include <linux/mm_inline.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/swap.h>
#include <linux/workqueue.h>
#include <kunit/visibility.h>

#include "internal.h"
#include "vmscan_policy.h"

DEFINE_STATIC_KEY_FALSE(vmscan_scan_key);
DEFINE_STATIC_KEY_FALSE(vmscan_throttle_key);
DEFINE_STATIC_KEY_FALSE(vmscan_flush_key);
EXPORT_SYMBOL_IF_KUNIT(vmscan_flush_key);
static DEFINE_MUTEX(vmscan_policy_lock);
static const struct vmscan_policy_ops __rcu *vmscan_policy_ops __read_mostly;
static bool bypass __read_mostly;
static u64 last_number;

#define published() \
	rcu_dereference_protected(vmscan_policy_ops, lockdep_is_held(&vmscan_policy_lock))

const struct vmscan_policy_ops *vmscan_in_force(struct vmscan_kept *kept)
{
	const struct vmscan_policy_ops *ops;

	ops = vmscan_policy_bypassed() ? NULL : rcu_dereference(vmscan_policy_ops);
	if (ops && kept && kept->number != READ_ONCE(ops->number))
		*kept = (struct vmscan_kept) { .number = READ_ONCE(ops->number) };

	return ops;
}
EXPORT_SYMBOL_IF_KUNIT(vmscan_in_force);

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
	set_branch(&vmscan_throttle_key.key, ops && ops->throttle, off);
	if (!(VMSCAN_TRAITS & VMSCAN_TRAIT_FEEDBACK))
		set_branch(&vmscan_evicted_key.key, ops && ops->evict, off);
	if (!(VMSCAN_TRAITS & VMSCAN_TRAIT_UNMAP))
		set_branch(&vmscan_unmap_key.key, ops && ops->unmap_ptes, off);
	if (!(VMSCAN_TRAITS & VMSCAN_TRAIT_YOUNG))
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

int vmscan_policy_publish(const struct vmscan_policy_ops *old, struct vmscan_policy_ops *new)
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
	if (new)
		WRITE_ONCE(new->number, ++last_number);
	rcu_assign_pointer(vmscan_policy_ops, new);
	synchronize_rcu();
	if (!new)
		WRITE_ONCE(bypass, false);

	set_branches(false);
	mod_delayed_work(system_long_wq, &off_work, BRANCH_OFF_DELAY);

	return 0;
}
EXPORT_SYMBOL_NS_GPL(vmscan_policy_publish, VMSCAN_NAMESPACE);

/* Whose exit function has not taken back what it published: nothing may be left of it. */
static int module_goes(struct notifier_block *nb, unsigned long state, void *module)
{
	const struct vmscan_policy_ops *left = NULL;

	if (state != MODULE_STATE_GOING)
		return NOTIFY_DONE;
	scoped_guard(mutex, &vmscan_policy_lock)
		if (published() && published()->owner == module)
			left = published();
	if (left) {
		pr_err("%s goes without taking its policies back\n", left->name);
		vmscan_policy_publish(left, NULL);
	}

	return NOTIFY_DONE;
}

static struct notifier_block module_notifier = { .notifier_call = module_goes };

static int __init vmscan_policy_init(void)
{
	return register_module_notifier(&module_notifier);
}
late_initcall(vmscan_policy_init);

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

/* What waits for a flush from earlier calls waits in this one. */
static void take_back(struct vmscan_flush *flush, struct vmscan_span *span)
{
	struct vmscan_group *group = &flush->group;

	flush->span = span;
	if (!span->nr_folios)
		return;

	list_splice_init(&span->waiting, &flush->waiting);
	group->nr_folios = span->nr_folios;
	group->nr_pages = span->nr_pages;
	span->delta += span->nr_pages;
	span->nr_folios = 0;
	mod_node_page_state(NODE_DATA(group->nid), NR_ISOLATED_ANON, -(long)span->nr_pages);
}

/* Is the group to wait on when the call ends? */
static bool may_stay(const struct vmscan_flush *flush)
{
	const struct vmscan_group *group = &flush->group;

	return flush->span && !flush->nr_others && list_empty(&flush->rest) &&
	       group->nr_folios < flush->size && group->nr_pages < VMSCAN_FLUSH_MIN_PAGES &&
	       group->nr_pages < flush->span->goal;
}

static void stay(struct vmscan_flush *flush)
{
	struct vmscan_group *group = &flush->group;
	struct vmscan_span *span = flush->span;

	list_replace_init(&flush->waiting, &span->waiting);
	span->nr_folios = group->nr_folios;
	span->nr_pages = group->nr_pages;
	span->delta -= group->nr_pages;
	mod_node_page_state(NODE_DATA(group->nid), NR_ISOLATED_ANON, span->nr_pages);
	/* the call may go on: with what it failed to demote */
	group->nr_folios = 0;
	group->nr_pages = 0;
	flush->span = NULL;
	flush->stays = true;
}

void vmscan_flush_ask(struct vmscan_flush *flush, int nid, struct list_head *folio_list,
		      struct vmscan_span *span)
{
	struct vmscan_call call = { .nid = nid };
	struct folio *folio;
	unsigned int answer;

	*flush = (struct vmscan_flush) {
		.list = folio_list,
		.waiting = LIST_HEAD_INIT(flush->waiting),
		.rest = LIST_HEAD_INIT(flush->rest),
		.group.nid = nid,
	};
	if (list_empty(folio_list))
		return;

	folio = lru_to_folio(folio_list);
	scoped_guard(rcu) {
		call.ops = vmscan_in_force(NULL);
		if (!call.ops || !call.ops->flush_group)
			return;
		call.memcg = folio_memcg(folio);
		answer = call.ops->flush_group(&call);
		/* the branch may have been off when reclaim turned to the folios' lruvec */
		if (span && span->lruvec != folio_lruvec(folio))
			span = NULL;
	}
	flush->size = min(answer & ~VMSCAN_FLUSH_SPAN, VMSCAN_FLUSH_MAX_FOLIOS);
	if (flush->size && (answer & VMSCAN_FLUSH_SPAN) && span && !folio_is_file_lru(folio))
		take_back(flush, span);
}

bool vmscan_flush_wait(struct vmscan_flush *flush, struct folio *folio, unsigned long *nr_scanned)
{
	struct vmscan_group *group = &flush->group;

	if (!flush->size || flush->second || !folio_test_anon(folio))
		return false;

	*nr_scanned -= folio_nr_pages(folio);
	flush->nr_others -= folio == flush->unmapped;
	group->nr_folios++;
	group->nr_pages += folio_nr_pages(folio);
	list_add(&folio->lru, &flush->waiting);
	folio_unlock(folio);
	if (group->nr_folios >= flush->size ||
	    group->nr_pages >= max(flush->size, VMSCAN_FLUSH_MIN_PAGES))
		list_splice_init(flush->list, &flush->rest);

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

/* Folios wait: flush for them, and have them gone over again. */
static void begin_group(struct vmscan_flush *flush)
{
	struct vmscan_group *group = &flush->group;

	group->flushed = current->tlb_ubc.flush_required;
	scoped_guard(rcu) {
		/* until the end, when none of them may be left */
		group->memcg = folio_memcg(lru_to_folio(&flush->waiting));
		if (!mem_cgroup_tryget(group->memcg))
			group->memcg = NULL;
		group->ops = vmscan_in_force(&flush->kept);
		if (group->ops && group->ops->flush_begin)
			group->ops->flush_begin(group, &flush->kept.note);
	}
	/* Clean entries, too: the call may end without a flush, and free what they mapped. */
	try_to_unmap_flush();
	list_splice_init(&flush->waiting, flush->list);
	flush->second = true;
}

static void end_group(struct vmscan_flush *flush)
{
	struct vmscan_group *group = &flush->group;

	scoped_guard(rcu) {
		group->ops = vmscan_in_force(&flush->kept);
		if (group->ops && group->ops->flush_end)
			group->ops->flush_end(group, &flush->kept.note);
	}
	mem_cgroup_put(group->memcg);
	*group = (struct vmscan_group) { .nid = group->nid, .nr_before = group->nr_before + 1 };
	flush->kept = (struct vmscan_kept) {};
	flush->second = false;
}

bool vmscan_flush_next(struct vmscan_flush *flush)
{
	if (!list_empty(&flush->waiting) && may_stay(flush)) {
		stay(flush);
	} else if (!list_empty(&flush->waiting)) {
		begin_group(flush);
		return true;
	}
	if (flush->second)
		end_group(flush);
	list_splice_init(&flush->rest, flush->list);

	return !list_empty(flush->list);
}

static_assert(VMSCAN_MAX_GENS == MAX_NR_GENS);

/* Look at the generations. Returns how much can be evicted. */
static unsigned long look(struct vmscan_pass *pass, const struct lru_gen_folio *lrugen)
{
	/* Without swap the anonymous generations don't count. */
	unsigned long first = min(READ_ONCE(lrugen->min_seq[!pass->swappiness]),
				  READ_ONCE(lrugen->min_seq[LRU_GEN_FILE])), total = 0;
	int i, type, zone;

	pass->max_seq = READ_ONCE(lrugen->max_seq);
	pass->nr_gens = clamp(pass->max_seq - first + 1, 1UL, (unsigned long)MAX_NR_GENS);
	memset(pass->nr_pages, 0, sizeof(pass->nr_pages));
	for (i = 0; i < pass->nr_gens; i++) {
		const long (*sizes)[MAX_NR_ZONES] = lrugen->nr_pages[(first + i) % MAX_NR_GENS];

		for (type = !pass->swappiness; type < ANON_AND_FILE; type++)
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

static u64 ask_step(struct vmscan_scan *scan)
{
	struct vmscan_pass *pass = &scan->pass;
	u64 step = VMSCAN_STEP(VMSCAN_STOCK, 0, 0);

	guard(rcu)();
	pass->ops = vmscan_in_force(&scan->kept);
	if (pass->ops && pass->ops->next_step) {
		step = pass->ops->next_step(pass, &scan->kept.note);
		pass->last = VMSCAN_STEP_ACTION(step);
	}

	return step;
}

/* Reclaim has become urgent, and the pass did less than it has to. */
static bool idled(const struct vmscan_pass *pass)
{
	unsigned long share = max(pass->unprotected >> pass->priority, 1UL);

	if (pass->priority > VMSCAN_LIVE_PRIORITY || pass->enough || pass->nr_aged)
		return false;
	/* What it moved may all have been of the kind that nobody can reclaim. */
	if (pass->nr_reclaimed)
		share = min(share, SWAP_CLUSTER_MAX);

	return pass->nr_moved < share;
}

bool vmscan_batch_enough(const struct vmscan_batch *batch, int taken, int moved)
{
	return taken >= batch->max_take || batch->nr_moved + moved >= batch->max_move;
}

bool vmscan_scan_next(struct vmscan_scan *scan, struct vmscan_batch *batch)
{
	enum vmscan_action action = VMSCAN_END;
	struct vmscan_pass *pass = &scan->pass;
	unsigned long size, left;
	u64 step = 0;

	size = look(pass, &scan->lruvec->lrugen);
	if (!scan->begun) {
		pass->begin_size = size;
		pass->unprotected = unprotected(scan, size);
		scan->begun = true;
	}
	left = max(pass->begin_size, SWAP_CLUSTER_MAX);
	left -= min(left, pass->nr_moved);
	pass->below_min = mem_cgroup_below_min(scan->target, pass->memcg);
	if (left && scan->nr_dry < 2 && scan->nr_agings <= VMSCAN_MAX_GENS && !pass->below_min) {
		step = ask_step(scan);
		action = VMSCAN_STEP_ACTION(step);
		if (action > VMSCAN_AGE)
			action = VMSCAN_STOCK;
		scan->nr_agings += action == VMSCAN_AGE;
		scan->asked |= action != VMSCAN_STOCK;
	}
	batch->max_move = 0;
	batch->nr_moved = 0;
	if (action == VMSCAN_AGE)
		return true;
	if (action == VMSCAN_EVICT) {
		batch->max_move = clamp(VMSCAN_STEP_MOVE(step), 1, min(left, VMSCAN_MAX_BATCH));
		batch->max_take = clamp(VMSCAN_STEP_TAKE(step), 1, VMSCAN_MAX_BATCH);
		return true;
	}

	pass->stock_follows = action == VMSCAN_STOCK || idled(pass);
	scan->rotate = pass->below_min || action == VMSCAN_END_ROTATE;
	scoped_guard(rcu) {
		pass->ops = vmscan_in_force(&scan->kept);
		if (scan->asked && pass->ops && pass->ops->pass_ended)
			scan->rotate |= pass->ops->pass_ended(pass, &scan->kept.note);
	}

	return false;
}

unsigned int vmscan_throttle_ask(struct vmscan_round *round)
{
	struct pglist_data *pgdat = NODE_DATA(round->nid);

	/* memory.reclaim of the root is for the whole machine, too */
	if (round->root_reclaim)
		round->memcg = NULL;
	round->kswapd = current_is_kswapd();
	round->nr_write_pending = node_page_state(pgdat, NR_FILE_DIRTY) +
				  node_page_state(pgdat, NR_WRITEBACK);
	guard(rcu)();
	round->ops = vmscan_in_force(NULL);

	return round->ops && round->ops->throttle ? round->ops->throttle(round) : 0;
}
EXPORT_SYMBOL_IF_KUNIT(vmscan_throttle_ask);

bool vmscan_may_wait(gfp_t gfp_mask)
{
	/*
	 * A commit may wait for who has a transaction open, and writeback for the commit. Without
	 * __GFP_FS alone there may be none: all writers to XFS are, who need to be slowed down.
	 */
	return (gfp_mask & __GFP_IO) && !current->journal_info &&
	       !(current->flags & PF_LOCAL_THROTTLE);
}
EXPORT_SYMBOL_IF_KUNIT(vmscan_may_wait);
