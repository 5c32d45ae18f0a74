// SPDX-License-Identifier: GPL-2.0
/* What there is to choose from on a kernel, by its traits. */
#include <kunit/test.h>
#include <linux/string.h>

#include "../module/internal.h"

#define NONE	0
#define BUDGET	VMSCAN_TRAIT_BUDGET
#define FEEDBACK VMSCAN_TRAIT_FEEDBACK
#define UNMAP	VMSCAN_TRAIT_UNMAP
#define YOUNG	VMSCAN_TRAIT_YOUNG
#define DISCARD	VMSCAN_TRAIT_DISCARD
#define ALL	(BUDGET | FEEDBACK | UNMAP | YOUNG | DISCARD)

struct shown_case {
	const struct vmp_point *point;
	unsigned long traits;
	const char *want;	/* "" if the point doesn't exist */
};

static const struct shown_case shown_cases[] = {
	{ &vmp_scan_point, NONE, "stock=0 budget=1" },
	{ &vmp_scan_point, BUDGET, "stock=0 budget=1 v6.12=2" },
	{ &vmp_scan_point, ALL, "stock=0 budget=1 v6.12=2" },
	{ &vmp_scan_point, ALL & ~BUDGET, "stock=0 budget=1" },
	{ &vmp_aging_point, NONE, "stop=0 continue=1" },
	{ &vmp_aging_point, ALL, "stop=0 continue=1" },
	{ &vmp_writeback_point, NONE, "stock=0 feedback=1" },
	{ &vmp_writeback_point, FEEDBACK, "" },
	{ &vmp_writeback_point, ALL & ~FEEDBACK, "stock=0 feedback=1" },
	{ &vmp_throttle_point, NONE, "stock=0 memcg=1 all=2" },
	{ &vmp_throttle_point, ALL, "stock=0 memcg=1 all=2" },
	{ &vmp_unmap_point, NONE, "stock=0 batch=1" },
	{ &vmp_unmap_point, UNMAP, "" },
	{ &vmp_unmap_point, DISCARD, "stock=0 batch=1" },
	{ &vmp_unmap_point, ALL & ~UNMAP, "stock=0 batch=1" },
	{ &vmp_young_point, NONE, "stock=0 batch=1" },
	{ &vmp_young_point, YOUNG, "" },
	{ &vmp_young_point, ALL & ~YOUNG, "stock=0 batch=1" },
};

static void shown_desc(const struct shown_case *c, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s with traits %#lx", c->point->name, c->traits);
}

KUNIT_ARRAY_PARAM(shown, shown_cases, shown_desc);

static void shown_test(struct kunit *test)
{
	const struct shown_case *c = test->param_value;
	struct vmp_shown shown = vmp_shown_policies(c->point, c->traits);
	char got[64] = "";
	unsigned int i;
	int len = 0;

	KUNIT_EXPECT_EQ(test, vmp_point_exists(c->point, c->traits), *c->want != '\0');
	if (!*c->want)
		return;
	for (i = 0; i < shown.nr; i++)
		len += scnprintf(got + len, sizeof(got) - len, "%s%s=%u", i ? " " : "",
				 shown.names[i], shown.policy[i]);
	KUNIT_EXPECT_STREQ(test, got, c->want);
}

struct profile_case {
	const char *name;
	unsigned long traits;
	unsigned int want[VMP_NR_POINTS];
};

/* Of the points in their order. */
#define POLICIES(...)	{ __VA_ARGS__ }
#define STOCK_POLICIES	POLICIES(0, 0, VMP_AGING_CONTINUE, 0, 0, 0, 0)
#define RECOMMENDED_POLICIES(unmap, young) \
	POLICIES(VMP_FLUSH_BATCH, VMP_SCAN_STOCK, VMP_AGING_CONTINUE, VMP_WRITEBACK_STOCK, \
		 VMP_THROTTLE_MEMCG, unmap, young)
#define MAX_POLICIES(writeback, unmap, young) \
	POLICIES(VMP_FLUSH_BATCH, VMP_SCAN_BUDGET, VMP_AGING_CONTINUE, writeback, \
		 VMP_THROTTLE_ALL, unmap, young)

static const struct profile_case profile_cases[] = {
	{ "stock", NONE, STOCK_POLICIES },
	{ "stock", ALL, STOCK_POLICIES },
	{ "recommended", NONE, RECOMMENDED_POLICIES(1, 1) },
	{ "recommended", BUDGET, RECOMMENDED_POLICIES(1, 1) },
	{ "recommended", ALL, RECOMMENDED_POLICIES(0, 0) },
	{ "max", NONE, MAX_POLICIES(1, 1, 1) },
	{ "max", BUDGET, MAX_POLICIES(1, 1, 1) },
	{ "max", FEEDBACK, MAX_POLICIES(0, 1, 1) },
	{ "max", UNMAP, MAX_POLICIES(1, 0, 1) },
	{ "max", YOUNG, MAX_POLICIES(1, 1, 0) },
	{ "max", ALL, MAX_POLICIES(0, 0, 0) },
};

static void profile_desc(const struct profile_case *c, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s with traits %#lx", c->name, c->traits);
}

KUNIT_ARRAY_PARAM(profile, profile_cases, profile_desc);

static void profile_test(struct kunit *test)
{
	const struct profile_case *c = test->param_value;
	int profile = match_string(vmp_profile_names, vmp_nr_profiles, c->name);
	struct vmp_settings got = { .policy = { 9, 9, 9, 9, 9, 9, 9 }, .floor = 3 };
	unsigned int i;

	KUNIT_ASSERT_GE(test, profile, 0);
	vmp_set_profile(&got, profile, c->traits);
	for (i = 0; i < VMP_NR_POINTS; i++)
		KUNIT_EXPECT_EQ_MSG(test, got.policy[i], c->want[i], "point %u", i);
	KUNIT_EXPECT_EQ(test, got.floor, 3);
}

static void kinds_test(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, vmp_nr_names(vmp_unmap_point.option, ALL & ~DISCARD), 3);
	KUNIT_EXPECT_EQ(test, vmp_nr_names(vmp_unmap_point.option, DISCARD), 1);
	KUNIT_EXPECT_STREQ(test, vmp_unmap_point.option->names[0], "anon");
	KUNIT_EXPECT_EQ(test, vmp_nr_names(vmp_writeback_point.option, ALL), 2);
}

static struct kunit_case control_cases[] = {
	KUNIT_CASE_PARAM(shown_test, shown_gen_params),
	KUNIT_CASE_PARAM(profile_test, profile_gen_params),
	KUNIT_CASE(kinds_test),
	{}
};

static struct kunit_suite control_suite = {
	.name = "vmscan_policy_control",
	.test_cases = control_cases,
};

kunit_test_suite(control_suite);
