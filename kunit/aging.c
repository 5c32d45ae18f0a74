// SPDX-License-Identifier: GPL-2.0
/* When each aging policy ages. */
#include <kunit/test.h>

#include "../module/internal.h"

struct decide_case {
	const char *name;
	struct vmscan_gens gens;
	unsigned long evictable;
	int priority;
	/* what stop, continue, async do */
	enum vmp_age want[3];
};

#define NO	VMP_AGE_NO
#define NOW	VMP_AGE_NOW
#define LATER	VMP_AGE_LATER
#define GENS(nr, ...) { .max_seq = 9, .nr_gens = nr, .nr_pages = { __VA_ARGS__ } }

static const struct decide_case decide_cases[] = {
	{ "no cold generation", GENS(2, 50, 50), 100, 12, { NO, NOW, NOW } },
	{ "a single generation", GENS(1, 100), 100, 12, { NO, NOW, NOW } },
	{ "no cold generation, raised", GENS(2, 50, 50), 100, 11,
	  { NOW, NOW, NOW } },
	{ "nothing at all", GENS(2, 0, 0), 0, 0, { NOW, NOW, NOW } },
	{ "three, few old", GENS(3, 24, 40, 36), 100, 12, { NO, NO, NO } },
	{ "three, few old, raised", GENS(3, 24, 40, 36), 100, 11,
	  { NOW, NOW, NO } },
	{ "three, just not few old, raised", GENS(3, 25, 40, 35), 100, 11,
	  { NO, NOW, NO } },
	{ "three, many young", GENS(3, 30, 19, 51), 100, 12, { NO, NO, NO } },
	{ "three, many young, raised", GENS(3, 30, 19, 51), 100, 11,
	  { NOW, NOW, NO } },
	{ "three, just not many young, raised", GENS(3, 30, 20, 50), 100, 11,
	  { NO, NOW, NO } },
	{ "three, old ones run out", GENS(3, 99, 1600, 1501), 3200, 12,
	  { NO, NO, LATER } },
	{ "three, old ones run out, raised", GENS(3, 99, 1600, 1501), 3200, 3,
	  { NOW, NOW, LATER } },
	{ "three, old ones just don't run out", GENS(3, 100, 1600, 1500), 3200,
	  12, { NO, NO, NO } },
	{ "three, old one empty", GENS(3, 0, 50, 50), 100, 12,
	  { NO, NO, LATER } },
	{ "four, last priority", GENS(4, 1, 1, 1, 97), 100, 0, { NO, NO, NO } },
};

static void decide_desc(const struct decide_case *c, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s, priority %d", c->name,
		 c->priority);
}

KUNIT_ARRAY_PARAM(decide, decide_cases, decide_desc);

static void decide_test(struct kunit *test)
{
	static const char *const names[] = { "stop", "continue", "async" };
	const struct decide_case *c = test->param_value;
	enum vmp_aging aging;

	for (aging = VMP_AGING_STOP; aging <= VMP_AGING_ASYNC; aging++)
		KUNIT_EXPECT_EQ_MSG(test,
				    vmp_aging_decide(aging, &c->gens,
						     c->evictable, c->priority),
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
