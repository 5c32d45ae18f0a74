// SPDX-License-Identifier: GPL-2.0
/* Which batches count for throttling, and what follows a round over a node. */
#include <kunit/test.h>
#include <linux/limits.h>
#include <linux/swap.h>

#include "../module/internal.h"

struct accounts_case {
	const char *name;
	enum vmp_throttle throttle;
	bool root_reclaim;
	bool want;
};

static const struct accounts_case accounts_cases[] = {
	{ "stock, memcg reclaim", VMP_THROTTLE_STOCK, false, false },
	{ "stock, root reclaim", VMP_THROTTLE_STOCK, true, false },
	{ "memcg, memcg reclaim", VMP_THROTTLE_MEMCG, false, true },
	{ "memcg, root reclaim", VMP_THROTTLE_MEMCG, true, false },
	{ "all, memcg reclaim", VMP_THROTTLE_ALL, false, true },
	{ "all, root reclaim", VMP_THROTTLE_ALL, true, true },
};

static void accounts_desc(const struct accounts_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(accounts, accounts_cases, accounts_desc);

static void accounts_test(struct kunit *test)
{
	const struct accounts_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test,
			vmp_throttle_accounts(c->throttle, c->root_reclaim),
			c->want);
}

/* The batches of the round; a page that is congested is dirty, too. */
#define MET(pages, ...) \
	.nr_taken = pages, .stat = &(const struct reclaim_stat) { __VA_ARGS__ }
#define RECLAIMED(pages) .nr_reclaimed = pages
#define MARKED .congested = true

struct kswapd_case {
	const char *name;
	struct vmscan_round round;
	/* pages taken, and the most that have been pending */
	struct vmp_fruitless fruitless;
	unsigned int want;
};

#define KSWAPD(...) \
	{ .kswapd = true, .root_reclaim = true, __VA_ARGS__ }
#define FIRST .priority = DEF_PRIORITY
#define LAST .priority = 0
#define PENDING(pages) .nr_write_pending = pages

/* Half is clean, half is written, for the second time but for a page. */
#define HALF_IMMEDIATE \
	MET(64, .nr_dirty = 32, .nr_congested = 31, .nr_writeback = 1, .nr_immediate = 31)
#define ALL_IMMEDIATE \
	MET(64, .nr_dirty = 64, .nr_congested = 64, .nr_immediate = 64)

#define NOTHING 0
#define WRITEBACK VMSCAN_MARK_WRITEBACK
#define CONGESTED VMSCAN_MARK_CONGESTED
#define BOTH (WRITEBACK | CONGESTED)
#define SLEEP VMSCAN_SLEEP_WRITEBACK
#define CONGESTED_SLEEP (CONGESTED | SLEEP)

static const struct kswapd_case kswapd_cases[] = {
	{ "nothing taken", KSWAPD(FIRST, MET(0)), { 0, 0 }, NOTHING },
	{ "nothing taken, much of it before",
	  KSWAPD(LAST, MET(0)), { 1000, 999 }, NOTHING },
	{ "all clean",
	  KSWAPD(FIRST, MET(64), RECLAIMED(64)), { 0, 0 }, NOTHING },
	{ "all unqueued",
	  KSWAPD(FIRST, MET(64, .nr_dirty = 64)), { 1000, 999 }, NOTHING },
	/* the mark for writeback */
	{ "all under writeback",
	  KSWAPD(FIRST, MET(64, .nr_dirty = 64, .nr_writeback = 64)),
	  { 64, 999 }, WRITEBACK },
	{ "all under writeback, a single page",
	  KSWAPD(FIRST, MET(1, .nr_dirty = 1, .nr_writeback = 1)),
	  { 1, 999 }, WRITEBACK },
	{ "all under writeback but a clean page",
	  KSWAPD(FIRST, MET(64, .nr_dirty = 63, .nr_writeback = 63)),
	  { 64, 999 }, NOTHING },
	{ "all under writeback but an unqueued page",
	  KSWAPD(FIRST, MET(64, .nr_dirty = 64, .nr_writeback = 63)),
	  { 64, 999 }, NOTHING },
	{ "all under writeback, slab reclaimed",
	  KSWAPD(FIRST, MET(64, .nr_dirty = 64, .nr_writeback = 64), RECLAIMED(9)),
	  { 0, 0 }, WRITEBACK },
	/* the mark for congestion */
	{ "all that is dirty congested",
	  KSWAPD(FIRST, MET(64, .nr_dirty = 32, .nr_congested = 32, .nr_writeback = 32),
		 RECLAIMED(32)),
	  { 0, 0 }, CONGESTED },
	{ "all that is dirty congested, a single page",
	  KSWAPD(FIRST, MET(64, .nr_dirty = 1, .nr_congested = 1, .nr_writeback = 1),
		 RECLAIMED(63)),
	  { 0, 0 }, CONGESTED },
	{ "all that is dirty congested but one page",
	  KSWAPD(FIRST, MET(64, .nr_dirty = 32, .nr_congested = 31, .nr_writeback = 32),
		 RECLAIMED(32)),
	  { 0, 0 }, NOTHING },
	{ "all congested, node not marked yet",
	  KSWAPD(FIRST, MET(64, .nr_dirty = 64, .nr_congested = 64, .nr_writeback = 64)),
	  { 64, 999 }, BOTH },
	{ "all congested, node not marked yet, slab reclaimed",
	  KSWAPD(FIRST, MET(64, .nr_dirty = 64, .nr_congested = 64, .nr_writeback = 64),
		 RECLAIMED(9)),
	  { 0, 0 }, BOTH },
	{ "all congested, one page immediate",
	  KSWAPD(FIRST, MET(64, .nr_dirty = 64, .nr_congested = 64, .nr_writeback = 63,
			    .nr_immediate = 1)),
	  { 64, 999 }, CONGESTED },
	/* the sleep */
	{ "immediate, fruitless for a page less than was pending",
	  KSWAPD(FIRST, HALF_IMMEDIATE), { 999, 1000 }, NOTHING },
	{ "immediate, fruitless for as many pages as were pending",
	  KSWAPD(FIRST, HALF_IMMEDIATE), { 1000, 1000 }, SLEEP },
	{ "immediate, fruitless for a page more than was pending",
	  KSWAPD(FIRST, HALF_IMMEDIATE), { 1001, 1000 }, SLEEP },
	{ "immediate, fruitless for very long",
	  KSWAPD(FIRST, HALF_IMMEDIATE), { ULONG_MAX, 1000 }, SLEEP },
	{ "immediate, fruitless, nothing was pending",
	  KSWAPD(FIRST, HALF_IMMEDIATE), { 64, 0 }, NOTHING },
	/* what is pending now, 0 in all other cases, does not count */
	{ "immediate, fruitless for more than is pending, less than was",
	  KSWAPD(FIRST, HALF_IMMEDIATE, PENDING(500)),
	  { 999, 1000 }, NOTHING },
	{ "immediate, fruitless for less than is pending, as much as was",
	  KSWAPD(FIRST, HALF_IMMEDIATE, PENDING(2000)),
	  { 1000, 1000 }, SLEEP },
	{ "one page immediate, fruitless",
	  KSWAPD(FIRST, MET(64, .nr_dirty = 32, .nr_congested = 1, .nr_writeback = 31,
			    .nr_immediate = 1)),
	  { 1000, 1000 }, SLEEP },
	{ "none immediate, fruitless",
	  KSWAPD(FIRST, MET(64, .nr_dirty = 32, .nr_congested = 31, .nr_writeback = 32)),
	  { 1000, 1000 }, NOTHING },
	{ "immediate, but a page reclaimed",
	  KSWAPD(FIRST, HALF_IMMEDIATE, RECLAIMED(1)),
	  { 1000, 1000 }, NOTHING },
	{ "all immediate, fruitless",
	  KSWAPD(FIRST, ALL_IMMEDIATE), { 1000, 1000 }, CONGESTED_SLEEP },
	{ "all immediate, not fruitless for long",
	  KSWAPD(FIRST, ALL_IMMEDIATE), { 64, 1000 }, CONGESTED },
	{ "all immediate, but a page reclaimed",
	  KSWAPD(FIRST, ALL_IMMEDIATE, RECLAIMED(1)),
	  { 1000, 1000 }, CONGESTED },
	/* swap: not dirty for reclaim, but under writeback */
	{ "all under writeback to swap",
	  KSWAPD(FIRST, MET(64, .nr_writeback = 64)),
	  { 64, 999 }, WRITEBACK },
	{ "all immediate, to swap, fruitless",
	  KSWAPD(FIRST, MET(64, .nr_immediate = 64)),
	  { 1000, 1000 }, SLEEP },
	/* what has direct reclaimers sleep, or not, is nothing to kswapd */
	{ "node marked as congested",
	  KSWAPD(FIRST, MET(64), RECLAIMED(64), MARKED), { 0, 0 }, NOTHING },
	{ "node marked as congested, nothing reclaimed",
	  KSWAPD(FIRST, MET(64), MARKED), { 1000, 999 }, NOTHING },
	{ "node marked as congested, and still so",
	  KSWAPD(FIRST, ALL_IMMEDIATE, MARKED),
	  { 1000, 1000 }, CONGESTED_SLEEP },
	{ "last priority, all dirty, all but a page congested",
	  KSWAPD(LAST, MET(64, .nr_dirty = 64, .nr_congested = 63, .nr_writeback = 63)),
	  { 1000, 999 }, NOTHING },
	{ "last priority, immediate, fruitless",
	  KSWAPD(LAST, HALF_IMMEDIATE), { 1000, 1000 }, SLEEP },
	{ "last priority, immediate, not fruitless for long",
	  KSWAPD(LAST, HALF_IMMEDIATE), { 999, 1000 }, NOTHING },
};

static void kswapd_desc(const struct kswapd_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(kswapd, kswapd_cases, kswapd_desc);

static void kswapd_test(struct kunit *test)
{
	const struct kswapd_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, vmp_throttle_decide(&c->round, &c->fruitless, true), c->want);
}

struct direct_case {
	const char *name;
	struct vmscan_round round;
	/* by root reclaim or not, and by congestion mark of the node or not */
	unsigned int want[2][2];
	/* else reclaim of a memory cgroup doesn't sleep */
	bool needs_swap;
};

#define DIRECT(prio, ...) { .priority = prio, __VA_ARGS__ }

/* The worst that a direct reclaimer can meet: only kswapd counts immediate. */
#define ALL_CONGESTED \
	MET(64, .nr_dirty = 64, .nr_congested = 64, .nr_writeback = 64)

#define MARKED_ROOT { { 0, 0 }, { 0, VMSCAN_SLEEP_CONGESTED } }
#define MEMCG_SLEEPS { { SLEEP, SLEEP }, { 0, VMSCAN_SLEEP_CONGESTED } }
#define ALWAYS { { SLEEP, SLEEP }, { SLEEP, SLEEP } }

static const struct direct_case direct_cases[] = {
	{ "nothing taken", DIRECT(DEF_PRIORITY, MET(0)), MARKED_ROOT },
	{ "nothing taken, last but one priority", DIRECT(1, MET(0)), MARKED_ROOT },
	{ "nothing taken, last priority", DIRECT(0, MET(0)), MEMCG_SLEEPS, .needs_swap = true },
	{ "nothing taken, last priority, by memory.reclaim",
	  DIRECT(0, MET(0), .proactive = true), MARKED_ROOT },
	{ "nothing taken, last priority, a page of slab reclaimed",
	  DIRECT(0, MET(0), RECLAIMED(1)), MARKED_ROOT },
	{ "a clean page taken, last priority", DIRECT(0, MET(1)), MARKED_ROOT },
	{ "all clean",
	  DIRECT(DEF_PRIORITY, MET(64), RECLAIMED(64)), MARKED_ROOT },
	{ "all clean, nothing reclaimed, last priority",
	  DIRECT(0, MET(64)), MARKED_ROOT },
	/* the priority */
	{ "all congested, first priority",
	  DIRECT(DEF_PRIORITY, ALL_CONGESTED), MARKED_ROOT },
	{ "all congested, second priority",
	  DIRECT(DEF_PRIORITY - 1, ALL_CONGESTED), MARKED_ROOT },
	{ "all congested, third priority",
	  DIRECT(DEF_PRIORITY - 2, ALL_CONGESTED), MARKED_ROOT },
	{ "all congested, seventh priority",
	  DIRECT(DEF_PRIORITY - 6, ALL_CONGESTED), MARKED_ROOT },
	{ "all congested, eighth priority",
	  DIRECT(DEF_PRIORITY - 7, ALL_CONGESTED), ALWAYS },
	{ "all congested, last but one priority",
	  DIRECT(1, ALL_CONGESTED), ALWAYS },
	{ "all congested, last priority", DIRECT(0, ALL_CONGESTED), ALWAYS },
	/* what the round met */
	{ "all unqueued, seventh priority",
	  DIRECT(DEF_PRIORITY - 6, MET(64, .nr_dirty = 64)), MARKED_ROOT },
	{ "all unqueued, eighth priority",
	  DIRECT(DEF_PRIORITY - 7, MET(64, .nr_dirty = 64)), ALWAYS },
	{ "all unqueued but a clean page",
	  DIRECT(0, MET(64, .nr_dirty = 63)), MARKED_ROOT },
	{ "all under writeback",
	  DIRECT(0, MET(64, .nr_dirty = 64, .nr_writeback = 64)), ALWAYS },
	{ "all under writeback, one page congested",
	  DIRECT(0, MET(64, .nr_dirty = 64, .nr_congested = 1, .nr_writeback = 64)),
	  ALWAYS },
	{ "all unqueued but one congested page",
	  DIRECT(0, MET(64, .nr_dirty = 64, .nr_congested = 1, .nr_writeback = 1)),
	  ALWAYS },
	{ "all congested but a clean page",
	  DIRECT(0, MET(64, .nr_dirty = 63, .nr_congested = 63, .nr_writeback = 63)),
	  MARKED_ROOT },
	{ "all congested but an unqueued page",
	  DIRECT(0, MET(64, .nr_dirty = 64, .nr_congested = 63, .nr_writeback = 63)),
	  ALWAYS },
	{ "all congested, a single page",
	  DIRECT(0, MET(1, .nr_dirty = 1, .nr_congested = 1, .nr_writeback = 1)),
	  ALWAYS },
	{ "all under writeback to swap, which doesn't count as dirty",
	  DIRECT(0, MET(64, .nr_writeback = 64)), MARKED_ROOT },
	/* what it reclaimed */
	{ "all congested, a page of slab reclaimed",
	  DIRECT(0, ALL_CONGESTED, RECLAIMED(1)), MARKED_ROOT },
	{ "all congested, much of slab reclaimed",
	  DIRECT(0, ALL_CONGESTED, RECLAIMED(999)), MARKED_ROOT },
	/* what has kswapd sleep, or not, is nothing to others */
	{ "immediate", DIRECT(0, HALF_IMMEDIATE), MARKED_ROOT },
	{ "all immediate, first priority",
	  DIRECT(DEF_PRIORITY, ALL_IMMEDIATE), MARKED_ROOT },
};

static void direct_desc(const struct direct_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(direct, direct_cases, direct_desc);

/* Whether kswapd would sleep is nothing to others. */
static void expect_direct(struct kunit *test, bool root_reclaim, bool marked,
			  bool kswapd_fruitless, bool swap)
{
	const struct direct_case *c = test->param_value;
	const struct vmp_fruitless fruitless = {
		.taken = kswapd_fruitless ? 1000 : 0,
		.pending = 1000,
	};
	struct vmscan_round round = c->round;
	unsigned int want = 0;

	round.root_reclaim = root_reclaim;
	round.congested = marked;
	if (root_reclaim || swap || !c->needs_swap)
		want = c->want[root_reclaim][marked];
	KUNIT_EXPECT_EQ_MSG(test, vmp_throttle_decide(&round, &fruitless, swap), want,
			    "%s reclaim, node %s, kswapd %s, %s",
			    root_reclaim ? "root" : "memcg",
			    marked ? "marked" : "not marked",
			    kswapd_fruitless ? "fruitless" : "not fruitless",
			    swap ? "swap" : "no swap");
}

static void direct_test(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < 16; i++)
		expect_direct(test, i & 1, i & 2, i & 4, i & 8);
}

/*
 * Pages that wait are not fewer because some of them were written meanwhile. A set of
 * policies does not begin with the sums of the one before.
 */
static const struct {
	u32 set;
	struct vmscan_round round;
	struct vmp_fruitless want;
} count_rounds[] = {
	{ 1, KSWAPD(FIRST, MET(64), PENDING(1000)), { 64, 1000 } },
	{ 1, KSWAPD(FIRST, MET(32), PENDING(900)), { 96, 1000 } },
	{ 1, KSWAPD(FIRST, MET(8), RECLAIMED(1), PENDING(900)), { 0, 0 } },
	{ 1, KSWAPD(FIRST, MET(4), PENDING(50)), { 4, 50 } },
	{ 1, KSWAPD(FIRST, MET(2), PENDING(60)), { 6, 60 } },
	{ 2, KSWAPD(FIRST, MET(1), PENDING(40)), { 1, 40 } },
	{ 2, KSWAPD(FIRST, MET(2), PENDING(30)), { 3, 40 } },
	{ 3, KSWAPD(FIRST, MET(0), RECLAIMED(9), PENDING(70)), { 0, 0 } },
};

static void count_test(struct kunit *test)
{
	struct vmp_fruitless fruitless = {};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(count_rounds); i++) {
		vmp_throttle_count(&fruitless, &count_rounds[i].round, count_rounds[i].set);
		KUNIT_EXPECT_EQ_MSG(test, fruitless.taken, count_rounds[i].want.taken,
				    "round %u", i);
		KUNIT_EXPECT_EQ_MSG(test, fruitless.pending, count_rounds[i].want.pending,
				    "round %u", i);
	}
}

static struct kunit_case throttle_cases[] = {
	KUNIT_CASE_PARAM(accounts_test, accounts_gen_params),
	KUNIT_CASE(count_test),
	KUNIT_CASE_PARAM(kswapd_test, kswapd_gen_params),
	KUNIT_CASE_PARAM(direct_test, direct_gen_params),
	{}
};

static struct kunit_suite throttle_suite = {
	.name = "vmscan_policy_throttle",
	.test_cases = throttle_cases,
};

kunit_test_suite(throttle_suite);
