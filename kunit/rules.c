// SPDX-License-Identifier: GPL-2.0
/* Whose settings a decision goes by, and that stock is the answer where none are set. */
#include <kunit/test.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/memcontrol.h>
#include <linux/percpu.h>
#include <linux/swap.h>

#include "../module/internal.h"

/*
 * The memory cgroups:
 *
 *	ROOT
 *	├── MAX		settings: as much as each point can
 *	│   ├── BELOW
 *	│   └── STOCK	settings: stock
 *	│       └── DEEP
 *	└── OTHER
 */
enum { ROOT, MAX, BELOW, STOCK, DEEP, OTHER, NR_MEMCGS };

static const int parents[NR_MEMCGS] = { -1, ROOT, MAX, MAX, STOCK, ROOT };
/* Their names, and whose settings hold. */
static const char *const names[NR_MEMCGS] = { "root", "max", "below", "stock", "deep", "other" };
static const int rulers[NR_MEMCGS] = { ROOT, MAX, MAX, STOCK, STOCK, ROOT };

#define FOLIOS	7	/* max_folios of MAX */

struct rules {
	struct list_head entries;
	struct vmp_entry entry[NR_MEMCGS];
	struct mem_cgroup *memcg[NR_MEMCGS];
	struct vmp_set *set;
};

static unsigned int profile(const char *name)
{
	return match_string(vmp_profile_names, vmp_nr_profiles, name);
}

static void add_entry(struct kunit *test, struct rules *rules, unsigned int i, const char *policies)
{
	struct vmp_rule *rule = &rules->entry[i].rule;

	rule->serial = i == ROOT ? 0 : rules->memcg[i]->css.serial_nr;
	rule->cgroup = i == ROOT ? 0 : 100 + i;
	rule->stats = alloc_percpu(struct vmp_stats);
	KUNIT_ASSERT_TRUE(test, !!rule->stats);
	rule->settings = (struct vmp_settings) {
		.max_folios = FOLIOS,
		.batch = 64,
		.kinds = BIT(VMSCAN_ANON),
		.unmap_ptes = 5,
		.young_ptes = 6,
	};
	vmp_set_profile(&rule->settings, profile(policies), 0);
	list_add_tail(&rules->entry[i].list, &rules->entries);
}

static int rules_init(struct kunit *test)
{
	struct rules *rules = kunit_kzalloc(test, sizeof(*rules), GFP_KERNEL);
	struct vmp_set *set;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, rules);
	test->priv = rules;
	INIT_LIST_HEAD(&rules->entries);
	for (i = 0; i < NR_MEMCGS; i++) {
		rules->memcg[i] = kunit_kzalloc(test, sizeof(struct mem_cgroup), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, rules->memcg[i]);
		rules->memcg[i]->css.serial_nr = 1000 + i;
		if (parents[i] >= 0)
			rules->memcg[i]->css.parent = &rules->memcg[parents[i]]->css;
	}
	add_entry(test, rules, ROOT, "stock");
	add_entry(test, rules, MAX, "max");
	add_entry(test, rules, STOCK, "stock");
	set = vmp_make_set(&rules->entries, 1);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, set);
	rules->set = set;

	return 0;
}

static void rules_exit(struct kunit *test)
{
	struct rules *rules = test->priv;
	unsigned int i;

	if (!rules)
		return;
	vmp_free_set(rules->set);
	for (i = 0; i < NR_MEMCGS; i++)
		free_percpu(rules->entry[i].rule.stats);
}

static void find_test(struct kunit *test)
{
	const struct rules *rules = test->priv;
	unsigned int i;

	for (i = 0; i < NR_MEMCGS; i++)
		KUNIT_EXPECT_EQ_MSG(test, vmp_find_rule(rules->set, rules->memcg[i])->cgroup,
				    rules->entry[rulers[i]].rule.cgroup, "%s", names[i]);
	KUNIT_EXPECT_EQ(test, vmp_find_rule(rules->set, NULL)->cgroup, 0);
}

/* Many, so that places in the table are taken; each third has no settings. */
static void many_test(struct kunit *test)
{
	enum { NR = 1000 };
	struct rules *rules = test->priv;
	struct vmp_entry *entry = kunit_kcalloc(test, NR, sizeof(*entry), GFP_KERNEL);
	struct mem_cgroup *memcg = rules->memcg[DEEP];
	unsigned int i, wrong = 0;
	struct vmp_set *set;

	KUNIT_ASSERT_NOT_NULL(test, entry);
	for (i = 0; i < NR; i++) {
		entry[i].rule.serial = 5000 + i;
		entry[i].rule.cgroup = i;
		if (i % 3)
			list_add_tail(&entry[i].list, &rules->entries);
	}
	set = vmp_make_set(&rules->entries, 2);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, set);
	for (i = 0; i < NR; i++) {
		memcg->css.serial_nr = 5000 + i;
		wrong += vmp_find_rule(set, memcg)->cgroup !=
			 (i % 3 ? i : rules->entry[STOCK].rule.cgroup);
	}
	KUNIT_EXPECT_EQ(test, wrong, 0);
	vmp_free_set(set);
	memcg->css.serial_nr = 1000 + DEEP;
}

/* Without settings of cgroups there is no table to look anything up in. */
static void machine_test(struct kunit *test)
{
	struct rules *rules = test->priv;
	struct vmp_set *set;

	list_del_init(&rules->entry[MAX].list);
	list_del_init(&rules->entry[STOCK].list);
	set = vmp_make_set(&rules->entries, 2);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, set);
	KUNIT_EXPECT_NULL(test, set->places);
	KUNIT_EXPECT_PTR_EQ(test, vmp_find_rule(set, rules->memcg[MAX]),
			    (const struct vmp_rule *)set->rules);
	KUNIT_EXPECT_NULL(test, set->ops.flush_group);
	KUNIT_EXPECT_NULL(test, set->ops.next_step);
	KUNIT_EXPECT_NULL(test, set->ops.evict);
	KUNIT_EXPECT_NULL(test, set->ops.throttle);
	KUNIT_EXPECT_NULL(test, set->ops.unmap_ptes);
	KUNIT_EXPECT_NULL(test, set->ops.young_ptes);
	/* What another set let wait is traced whole. */
	KUNIT_EXPECT_NOT_NULL(test, set->ops.flush_begin);
	KUNIT_EXPECT_NOT_NULL(test, set->ops.flush_end);
	vmp_free_set(set);
}

/* What each point answers for a memory cgroup; of the pass, where it ends. */
static void ask(const struct rules *rules, struct mem_cgroup *memcg, u64 answers[VMP_NR_POINTS])
{
	const struct vmscan_policy_ops *ops = &rules->set->ops;
	const struct vmscan_call call = { .ops = ops, .memcg = memcg };
	const struct vmscan_pass pass = {
		.ops = ops, .memcg = memcg, .nr_gens = 4, .enough = true, .begin_size = 100,
		.unprotected = 100,
	};
	const struct vmscan_evict evict = { .ops = ops, .memcg = memcg };
	const struct reclaim_stat stat = { .nr_dirty = 64, .nr_congested = 64 };
	const struct vmscan_round round = {
		.ops = ops, .memcg = memcg, .nr_taken = 64, .stat = &stat,
	};
	const struct vmscan_walk walk = { .ops = ops, .memcg = memcg, .kind = VMSCAN_ANON };
	struct vmscan_note note = {};

	answers[VMP_POINT_FLUSH] = ops->flush_group(&call);
	answers[VMP_POINT_SCAN] = ops->next_step(&pass, &note);
	answers[VMP_POINT_AGING] = 0;
	answers[VMP_POINT_WRITEBACK] = ops->evict(&evict);
	answers[VMP_POINT_THROTTLE] = ops->throttle(&round);
	answers[VMP_POINT_UNMAP] = ops->unmap_ptes(&walk);
	answers[VMP_POINT_YOUNG] = ops->young_ptes(&walk);
}

static void ask_test(struct kunit *test)
{
	static const u64 wanted[VMP_NR_POINTS] = {
		[VMP_POINT_FLUSH] = FOLIOS,
		[VMP_POINT_SCAN] = VMSCAN_STEP(VMSCAN_END, 0, 0),
		[VMP_POINT_WRITEBACK] = true,
		[VMP_POINT_THROTTLE] = VMSCAN_SLEEP_WRITEBACK,
		[VMP_POINT_UNMAP] = 5,
		[VMP_POINT_YOUNG] = 6,
	};
	const struct rules *rules = test->priv;
	u64 got[VMP_NR_POINTS];
	unsigned int i, point;

	for (i = 0; i < NR_MEMCGS; i++) {
		ask(rules, rules->memcg[i], got);
		for (point = 0; point < VMP_NR_POINTS; point++)
			KUNIT_EXPECT_EQ_MSG(test, got[point],
					    rulers[i] == MAX ? wanted[point] : 0,
					    "%s, point %u", names[i], point);
	}
}

/* Batches of one memory cgroup are taken for another, whose throttle decides ... */
static void target_test(struct kunit *test)
{
	static const struct {
		int memcg, target;	/* ROOT as a target: the machine */
		unsigned int want;
	} cases[] = {
		/* ... unless its own is stock */
		{ OTHER, MAX, 0 },
		{ STOCK, MAX, 0 },
		{ STOCK, ROOT, 0 },
		{ BELOW, MAX, VMSCAN_COUNT | VMSCAN_WAKE_FLUSHERS },
		{ BELOW, ROOT, VMSCAN_WAKE_FLUSHERS },
		{ BELOW, STOCK, VMSCAN_WAKE_FLUSHERS },
	};
	const struct reclaim_stat stat = { .nr_dirty = 64, .nr_unqueued_dirty = 64 };
	const struct rules *rules = test->priv;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct vmscan_evict evict = {
			.ops = &rules->set->ops,
			.memcg = rules->memcg[cases[i].memcg],
		};
		struct vmscan_evicted evicted = {
			.ops = &rules->set->ops,
			.memcg = rules->memcg[cases[i].memcg],
			.writers_throttled = true,
			.nr_taken = 64,
			.stat = &stat,
		};

		if (cases[i].target != ROOT)
			evict.target = rules->memcg[cases[i].target];
		evicted.target = evict.target;
		KUNIT_EXPECT_EQ_MSG(test, rules->set->ops.evict(&evict), !!cases[i].want,
				    "case %u", i);
		if (cases[i].want)
			KUNIT_EXPECT_EQ_MSG(test, rules->set->ops.evicted(&evicted),
					    cases[i].want, "case %u", i);
	}
}

/* What is decided is counted for whom the settings are. */
static void count_test(struct kunit *test)
{
	const struct rules *rules = test->priv;
	unsigned int i, cpu;

	for (i = 0; i < NR_MEMCGS; i++) {
		struct vmscan_note note = {};
		const struct vmscan_group group = {
			.ops = &rules->set->ops, .memcg = rules->memcg[i], .nr_folios = 1,
		};

		rules->set->ops.flush_end(&group, &note);
	}
	for (i = 0; i < NR_MEMCGS; i++) {
		u64 sum = 0;

		if (!rules->entry[i].rule.stats)
			continue;
		for_each_possible_cpu(cpu)
			sum += per_cpu_ptr(rules->entry[i].rule.stats,
					   cpu)->flush[VMP_FLUSH_BATCHES];
		KUNIT_EXPECT_EQ_MSG(test, sum, 2, "%s", names[i]);
	}
}

/* A pass that is over is counted by what its last step has settled. */
static void ended_test(struct kunit *test)
{
	struct rules *rules = test->priv;
	struct vmp_rule *rule = &rules->entry[MAX].rule;
	struct vmp_pass_note known = { .budget = 98, .scan = VMP_SCAN_6_12 };
	struct vmscan_pass pass = {
		.memcg = rules->memcg[MAX], .last = VMSCAN_EVICT, .progress = true,
		.nr_batches = 1, .nr_moved = 611, .nr_gens = 3, .nr_pages = { 4000, 4000, 4000 },
	};
	u64 granted = 0, ends = 0, scanned = 0;
	struct vmscan_note note = {};
	const struct vmp_stats *stats;
	struct vmp_set *set;
	unsigned int cpu;

	rule->settings.policy[VMP_POINT_SCAN] = VMP_SCAN_6_12;
	set = vmp_make_set(&rules->entries, 2);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, set);
	pass.ops = &set->ops;
	memcpy(&note, &known, sizeof(known));
	scoped_guard(rcu) {
		pass.last = VMSCAN_STEP_ACTION(set->ops.next_step(&pass, &note));
		set->ops.pass_ended(&pass, &note);
	}
	KUNIT_EXPECT_EQ(test, pass.last, VMSCAN_END);
	for_each_possible_cpu(cpu) {
		stats = per_cpu_ptr(rule->stats, cpu);
		granted += stats->scan[VMP_SCAN_GRANTED];
		scanned += stats->scan[VMP_SCAN_SCANNED];
		ends += stats->scan[VMP_SCAN_ENDS + VMP_END_BUDGET];
	}
	KUNIT_EXPECT_EQ(test, granted, 98);
	KUNIT_EXPECT_EQ(test, scanned, 611);
	KUNIT_EXPECT_EQ(test, ends, 1);
	vmp_free_set(set);
}

/* How long a search takes: in an emulated guest that counts them, in instructions. */
static const struct cost_case {
	unsigned int nr_entries;
	unsigned int depth;
	bool own;	/* the cgroup has settings, else no one above it has, either */
} cost_cases[] = {
	{ 0, 8, false },
	{ 1, 1, true }, { 1, 1, false }, { 1, 4, false }, { 1, 8, false },
	{ 100, 1, true }, { 100, 1, false }, { 100, 4, false }, { 100, 8, false },
	{ 1000, 1, true }, { 1000, 1, false }, { 1000, 4, false }, { 1000, 8, false },
};

static void cost_desc(const struct cost_case *c, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%u cgroups with settings, %s, depth %u",
		 c->nr_entries, c->own ? "its own" : "none of its own", c->depth);
}

KUNIT_ARRAY_PARAM(cost, cost_cases, cost_desc);

static void cost_test(struct kunit *test)
{
	enum { CALLS = 100000, MOST = 8 };
	const struct cost_case *c = test->param_value;
	struct rules *rules = test->priv;
	struct vmp_entry *entry = kunit_kcalloc(test, c->nr_entries + 1, sizeof(*entry),
						GFP_KERNEL);
	struct mem_cgroup *memcg[MOST + 1] = {};
	const struct vmp_rule *rule;
	struct vmp_set *set;
	unsigned int i;
	u64 begin, took;

	KUNIT_ASSERT_NOT_NULL(test, entry);
	list_del_init(&rules->entry[MAX].list);
	list_del_init(&rules->entry[STOCK].list);
	for (i = 0; i <= c->depth; i++) {
		memcg[i] = kunit_kzalloc(test, sizeof(*memcg[i]), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, memcg[i]);
		memcg[i]->css.serial_nr = 3000 + i;
		if (i)
			memcg[i]->css.parent = &memcg[i - 1]->css;
	}
	for (i = 0; i < c->nr_entries; i++) {
		entry[i].rule.serial = c->own && !i ? 3000 + c->depth : 5000 + 7 * i;
		entry[i].rule.cgroup = 1 + i;
		list_add_tail(&entry[i].list, &rules->entries);
	}
	set = vmp_make_set(&rules->entries, 2);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, set);
	begin = ktime_get_ns();
	for (i = 0; i < CALLS; i++) {
		rule = vmp_find_rule(READ_ONCE(set), READ_ONCE(memcg[c->depth]));
		OPTIMIZER_HIDE_VAR(rule);
	}
	took = ktime_get_ns() - begin;
	KUNIT_EXPECT_EQ(test, rule->cgroup, c->own ? 1 : 0);
	vmp_free_set(set);
	kunit_info(test, "%llu.%02llu ns a search\n", took / CALLS, took % CALLS * 100 / CALLS);
}

static struct kunit_case rules_cases[] = {
	KUNIT_CASE(find_test),
	KUNIT_CASE(many_test),
	KUNIT_CASE(machine_test),
	KUNIT_CASE(ask_test),
	KUNIT_CASE(target_test),
	KUNIT_CASE(count_test),
	KUNIT_CASE(ended_test),
	KUNIT_CASE_PARAM(cost_test, cost_gen_params),
	{}
};

static struct kunit_suite rules_suite = {
	.name = "vmscan_policy_rules",
	.init = rules_init,
	.exit = rules_exit,
	.test_cases = rules_cases,
};

kunit_test_suite(rules_suite);
