// SPDX-License-Identifier: GPL-2.0
/* When the guard trips, and that a tripped one means stock for its own settings alone. */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/memcontrol.h>

#include "../module/internal.h"
#include "../module/watch.h"

/*
 * The probabilities are those of the binomial distribution, worked out with fractions: 1 in so
 * many. In brackets is what is asked for after so many kills.
 */
static const struct chance_case {
	struct vmp_kills now, before;
	bool beyond;
} chance_cases[] = {
	{ { 1, 60000 }, { 0, 600000 }, false },		/* 11 (2,000) */
	{ { 3, 60000 }, { 0, 600000 }, false },		/* 1,331 (6,000) */
	{ { 4, 60000 }, { 0, 600000 }, true },		/* 14,641 (12,000) */
	{ { 1, 1000 }, { 0, 1998000 }, false },		/* 1,999 (2,000) */
	{ { 1, 1000 }, { 0, 2001000 }, true },		/* 2,002 (2,000) */
	{ { 18, 10000 }, { 1, 10000 }, false },		/* 26,214 (30,000) */
	{ { 19, 10000 }, { 1, 10000 }, true },		/* 49,932 (30,000) */
	{ { 5, 10000 }, { 5, 10000 }, false },
	{ { 11, 60000 }, { 20, 600000 }, false },	/* 18,977 (20,000) */
	{ { 12, 60000 }, { 20, 600000 }, true },	/* 79,412 (20,000) */
	{ { 414, 600000 }, { 300, 600000 }, false },	/* 88,419 (90,000) */
	{ { 415, 600000 }, { 300, 600000 }, true },	/* 103,225 (90,000) */
	{ { 3, 600000 }, { 0, 60000 }, false },
	{ { 702, 3600000 }, { 0, 60000 }, false },	/* 109,488 (110,000) */
	{ { 703, 3600000 }, { 0, 60000 }, true },	/* 111,313 (110,000) */
	/* for years, in ms beyond 32 bits */
	{ { 1, 1 }, { 0, 5184000000 }, true },
	{ { 1, 5184000000 }, { 0, 5184000000 }, false },
	{ { 15, 5184000000 }, { 0, 5184000000 }, true },	/* 32,768 (20,000) */
	{ { 14, 5184000000 }, { 0, 5184000000 }, false },	/* 16,384 (20,000) */
	/* more than are looked at */
	{ { 100, 600000 }, { 1000000, 6000000000 }, false },
	{ { 200, 600000 }, { 1000000, 6000000000 }, true },
	{ { 3000, 361000000 }, { 1000, 360000000 }, true },
	/* none of the time */
	{ { 1, 0 }, { 0, 0 }, false },
	{ { 1, 0 }, { 0, 100000 }, true },
};

static void chance_desc(const struct chance_case *c, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%llu in %llu ms after %llu in %llu ms", c->now.nr,
		 c->now.ms, c->before.nr, c->before.ms);
}

KUNIT_ARRAY_PARAM(chance, chance_cases, chance_desc);

static void chance_test(struct kunit *test)
{
	const struct chance_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, vmp_guard_beyond_chance(&c->now, &c->before), c->beyond);
}

static void kills_test(struct kunit *test)
{
	const struct vmp_kills one = { 1, 60000 }, four = { 4, 60000 };
	const struct vmp_kills longer = { 0, 600000 }, window = { 0, 60000 }, less = { 0, 59999 };
	struct vmp_settings settings = { .window = 60 };

	KUNIT_EXPECT_FALSE(test, vmp_guard_kills(&one, &longer, &settings));
	KUNIT_EXPECT_TRUE(test, vmp_guard_kills(&four, &longer, &settings));
	/* as good as no time before */
	KUNIT_EXPECT_TRUE(test, vmp_guard_kills(&one, &less, &settings));
	KUNIT_EXPECT_FALSE(test, vmp_guard_kills(&one, &window, &settings));
	settings.strict = 1;
	KUNIT_EXPECT_TRUE(test, vmp_guard_kills(&one, &longer, &settings));
}

static void stalls_test(struct kunit *test)
{
	struct vmp_stall stall = {};

	KUNIT_EXPECT_EQ(test, vmp_guard_stalls(&stall, HZ), 0);
	KUNIT_EXPECT_EQ(test, vmp_guard_stalls(&stall, 2 * HZ), HZ);
	KUNIT_EXPECT_EQ(test, vmp_guard_stalls(&stall, 3 * HZ), 2 * HZ);
	/* A page was reclaimed. */
	stall.began = 0;
	KUNIT_EXPECT_EQ(test, vmp_guard_stalls(&stall, 3 * HZ + 1), 0);
	KUNIT_EXPECT_EQ(test, vmp_guard_stalls(&stall, 4 * HZ + 1), HZ);
	/* Passes don't go on. */
	KUNIT_EXPECT_EQ(test, vmp_guard_stalls(&stall, 5 * HZ + 2), 0);
	KUNIT_EXPECT_EQ(test, vmp_guard_stalls(&stall, 6 * HZ + 2), HZ);
}

static void window_test(struct kunit *test)
{
	struct vmp_window window = { .began = 5, .clamps = 3 };

	vmp_guard_window(&window, 2004, 2);
	KUNIT_EXPECT_EQ(test, window.clamps, 3);
	vmp_guard_window(&window, 2005, 2);
	KUNIT_EXPECT_EQ(test, window.clamps, 0);
	KUNIT_EXPECT_EQ(test, window.began, 2005);
}

static void waits_test(struct kunit *test)
{
	struct vmp_window window = { .waits = 7, .slow = 7 };

	KUNIT_EXPECT_FALSE(test, vmp_guard_waits(&window));
	window.waits = 8;
	window.slow = 2;
	KUNIT_EXPECT_FALSE(test, vmp_guard_waits(&window));
	window.slow = 3;
	KUNIT_EXPECT_TRUE(test, vmp_guard_waits(&window));
	window.waits = 12;
	KUNIT_EXPECT_FALSE(test, vmp_guard_waits(&window));
}

/* A tick or two that a host has made long are nothing yet. */
static void slow_test(struct kunit *test)
{
	const u64 ms = NSEC_PER_MSEC;

	KUNIT_EXPECT_FALSE(test, vmp_guard_slow(112 * ms, 2, 100));
	KUNIT_EXPECT_FALSE(test, vmp_guard_slow(1000 * ms, 7, 100));
	KUNIT_EXPECT_TRUE(test, vmp_guard_slow(1001 * ms, 1, 100));
	KUNIT_EXPECT_FALSE(test, vmp_guard_slow(100 * ms, 8, 100));
	KUNIT_EXPECT_TRUE(test, vmp_guard_slow(101 * ms, 8, 100));
	KUNIT_EXPECT_FALSE(test, vmp_guard_slow(36000000 * ms, 1, 3600000));
}

static void guarded(struct vmp_entry *entry)
{
	vmp_guard_init_entry(entry);
	entry->rule.settings = vmp_default_settings(0);
	entry->rule.guard = &entry->guard;
}

/* What the callbacks of one rule take is not held against another's, in the same task. */
static void took_test(struct kunit *test)
{
	struct vmp_entry *entry = kunit_kcalloc(test, 2, sizeof(*entry), GFP_KERNEL);
	struct vmp_watch watch = { .at = jiffies - HZ / 2 };
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, entry);
	for (i = 0; i < 2; i++)
		guarded(&entry[i]);
	entry[0].rule.settings.unguarded = 1;
	watch.rule = &entry[0].rule;
	for (i = 0; i < 10; i++)
		vmp_guard_took(&watch, 60 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, entry[0].guard.tripped, 0);
	watch.rule = &entry[1].rule;
	vmp_guard_took(&watch, 60 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, entry[1].guard.tripped, 0);
	/* Nor is it once the guard has forgotten. */
	entry[0].rule.settings.unguarded = 0;
	watch.rule = &entry[0].rule;
	vmp_guard_clear(&entry[0].guard);
	vmp_guard_took(&watch, 60 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, entry[0].guard.tripped, 0);
}

/* A second has three of these, or fewer, and each is far from the whole of it. */
static void slow_ones_test(struct kunit *test)
{
	struct vmp_entry *entry = kunit_kzalloc(test, sizeof(*entry), GFP_KERNEL);
	struct vmp_watch watch = {};
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, entry);
	guarded(entry);
	watch.rule = &entry->rule;
	/* On a busy machine more than a second may go by between two: then it takes more. */
	for (i = 0; i < 100 && !READ_ONCE(entry->guard.tripped); i++) {
		msleep(350);
		watch.at = jiffies - HZ / 4;
		scoped_guard(rcu)
			vmp_guard_took(&watch, 200 * NSEC_PER_MSEC);
	}
	KUNIT_EXPECT_EQ(test, entry->guard.tripped, 1);
	KUNIT_EXPECT_GE(test, i, 8);
}

static void stock_test(struct kunit *test)
{
	struct vmp_settings settings = vmp_default_settings(0);
	unsigned int point;

	KUNIT_EXPECT_TRUE(test, vmp_is_stock(&settings, 0));
	settings.policy[VMP_POINT_AGING] = VMP_AGING_STOP;
	KUNIT_EXPECT_TRUE(test, vmp_is_stock(&settings, 0));
	KUNIT_EXPECT_FALSE(test, vmp_is_stock(&settings, VMSCAN_TRAIT_BUDGET));
	for (point = 0; point < VMP_NR_POINTS; point++) {
		settings = vmp_default_settings(0);
		if (point == VMP_POINT_AGING)
			continue;
		settings.policy[point] = 1;
		KUNIT_EXPECT_FALSE_MSG(test, vmp_is_stock(&settings, 0), "point %u", point);
	}
}

/* The machine, and a memory cgroup with settings of its own. */
static void tripped_test(struct kunit *test)
{
	struct vmp_entry *entry = kunit_kcalloc(test, 2, sizeof(*entry), GFP_KERNEL);
	struct mem_cgroup *memcg = NULL;
	unsigned int i, other;
	struct vmp_set *set;
	LIST_HEAD(entries);

	KUNIT_ASSERT_NOT_NULL(test, entry);
	if (!IS_ENABLED(CONFIG_MEMCG))
		kunit_skip(test, "no memory cgroups");
#ifdef CONFIG_MEMCG
	memcg = kunit_kzalloc(test, sizeof(*memcg), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, memcg);
	memcg->css.serial_nr = 7;
#endif
	entry[1].rule.serial = 7;
	entry[1].rule.cgroup = 1;
	for (i = 0; i < 2; i++) {
		entry[i].rule.settings.policy[VMP_POINT_FLUSH] = VMP_FLUSH_BATCH;
		entry[i].rule.settings.max_folios = 5 + i;
		list_add_tail(&entry[i].list, &entries);
	}
	set = vmp_make_set(&entries, 1);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, set);
	for (i = 0; i < 2; i++) {
		struct vmscan_call call = { .ops = &set->ops, .memcg = i ? memcg : NULL };
		struct vmscan_call next = { .ops = &set->ops, .memcg = i ? NULL : memcg };

		other = 5 + !i;
		KUNIT_EXPECT_EQ(test, set->ops.flush_group(&call), 5 + i);
		entry[i].guard.tripped = 1;
		KUNIT_EXPECT_EQ(test, set->ops.flush_group(&call), 0);
		KUNIT_EXPECT_EQ(test, vmp_find_rule(set, call.memcg)->cgroup, i);
		KUNIT_EXPECT_EQ(test, set->ops.flush_group(&next), other);
		entry[i].guard.tripped = 0;
		KUNIT_EXPECT_EQ(test, set->ops.flush_group(&call), 5 + i);
	}
	vmp_free_set(set);
}

/* The machine's guard goes on from when the bypass is set or cleared. */
static void bypass_test(struct kunit *test)
{
	struct vmp_entry *entry = kunit_kzalloc(test, sizeof(*entry), GFP_KERNEL);
	struct vmp_guard *guard, *machine;
	unsigned int i;
	u64 before;

	KUNIT_ASSERT_NOT_NULL(test, entry);
	guarded(entry);
	guard = &entry->guard;
	guard->since = 0;
	for (i = 0; i < 4; i++) {
		guard->in_force = i < 2;
		vmscan_policy_set_bypass(i % 2);
		scoped_guard(raw_spinlock, &guard->lock)
			vmp_guard_pass_time(guard, 1000 * (i + 1));
		KUNIT_EXPECT_EQ(test, guard->since, 1000 * (i + 1));
		KUNIT_EXPECT_EQ(test, guard->now.ms, 1000);
		KUNIT_EXPECT_EQ(test, guard->before.ms, i < 2 ? 0 : 1000);
	}
	vmscan_policy_set_bypass(false);

	machine = &list_first_entry(&vmp_entries, struct vmp_entry, list)->guard;
	before = machine->since;
	msleep(20);
	vmp_guard_before_bypass();
	KUNIT_EXPECT_GT(test, machine->since, before);
}

static struct kunit_case guard_cases[] = {
	KUNIT_CASE_PARAM(chance_test, chance_gen_params),
	KUNIT_CASE(kills_test),
	KUNIT_CASE(stalls_test),
	KUNIT_CASE(window_test),
	KUNIT_CASE(waits_test),
	KUNIT_CASE(slow_test),
	KUNIT_CASE(took_test),
	KUNIT_CASE_SLOW(slow_ones_test),
	KUNIT_CASE(stock_test),
	KUNIT_CASE(tripped_test),
	KUNIT_CASE(bypass_test),
	{}
};

static struct kunit_suite guard_suite = {
	.name = "vmscan_policy_guard",
	.test_cases = guard_cases,
};

kunit_test_suite(guard_suite);
