// SPDX-License-Identifier: GPL-2.0
/* When each aging policy ages. */
#include <kunit/test.h>

#include "../module/internal.h"

struct decide_case {
	const char *name;
	struct vmscan_pass pass;
	/* whether stop and continue age */
	bool want[2];
};

#define NO	false
#define NOW	true
#define GENS(prio, nr, ...) \
	{ .priority = prio, .nr_gens = nr, .nr_pages = { __VA_ARGS__ } }

static const struct decide_case decide_cases[] = {
	{ "no cold generation", GENS(12, 2, 50, 50),
	  { NO, NOW } },
	{ "a single generation", GENS(12, 1, 100),
	  { NO, NOW } },
	{ "no cold generation, raised", GENS(11, 2, 50, 50),
	  { NOW, NOW } },
	{ "nothing at all", GENS(0, 2, 0, 0),
	  { NOW, NOW } },
	{ "three, few old", GENS(12, 3, 24, 40, 36),
	  { NO, NO } },
	{ "three, few old, raised", GENS(11, 3, 24, 40, 36),
	  { NOW, NOW } },
	{ "three, just not few old, raised", GENS(11, 3, 25, 40, 35),
	  { NO, NOW } },
	{ "three, many young", GENS(12, 3, 30, 19, 51),
	  { NO, NO } },
	{ "three, many young, raised", GENS(11, 3, 30, 19, 51),
	  { NOW, NOW } },
	{ "three, just not many young, raised", GENS(11, 3, 30, 20, 50),
	  { NO, NOW } },
	{ "three, old one empty", GENS(12, 3, 0, 50, 50),
	  { NO, NO } },
	{ "four, last priority", GENS(0, 4, 1, 1, 1, 97),
	  { NO, NO } },
};

static void decide_desc(const struct decide_case *c, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s, priority %d", c->name,
		 c->pass.priority);
}

KUNIT_ARRAY_PARAM(decide, decide_cases, decide_desc);

static void decide_test(struct kunit *test)
{
	static const char *const names[] = { "stop", "continue" };
	const struct decide_case *c = test->param_value;
	enum vmp_aging aging;

	for (aging = VMP_AGING_STOP; aging <= VMP_AGING_CONTINUE; aging++)
		KUNIT_EXPECT_EQ_MSG(test,
				    vmp_aging_decide(aging, &c->pass),
				    c->want[aging], "%s", names[aging]);
}

static struct kunit_case aging_cases[] = {
	KUNIT_CASE_PARAM(decide_test, decide_gen_params),
	{}
};

static struct kunit_suite aging_suite = {
	.name = "vmscan_policy_aging",
	.test_cases = aging_cases,
};

kunit_test_suite(aging_suite);
