// SPDX-License-Identifier: GPL-2.0
/* What the policy files take, and what is a number to the files that hold one. */
#include <kunit/test.h>
#include <linux/bits.h>

#include "../module/internal.h"

struct point_case {
	const struct vmp_point *point;
	/* Tools and recordings know the policies by name and by position. */
	const char *want;
};

static const struct point_case point_cases[] = {
	{ &vmp_flush_point, "flush: stock batch" },
	{ &vmp_scan_point, "scan: stock budget v6.12" },
	{ &vmp_aging_point, "aging: stop continue" },
	{ &vmp_writeback_point, "writeback: stock feedback" },
	{ &vmp_throttle_point, "throttle: stock memcg all" },
	{ &vmp_unmap_point, "unmap: stock batch" },
	{ &vmp_young_point, "young: stock batch" },
};

static void point_desc(const struct point_case *c, char *desc)
{
	strscpy(desc, c->want, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(point, point_cases, point_desc);

static void point_test(struct kunit *test)
{
	const struct point_case *c = test->param_value;
	char got[64];
	unsigned int i;
	int len;

	len = scnprintf(got, sizeof(got), "%s:", c->point->name);
	for (i = 0; i < c->point->nr_policies; i++)
		len += scnprintf(got + len, sizeof(got) - len, " %s",
				 c->point->policies[i].name);
	KUNIT_EXPECT_STREQ(test, got, c->want);
}

struct choice_case {
	const struct vmp_point *point;
	const char *text;
	int want;
};

static const struct choice_case choice_cases[] = {
	{ &vmp_flush_point, "stock", VMP_FLUSH_STOCK },
	{ &vmp_flush_point, "batch", VMP_FLUSH_BATCH },
	{ &vmp_flush_point, "batch\n", VMP_FLUSH_BATCH },
	{ &vmp_flush_point, "batch\n\n", -EINVAL },
	{ &vmp_flush_point, "Batch", -EINVAL },
	{ &vmp_flush_point, "bat", -EINVAL },
	{ &vmp_flush_point, "batches", -EINVAL },
	{ &vmp_flush_point, " batch", -EINVAL },
	{ &vmp_flush_point, "[batch]", -EINVAL },
	{ &vmp_flush_point, "1", -EINVAL },
	{ &vmp_flush_point, "\n", -EINVAL },
	{ &vmp_flush_point, "", -EINVAL },
	/* what another point takes */
	{ &vmp_flush_point, "budget", -EINVAL },
	{ &vmp_aging_point, "stock", -EINVAL },
	/* all that the others take but stock */
	{ &vmp_scan_point, "budget", VMP_SCAN_BUDGET },
	{ &vmp_scan_point, "v6.12", VMP_SCAN_6_12 },
	{ &vmp_scan_point, "v6.1", -EINVAL },
	{ &vmp_aging_point, "stop", VMP_AGING_STOP },
	{ &vmp_aging_point, "continue", VMP_AGING_CONTINUE },
	{ &vmp_writeback_point, "feedback", VMP_WRITEBACK_FEEDBACK },
	{ &vmp_throttle_point, "memcg", VMP_THROTTLE_MEMCG },
	{ &vmp_throttle_point, "all", VMP_THROTTLE_ALL },
	{ &vmp_unmap_point, "batch", VMP_RMAP_BATCH },
	{ &vmp_young_point, "batch", VMP_RMAP_BATCH },
};

static void choice_desc(const struct choice_case *c, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s/policy '%*pE'",
		 c->point->name, (int)strlen(c->text), c->text);
}

KUNIT_ARRAY_PARAM(choice, choice_cases, choice_desc);

static void choice_test(struct kunit *test)
{
	const struct choice_case *c = test->param_value;
	const char *names[VMP_MAX_POLICIES];
	unsigned int i;

	KUNIT_ASSERT_LE(test, c->point->nr_policies, ARRAY_SIZE(names));
	for (i = 0; i < c->point->nr_policies; i++)
		names[i] = c->point->policies[i].name;

	KUNIT_EXPECT_EQ(test,
			vmp_parse_choice(c->point->name, c->text, names,
					 c->point->nr_policies),
			c->want);
}

static const char *const kinds[] = { "lazyfree", "anon", "file" };

#define LAZYFREE	BIT(0)
#define ANON		BIT(1)
#define FILES		BIT(2)
#define UNCHANGED	77777

struct choices_case {
	const char *text;
	int err;
	unsigned int want;
};

static const struct choices_case choices_cases[] = {
	{ "none", 0, 0 },
	{ "none\n", 0, 0 },
	{ "lazyfree", 0, LAZYFREE },
	{ "file\n", 0, FILES },
	{ "lazyfree,anon", 0, LAZYFREE | ANON },
	{ "lazyfree,anon,file\n", 0, LAZYFREE | ANON | FILES },
	/* in any order, and twice */
	{ "file,anon", 0, ANON | FILES },
	{ "anon,anon", 0, ANON },
	{ "", -EINVAL, UNCHANGED },
	{ "\n", -EINVAL, UNCHANGED },
	{ ",", -EINVAL, UNCHANGED },
	{ "all", -EINVAL, UNCHANGED },
	{ "File", -EINVAL, UNCHANGED },
	{ "fil", -EINVAL, UNCHANGED },
	{ "files", -EINVAL, UNCHANGED },
	{ " file", -EINVAL, UNCHANGED },
	{ "[file]", -EINVAL, UNCHANGED },
	{ "file,", -EINVAL, UNCHANGED },
	{ ",file", -EINVAL, UNCHANGED },
	{ "anon,,file", -EINVAL, UNCHANGED },
	{ "anon, file", -EINVAL, UNCHANGED },
	{ "file anon", -EINVAL, UNCHANGED },
	/* a newline ends it */
	{ "anon\n,file", -EINVAL, UNCHANGED },
	{ "file\n\n", -EINVAL, UNCHANGED },
	/* nothing and something */
	{ "none,file", -EINVAL, UNCHANGED },
	{ "file,none", -EINVAL, UNCHANGED },
};

static void choices_desc(const struct choices_case *c, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "'%*pE'", (int)strlen(c->text), c->text);
}

KUNIT_ARRAY_PARAM(choices, choices_cases, choices_desc);

static void choices_test(struct kunit *test)
{
	const struct choices_case *c = test->param_value;
	unsigned int chosen = UNCHANGED;
	char text[32];

	KUNIT_ASSERT_GE(test, strscpy(text, c->text, sizeof(text)), 0);
	KUNIT_EXPECT_EQ(test,
			vmp_parse_choices("choices", text, kinds, ARRAY_SIZE(kinds), &chosen),
			c->err);
	KUNIT_EXPECT_EQ(test, chosen, c->want);
}

struct number_case {
	const char *text;
	unsigned int min;
	unsigned int max;
	int err;
	unsigned int want;
};

#define FOLIOS(text, err, want) \
	{ text, 1, VMSCAN_FLUSH_MAX_FOLIOS, err, want }
#define SWITCH(text, err, want) { text, 0, 1, err, want }

static const struct number_case number_cases[] = {
	FOLIOS("1", 0, 1),
	FOLIOS("31\n", 0, 31),
	FOLIOS("4096", 0, 4096),
	FOLIOS("0x10", 0, 16),
	FOLIOS("0", -ERANGE, UNCHANGED),
	FOLIOS("4097", -ERANGE, UNCHANGED),
	/* 1 to whoever loses the upper bits */
	FOLIOS("4294967297", -ERANGE, UNCHANGED),
	FOLIOS("18446744073709551617", -ERANGE, UNCHANGED),
	FOLIOS("-1", -EINVAL, UNCHANGED),
	FOLIOS("", -EINVAL, UNCHANGED),
	FOLIOS("\n", -EINVAL, UNCHANGED),
	FOLIOS("many", -EINVAL, UNCHANGED),
	FOLIOS("31 32", -EINVAL, UNCHANGED),
	FOLIOS(" 31", -EINVAL, UNCHANGED),
	SWITCH("0", 0, 0),
	SWITCH("1", 0, 1),
	SWITCH("2", -ERANGE, UNCHANGED),
	SWITCH("on", -EINVAL, UNCHANGED),
};

static void number_desc(const struct number_case *c, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "'%*pE' of %u to %u",
		 (int)strlen(c->text), c->text, c->min, c->max);
}

KUNIT_ARRAY_PARAM(number, number_cases, number_desc);

static void number_test(struct kunit *test)
{
	const struct number_case *c = test->param_value;
	unsigned int value = UNCHANGED;

	KUNIT_EXPECT_EQ(test,
			vmp_parse_number("number", c->text, c->min, c->max,
					 &value),
			c->err);
	KUNIT_EXPECT_EQ(test, value, c->want);
}

static struct kunit_case files_cases[] = {
	KUNIT_CASE_PARAM(point_test, point_gen_params),
	KUNIT_CASE_PARAM(choice_test, choice_gen_params),
	KUNIT_CASE_PARAM(choices_test, choices_gen_params),
	KUNIT_CASE_PARAM(number_test, number_gen_params),
	{}
};

static struct kunit_suite files_suite = {
	.name = "vmscan_policy_files",
	.test_cases = files_cases,
};

kunit_test_suite(files_suite);
