// SPDX-License-Identifier: GPL-2.0
/* When writeback=feedback wakes the flushers, and when it waits for them. */
#include <kunit/test.h>

#include "../module/internal.h"

#define NONE	0
#define WAKE	VMSCAN_WAKE_FLUSHERS
#define WAIT	(VMSCAN_WAKE_FLUSHERS | VMSCAN_WAIT_WRITEBACK)

struct decide_case {
	const char *name;
	unsigned int nr_taken;
	struct reclaim_stat stat;
	/* where writers are not throttled, and where they are */
	unsigned int want[2];
};

#define MET(pages, ...) .nr_taken = pages, .stat = { __VA_ARGS__ }

static const struct decide_case decide_cases[] = {
	{ "nothing taken", MET(0), { NONE, NONE } },
	{ "all unqueued",
	  MET(64, .nr_dirty = 64, .nr_unqueued_dirty = 64),
	  { WAIT, WAKE } },
	{ "all unqueued but one clean page",
	  MET(64, .nr_dirty = 63, .nr_unqueued_dirty = 63),
	  { NONE, NONE } },
	{ "all unqueued but one page under writeback",
	  MET(64, .nr_dirty = 64, .nr_unqueued_dirty = 63, .nr_writeback = 1),
	  { NONE, NONE } },
	{ "all unqueued but one page scanned twice",
	  MET(64, .nr_dirty = 64, .nr_unqueued_dirty = 63, .nr_congested = 1,
	      .nr_writeback = 1),
	  { NONE, NONE } },
	{ "all unqueued but one immediate page",
	  MET(64, .nr_dirty = 64, .nr_unqueued_dirty = 63, .nr_congested = 1,
	      .nr_immediate = 1),
	  { NONE, NONE } },
};

static void decide_desc(const struct decide_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(decide, decide_cases, decide_desc);

static void decide_test(struct kunit *test)
{
	const struct decide_case *c = test->param_value;

	KUNIT_EXPECT_EQ_MSG(test, vmp_writeback_decide(c->nr_taken, &c->stat, false),
			    c->want[false], "writers not throttled");
	KUNIT_EXPECT_EQ_MSG(test, vmp_writeback_decide(c->nr_taken, &c->stat, true),
			    c->want[true], "writers throttled");
}

static struct kunit_case writeback_cases[] = {
	KUNIT_CASE_PARAM(decide_test, decide_gen_params),
	{}
};

static struct kunit_suite writeback_suite = {
	.name = "vmscan_policy_writeback",
	.test_cases = writeback_cases,
};

kunit_test_suite(writeback_suite);
