// SPDX-License-Identifier: GPL-2.0
/* When writeback=feedback wakes the flushers, and when it waits for them. */
#include <kunit/test.h>

#include "../module/internal.h"

#define NONE	VMP_FEEDBACK_NONE
#define WAKE	VMP_FEEDBACK_WAKE
#define WAIT	VMP_FEEDBACK_WAIT

struct decide_case {
	const char *name;
	struct vmscan_evict_stat stat;
	/* where writers are not throttled, and where they are */
	enum vmp_feedback want[2];
};

#define MET(pages, ...) { .taken = pages, __VA_ARGS__ }

static const struct decide_case decide_cases[] = {
	{ "nothing taken", MET(0), { NONE, NONE } },
	{ "all unqueued",
	  MET(64, .dirty = 64, .unqueued_dirty = 64, .put_back = 64),
	  { WAIT, WAKE } },
	{ "all unqueued, none put back",
	  MET(64, .dirty = 64, .unqueued_dirty = 64),
	  { WAIT, WAKE } },
	{ "all unqueued but one clean page",
	  MET(64, .dirty = 63, .unqueued_dirty = 63, .put_back = 63),
	  { NONE, NONE } },
	{ "all unqueued but one page under writeback",
	  MET(64, .dirty = 64, .unqueued_dirty = 63, .writeback = 1,
	      .put_back = 64),
	  { NONE, NONE } },
	{ "all unqueued but one page scanned twice",
	  MET(64, .dirty = 64, .unqueued_dirty = 63, .congested = 1,
	      .writeback = 1, .put_back = 64),
	  { NONE, NONE } },
	{ "all unqueued but one immediate page",
	  MET(64, .dirty = 64, .unqueued_dirty = 63, .congested = 1,
	      .immediate = 1, .put_back = 64),
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

	KUNIT_EXPECT_EQ_MSG(test, vmp_writeback_decide(&c->stat, false),
			    c->want[false], "writers not throttled");
	KUNIT_EXPECT_EQ_MSG(test, vmp_writeback_decide(&c->stat, true),
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
