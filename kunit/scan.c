// SPDX-License-Identifier: GPL-2.0
/* The decisions of the scan policies: how much a pass may scan, and when it ends. */
#include <kunit/test.h>
#include <linux/limits.h>
#include <linux/swap.h>

#include "../module/internal.h"

struct budget_case {
	unsigned long evictable;
	unsigned long unprotected;
	int priority;
	bool offline;
	unsigned long floor;
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
	SIZE(1 << 20, 12, 0, 256),
	SIZE(1 << 20, 6, 0, 1 << 14),
	SIZE(1 << 20, 0, 0, 1 << 20),
	SIZE(4095, 12, 0, 0),
	SIZE(ULONG_MAX, 12, 0, ULONG_MAX >> 12),
	/* the floor, where the priority leaves less */
	SIZE(4095, 12, 1, 1),
	SIZE(1 << 16, 12, 15, 16),
	SIZE(1 << 16, 12, 16, 16),
	SIZE(1 << 16, 12, 17, 17),
	SIZE(1 << 20, 12, 4096, 4096),
	SIZE(ULONG_MAX, 0, 4096, ULONG_MAX),
	/* and never more than there is */
	SIZE(0, 12, 64, 0),
	SIZE(31, 12, 64, 31),
	SIZE(31, 0, 64, 31),
	SIZE(64, 12, 64, 64),
	SIZE(65, 12, 64, 64),
	/* protection counts before the priority, and before the floor */
	PROTECTED(1 << 20, 1 << 19, 12, 0, 128),
	PROTECTED(1 << 20, 1 << 19, 12, 256, 256),
	PROTECTED(1 << 20, 255, 12, 256, 255),
	PROTECTED(1 << 20, 32, 12, 4096, 32),
	PROTECTED(8, 32, 12, 64, 8),
	/* a memcg that was removed: everything, whatever else there is */
	OFFLINE(1 << 20, 32, 12, 0, 1 << 20),
	OFFLINE(8, 8, 12, 64, 8),
	OFFLINE(0, 32, 12, 64, 0),
};

static void budget_desc(const struct budget_case *c, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE,
		 "%lu pages, %lu unprotected, priority %d, floor %lu%s",
		 c->evictable, c->unprotected ?: c->evictable, c->priority,
		 c->floor, c->offline ? ", offline" : "");
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

static const struct move_case {
	unsigned long budget, moved, floor, batch, want;
} move_cases[] = {
	/* what is left, without a floor */
	{ 100, 0, 0, 64, 100 },
	{ 100, 99, 0, 64, 1 },
	{ 1 << 20, 0, 0, 64, VMSCAN_MAX_BATCH },
	/* a whole batch at least, with one */
	{ 256, 0, 256, 64, 256 },
	{ 256, 192, 256, 64, 64 },
	{ 256, 210, 256, 64, 64 },
	{ 256, 255, 256, 64, 64 },
	{ 256, 255, 256, 1, 1 },
	{ 8192, 0, 4096, 4096, VMSCAN_MAX_BATCH },
	/* but no more than the floor, and than the budget where that is less */
	{ 256, 250, 32, 64, 32 },
	{ 20, 10, 256, 64, 20 },
};

static void move_desc(const struct move_case *c, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%lu of %lu moved, floor %lu, batch %lu",
		 c->moved, c->budget, c->floor, c->batch);
}

KUNIT_ARRAY_PARAM(move, move_cases, move_desc);

static void move_test(struct kunit *test)
{
	const struct move_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, vmp_scan_move(c->budget, c->moved, c->floor, c->batch), c->want);
}

struct end_case {
	const char *name;
	enum vmp_end want;
	enum vmp_aging aging;
	unsigned long budget;
	unsigned long floor;
	struct vmscan_pass pass;
	struct vmp_pass_note note;
};

/* How far a pass is; most are in the midst: half of the budget used. */
#define PASS(pages, used, ...) \
	.budget = pages, .pass.nr_moved = used, __VA_ARGS__
#define COLD .pass.nr_gens = MIN_NR_GENS + 1
#define CONTINUE .aging = VMP_AGING_CONTINUE
#define STOP .aging = VMP_AGING_STOP
#define AGED(batches) \
	.note.aged = true, .note.batches_before = 3, .pass.nr_batches = 3 + (batches)
#define ENOUGH .pass.enough = true
#define FLOOR(pages) .floor = pages
#define ROOT .pass.root_reclaim = true
#define DRY .pass.last = VMSCAN_EVICT

static const struct end_case end_cases[] = {
	{ "in the midst", VMP_GO_ON, PASS(100, 50, COLD, CONTINUE) },
	{ "in the midst, root", VMP_GO_ON, PASS(100, 50, COLD, CONTINUE, ROOT) },
	{ "first batch", VMP_GO_ON, PASS(100, 0, COLD, CONTINUE) },
	{ "no budget", VMP_END_BUDGET, PASS(0, 0, COLD, CONTINUE) },
	{ "one page left", VMP_GO_ON, PASS(100, 99, COLD, CONTINUE) },
	{ "budget used", VMP_END_BUDGET, PASS(100, 100, COLD, CONTINUE) },
	{ "large folio beyond it", VMP_END_BUDGET, PASS(100, 611, COLD, CONTINUE) },
	{ "enough", VMP_END_ENOUGH, PASS(100, 50, COLD, CONTINUE, ENOUGH) },
	{ "enough, root", VMP_END_ENOUGH, PASS(100, 50, COLD, CONTINUE, ENOUGH, ROOT) },
	{ "enough at once", VMP_END_ENOUGH, PASS(100, 0, COLD, CONTINUE, ENOUGH) },
	{ "enough, below the floor", VMP_GO_ON,
	  PASS(100, 50, COLD, CONTINUE, ENOUGH, FLOOR(51)) },
	{ "enough, below the floor, root", VMP_GO_ON,
	  PASS(100, 50, COLD, CONTINUE, ENOUGH, FLOOR(51), ROOT) },
	{ "enough, at the floor", VMP_END_ENOUGH,
	  PASS(100, 50, COLD, CONTINUE, ENOUGH, FLOOR(50)) },
	{ "enough, below the floor, nothing cold: no aging for that", VMP_END_ENOUGH,
	  PASS(100, 50, CONTINUE, ENOUGH, FLOOR(51)) },
	{ "enough, below the floor, nothing scanned", VMP_END_NOTHING,
	  PASS(100, 50, COLD, CONTINUE, ENOUGH, FLOOR(51), DRY) },
	{ "below the floor", VMP_GO_ON, PASS(100, 50, COLD, CONTINUE, FLOOR(51)) },
	{ "stop: aged", VMP_END_AGED, PASS(100, 50, COLD, STOP, AGED(0)) },
	{ "stop: aged, root", VMP_END_AGED, PASS(100, 50, COLD, STOP, AGED(0), ROOT) },
	{ "stop: not aged", VMP_GO_ON, PASS(100, 50, COLD, STOP) },
	{ "continue: aged, a batch later", VMP_GO_ON,
	  PASS(100, 50, COLD, CONTINUE, AGED(1)) },
	{ "continue: aged, root, before the batch", VMP_GO_ON,
	  PASS(100, 50, COLD, CONTINUE, AGED(0), ROOT) },
	{ "continue: aged, root, a batch later", VMP_END_AGED,
	  PASS(100, 50, COLD, CONTINUE, AGED(1), ROOT) },
	{ "nothing scanned", VMP_END_NOTHING, PASS(100, 50, COLD, CONTINUE, DRY) },
	{ "nothing scanned, nothing cold: age first", VMP_GO_ON,
	  PASS(100, 50, CONTINUE, DRY) },
	{ "nothing cold", VMP_GO_ON, PASS(100, 50, CONTINUE) },
	/* which of two reasons counts */
	{ "enough and stop: aged", VMP_END_ENOUGH,
	  PASS(100, 50, COLD, STOP, ENOUGH, AGED(0)) },
	{ "enough and continue: aged, root, a batch later", VMP_END_ENOUGH,
	  PASS(100, 50, COLD, CONTINUE, ENOUGH, AGED(1), ROOT) },
	{ "stop: aged and budget used", VMP_END_AGED, PASS(100, 100, COLD, STOP, AGED(0)) },
	{ "continue: aged, root, a batch later and budget used", VMP_END_AGED,
	  PASS(100, 100, COLD, CONTINUE, AGED(1), ROOT) },
	{ "budget used and nothing scanned", VMP_END_BUDGET,
	  PASS(100, 100, COLD, CONTINUE, DRY) },
};

static void end_desc(const struct end_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(end, end_cases, end_desc);

static void end_test(struct kunit *test)
{
	const struct end_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, vmp_scan_end(&c->pass, &c->note, c->aging, c->budget, c->floor),
			c->want);
}

/* Who goes over an lruvec, and whether the aging policy matters to that. */
static const struct loop_case {
	const char *name;
	enum vmp_scan scan;
	unsigned long traits;
	/* ours, with stop, continue */
	bool walks[2];
	bool ages;
} loop_cases[] = {
	{ "stock of 6.12", VMP_SCAN_STOCK, 0, { false, false }, false },
	{ "stock of 7.2", VMP_SCAN_STOCK, VMSCAN_TRAIT_BUDGET, { true, false }, true },
	{ "stock of 6.12 with other traits", VMP_SCAN_STOCK, ~VMSCAN_TRAIT_BUDGET,
	  { false, false }, false },
	{ "budget on 6.12", VMP_SCAN_BUDGET, 0, { true, true }, true },
	{ "budget on 7.2", VMP_SCAN_BUDGET, VMSCAN_TRAIT_BUDGET, { true, true }, true },
	{ "v6.12 on 7.2", VMP_SCAN_6_12, VMSCAN_TRAIT_BUDGET, { true, true }, false },
};

static void loop_desc(const struct loop_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(loop, loop_cases, loop_desc);

static void loop_test(struct kunit *test)
{
	const struct loop_case *c = test->param_value;
	enum vmp_aging aging;

	for (aging = VMP_AGING_STOP; aging <= VMP_AGING_CONTINUE; aging++)
		KUNIT_EXPECT_EQ_MSG(test, vmp_scan_walks(c->scan, aging, c->traits),
				    c->walks[aging], "aging %u", aging);
	KUNIT_EXPECT_EQ(test, vmp_scan_ages(c->scan, c->traits), c->ages);
}

static struct kunit_case scan_cases[] = {
	KUNIT_CASE_PARAM(budget_test, budget_gen_params),
	KUNIT_CASE_PARAM(move_test, move_gen_params),
	KUNIT_CASE_PARAM(end_test, end_gen_params),
	KUNIT_CASE_PARAM(loop_test, loop_gen_params),
	{}
};

static struct kunit_suite scan_suite = {
	.name = "vmscan_policy_scan",
	.test_cases = scan_cases,
};

kunit_test_suite(scan_suite);
