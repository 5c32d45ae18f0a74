// SPDX-License-Identifier: GPL-2.0
/* Sets of rules, as they are published: the machine's, and those of memory cgroups. */
#include <linux/err.h>
#include <linux/list.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <kunit/visibility.h>

#include "internal.h"

#ifdef CONFIG_MEMCG
static void place(struct vmp_set *set, const struct vmp_rule *rule)
{
	unsigned int i = hash_64(rule->serial, set->bits);

	while (set->places[i].rule)
		i = (i + 1) & (BIT(set->bits) - 1);
	set->places[i] = (struct vmp_place) { .serial = rule->serial, .rule = rule };
}

/* Half of the places stay free, so that a search for what has no rule is short. */
static bool make_table(struct vmp_set *set)
{
	unsigned int i;

	if (set->nr_rules == 2)
		return true;

	set->bits = order_base_2(set->nr_rules);
	set->places = kvcalloc(BIT(set->bits), sizeof(*set->places), GFP_KERNEL);
	if (!set->places)
		return false;
	for (i = 2; i < set->nr_rules; i += 2)
		place(set, &set->rules[i]);

	return true;
}
#else
static bool make_table(struct vmp_set *set)
{
	return true;
}
#endif

/* That of an entry, and what holds once its guard has tripped. False: a policy of it has gone. */
static bool add_rules(struct vmp_set *set, struct vmp_rule *rule, struct vmp_entry *entry)
{
	unsigned int point;

	rule[0] = entry->rule;
	rule[0].guard = &entry->guard;
	rule[0].stock = vmp_is_stock(&rule->settings, vmp_traits());
	rule[1] = rule[0];
	rule[1].stock = true;
	vmp_set_stock(&rule[1].settings, vmp_traits());
	if (!vmp_hold_plugins(rule))
		return false;
	for (point = 0; point < VMP_NR_POINTS; point++)
		if (vmp_points[point]->fill)
			vmp_points[point]->fill(&set->ops, &rule->settings);

	return true;
}

/**
 * vmp_make_set() - make a set of what is set
 * @entries: the entries, the machine's first
 * @number: number of the set
 *
 * Each point has the callbacks that any rule needs; where another rule holds, they answer stock.
 *
 * Return: the set, or an error pointer: -ENOMEM, -ENOENT if a policy of another module is going.
 */
struct vmp_set *vmp_make_set(struct list_head *entries, u32 number)
{
	unsigned int nr = 2 * list_count_nodes(entries), i = 0;
	struct vmp_entry *entry;
	struct vmp_set *set;

	set = kvzalloc(struct_size(set, rules, nr), GFP_KERNEL);
	if (!set)
		return ERR_PTR(-ENOMEM);

	set->ops.abi = VMSCAN_POLICY_ABI;
	set->ops.owner = THIS_MODULE;
	set->ops.name = KBUILD_MODNAME;
	set->number = number;
	set->nr_rules = nr;
	list_for_each_entry(entry, entries, list) {
		if (!add_rules(set, &set->rules[i], entry)) {
			vmp_free_set(set);
			return ERR_PTR(-ENOENT);
		}
		i += 2;
	}
	if (!make_table(set)) {
		vmp_free_set(set);
		return ERR_PTR(-ENOMEM);
	}

	return set;
}
EXPORT_SYMBOL_IF_KUNIT(vmp_make_set);

/* One that nobody uses, or NULL. */
void vmp_free_set(struct vmp_set *set)
{
	unsigned int i;

	if (!set)
		return;
	for (i = 0; i < set->nr_rules; i += 2)
		vmp_release_plugins(&set->rules[i]);
	kvfree(set->places);
	kvfree(set);
}
EXPORT_SYMBOL_IF_KUNIT(vmp_free_set);
