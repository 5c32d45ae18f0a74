// SPDX-License-Identifier: GPL-2.0
/*
 * Walks over the entries of large folios that stock makes in batches by itself, for the trace
 * events. No code of ours runs there: probes tell of them.
 */
#include <linux/array_size.h>
#include <linux/fprobe.h>
#include <linux/memcontrol.h>
#include <linux/rcupdate.h>
#include <linux/rmap.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "internal.h"
#include "trace.h"

#ifdef VMP_WALK_PROBES
/* What tasks go over: of each kind one at a time. Of two whose place is the same one is lost. */
struct walk {
	pid_t pid;
	struct folio *folio;
	struct vmscan_walk told;
};

static struct walk walks[2][1024];

static struct walk *walk_of_task(bool young)
{
	return &walks[young][current->pid % ARRAY_SIZE(walks[young])];
}

static int begin_walk(struct folio *folio, bool young)
{
	/* Its end is not wanted either. */
	if (!folio_test_large(folio))
		return 1;
	*walk_of_task(young) = (struct walk) {
		.pid = current->pid,
		.folio = folio,
		.told = {
			.nid = folio_nid(folio),
			.young = young,
			.kind = !folio_test_anon(folio) ? VMSCAN_FILE :
				folio_test_swapbacked(folio) ? VMSCAN_ANON : VMSCAN_LAZYFREE,
			.nr_pages = folio_nr_pages(folio),
		},
	};

	return 0;
}

static void walk_counts(const struct folio *folio, bool young, unsigned int nr)
{
	struct walk *walk = walk_of_task(young);
	struct vmscan_walk *told = &walk->told;

	if (walk->pid != current->pid || walk->folio != folio)
		return;
	told->nr_batches += nr > 1;
	*(nr > 1 ? &told->nr_ptes : &told->nr_left) += nr;
}

static void end_walk(struct folio *folio, bool young)
{
	struct walk *walk = walk_of_task(young);
	struct vmscan_walk *told = &walk->told;
	const struct vmp_rule *rule;
	struct vmp_where where;
	u32 set;

	if (walk->pid != current->pid || walk->folio != folio)
		return;
	walk->pid = 0;
	told->nr_kept = !young && folio_mapped(folio);

	/* From Linux 7.2 on a memory cgroup can go before its folios do. */
	guard(rcu)();
	told->memcg = folio_memcg(folio);
	rule = vmp_rule_now(told->memcg, &set);
	/* The policy tells of these itself. */
	if (!young && told->kind == VMSCAN_ANON && rule->settings.policy[VMP_POINT_UNMAP])
		return;
	where = vmp_where(set, rule, VMP_RMAP_STOCK, told->memcg, told->nid);
	if (young)
		trace_young_folio(&where, told);
	else
		trace_unmap_folio(&where, told);
}

static struct fprobe probes[2][2];

static bool is_young(const struct fprobe *probe)
{
	return probe >= probes[true];
}

/* @data: the folio, which the caller holds until the end. */
static int walk_begins(struct fprobe *probe, unsigned long ip, unsigned long ret,
		       struct ftrace_regs *regs, void *data)
{
	struct folio **folio = data;

	*folio = (void *)ftrace_regs_get_argument(regs, 0);

	return begin_walk(*folio, is_young(probe));
}

static void walk_ends(struct fprobe *probe, unsigned long ip, unsigned long ret,
		      struct ftrace_regs *regs, void *data)
{
	end_walk(*(struct folio **)data, is_young(probe));
}

/* folio_remove_rmap_ptes(folio, page, nr, vma), once for each batch */
static int unmap_counts(struct fprobe *probe, unsigned long ip, unsigned long ret,
			struct ftrace_regs *regs, void *data)
{
	walk_counts((void *)ftrace_regs_get_argument(regs, 0), false,
		    ftrace_regs_get_argument(regs, 2));
	return 1;
}

/* lru_gen_look_around(pvmw, nr), once for each batch that was accessed, by the multi-gen LRU */
static int young_counts(struct fprobe *probe, unsigned long ip, unsigned long ret,
			struct ftrace_regs *regs, void *data)
{
	const struct page_vma_mapped_walk *pvmw = (void *)ftrace_regs_get_argument(regs, 0);

	walk_counts(pfn_folio(pvmw->pfn), true, ftrace_regs_get_argument(regs, 1));
	return 1;
}

static const struct {
	const char *name;
	fprobe_entry_cb begins;
	fprobe_exit_cb ends;
} probed[2][2] = {
	{
		{ "try_to_unmap", walk_begins, walk_ends },
		{ "folio_remove_rmap_ptes", unmap_counts },
	}, {
		{ "folio_referenced", walk_begins, walk_ends },
		{ "lru_gen_look_around", young_counts },
	},
};

static void unprobe(bool young)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(probes[young]); i++)
		if (probes[young][i].entry_handler)
			unregister_fprobe(&probes[young][i]);
	memset(probes[young], 0, sizeof(probes[young]));
}

static int probe(bool young)
{
	const char *name;
	unsigned int i;
	int err;

	if (!(vmp_traits() & (young ? VMSCAN_TRAIT_YOUNG : VMSCAN_TRAIT_DISCARD)))
		return 0;
	for (i = 0; i < ARRAY_SIZE(probes[young]); i++) {
		name = probed[young][i].name;
		probes[young][i].entry_handler = probed[young][i].begins;
		probes[young][i].exit_handler = probed[young][i].ends;
		if (probed[young][i].ends)
			probes[young][i].entry_data_size = sizeof(struct folio *);
		err = register_fprobe_syms(&probes[young][i], &name, 1);
		if (err) {
			probes[young][i].entry_handler = NULL;
			unprobe(young);
			return err;
		}
	}

	return 0;
}

#else
static void unprobe(bool young)
{
}

static int probe(bool young)
{
	return 0;
}
#endif

int vmp_unmap_probe(void)
{
	return probe(false);
}

void vmp_unmap_unprobe(void)
{
	unprobe(false);
}

int vmp_young_probe(void)
{
	return probe(true);
}

void vmp_young_unprobe(void)
{
	unprobe(true);
}
