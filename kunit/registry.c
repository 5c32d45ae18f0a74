// SPDX-License-Identifier: GPL-2.0
/* The registry in mm/vmscan_policy.c, which the module leaves to the tests. */
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/module.h>

#include "../module/internal.h"
#include "readers.h"

static enum vmscan_defer test_defer(const struct vmscan_flush_ctx *ctx,
				    const struct folio *folio)
{
	return VMSCAN_DEFER;
}

/* Leaves all folios to the core, which keeps them. */
static void test_drain(struct vmscan_flush_ctx *ctx)
{
}

static struct vmscan_policy_ops first, second;

static struct vmscan_policy_ops make_ops(const char *name)
{
	return (struct vmscan_policy_ops) {
		.abi = VMSCAN_POLICY_ABI,
		.owner = THIS_MODULE,
		.name = name,
	};
}

static const struct vmscan_policy_ops *read_ops(void)
{
	const struct vmscan_policy_ops *ops;
	int idx;

	ops = vmscan_policy_enter(&idx);
	vmscan_policy_exit(idx);

	return ops;
}

static int registry_suite_init(struct kunit_suite *suite)
{
	vmp_control_detach();
	first = make_ops("first");
	second = make_ops("second");
	second.defer_pageout = test_defer;
	second.drain = test_drain;

	return 0;
}

static void registry_suite_exit(struct kunit_suite *suite)
{
	vmp_control_attach();
}

static void registry_exit(struct kunit *test)
{
	const struct vmscan_policy_ops *ops = read_ops();

	/* A test that failed half-way leaves its set behind. */
	vmscan_policy_set_bypass(false);
	if (ops)
		vmscan_policy_unregister(ops);
}

static void invalid_test(struct kunit *test)
{
	struct vmscan_policy_ops ops;

	KUNIT_EXPECT_EQ(test, vmscan_policy_register(NULL), -EINVAL);

	ops = make_ops(NULL);
	KUNIT_EXPECT_EQ(test, vmscan_policy_register(&ops), -EINVAL);

	ops = make_ops("");
	KUNIT_EXPECT_EQ(test, vmscan_policy_register(&ops), -EINVAL);

	ops = make_ops("older");
	ops.abi = VMSCAN_POLICY_ABI - 1;
	KUNIT_EXPECT_EQ(test, vmscan_policy_register(&ops), -EPROTONOSUPPORT);

	ops = make_ops("newer");
	ops.abi = VMSCAN_POLICY_ABI + 1;
	KUNIT_EXPECT_EQ(test, vmscan_policy_register(&ops), -EPROTONOSUPPORT);

	ops = make_ops("nobody's");
	ops.owner = NULL;
	KUNIT_EXPECT_EQ(test, vmscan_policy_register(&ops), -ENODEV);

	ops = make_ops("no drain");
	ops.defer_pageout = test_defer;
	KUNIT_EXPECT_EQ(test, vmscan_policy_register(&ops), -EBADR);

	ops = make_ops("no defer");
	ops.drain = test_drain;
	KUNIT_EXPECT_EQ(test, vmscan_policy_register(&ops), -EBADR);

	KUNIT_EXPECT_PTR_EQ(test, read_ops(), NULL);
}

static void register_test(struct kunit *test)
{
	KUNIT_EXPECT_PTR_EQ(test, read_ops(), NULL);
	KUNIT_ASSERT_EQ(test, vmscan_policy_register(&first), 0);
	KUNIT_EXPECT_PTR_EQ(test, read_ops(), &first);

	KUNIT_EXPECT_EQ(test, vmscan_policy_register(&first), -EBUSY);
	KUNIT_EXPECT_EQ(test, vmscan_policy_register(&second), -EBUSY);
	KUNIT_EXPECT_PTR_EQ(test, read_ops(), &first);

	KUNIT_EXPECT_EQ(test, vmscan_policy_unregister(&second), -ENOENT);
	KUNIT_EXPECT_EQ(test, vmscan_policy_unregister(NULL), -ENOENT);
	KUNIT_EXPECT_PTR_EQ(test, read_ops(), &first);

	KUNIT_EXPECT_EQ(test, vmscan_policy_unregister(&first), 0);
	KUNIT_EXPECT_PTR_EQ(test, read_ops(), NULL);
	KUNIT_EXPECT_EQ(test, vmscan_policy_unregister(&first), -ENOENT);
	KUNIT_EXPECT_EQ(test, vmscan_policy_unregister(NULL), -ENOENT);
}

static void replace_test(struct kunit *test)
{
	struct vmscan_policy_ops newer = make_ops("newer");

	newer.abi = VMSCAN_POLICY_ABI + 1;

	KUNIT_EXPECT_EQ(test, vmscan_policy_replace(NULL, &first), -ENOENT);
	KUNIT_EXPECT_EQ(test, vmscan_policy_replace(&first, &second), -ENOENT);
	KUNIT_EXPECT_PTR_EQ(test, read_ops(), NULL);

	KUNIT_ASSERT_EQ(test, vmscan_policy_register(&first), 0);
	KUNIT_EXPECT_EQ(test, vmscan_policy_replace(&first, &newer),
			-EPROTONOSUPPORT);
	KUNIT_EXPECT_EQ(test, vmscan_policy_replace(&first, NULL), -EINVAL);
	KUNIT_EXPECT_PTR_EQ(test, read_ops(), &first);

	KUNIT_EXPECT_EQ(test, vmscan_policy_replace(&first, &second), 0);
	KUNIT_EXPECT_PTR_EQ(test, read_ops(), &second);
	KUNIT_EXPECT_EQ(test, vmscan_policy_replace(&first, &second), -ENOENT);
	KUNIT_EXPECT_EQ(test, vmscan_policy_unregister(&first), -ENOENT);
	KUNIT_EXPECT_EQ(test, vmscan_policy_unregister(&second), 0);
}

static void bypass_test(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, vmscan_policy_register(&second), 0);
	vmscan_policy_set_bypass(true);
	KUNIT_EXPECT_TRUE(test, vmscan_policy_bypassed());
	KUNIT_EXPECT_PTR_EQ(test, read_ops(), NULL);

	vmscan_policy_set_bypass(false);
	KUNIT_EXPECT_FALSE(test, vmscan_policy_bypassed());
	KUNIT_EXPECT_PTR_EQ(test, read_ops(), &second);

	/* Whoever registers next must not inherit it. */
	vmscan_policy_set_bypass(true);
	KUNIT_EXPECT_EQ(test, vmscan_policy_unregister(&second), 0);
	KUNIT_EXPECT_FALSE(test, vmscan_policy_bypassed());
}

static bool flush_branch(void)
{
	return static_key_enabled(&vmscan_flush_key);
}

/* From a work item: soon, or when half a minute has passed. */
static bool branch_becomes(bool on)
{
	unsigned long end = jiffies + 120 * HZ;

	while (flush_branch() != on && time_before(jiffies, end))
		schedule_timeout_uninterruptible(HZ / 100);

	return flush_branch() == on;
}

/* The branch goes off later, since patching it interrupts every CPU. */
static void branch_test(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, vmscan_policy_register(&second), 0);
	KUNIT_EXPECT_TRUE(test, flush_branch());
	vmscan_policy_set_bypass(true);
	KUNIT_EXPECT_TRUE(test, branch_becomes(false));

	/* Nothing to be on for: the work item has come and gone by then. */
	KUNIT_EXPECT_EQ(test, vmscan_policy_replace(&second, &first), 0);
	vmscan_policy_set_bypass(false);
	schedule_timeout_uninterruptible(HZ / 5);
	KUNIT_EXPECT_FALSE(test, flush_branch());

	/* On at once. */
	KUNIT_EXPECT_EQ(test, vmscan_policy_replace(&first, &second), 0);
	KUNIT_EXPECT_TRUE(test, flush_branch());
}

struct reader {
	struct completion inside;
	struct completion leave;
	struct completion unregistered;
	const struct vmscan_policy_ops *ops;
	bool left;
	bool waited;
};

static int reader_thread(void *data)
{
	struct reader *reader = data;
	int idx;

	reader->ops = vmscan_policy_enter(&idx);
	complete(&reader->inside);
	wait_for_completion(&reader->leave);
	WRITE_ONCE(reader->left, true);
	vmscan_policy_exit(idx);

	return 0;
}

static int unregister_thread(void *data)
{
	struct reader *reader = data;

	vmscan_policy_unregister(&second);
	reader->waited = READ_ONCE(reader->left);
	complete(&reader->unregistered);

	return 0;
}

static void reader_inside_test(struct kunit *test)
{
	struct reader reader = {};
	struct task_struct *task;
	unsigned long left;

	init_completion(&reader.inside);
	init_completion(&reader.leave);
	init_completion(&reader.unregistered);
	KUNIT_ASSERT_EQ(test, vmscan_policy_register(&second), 0);

	task = kthread_run(reader_thread, &reader, "vmp_reader");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, task);
	wait_for_completion(&reader.inside);
	KUNIT_EXPECT_PTR_EQ(test, reader.ops, &second);

	task = kthread_run(unregister_thread, &reader, "vmp_unregister");
	KUNIT_EXPECT_NOT_ERR_OR_NULL(test, task);
	if (!IS_ERR_OR_NULL(task)) {
		/* New readers see nothing; the one inside holds it up. */
		left = wait_for_completion_timeout(&reader.unregistered,
						   HZ / 2);
		KUNIT_EXPECT_EQ(test, left, 0);
		KUNIT_EXPECT_PTR_EQ(test, read_ops(), NULL);
	}
	complete(&reader.leave);
	if (!IS_ERR_OR_NULL(task)) {
		wait_for_completion(&reader.unregistered);
		KUNIT_EXPECT_TRUE(test, reader.waited);
	}
}

static struct kunit_case registry_cases[] = {
	KUNIT_CASE(invalid_test),
	KUNIT_CASE(register_test),
	KUNIT_CASE(replace_test),
	KUNIT_CASE(bypass_test),
	KUNIT_CASE_SLOW(branch_test),
	KUNIT_CASE(reader_inside_test),
	{}
};

static struct kunit_suite registry_suite = {
	.name = "vmscan_policy_registry",
	.suite_init = registry_suite_init,
	.suite_exit = registry_suite_exit,
	.exit = registry_exit,
	.test_cases = registry_cases,
};

kunit_test_suite(registry_suite);
