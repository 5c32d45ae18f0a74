// SPDX-License-Identifier: GPL-2.0
/* The registry in mm/vmscan_policy.c, which the module leaves to the tests. */
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/rcupdate.h>

#include "../module/internal.h"
#include "readers.h"

static unsigned int test_group(const struct vmscan_call *call)
{
	return 0;
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

/* The set that a reclaimer asks. */
static const struct vmscan_policy_ops *read_ops(void)
{
	struct vmscan_round round = {};

	vmscan_throttle_ask(&round);

	return round.ops;
}

/* As for a step of a pass. */
static void read_note(struct vmscan_kept *kept)
{
	rcu_read_lock();
	vmscan_in_force(kept);
	rcu_read_unlock();
}

static int registry_suite_init(struct kunit_suite *suite)
{
	vmp_control_detach();
	first = make_ops("first");
	second = make_ops("second");
	second.flush_group = test_group;

	return 0;
}

static void registry_suite_exit(struct kunit_suite *suite)
{
	vmp_control_attach();
}

static void registry_exit(struct kunit *test)
{
	const struct vmscan_policy_ops *ops;

	/* A test that failed half-way leaves its set behind. */
	vmscan_policy_set_bypass(false);
	ops = read_ops();
	if (ops)
		vmscan_policy_publish(ops, NULL);
}

static void invalid_test(struct kunit *test)
{
	struct vmscan_policy_ops ops;

	ops = make_ops(NULL);
	KUNIT_EXPECT_EQ(test, vmscan_policy_publish(NULL, &ops), -EINVAL);

	ops = make_ops("");
	KUNIT_EXPECT_EQ(test, vmscan_policy_publish(NULL, &ops), -EINVAL);

	ops = make_ops("older");
	ops.abi = VMSCAN_POLICY_ABI - 1;
	KUNIT_EXPECT_EQ(test, vmscan_policy_publish(NULL, &ops), -EPROTONOSUPPORT);

	ops = make_ops("newer");
	ops.abi = VMSCAN_POLICY_ABI + 1;
	KUNIT_EXPECT_EQ(test, vmscan_policy_publish(NULL, &ops), -EPROTONOSUPPORT);

	ops = make_ops("not a module");
	ops.owner = NULL;
	KUNIT_EXPECT_EQ(test, vmscan_policy_publish(NULL, &ops), -ENODEV);

	KUNIT_EXPECT_PTR_EQ(test, read_ops(), NULL);
}

static void publish_test(struct kunit *test)
{
	struct vmscan_policy_ops newer = make_ops("newer");

	newer.abi = VMSCAN_POLICY_ABI + 1;

	KUNIT_EXPECT_PTR_EQ(test, read_ops(), NULL);
	KUNIT_EXPECT_EQ(test, vmscan_policy_publish(&first, &second), -ENOENT);
	KUNIT_EXPECT_EQ(test, vmscan_policy_publish(&first, NULL), -ENOENT);
	KUNIT_EXPECT_PTR_EQ(test, read_ops(), NULL);

	KUNIT_ASSERT_EQ(test, vmscan_policy_publish(NULL, &first), 0);
	KUNIT_EXPECT_PTR_EQ(test, read_ops(), &first);

	KUNIT_EXPECT_EQ(test, vmscan_policy_publish(NULL, &second), -EBUSY);
	KUNIT_EXPECT_EQ(test, vmscan_policy_publish(&second, &first), -EBUSY);
	KUNIT_EXPECT_EQ(test, vmscan_policy_publish(&second, NULL), -EBUSY);
	KUNIT_EXPECT_EQ(test, vmscan_policy_publish(NULL, NULL), -EBUSY);
	KUNIT_EXPECT_EQ(test, vmscan_policy_publish(&first, &newer), -EPROTONOSUPPORT);
	KUNIT_EXPECT_PTR_EQ(test, read_ops(), &first);

	KUNIT_EXPECT_EQ(test, vmscan_policy_publish(&first, &second), 0);
	KUNIT_EXPECT_PTR_EQ(test, read_ops(), &second);
	KUNIT_EXPECT_EQ(test, vmscan_policy_publish(&second, NULL), 0);
	KUNIT_EXPECT_PTR_EQ(test, read_ops(), NULL);
	KUNIT_EXPECT_EQ(test, vmscan_policy_publish(&second, NULL), -ENOENT);
}

/* What a set has noted is void for any other, of the same module, too, and for it again. */
static void note_test(struct kunit *test)
{
	struct vmscan_kept kept = {};

	KUNIT_ASSERT_EQ(test, vmscan_policy_publish(NULL, &first), 0);
	read_note(&kept);
	kept.note.words[1] = 1;
	read_note(&kept);
	KUNIT_EXPECT_EQ(test, kept.note.words[1], 1);

	vmscan_policy_set_bypass(true);
	read_note(&kept);
	vmscan_policy_set_bypass(false);
	read_note(&kept);
	KUNIT_EXPECT_EQ(test, kept.note.words[1], 1);

	KUNIT_ASSERT_EQ(test, vmscan_policy_publish(&first, &second), 0);
	KUNIT_EXPECT_EQ(test, second.number, first.number + 1);
	read_note(&kept);
	KUNIT_EXPECT_EQ(test, kept.note.words[1], 0);

	kept.note.words[1] = 2;
	KUNIT_ASSERT_EQ(test, vmscan_policy_publish(&second, &first), 0);
	KUNIT_ASSERT_EQ(test, vmscan_policy_publish(&first, &second), 0);
	read_note(&kept);
	KUNIT_EXPECT_EQ(test, kept.note.words[1], 0);
}

static void bypass_test(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, vmscan_policy_publish(NULL, &second), 0);
	vmscan_policy_set_bypass(true);
	KUNIT_EXPECT_TRUE(test, vmscan_policy_bypassed());
	KUNIT_EXPECT_PTR_EQ(test, read_ops(), NULL);

	vmscan_policy_set_bypass(false);
	KUNIT_EXPECT_FALSE(test, vmscan_policy_bypassed());
	KUNIT_EXPECT_PTR_EQ(test, read_ops(), &second);

	/* Whoever publishes next must not inherit it. */
	vmscan_policy_set_bypass(true);
	KUNIT_EXPECT_EQ(test, vmscan_policy_publish(&second, NULL), 0);
	KUNIT_EXPECT_FALSE(test, vmscan_policy_bypassed());
}

/* Not while it is being patched: the key has another value then. */
static bool flush_branch(void)
{
	return atomic_read(&vmscan_flush_key.key.enabled) == 1;
}

/* From a work item: soon, or when half a minute has passed. */
static bool branch_becomes(bool on, unsigned int seconds)
{
	unsigned long end = jiffies + seconds * HZ;

	while (flush_branch() != on && time_before(jiffies, end))
		schedule_timeout_uninterruptible(HZ / 100);

	return flush_branch() == on;
}

/* The branch goes off later, since patching it interrupts every CPU. */
static void branch_test(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, vmscan_policy_publish(NULL, &second), 0);
	KUNIT_EXPECT_TRUE(test, flush_branch());
	vmscan_policy_set_bypass(true);
	KUNIT_EXPECT_TRUE(test, branch_becomes(false, 120));

	/* Nothing to be on for: the work item has come and gone by then. */
	KUNIT_EXPECT_EQ(test, vmscan_policy_publish(&second, &first), 0);
	vmscan_policy_set_bypass(false);
	schedule_timeout_uninterruptible(HZ / 5);
	KUNIT_EXPECT_FALSE(test, flush_branch());

	/* On at once. */
	KUNIT_EXPECT_EQ(test, vmscan_policy_publish(&first, &second), 0);
	KUNIT_EXPECT_TRUE(test, flush_branch());
}

static int replace_thread(void *data)
{
	struct completion *done = data;

	vmscan_policy_publish(&second, &second);
	complete(done);

	return 0;
}

/* Whoever publishes while the bypass ends must not keep the branch off. */
static void branch_race_test(struct kunit *test)
{
	unsigned int round;

	KUNIT_ASSERT_EQ(test, vmscan_policy_publish(NULL, &second), 0);
	for (round = 0; round < 40; round++) {
		DECLARE_COMPLETION_ONSTACK(done);
		struct task_struct *task;

		vmscan_policy_set_bypass(true);
		static_key_disable(&vmscan_flush_key.key);
		task = kthread_run(replace_thread, &done, "vmp_replace");
		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, task);
		usleep_range(round * 250, round * 250 + 50);
		vmscan_policy_set_bypass(false);
		wait_for_completion(&done);
		KUNIT_ASSERT_TRUE_MSG(test, branch_becomes(true, 10), "round %u", round);
	}
}

static bool inside, leave, left;

/* Callbacks can't sleep. */
static unsigned int wait_throttle(const struct vmscan_round *round)
{
	WRITE_ONCE(inside, true);
	while (!READ_ONCE(leave))
		cpu_relax();
	WRITE_ONCE(left, true);

	return 0;
}

static int reader_thread(void *data)
{
	read_ops();

	return 0;
}

struct unpublish {
	const struct vmscan_policy_ops *ops;
	struct completion done;
	bool waited;
};

static int unpublish_thread(void *data)
{
	struct unpublish *unpublish = data;

	vmscan_policy_publish(unpublish->ops, NULL);
	unpublish->waited = READ_ONCE(left);
	complete_all(&unpublish->done);

	return 0;
}

/*
 * A reader that is inside holds up who takes its set back. Others see nothing; a bypass
 * lasts until then, or the set might be asked once more.
 */
static void reader_inside_test(struct kunit *test)
{
	struct vmscan_policy_ops waiting = make_ops("waiting");
	struct unpublish unpublish = { .ops = &waiting };
	struct task_struct *task;

	init_completion(&unpublish.done);
	inside = false;
	leave = false;
	left = false;
	waiting.throttle = wait_throttle;
	KUNIT_ASSERT_EQ(test, vmscan_policy_publish(NULL, &waiting), 0);

	task = kthread_run(reader_thread, NULL, "vmp_reader");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, task);
	while (!READ_ONCE(inside))
		schedule_timeout_uninterruptible(1);
	vmscan_policy_set_bypass(true);

	task = kthread_run(unpublish_thread, &unpublish, "vmp_unpublish");
	KUNIT_EXPECT_NOT_ERR_OR_NULL(test, task);
	if (!IS_ERR_OR_NULL(task)) {
		unsigned long timeout = wait_for_completion_timeout(&unpublish.done, HZ / 2);

		KUNIT_EXPECT_EQ(test, timeout, 0);
		KUNIT_EXPECT_TRUE(test, vmscan_policy_bypassed());
		KUNIT_EXPECT_PTR_EQ(test, read_ops(), NULL);
	}
	WRITE_ONCE(leave, true);
	if (!IS_ERR_OR_NULL(task)) {
		wait_for_completion(&unpublish.done);
		KUNIT_EXPECT_TRUE(test, unpublish.waited);
		KUNIT_EXPECT_FALSE(test, vmscan_policy_bypassed());
	}
}

/* Who may sleep until something is written. */
static void may_wait_test(struct kunit *test)
{
	void *transaction = current->journal_info;

	KUNIT_EXPECT_TRUE(test, vmscan_may_wait(GFP_KERNEL));
	/* as all writers to XFS */
	KUNIT_EXPECT_TRUE(test, vmscan_may_wait(GFP_NOFS));
	KUNIT_EXPECT_FALSE(test, vmscan_may_wait(GFP_NOIO));

	current->journal_info = &transaction;
	KUNIT_EXPECT_FALSE(test, vmscan_may_wait(GFP_NOFS));
	current->journal_info = transaction;

	/* as by PR_SET_IO_FLUSHER */
	current->flags |= PF_LOCAL_THROTTLE;
	KUNIT_EXPECT_FALSE(test, vmscan_may_wait(GFP_KERNEL));
	current->flags &= ~PF_LOCAL_THROTTLE;
}

/* memory.reclaim of the root has a memory cgroup; policies are told that it is for the machine. */
static void round_memcg_test(struct kunit *test)
{
	struct mem_cgroup *memcg = (void *)test;
	struct vmscan_round of_root = { .memcg = memcg, .root_reclaim = true };
	struct vmscan_round other = { .memcg = memcg };

	vmscan_throttle_ask(&of_root);
	vmscan_throttle_ask(&other);
	KUNIT_EXPECT_PTR_EQ(test, of_root.memcg, NULL);
	KUNIT_EXPECT_PTR_EQ(test, other.memcg, memcg);
}

static struct kunit_case registry_cases[] = {
	KUNIT_CASE(invalid_test),
	KUNIT_CASE(publish_test),
	KUNIT_CASE(note_test),
	KUNIT_CASE(may_wait_test),
	KUNIT_CASE(round_memcg_test),
	KUNIT_CASE(bypass_test),
	KUNIT_CASE_SLOW(branch_test),
	KUNIT_CASE(branch_race_test),
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
