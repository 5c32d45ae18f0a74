// SPDX-License-Identifier: GPL-2.0
/* Policies of other modules: which are taken, and what becomes of one that is chosen. */
#include <kunit/test.h>
#include <linux/err.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/percpu.h>

#include "../module/internal.h"

#define FOLIOS	5

static unsigned int folios(const struct vmscan_call *call)
{
	return FOLIOS;
}

static unsigned int ptes(const struct vmscan_walk *walk)
{
	return 1;
}

static const struct vmscan_module_policy right = {
	.abi = VMSCAN_POLICY_ABI,
	.owner = THIS_MODULE,
	.point = "flush",
	.name = "kunit",
	.about = "Is for a test.",
	.flush_group = folios,
};

/* What is wrong with a policy that is right else: a pointer. */
struct wrong_case {
	const char *what;
	int err;
	size_t field;
	const void *value;
};

#define FIELD(name)	offsetof(struct vmscan_module_policy, name)

static const struct wrong_case wrong_cases[] = {
	{ "no owner", -EINVAL, FIELD(owner), NULL },
	{ "no name", -EINVAL, FIELD(name), NULL },
	{ "an empty name", -EINVAL, FIELD(name), "" },
	{ "a long name", -EINVAL, FIELD(name), "sixteen-letters-" },
	{ "a capital", -EINVAL, FIELD(name), "Kunit" },
	{ "a digit first", -EINVAL, FIELD(name), "1kunit" },
	{ "a blank", -EINVAL, FIELD(name), "ku nit" },
	{ "a bracket", -EINVAL, FIELD(name), "kunit]" },
	{ "one of ours", -EEXIST, FIELD(name), "batch" },
	{ "no point", -ENOENT, FIELD(point), NULL },
	{ "an unknown point", -ENOENT, FIELD(point), "flash" },
	{ "a point without callbacks", -ENOENT, FIELD(point), "aging" },
	{ "nothing about it", -EINVAL, FIELD(about), NULL },
	{ "an empty sentence", -EINVAL, FIELD(about), "" },
	{ "two lines", -EINVAL, FIELD(about), "Is for\na test." },
	{ "no callback", -EINVAL, FIELD(flush_group), NULL },
	{ "another's callback, too", -EINVAL, FIELD(young_ptes), ptes },
	{ "another's callback", -EINVAL, FIELD(point), "scan" },
};

static void wrong_desc(const struct wrong_case *c, char *desc)
{
	strscpy(desc, c->what, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(wrong, wrong_cases, wrong_desc);

static void wrong_test(struct kunit *test)
{
	const struct wrong_case *c = test->param_value;
	struct vmscan_module_policy policy = right;

	*(const void **)((void *)&policy + c->field) = c->value;
	KUNIT_EXPECT_EQ(test, vmscan_policy_register(&policy), c->err);
}

static void abi_test(struct kunit *test)
{
	struct vmscan_module_policy policy = right;

	policy.abi++;
	KUNIT_EXPECT_EQ(test, vmscan_policy_register(&policy), -EPROTONOSUPPORT);
}

static unsigned int shown_with(const char *name)
{
	struct vmp_shown shown = {};
	unsigned int i;

	guard(mutex)(&vmp_control_lock);
	vmp_add_plugins(&shown, VMP_POINT_FLUSH);
	for (i = 0; i < shown.nr; i++)
		if (!strcmp(shown.names[i], name))
			return shown.policy[i];

	return 0;
}

static void twice_test(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, vmscan_policy_register(&right), 0);
	KUNIT_EXPECT_GE(test, shown_with("kunit"), VMP_FIRST_PLUGIN);
	KUNIT_EXPECT_EQ(test, vmscan_policy_register(&right), -EEXIST);
	vmscan_policy_unregister(&right);
	KUNIT_EXPECT_EQ(test, shown_with("kunit"), 0);
	vmscan_policy_unregister(&right);
}

static void full_test(struct kunit *test)
{
	static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g", "h", "i", "j" };
	static struct vmscan_module_policy policies[ARRAY_SIZE(names)];
	unsigned int i, nr = 0;
	int err = 0;

	for (i = 0; i < ARRAY_SIZE(names) && !err; i++) {
		policies[i] = right;
		policies[i].name = names[i];
		err = vmscan_policy_register(&policies[i]);
		nr += !err;
	}
	KUNIT_EXPECT_EQ(test, err, -ENOSPC);
	KUNIT_EXPECT_LE(test, nr, VMP_MAX_PLUGINS);
	while (i--)
		vmscan_policy_unregister(&policies[i]);
}

/* It decides where it is chosen, is counted there, and its module can't go meanwhile. */
static void chosen_test(struct kunit *test)
{
	struct vmp_entry *entry = kunit_kzalloc(test, sizeof(*entry), GFP_KERNEL);
	int refs = module_refcount(THIS_MODULE);
	struct vmscan_call call = {};
	struct vmp_set *set = NULL;
	LIST_HEAD(entries);

	KUNIT_ASSERT_NOT_NULL(test, entry);
	KUNIT_ASSERT_EQ(test, vmscan_policy_register(&right), 0);
	entry->rule.settings.policy[VMP_POINT_FLUSH] = shown_with("kunit");
	list_add(&entry->list, &entries);
	scoped_guard(mutex, &vmp_control_lock)
		set = vmp_make_set(&entries, 1);
	if (IS_ERR(set)) {
		KUNIT_FAIL(test, "no set: %ld", PTR_ERR(set));
		goto unregister;
	}
	KUNIT_EXPECT_EQ(test, module_refcount(THIS_MODULE), refs + 1);
	call.ops = &set->ops;
	scoped_guard(rcu)
		KUNIT_EXPECT_EQ(test, set->ops.flush_group(&call), FOLIOS);
	entry->guard.tripped = 1;
	scoped_guard(rcu)
		KUNIT_EXPECT_EQ(test, set->ops.flush_group(&call), 0);
	vmp_free_set(set);
	KUNIT_EXPECT_EQ(test, module_refcount(THIS_MODULE), refs);
unregister:
	vmscan_policy_unregister(&right);
}

/* An index that no policy has: those that are in force here are to stay. */
#define NOBODYS	(VMP_FIRST_PLUGIN + VMP_MAX_PLUGINS)

/* What the guard has seen of one that goes is not held against the next one in its place. */
static void forget_test(struct kunit *test)
{
	struct vmp_entry *entry = kunit_kzalloc(test, sizeof(*entry), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, entry);
	entry->tried = vmp_default_settings(0);
	entry->tried.policy[VMP_POINT_FLUSH] = NOBODYS;
	guard(mutex)(&vmp_control_lock);
	list_add_tail(&entry->list, &vmp_entries);
	vmp_control_forget(VMP_POINT_FLUSH, NOBODYS + 1);
	vmp_control_forget(VMP_POINT_SCAN, NOBODYS);
	KUNIT_EXPECT_EQ(test, entry->tried.policy[VMP_POINT_FLUSH], NOBODYS);
	vmp_control_forget(VMP_POINT_FLUSH, NOBODYS);
	KUNIT_EXPECT_NE(test, entry->tried.policy[VMP_POINT_FLUSH], NOBODYS);
	list_del(&entry->list);
}

static struct kunit_case plugins_cases[] = {
	KUNIT_CASE_PARAM(wrong_test, wrong_gen_params),
	KUNIT_CASE(abi_test),
	KUNIT_CASE(twice_test),
	KUNIT_CASE(full_test),
	KUNIT_CASE(chosen_test),
	KUNIT_CASE(forget_test),
	{}
};

static struct kunit_suite plugins_suite = {
	.name = "vmscan_policy_plugins",
	.test_cases = plugins_cases,
};

kunit_test_suite(plugins_suite);
