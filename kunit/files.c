// SPDX-License-Identifier: GPL-2.0
/* What each debugfs file takes and refuses. */
#include <kunit/test.h>

#include "../module/internal.h"

static const char *const policies[] = { "stock", "batch" };
static const char *const profiles[] = { "stock", "max" };
static const char *const agings[] = { "stop", "continue", "async" };
static const char *const floors[] = { "none", "small", "always" };

struct choice_case {
	const char *file;
	const char *text;
	const char *const *names;
	int want;
	unsigned int nr_names;
};

static const struct choice_case choice_cases[] = {
	{ "flush/policy", "stock", policies, 0 },
	{ "flush/policy", "batch", policies, 1 },
	{ "flush/policy", "batch\n", policies, 1 },
	{ "flush/policy", "batch\n\n", policies, -EINVAL },
	{ "flush/policy", "Batch", policies, -EINVAL },
	{ "flush/policy", "bat", policies, -EINVAL },
	{ "flush/policy", "batches", policies, -EINVAL },
	{ "flush/policy", " batch", policies, -EINVAL },
	{ "flush/policy", "[batch]", policies, -EINVAL },
	{ "flush/policy", "1", policies, -EINVAL },
	{ "flush/policy", "\n", policies, -EINVAL },
	{ "flush/policy", "", policies, -EINVAL },
	{ "flush/policy", "max", policies, -EINVAL },
	{ "profile", "stock\n", profiles, 0 },
	{ "profile", "max", profiles, 1 },
	{ "profile", "batch", profiles, -EINVAL },
	{ "profile", "", profiles, -EINVAL },
	{ "aging/policy", "stop", agings, 0, 3 },
	{ "aging/policy", "async\n", agings, 2, 3 },
	{ "aging/policy", "stock", agings, -EINVAL, 3 },
	{ "scan/floor", "none", floors, 0, 3 },
	{ "scan/floor", "always\n", floors, 2, 3 },
	{ "scan/floor", "32", floors, -EINVAL, 3 },
};

static void choice_desc(const struct choice_case *c, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s '%*pE'", c->file,
		 (int)strlen(c->text), c->text);
}

KUNIT_ARRAY_PARAM(choice, choice_cases, choice_desc);

static void choice_test(struct kunit *test)
{
	const struct choice_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, vmp_parse_choice(c->file, c->text, c->names,
					       c->nr_names ?: 2), c->want);
}

struct number_case {
	const char *file;
	const char *text;
	unsigned int min;
	unsigned int max;
	int err;
	unsigned int want;
};

#define UNCHANGED	77777
#define FOLIOS(text, err, want) \
	{ "flush/max_folios", text, VMP_FLUSH_FOLIOS_MIN, \
	  VMP_FLUSH_FOLIOS_MAX, err, want }
#define BATCH(text, err, want) \
	{ "scan/batch", text, 1, VMP_SCAN_BATCH_MAX, err, want }
#define SWITCH(file, text, err, want) \
	{ file, text, 0, 1, err, want }

static const struct number_case number_cases[] = {
	FOLIOS("1", 0, 1),
	FOLIOS("31\n", 0, 31),
	FOLIOS("4096", 0, 4096),
	FOLIOS("0x10", 0, 16),
	FOLIOS("0", -ERANGE, UNCHANGED),
	FOLIOS("4097", -ERANGE, UNCHANGED),
	FOLIOS("4294967295", -ERANGE, UNCHANGED),
	FOLIOS("4294967296", -ERANGE, UNCHANGED),
	FOLIOS("99999999999999999999", -ERANGE, UNCHANGED),
	FOLIOS("-1", -EINVAL, UNCHANGED),
	FOLIOS("", -EINVAL, UNCHANGED),
	FOLIOS("\n", -EINVAL, UNCHANGED),
	FOLIOS("many", -EINVAL, UNCHANGED),
	FOLIOS("31 32", -EINVAL, UNCHANGED),
	FOLIOS("3.1", -EINVAL, UNCHANGED),
	FOLIOS(" 31", -EINVAL, UNCHANGED),
	BATCH("1", 0, 1),
	BATCH("4096\n", 0, 4096),
	BATCH("0", -ERANGE, UNCHANGED),
	BATCH("4097", -ERANGE, UNCHANGED),
	BATCH("-64", -EINVAL, UNCHANGED),
	SWITCH("flush/observe", "0", 0, 0),
	SWITCH("flush/observe", "1\n", 0, 1),
	SWITCH("flush/observe", "2", -ERANGE, UNCHANGED),
	SWITCH("flush/observe", "on", -EINVAL, UNCHANGED),
	SWITCH("bypass", "0", 0, 0),
	SWITCH("bypass", "1", 0, 1),
	SWITCH("bypass", "2", -ERANGE, UNCHANGED),
	SWITCH("bypass", "", -EINVAL, UNCHANGED),
};

static void number_desc(const struct number_case *c, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s '%*pE'", c->file,
		 (int)strlen(c->text), c->text);
}

KUNIT_ARRAY_PARAM(number, number_cases, number_desc);

static void number_test(struct kunit *test)
{
	const struct number_case *c = test->param_value;
	unsigned int value = UNCHANGED;

	KUNIT_EXPECT_EQ(test, vmp_parse_number(c->file, c->text, c->min,
					       c->max, &value), c->err);
	KUNIT_EXPECT_EQ(test, value, c->want);
}

static struct kunit_case files_cases[] = {
	KUNIT_CASE_PARAM(choice_test, choice_gen_params),
	KUNIT_CASE_PARAM(number_test, number_gen_params),
	{}
};

static struct kunit_suite files_suite = {
	.name = "vmscan_policy_files",
	.test_cases = files_cases,
};

kunit_test_suite(files_suite);
