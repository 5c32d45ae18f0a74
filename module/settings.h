/* SPDX-License-Identifier: GPL-2.0 */
/* What can be set, for the machine and for memory cgroups, and how a decision finds its own. */
#ifndef _VMP_SETTINGS_H
#define _VMP_SETTINGS_H

#include <linux/hash.h>
#include <linux/memcontrol.h>
#include <linux/types.h>

#include "compat.h"
#include "guard.h"
#include "include/vmscan_policy_module.h"

/* The policy points, in the order in which profiles and trace events number them. */
enum vmp_point_id {
	VMP_POINT_FLUSH,
	VMP_POINT_SCAN,
	VMP_POINT_AGING,
	VMP_POINT_WRITEBACK,
	VMP_POINT_THROTTLE,
	VMP_POINT_UNMAP,
	VMP_POINT_YOUNG,
	VMP_NR_POINTS,
};

/* The policies of each, in the order in which debugfs shows them. */
enum vmp_flush {
	VMP_FLUSH_STOCK,
	VMP_FLUSH_BATCH,
};

enum vmp_scan {
	VMP_SCAN_STOCK,
	VMP_SCAN_BUDGET,
	VMP_SCAN_6_12,
};

enum vmp_aging {
	VMP_AGING_STOP,
	VMP_AGING_CONTINUE,
};

enum vmp_writeback {
	VMP_WRITEBACK_STOCK,
	VMP_WRITEBACK_FEEDBACK,
};

enum vmp_throttle {
	VMP_THROTTLE_STOCK,
	VMP_THROTTLE_MEMCG,
	VMP_THROTTLE_ALL,
};

/* Of the unmap and of the young point. */
enum vmp_rmap {
	VMP_RMAP_STOCK,
	VMP_RMAP_BATCH,
};

/* Where writeback=feedback puts what is dirty. */
enum vmp_dirty_gen {
	VMP_YOUNGEST,
	VMP_SECOND_YOUNGEST,
};

/**
 * struct vmp_settings - all that can be set but for the whole machine alone
 * @policy: for each point the index of its policy
 * @max_folios: folios that share a flush
 * @span: whether a group that is not full waits for the next call over the same lruvec
 * @batch: pages of an eviction batch
 * @floor: pages that a pass of scan=budget scans at least
 * @dirty_gen: where writeback=feedback puts dirty folios
 * @kinds: bits of enum vmscan_kind: the folios that unmap=batch is for
 * @unmap_ptes: entries that it unmaps at once, at most
 * @young_ptes: entries that young=batch looks at in one step, at most
 * @unguarded: the guard is off
 * @window: seconds that the guard counts in, and after which an OOM kill is no policy's
 * @stall: ms without a page reclaimed that it takes
 * @wait: ms of a direct reclaim that are not long yet
 * @callback: ms of CPU time that the callbacks of a task may take in a second
 * @clamps: answers of a window that may be beyond what the kernel takes
 * @strict: the first OOM kill is one too many
 */
struct vmp_settings {
	unsigned int policy[VMP_NR_POINTS];
	unsigned int max_folios;
	unsigned int span;
	unsigned int batch;
	unsigned int floor;
	unsigned int dirty_gen;
	unsigned int kinds;
	unsigned int unmap_ptes;
	unsigned int young_ptes;
	unsigned int unguarded;
	unsigned int window;
	unsigned int stall;
	unsigned int wait;
	unsigned int callback;
	unsigned int clamps;
	unsigned int strict;
};

struct vmp_stats;

/* What settings call the first policy of another module at a point, if there is one. */
#define VMP_FIRST_PLUGIN	16
#define VMP_MAX_PLUGINS		8

/**
 * struct vmp_plugin_stats - what a policy of another module has done
 * @answers: how often it was asked
 * @clamps: answers beyond what the kernel takes
 * @ns: CPU time that it took, as of the last tick
 */
struct vmp_plugin_stats {
	u64 answers;
	u64 clamps;
	u64 ns;
};

/**
 * struct vmp_plugin - a policy of another module
 * @policy: the policy
 * @index: what settings call it
 * @stats: what it has done
 * @file: its file in debugfs
 */
struct vmp_plugin {
	const struct vmscan_module_policy *policy;
	unsigned int index;
	struct vmp_plugin_stats __percpu *stats;
	struct dentry *file;
};

/**
 * struct vmp_rule - the settings of a memory cgroup, as a set has them
 * @serial: serial number of its memcg's css, which is never used again; 0 for the machine's
 * @cgroup: id of the cgroup; 0 for the machine's
 * @stats: counts what is decided by it
 * @guard: watches them
 * @stock: none of their policies decides anything
 * @settings: them
 * @plugin: those of their policies that are of other modules, in a set alone
 */
struct vmp_rule {
	u64 serial;
	u64 cgroup;
	struct vmp_stats __percpu *stats;
	struct vmp_guard *guard;
	bool stock;
	struct vmp_settings settings;
	const struct vmp_plugin *plugin[VMP_NR_POINTS];
};

/* A place in the hash table of a set's rules. */
struct vmp_place {
	u64 serial;
	const struct vmp_rule *rule;
};

/**
 * struct vmp_set - all rules, as they are published
 * @ops: what the kernel sees of it
 * @number: 1 for the first, one more for each that followed
 * @bits: its hash table has so many bits; 0 if there is but the machine's rule
 * @places: the table: a rule has the place of its serial number's hash, or the next free one
 * @nr_rules: number of @rules
 * @rules: the rules, the machine's first; behind each is what holds once its guard has tripped
 */
struct vmp_set {
	struct vmscan_policy_ops ops;
	u32 number;
	unsigned int bits;
	struct vmp_place *places;
	unsigned int nr_rules;
	struct vmp_rule rules[] __counted_by(nr_rules);
};

#define to_vmp_set(set)	container_of(set, struct vmp_set, ops)

/* Of the rules of a set, this one or that behind it. */
static inline const struct vmp_rule *vmp_unless_tripped(const struct vmp_rule *rule)
{
	return unlikely(READ_ONCE(rule->guard->tripped)) ? rule + 1 : rule;
}

#ifdef CONFIG_MEMCG
static inline const struct vmp_rule *vmp_rule_of(const struct vmp_set *set, u64 serial)
{
	unsigned int i = hash_64(serial, set->bits);

	while (set->places[i].rule && set->places[i].serial != serial)
		i = (i + 1) & (BIT(set->bits) - 1);

	return set->places[i].rule;
}

/**
 * vmp_find_rule() - which settings hold for a memory cgroup?
 * @set: the set in force
 * @memcg: the memory cgroup, NULL for the machine
 *
 * Return: its own rule, else that of the nearest ancestor which has one, else the machine's; with
 * stock policies if its guard has tripped.
 */
static inline const struct vmp_rule *vmp_find_rule(const struct vmp_set *set,
						   struct mem_cgroup *memcg)
{
	const struct vmp_rule *rule;

	if (likely(!set->bits))
		return vmp_unless_tripped(set->rules);

	for (; memcg; memcg = parent_mem_cgroup(memcg)) {
		rule = vmp_rule_of(set, memcg->css.serial_nr);
		if (rule)
			return vmp_unless_tripped(rule);
	}

	return vmp_unless_tripped(set->rules);
}
#else
static inline const struct vmp_rule *vmp_find_rule(const struct vmp_set *set,
						   struct mem_cgroup *memcg)
{
	return vmp_unless_tripped(set->rules);
}
#endif

/* The same, of the set that a context leads to. */
#define vmp_rule(context) \
	({ \
		typeof(context) context_ = (context); \
		vmp_find_rule(to_vmp_set(context_->ops), context_->memcg); \
	})

#endif /* _VMP_SETTINGS_H */
