// SPDX-License-Identifier: GPL-2.0
/* The queue of requests to age. */
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/memcontrol.h>
#include <linux/percpu-refcount.h>

#include "../module/internal.h"

/* Memcgs that nobody but the queue uses: it looks at their css only. */
static struct mem_cgroup *memcgs[2];
static struct vmp_aging_queue *queue;
static struct completion gate;
static atomic_t nr_aged;
static atomic_t nr_released;

static void release(struct percpu_ref *ref)
{
	atomic_inc(&nr_released);
}

static void wait_at_gate(const struct vmp_aging_request *request)
{
	wait_for_completion(&gate);
	atomic_inc(&nr_aged);
}

static void age_at_once(const struct vmp_aging_request *request)
{
	atomic_inc(&nr_aged);
}

static int queue_init(struct kunit *test)
{
	unsigned int i;

	init_completion(&gate);
	atomic_set(&nr_aged, 0);
	atomic_set(&nr_released, 0);
	for (i = 0; i < ARRAY_SIZE(memcgs); i++) {
		memcgs[i] = kunit_kzalloc(test, sizeof(*memcgs[i]), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, memcgs[i]);
		KUNIT_ASSERT_EQ(test, percpu_ref_init(&memcgs[i]->css.refcnt,
						      release, 0, GFP_KERNEL),
				0);
	}
	queue = kunit_kzalloc(test, sizeof(*queue), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, queue);
	KUNIT_ASSERT_EQ(test, vmp_aging_queue_init(queue, wait_at_gate), 0);

	return 0;
}

static void remove_memcg(unsigned int i)
{
	if (!percpu_ref_is_dying(&memcgs[i]->css.refcnt))
		percpu_ref_kill(&memcgs[i]->css.refcnt);
}

/* The reference counter goes to atomic mode after a while. One that is wrong never gets there. */
static void wait_released(struct kunit *test, unsigned int i)
{
	static bool stuck;
	unsigned long end = jiffies + 60 * HZ;

	while (!stuck && !percpu_ref_is_zero(&memcgs[i]->css.refcnt)) {
		stuck = time_after(jiffies, end);
		schedule_timeout_uninterruptible(1);
	}
	KUNIT_EXPECT_FALSE(test, stuck);
}

static void queue_exit(struct kunit *test)
{
	unsigned int i;

	complete_all(&gate);
	if (queue && queue->wq)
		vmp_aging_queue_destroy(queue);
	queue = NULL;
	for (i = 0; i < ARRAY_SIZE(memcgs); i++) {
		if (!memcgs[i])
			continue;
		remove_memcg(i);
		wait_released(test, i);
		percpu_ref_exit(&memcgs[i]->css.refcnt);
		memcgs[i] = NULL;
	}
}

static enum vmp_queued add(unsigned int memcg, int nid)
{
	const struct vmp_aging_request request = {
		.memcg = memcgs[memcg],
		.nid = nid,
	};

	return vmp_aging_queue_add(queue, &request);
}

static void duplicate_test(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, add(0, 0), VMP_QUEUED);
	KUNIT_EXPECT_EQ(test, add(0, 0), VMP_MERGED);
	KUNIT_EXPECT_EQ(test, add(0, 1), VMP_QUEUED);
	KUNIT_EXPECT_EQ(test, add(1, 0), VMP_QUEUED);
	KUNIT_EXPECT_EQ(test, add(0, 1), VMP_MERGED);
	KUNIT_EXPECT_EQ(test, add(1, 0), VMP_MERGED);

	complete_all(&gate);
	vmp_aging_queue_drain(queue);
	KUNIT_EXPECT_EQ(test, atomic_read(&nr_aged), 3);

	/* Done is no duplicate any more. */
	KUNIT_EXPECT_EQ(test, add(0, 0), VMP_QUEUED);
	vmp_aging_queue_drain(queue);
	KUNIT_EXPECT_EQ(test, atomic_read(&nr_aged), 4);
}

static void full_test(struct kunit *test)
{
	int nid;

	for (nid = 0; nid < VMP_AGING_SLOTS; nid++)
		KUNIT_EXPECT_EQ_MSG(test, add(0, nid), VMP_QUEUED, "%d", nid);
	KUNIT_EXPECT_EQ(test, add(1, 0), VMP_FULL);
	KUNIT_EXPECT_EQ(test, add(0, VMP_AGING_SLOTS), VMP_FULL);
	KUNIT_EXPECT_EQ(test, add(0, 0), VMP_MERGED);

	complete_all(&gate);
	vmp_aging_queue_drain(queue);
	KUNIT_EXPECT_EQ(test, atomic_read(&nr_aged), VMP_AGING_SLOTS);
	KUNIT_EXPECT_EQ(test, add(1, 0), VMP_QUEUED);
}

static atomic_t nr_to_come, nr_to_end, nr_queued;
static struct completion all_added;
static unsigned int share;

static void adder_ends(void)
{
	if (atomic_dec_and_test(&nr_to_end))
		complete(&all_added);
}

/* Its share of the lruvecs, from @data on, at the same time as the others. */
static int adder_thread(void *data)
{
	long first = (long)data;
	unsigned int i;

	atomic_dec(&nr_to_come);
	while (atomic_read(&nr_to_come))
		cond_resched();
	for (i = 0; i < share; i++)
		if (add(0, first + i) == VMP_QUEUED)
			atomic_inc(&nr_queued);
	adder_ends();

	return 0;
}

/* However many ask at once, each request gets a slot of its own. */
static void concurrent_test(struct kunit *test)
{
	struct task_struct *task;
	unsigned int cpu;
	long first = 0;

	share = VMP_AGING_SLOTS / num_online_cpus();
	atomic_set(&nr_to_come, num_online_cpus());
	atomic_set(&nr_to_end, num_online_cpus());
	atomic_set(&nr_queued, 0);
	init_completion(&all_added);
	for_each_online_cpu(cpu) {
		task = kthread_run_on_cpu(adder_thread, (void *)first, cpu,
					  "vmp_adder/%u");
		first += share;
		if (IS_ERR(task)) {
			KUNIT_FAIL(test, "no thread on CPU %u", cpu);
			atomic_dec(&nr_to_come);
			adder_ends();
		}
	}
	wait_for_completion(&all_added);
	KUNIT_EXPECT_EQ(test, atomic_read(&nr_queued), first);

	complete_all(&gate);
	vmp_aging_queue_drain(queue);
	KUNIT_EXPECT_EQ(test, atomic_read(&nr_aged), first);
}

static void no_memcg_test(struct kunit *test)
{
	const struct vmp_aging_request request = {};

	KUNIT_EXPECT_EQ(test, vmp_aging_queue_add(queue, &request), VMP_QUEUED);
	KUNIT_EXPECT_EQ(test, vmp_aging_queue_add(queue, &request), VMP_MERGED);
	complete_all(&gate);
	vmp_aging_queue_drain(queue);
	KUNIT_EXPECT_EQ(test, atomic_read(&nr_aged), 1);
}

/* A memcg that was removed stays until its request is done, and is let go then. */
static void removed_test(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, add(0, 0), VMP_QUEUED);
	remove_memcg(0);
	synchronize_rcu();
	schedule_timeout_uninterruptible(HZ / 10);
	KUNIT_EXPECT_EQ(test, atomic_read(&nr_released), 0);

	complete_all(&gate);
	vmp_aging_queue_drain(queue);
	wait_released(test, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&nr_released), 1);
}

static void gone_test(struct kunit *test)
{
	remove_memcg(0);
	wait_released(test, 0);

	KUNIT_EXPECT_EQ(test, add(0, 0), VMP_GONE);
	/* It has left its slot free, and took nothing else with it. */
	KUNIT_EXPECT_EQ(test, add(0, 0), VMP_GONE);
	KUNIT_EXPECT_EQ(test, add(1, 0), VMP_QUEUED);
	complete_all(&gate);
	vmp_aging_queue_drain(queue);
	KUNIT_EXPECT_EQ(test, atomic_read(&nr_aged), 1);
}

/* Unload does what is queued, and leaves no reference. */
static void unload_test(struct kunit *test)
{
	int nid;

	queue->age = age_at_once;
	for (nid = 0; nid < VMP_AGING_SLOTS; nid++)
		KUNIT_EXPECT_EQ(test, add(nid % 2, nid), VMP_QUEUED);
	vmp_aging_queue_destroy(queue);
	queue->wq = NULL;
	KUNIT_EXPECT_EQ(test, atomic_read(&nr_aged), VMP_AGING_SLOTS);

	/* Ends only if the requests have given all references back. */
	remove_memcg(0);
	remove_memcg(1);
	wait_released(test, 0);
	wait_released(test, 1);
}

static struct kunit_case queue_cases[] = {
	KUNIT_CASE(duplicate_test),
	KUNIT_CASE(full_test),
	KUNIT_CASE(concurrent_test),
	KUNIT_CASE(no_memcg_test),
	KUNIT_CASE(removed_test),
	KUNIT_CASE(gone_test),
	KUNIT_CASE(unload_test),
	{}
};

static struct kunit_suite queue_suite = {
	.name = "vmscan_policy_aging_queue",
	.init = queue_init,
	.exit = queue_exit,
	.test_cases = queue_cases,
};

kunit_test_suite(queue_suite);
