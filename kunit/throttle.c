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
#define MET(pages, ...) .stat = { .taken = pages, __VA_ARGS__ }
#define RECLAIMED(pages) .nr_reclaimed = pages
#define MAY_THROTTLE .may_throttle = true
#define HIBERNATION .hibernation = true
#define MARKED .congested = true

struct kswapd_case {
	const char *name;
	struct vmscan_node_ctx ctx;
	/* pages taken, and the most that have been pending */
	struct vmp_fruitless fruitless;
	struct vmp_verdict want;
};

#define KSWAPD(...) \
	{ .kswapd = true, .root_reclaim = true, MAY_THROTTLE, __VA_ARGS__ }
#define FIRST .priority = DEF_PRIORITY
#define LAST .priority = 0
#define PENDING(pages) .nr_write_pending = pages

/* Half is clean, half is written, for the second time but for a page. */
#define HALF_IMMEDIATE \
	MET(64, .dirty = 32, .congested = 31, .writeback = 1, .immediate = 31)
#define ALL_IMMEDIATE \
	MET(64, .dirty = 64, .congested = 64, .immediate = 64)

#define NOTHING { .stall = VMP_NO_STALL }
#define WRITEBACK { .mark_writeback = true, .stall = VMP_NO_STALL }
#define CONGESTED { .mark_congested = true, .stall = VMP_NO_STALL }
#define BOTH \
	{ .mark_writeback = true, .mark_congested = true, .stall = VMP_NO_STALL }
#define SLEEP { .stall = VMSCAN_THROTTLE_WRITEBACK }
#define CONGESTED_SLEEP \
	{ .mark_congested = true, .stall = VMSCAN_THROTTLE_WRITEBACK }

static const struct kswapd_case kswapd_cases[] = {
	{ "nothing taken", KSWAPD(FIRST, MET(0)), { 0, 0 }, NOTHING },
	{ "nothing taken, much of it before",
	  KSWAPD(LAST, MET(0)), { 1000, 999 }, NOTHING },
	{ "all clean",
	  KSWAPD(FIRST, MET(64), RECLAIMED(64)), { 0, 0 }, NOTHING },
	{ "all unqueued",
	  KSWAPD(FIRST, MET(64, .dirty = 64)), { 1000, 999 }, NOTHING },
	/* the mark for writeback */
	{ "all under writeback",
	  KSWAPD(FIRST, MET(64, .dirty = 64, .writeback = 64)),
	  { 64, 999 }, WRITEBACK },
	{ "all under writeback, a single page",
	  KSWAPD(FIRST, MET(1, .dirty = 1, .writeback = 1)),
	  { 1, 999 }, WRITEBACK },
	{ "all under writeback but a clean page",
	  KSWAPD(FIRST, MET(64, .dirty = 63, .writeback = 63)),
	  { 64, 999 }, NOTHING },
	{ "all under writeback but an unqueued page",
	  KSWAPD(FIRST, MET(64, .dirty = 64, .writeback = 63)),
	  { 64, 999 }, NOTHING },
	{ "all under writeback, slab reclaimed",
	  KSWAPD(FIRST, MET(64, .dirty = 64, .writeback = 64), RECLAIMED(9)),
	  { 0, 0 }, WRITEBACK },
	/* the mark for congestion */
	{ "all that is dirty congested",
	  KSWAPD(FIRST, MET(64, .dirty = 32, .congested = 32, .writeback = 32),
		 RECLAIMED(32)),
	  { 0, 0 }, CONGESTED },
	{ "all that is dirty congested, a single page",
	  KSWAPD(FIRST, MET(64, .dirty = 1, .congested = 1, .writeback = 1),
		 RECLAIMED(63)),
	  { 0, 0 }, CONGESTED },
	{ "all that is dirty congested but one page",
	  KSWAPD(FIRST, MET(64, .dirty = 32, .congested = 31, .writeback = 32),
		 RECLAIMED(32)),
	  { 0, 0 }, NOTHING },
	{ "all congested, node not marked yet",
	  KSWAPD(FIRST, MET(64, .dirty = 64, .congested = 64, .writeback = 64)),
	  { 64, 999 }, BOTH },
	{ "all congested, node not marked yet, slab reclaimed",
	  KSWAPD(FIRST, MET(64, .dirty = 64, .congested = 64, .writeback = 64),
		 RECLAIMED(9)),
	  { 0, 0 }, BOTH },
	{ "all congested, one page immediate",
	  KSWAPD(FIRST, MET(64, .dirty = 64, .congested = 64, .writeback = 63,
			    .immediate = 1)),
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
	  KSWAPD(FIRST, MET(64, .dirty = 32, .congested = 1, .writeback = 31,
			    .immediate = 1)),
	  { 1000, 1000 }, SLEEP },
	{ "none immediate, fruitless",
	  KSWAPD(FIRST, MET(64, .dirty = 32, .congested = 31, .writeback = 32)),
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
	  KSWAPD(FIRST, MET(64, .writeback = 64)),
	  { 64, 999 }, WRITEBACK },
	{ "all immediate, to swap, fruitless",
	  KSWAPD(FIRST, MET(64, .immediate = 64)),
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
	  KSWAPD(LAST, MET(64, .dirty = 64, .congested = 63, .writeback = 63)),
	  { 1000, 999 }, NOTHING },
	{ "last priority, immediate, fruitless",
	  KSWAPD(LAST, HALF_IMMEDIATE), { 1000, 1000 }, SLEEP },
	{ "last priority, immediate, not fruitless for long",
	  KSWAPD(LAST, HALF_IMMEDIATE), { 999, 1000 }, NOTHING },
	{ "hibernation, immediate, fruitless",
	  KSWAPD(FIRST, HALF_IMMEDIATE, HIBERNATION),
	  { 1000, 1000 }, SLEEP },
	{ "may not be throttled, immediate, fruitless",
	  { .kswapd = true, .root_reclaim = true, FIRST, HALF_IMMEDIATE },
	  { 1000, 1000 }, SLEEP },
};

static void kswapd_desc(const struct kswapd_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(kswapd, kswapd_cases, kswapd_desc);

static void kswapd_test(struct kunit *test)
{
	const struct kswapd_case *c = test->param_value;
	struct vmp_verdict verdict = vmp_throttle_decide(&c->ctx, &c->fruitless);

	KUNIT_EXPECT_EQ_MSG(test, verdict.mark_writeback,
			    c->want.mark_writeback, "mark for writeback");
	KUNIT_EXPECT_EQ_MSG(test, verdict.mark_congested,
			    c->want.mark_congested, "mark for congestion");
	KUNIT_EXPECT_EQ_MSG(test, verdict.stall, c->want.stall, "sleep");
}

struct direct_case {
	const char *name;
	struct vmscan_node_ctx ctx;
	/* by root reclaim or not, and by congestion mark of the node or not */
	enum vmscan_throttle_state want[2][2];
};

#define DIRECT(prio, ...) { .priority = prio, MAY_THROTTLE, __VA_ARGS__ }
#define NEEDED(prio, ...) { .priority = prio, __VA_ARGS__ }

/* The worst that a direct reclaimer can meet: only kswapd counts immediate. */
#define ALL_CONGESTED \
	MET(64, .dirty = 64, .congested = 64, .writeback = 64)

#define NEVER \
	{ { VMP_NO_STALL, VMP_NO_STALL }, { VMP_NO_STALL, VMP_NO_STALL } }
#define MARKED_ROOT \
	{ { VMP_NO_STALL, VMP_NO_STALL }, \
	  { VMP_NO_STALL, VMSCAN_THROTTLE_CONGESTED } }
#define ALWAYS \
	{ { VMSCAN_THROTTLE_WRITEBACK, VMSCAN_THROTTLE_WRITEBACK }, \
	  { VMSCAN_THROTTLE_WRITEBACK, VMSCAN_THROTTLE_WRITEBACK } }

static const struct direct_case direct_cases[] = {
	{ "nothing taken", DIRECT(DEF_PRIORITY, MET(0)), MARKED_ROOT },
	{ "nothing taken, last priority", DIRECT(0, MET(0)), MARKED_ROOT },
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
	{ "all congested, fourth priority",
	  DIRECT(DEF_PRIORITY - 3, ALL_CONGESTED), ALWAYS },
	{ "all congested, last but one priority",
	  DIRECT(1, ALL_CONGESTED), ALWAYS },
	{ "all congested, last priority", DIRECT(0, ALL_CONGESTED), ALWAYS },
	/* what the round met */
	{ "all unqueued",
	  DIRECT(0, MET(64, .dirty = 64)), MARKED_ROOT },
	{ "all under writeback",
	  DIRECT(0, MET(64, .dirty = 64, .writeback = 64)), MARKED_ROOT },
	{ "all under writeback, one page congested",
	  DIRECT(0, MET(64, .dirty = 64, .congested = 1, .writeback = 64)),
	  ALWAYS },
	{ "all unqueued but one congested page",
	  DIRECT(0, MET(64, .dirty = 64, .congested = 1, .writeback = 1)),
	  ALWAYS },
	{ "all congested but a clean page",
	  DIRECT(0, MET(64, .dirty = 63, .congested = 63, .writeback = 63)),
	  MARKED_ROOT },
	{ "all congested but an unqueued page",
	  DIRECT(0, MET(64, .dirty = 64, .congested = 63, .writeback = 63)),
	  ALWAYS },
	{ "all congested, a single page",
	  DIRECT(0, MET(1, .dirty = 1, .congested = 1, .writeback = 1)),
	  ALWAYS },
	{ "all under writeback to swap, which doesn't count as dirty",
	  DIRECT(0, MET(64, .writeback = 64)), MARKED_ROOT },
	/* what it reclaimed */
	{ "all congested, a page of slab reclaimed",
	  DIRECT(0, ALL_CONGESTED, RECLAIMED(1)), MARKED_ROOT },
	{ "all congested, much of slab reclaimed",
	  DIRECT(0, ALL_CONGESTED, RECLAIMED(999)), MARKED_ROOT },
	/* what has kswapd sleep, or not, is nothing to others */
	{ "immediate", DIRECT(0, HALF_IMMEDIATE), MARKED_ROOT },
	{ "all immediate, first priority",
	  DIRECT(DEF_PRIORITY, ALL_IMMEDIATE), MARKED_ROOT },
	/* who must not sleep */
	{ "needed for writing",
	  NEEDED(DEF_PRIORITY, MET(64), RECLAIMED(64)), NEVER },
	{ "needed for writing, all congested, last priority",
	  NEEDED(0, ALL_CONGESTED), NEVER },
	{ "hibernation",
	  DIRECT(DEF_PRIORITY, MET(64), RECLAIMED(64), HIBERNATION), NEVER },
	{ "hibernation, all congested, last priority",
	  DIRECT(0, ALL_CONGESTED, HIBERNATION), NEVER },
	{ "hibernation, needed for writing, all congested, last priority",
	  NEEDED(0, ALL_CONGESTED, HIBERNATION), NEVER },
};

static void direct_desc(const struct direct_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(direct, direct_cases, direct_desc);

/* Whether kswapd would sleep is nothing to others. */
static void expect_direct(struct kunit *test, bool root_reclaim, bool marked,
			  bool kswapd_fruitless)
{
	const struct direct_case *c = test->param_value;
	const struct vmp_fruitless fruitless = {
		.taken = kswapd_fruitless ? 1000 : 0,
		.pending = 1000,
	};
	struct vmscan_node_ctx ctx = c->ctx;
	struct vmp_verdict verdict;
	const char *reclaim = root_reclaim ? "root" : "memcg";
	const char *node = marked ? "marked" : "not marked";
	const char *kswapd = kswapd_fruitless ? "fruitless" : "not fruitless";

	ctx.root_reclaim = root_reclaim;
	ctx.congested = marked;
	verdict = vmp_throttle_decide(&ctx, &fruitless);

	KUNIT_EXPECT_EQ_MSG(test, verdict.stall, c->want[root_reclaim][marked],
			    "%s reclaim, node %s, kswapd %s", reclaim, node,
			    kswapd);
	KUNIT_EXPECT_FALSE_MSG(test,
			       verdict.mark_writeback || verdict.mark_congested,
			       "%s reclaim, node %s, kswapd %s: marks it",
			       reclaim, node, kswapd);
}

static void direct_test(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < 8; i++)
		expect_direct(test, i & 1, i & 2, i & 4);
}

/* Pages that wait are not fewer because some of them were written meanwhile. */
static void count_test(struct kunit *test)
{
	static const struct vmscan_node_ctx rounds[] = {
		KSWAPD(FIRST, MET(64, .dirty = 64), PENDING(1000)),
		KSWAPD(FIRST, MET(32, .dirty = 32), PENDING(900)),
		KSWAPD(FIRST, MET(8), RECLAIMED(1), PENDING(900)),
		KSWAPD(FIRST, MET(4), PENDING(50)),
		KSWAPD(FIRST, MET(2), PENDING(60)),
		KSWAPD(FIRST, MET(0), RECLAIMED(9), PENDING(70)),
	};
	static const struct vmp_fruitless want[] = {
		{ 64, 1000 }, { 96, 1000 }, { 0, 0 }, { 4, 50 }, { 6, 60 }, { 0, 0 },
	};
	struct vmp_fruitless fruitless = {};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rounds); i++) {
		vmp_throttle_count(&fruitless, &rounds[i]);
		KUNIT_EXPECT_EQ_MSG(test, fruitless.taken, want[i].taken,
				    "round %u", i);
		KUNIT_EXPECT_EQ_MSG(test, fruitless.pending, want[i].pending,
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
