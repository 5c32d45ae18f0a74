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
	/* the priority, rounded down */
	SIZE(1 << 20, 12, NONE, 256),
	SIZE(1 << 20, 6, NONE, 1 << 14),
	SIZE(1 << 20, 0, NONE, 1 << 20),
	SIZE(4095, 12, NONE, 0),
	SIZE(ULONG_MAX, 12, NONE, ULONG_MAX >> 12),
	/* the small floor: only where nothing is left, and never more than there is */
	SIZE(31, 12, SMALL, 31),
	SIZE(4095, 12, SMALL, 32),
	SIZE(4096, 12, SMALL, 1),
	/* the floor that always holds, but where there is nothing */
	SIZE(0, 12, ALWAYS, 0),
	SIZE(31, 0, ALWAYS, 32),
	SIZE(ULONG_MAX, 0, ALWAYS, ULONG_MAX),
	/* protection counts before the priority; the floor comes after it */
	PROTECTED(1 << 20, 1 << 19, 12, NONE, 128),
	PROTECTED(1 << 20, 32, 12, SMALL, 32),
	PROTECTED(1 << 20, 32, 12, ALWAYS, 32),
	PROTECTED(8, 32, 12, SMALL, 8),
	/* a memcg that was removed: everything, whatever else there is */
	OFFLINE(1 << 20, 32, 12, NONE, 1 << 20),
	OFFLINE(8, 8, 12, ALWAYS, 8),
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
#define AGED(batches) .aged = true, .batches_aged = batches
#define BELOW_MIN .below_min = true
#define ENOUGH .enough = true
#define ROOT .root_reclaim = true

static const struct end_case end_cases[] = {
	{ "in the midst", PASS(100, 50, COLD, CONTINUE), VMP_GO_ON },
	{ "in the midst, root",
	  PASS(100, 50, COLD, CONTINUE, ROOT), VMP_GO_ON },
	{ "first batch", PASS(100, 0, COLD, CONTINUE), VMP_GO_ON },
	{ "no budget", PASS(0, 0, COLD, CONTINUE), VMP_END_BUDGET },
	{ "one page left", PASS(100, 99, COLD, CONTINUE), VMP_GO_ON },
	{ "budget used", PASS(100, 100, COLD, CONTINUE), VMP_END_BUDGET },
	{ "large folio beyond it",
	  PASS(100, 611, COLD, CONTINUE), VMP_END_BUDGET },
	{ "below min",
	  PASS(100, 50, COLD, CONTINUE, BELOW_MIN), VMP_END_BELOW_MIN },
	{ "enough", PASS(100, 50, COLD, CONTINUE, ENOUGH), VMP_END_ENOUGH },
	{ "enough, root",
	  PASS(100, 50, COLD, CONTINUE, ENOUGH, ROOT), VMP_END_ENOUGH },
	{ "enough at once",
	  PASS(100, 0, COLD, CONTINUE, ENOUGH), VMP_END_ENOUGH },
	{ "stop: aged", PASS(100, 50, COLD, STOP, AGED(0)), VMP_END_AGED },
	{ "stop: aged, root",
	  PASS(100, 50, COLD, STOP, AGED(0), ROOT), VMP_END_AGED },
	{ "stop: not aged", PASS(100, 50, COLD, STOP), VMP_GO_ON },
	{ "continue: aged, a batch later",
	  PASS(100, 50, COLD, CONTINUE, AGED(1)), VMP_GO_ON },
	{ "continue: aged, root, before the batch",
	  PASS(100, 50, COLD, CONTINUE, AGED(0), ROOT), VMP_GO_ON },
	{ "continue: aged, root, a batch later",
	  PASS(100, 50, COLD, CONTINUE, AGED(1), ROOT), VMP_END_AGED },
	{ "async: asked, a batch later",
	  PASS(100, 50, COLD, ASYNC, AGED(1)), VMP_GO_ON },
	{ "async: asked, root, a batch later",
	  PASS(100, 50, COLD, ASYNC, AGED(1), ROOT), VMP_END_AGED },
	{ "nothing scanned",
	  PASS(100, 50, COLD, CONTINUE, .dry = 1), VMP_END_NOTHING },
	{ "nothing scanned, nothing cold: age first",
	  PASS(100, 50, CONTINUE, .dry = 1), VMP_GO_ON },
	{ "nothing scanned again",
	  PASS(100, 50, CONTINUE, .dry = 2), VMP_END_NOTHING },
	{ "nothing cold", PASS(100, 50, CONTINUE), VMP_GO_ON },
	/* which of two reasons counts */
	{ "below min and enough",
	  PASS(100, 50, COLD, CONTINUE, BELOW_MIN, ENOUGH),
	  VMP_END_BELOW_MIN },
	{ "enough and stop: aged",
	  PASS(100, 50, COLD, STOP, ENOUGH, AGED(0)), VMP_END_ENOUGH },
	{ "enough and continue: aged, root, a batch later",
	  PASS(100, 50, COLD, CONTINUE, ENOUGH, AGED(1), ROOT),
	  VMP_END_ENOUGH },
	{ "stop: aged and budget used",
	  PASS(100, 100, COLD, STOP, AGED(0)), VMP_END_AGED },
	{ "continue: aged, root, a batch later and budget used",
	  PASS(100, 100, COLD, CONTINUE, AGED(1), ROOT), VMP_END_AGED },
	{ "budget used and nothing scanned",
	  PASS(100, 100, COLD, CONTINUE, .dry = 1), VMP_END_BUDGET },
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
