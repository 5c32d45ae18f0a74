// SPDX-License-Identifier: GPL-2.0
/* The decisions of scan=budget: how much a pass may scan, and when it ends. */
#include <kunit/test.h>
#include <linux/limits.h>
#include <linux/swap.h>

#include "../module/internal.h"

#define NONE	VMP_FLOOR_NONE
#define SMALL	VMP_FLOOR_SMALL
#define ALWAYS	VMP_FLOOR_ALWAYS

struct budget_case {
	unsigned long evictable;
	unsigned long unprotected;
	int priority;
	bool offline;
	enum vmp_floor floor;
	unsigned long want;
};

/* Without protection, 0 here, all that is evictable is unprotected. */
#define SIZE(size, priority, floor, want) \
	{ size, 0, priority, false, floor, want }
#define PROTECTED(size, left, priority, floor, want) \
	{ size, left, priority, false, floor, want }
#define OFFLINE(size, left, priority, floor, want) \
	{ size, left, priority, true, floor, want }

static const struct budget_case budget_cases[] = {
	/* the priority, whatever it is */
	SIZE(1 << 20, 12, NONE, 256),
	SIZE(1 << 20, 11, NONE, 512),
	SIZE(1 << 20, 10, NONE, 1 << 10),
	SIZE(1 << 20, 9, NONE, 1 << 11),
	SIZE(1 << 20, 8, NONE, 1 << 12),
	SIZE(1 << 20, 7, NONE, 1 << 13),
	SIZE(1 << 20, 6, NONE, 1 << 14),
	SIZE(1 << 20, 5, NONE, 1 << 15),
	SIZE(1 << 20, 4, NONE, 1 << 16),
	SIZE(1 << 20, 3, NONE, 1 << 17),
	SIZE(1 << 20, 2, NONE, 1 << 18),
	SIZE(1 << 20, 1, NONE, 1 << 19),
	SIZE(1 << 20, 0, NONE, 1 << 20),
	/* sizes around what the default priority leaves nothing of */
	SIZE(0, 12, NONE, 0),
	SIZE(0, 0, NONE, 0),
	SIZE(1, 12, NONE, 0),
	SIZE(1, 0, NONE, 1),
	SIZE(4095, 12, NONE, 0),
	SIZE(4096, 12, NONE, 1),
	SIZE(8191, 12, NONE, 1),
	SIZE(8192, 12, NONE, 2),
	SIZE(ULONG_MAX, 12, NONE, ULONG_MAX >> 12),
	SIZE(ULONG_MAX, 1, NONE, ULONG_MAX >> 1),
	SIZE(ULONG_MAX, 0, NONE, ULONG_MAX),
	/* the small floor: only where nothing is left, and never more than there is */
	SIZE(0, 12, SMALL, 0),
	SIZE(1, 12, SMALL, 1),
	SIZE(31, 12, SMALL, 31),
	SIZE(32, 12, SMALL, 32),
	SIZE(4095, 12, SMALL, 32),
	SIZE(4096, 12, SMALL, 1),
	SIZE(31, 5, SMALL, 31),
	SIZE(32, 5, SMALL, 1),
	SIZE(1, 0, SMALL, 1),
	SIZE(1 << 20, 12, SMALL, 256),
	SIZE(ULONG_MAX, 12, SMALL, ULONG_MAX >> 12),
	/* the floor that always holds */
	SIZE(0, 12, ALWAYS, 0),
	SIZE(1, 12, ALWAYS, 32),
	SIZE(31, 0, ALWAYS, 32),
	SIZE(4095, 12, ALWAYS, 32),
	SIZE(4096, 12, ALWAYS, 32),
	SIZE(32 << 12, 12, ALWAYS, 32),
	SIZE(33 << 12, 12, ALWAYS, 33),
	SIZE(1 << 20, 12, ALWAYS, 256),
	SIZE(ULONG_MAX, 0, ALWAYS, ULONG_MAX),
	/* protection counts before the priority; the floor comes after it */
	PROTECTED(1 << 20, 1 << 19, 12, NONE, 128),
	PROTECTED(1 << 20, 1 << 19, 0, NONE, 1 << 19),
	PROTECTED(1 << 20, 32, 0, NONE, 32),
	PROTECTED(1 << 20, 32, 5, NONE, 1),
	PROTECTED(1 << 20, 32, 6, NONE, 0),
	PROTECTED(1 << 20, 32, 12, SMALL, 32),
	PROTECTED(1 << 20, 32, 12, ALWAYS, 32),
	PROTECTED(8, 32, 12, SMALL, 8),
	/* a memcg that was removed: everything */
	OFFLINE(0, 0, 12, NONE, 0),
	OFFLINE(1, 1, 12, NONE, 1),
	OFFLINE(4095, 4095, 12, NONE, 4095),
	OFFLINE(1 << 20, 1 << 20, 12, SMALL, 1 << 20),
	OFFLINE(1 << 20, 32, 12, ALWAYS, 1 << 20),
	OFFLINE(8, 8, 12, ALWAYS, 8),
	OFFLINE(ULONG_MAX, ULONG_MAX, 12, NONE, ULONG_MAX),
};

static void budget_desc(const struct budget_case *c, char *desc)
{
	static const char *const floors[] = { "none", "small", "always" };

	snprintf(desc, KUNIT_PARAM_DESC_SIZE,
		 "%lu pages, %lu unprotected, priority %d, floor %s%s",
		 c->evictable, c->unprotected ?: c->evictable, c->priority,
		 floors[c->floor], c->offline ? ", offline" : "");
}

KUNIT_ARRAY_PARAM(budget, budget_cases, budget_desc);

static void budget_test(struct kunit *test)
{
	const struct budget_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test,
			vmp_scan_budget(c->evictable,
					c->unprotected ?: c->evictable,
					c->priority, !c->offline, c->floor),
			c->want);
}

struct end_case {
	const char *name;
	struct vmp_pass pass;
	enum vmp_end want;
};

/* How far a pass is; most are in the midst: half of the budget used. */
#define PASS(pages, used, ...) \
	{ .budget = pages, .scanned = used, __VA_ARGS__ }
#define COLD .cold = true
#define CONTINUE .aging = VMP_AGING_CONTINUE
#define STOP .aging = VMP_AGING_STOP
#define ASYNC .aging = VMP_AGING_ASYNC

static const struct end_case end_cases[] = {
	{ "in the midst", PASS(100, 50, COLD, CONTINUE), VMP_GO_ON },
	{ "in the midst, root",
	  PASS(100, 50, COLD, CONTINUE, .root_reclaim = true),
	  VMP_GO_ON },
	{ "first batch", PASS(100, 0, COLD, CONTINUE), VMP_GO_ON },
	{ "no budget", PASS(0, 0, COLD, CONTINUE), VMP_END_BUDGET },
	{ "one page left", PASS(100, 99, COLD, CONTINUE), VMP_GO_ON },
	{ "budget used", PASS(100, 100, COLD, CONTINUE), VMP_END_BUDGET },
	{ "large folio beyond it",
	  PASS(100, 611, COLD, CONTINUE),
	  VMP_END_BUDGET },
	{ "below min",
	  PASS(100, 50, COLD, CONTINUE, .below_min = true),
	  VMP_END_BELOW_MIN },
	{ "below min, all else too",
	  PASS(100, 100, COLD, STOP, .below_min = true, .enough = true,
	       .aged = true, .dry = 2, .root_reclaim = true),
	  VMP_END_BELOW_MIN },
	{ "enough",
	  PASS(100, 50, COLD, CONTINUE, .enough = true),
	  VMP_END_ENOUGH },
	{ "enough, root",
	  PASS(100, 50, COLD, CONTINUE, .enough = true, .root_reclaim = true),
	  VMP_END_ENOUGH },
	{ "enough at once",
	  PASS(100, 0, COLD, CONTINUE, .enough = true),
	  VMP_END_ENOUGH },
	{ "stop: aged", PASS(100, 50, COLD, STOP, .aged = true), VMP_END_AGED },
	{ "stop: aged, root",
	  PASS(100, 50, COLD, STOP, .aged = true, .root_reclaim = true),
	  VMP_END_AGED },
	{ "stop: not aged", PASS(100, 50, COLD, STOP), VMP_GO_ON },
	{ "continue: aged",
	  PASS(100, 50, COLD, CONTINUE, .aged = true),
	  VMP_GO_ON },
	{ "continue: aged, a batch later",
	  PASS(100, 50, COLD, CONTINUE, .aged = true, .batches_aged = 1),
	  VMP_GO_ON },
	{ "continue: aged, root, before the batch",
	  PASS(100, 50, COLD, CONTINUE, .aged = true, .root_reclaim = true),
	  VMP_GO_ON },
	{ "continue: aged, root, a batch later",
	  PASS(100, 50, COLD, CONTINUE, .aged = true, .batches_aged = 1,
	       .root_reclaim = true),
	  VMP_END_AGED },
	{ "async: asked, a batch later",
	  PASS(100, 50, COLD, ASYNC, .aged = true, .batches_aged = 1),
	  VMP_GO_ON },
	{ "async: asked, root, a batch later",
	  PASS(100, 50, COLD, ASYNC, .aged = true, .batches_aged = 1,
	       .root_reclaim = true),
	  VMP_END_AGED },
	{ "nothing scanned",
	  PASS(100, 50, COLD, CONTINUE, .dry = 1),
	  VMP_END_NOTHING },
	{ "nothing scanned, nothing cold: age first",
	  PASS(100, 50, CONTINUE, .dry = 1),
	  VMP_GO_ON },
	{ "nothing scanned again",
	  PASS(100, 50, CONTINUE, .dry = 2),
	  VMP_END_NOTHING },
	{ "nothing cold", PASS(100, 50, CONTINUE), VMP_GO_ON },
};

static void end_desc(const struct end_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(end, end_cases, end_desc);

static void end_test(struct kunit *test)
{
	const struct end_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, vmp_scan_end(&c->pass), c->want);
}

static struct kunit_case scan_cases[] = {
	KUNIT_CASE_PARAM(budget_test, budget_gen_params),
	KUNIT_CASE_PARAM(end_test, end_gen_params),
	{}
};

static struct kunit_suite scan_suite = {
	.name = "vmscan_policy_scan",
	.test_cases = scan_cases,
};

kunit_test_suite(scan_suite);
