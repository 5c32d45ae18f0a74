// SPDX-License-Identifier: GPL-2.0
/*
 * The aging point: when a pass of our own loop makes a new generation, and what
 * that means for the rest of the pass.
 *
 * Eviction takes from the oldest of at least three generations. Making the next
 * one walks the page tables of all processes of the memcg, which is the longest
 * wait that a reclaimer has. "async" has a worker do that while something cold
 * is left to evict.
 */
#include <linux/debugfs.h>
#include <linux/memcontrol.h>
#include <linux/mmzone.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/swap.h>
#include <kunit/visibility.h>

#include "internal.h"
#include "trace.h"

/*
 * "async" asks for a new generation when the last cold one has less than this
 * part of all evictable pages left. Reclaim evicts these while a worker walks.
 */
#define ASYNC_SHARE	32

enum vmp_aging_stat {
	STAT_SYNC,		/* generations made by a reclaimer */
	STAT_FAILED,		/* ... not made: another task was at it */
	STAT_WAITED,		/* waits for that task, of one tick each */
	STAT_ASYNC,		/* generations made by a worker */
	STAT_STALE,		/* ... found made when the worker came */
	STAT_OFFLINE,		/* ... not due any more: the memcg was removed */
	STAT_REQUESTS,		/* requests to a worker by what became of them */
	NR_AGING_STATS = STAT_REQUESTS + VMP_GONE + 1,
};

static const char *const stat_names[NR_AGING_STATS] = {
	[STAT_SYNC] = "sync",
	[STAT_FAILED] = "failed",
	[STAT_WAITED] = "waited",
	[STAT_ASYNC] = "async",
	[STAT_STALE] = "stale",
	[STAT_OFFLINE] = "offline",
	[STAT_REQUESTS + VMP_QUEUED] = "queued",
	[STAT_REQUESTS + VMP_MERGED] = "merged",
	[STAT_REQUESTS + VMP_FULL] = "full",
	[STAT_REQUESTS + VMP_GONE] = "gone",
};

static DEFINE_PER_CPU(u64 [NR_AGING_STATS], aging_stats);
static struct vmp_aging_queue aging_queue;

static void count_stat(unsigned int stat)
{
	this_cpu_inc(aging_stats[stat]);
}

/**
 * vmp_aging_cold() - is there a generation to evict from?
 * @pass: the pass, with the generations
 *
 * Return: false if eviction is impossible until the next aging.
 */
bool vmp_aging_cold(const struct vmscan_pass *pass)
{
	return pass->nr_gens > MIN_NR_GENS;
}

/**
 * vmp_aging_decide() - is it time for a new generation?
 * @aging: the policy
 * @pass: the pass, with its priority and the generations
 *
 * "stop" decides as the loop of Linux 6.12 does, which never ages at the default
 * priority, and above that keeps the youngest and the oldest generation from
 * being too large and too small a part of all. "continue" decides as that of 7.2
 * does. "async" asks a worker when the last cold generation is about to run out;
 * not earlier, because a generation made right after another one has no pages
 * and is no use.
 *
 * Return: whether it is, and who is to make it.
 */
enum vmp_age vmp_aging_decide(enum vmp_aging aging, const struct vmscan_pass *pass)
{
	bool raised = pass->priority < DEF_PRIORITY;
	bool few = pass->nr_gens == MIN_NR_GENS + 1;
	bool old_small, young_large, old_left;
	unsigned long evictable = 0;
	unsigned int i;

	if (!vmp_aging_cold(pass))
		return raised || aging != VMP_AGING_STOP ? VMP_AGE_NOW :
							   VMP_AGE_NO;
	if (!few)
		return VMP_AGE_NO;

	for (i = 0; i < pass->nr_gens; i++)
		evictable += pass->nr_pages[i];
	old_small = pass->nr_pages[0] * (MIN_NR_GENS + 2) < evictable;
	old_left = pass->nr_pages[0] >= evictable / ASYNC_SHARE;
	young_large = pass->nr_pages[MIN_NR_GENS] * MIN_NR_GENS > evictable;

	switch (aging) {
	case VMP_AGING_STOP:
		return raised && (young_large || old_small) ? VMP_AGE_NOW :
							      VMP_AGE_NO;
	case VMP_AGING_CONTINUE:
		return raised ? VMP_AGE_NOW : VMP_AGE_NO;
	case VMP_AGING_ASYNC:
		return old_left ? VMP_AGE_NO : VMP_AGE_LATER;
	}

	return VMP_AGE_NO;
}
EXPORT_SYMBOL_IF_KUNIT(vmp_aging_decide);

static void trace_begin(const struct vmp_where *where, bool async, u64 before)
{
	if (trace_aging_begin_enabled() || trace_aging_end_enabled())
		trace_aging_begin(where, vmp_begin_id(VMP_SPAN_AGING), async, before);
}

/* Tells vmp_scan_end() where the first aging was. */
static void note_aged(const struct vmscan_pass *pass, struct vmp_pass_note *note)
{
	if (note->aged)
		return;

	note->aged = true;
	note->batches_before = pass->nr_batches;
}

/**
 * vmp_aging_begin() - the next step is to age
 * @pass: the pass
 * @note: what is known of it
 */
void vmp_aging_begin(const struct vmscan_pass *pass, struct vmp_pass_note *note)
{
	const struct vmp_where where = vmp_where(pass->ops, to_vmp_set(pass->ops)->aging,
						 pass->memcg, pass->nid);

	note->before = pass->max_seq;
	trace_begin(&where, false, pass->max_seq);
}

/**
 * vmp_aging_result() - take note of what has come of the last step, if it was to age
 * @pass: the pass
 * @note: what is known of it
 */
void vmp_aging_result(const struct vmscan_pass *pass, struct vmp_pass_note *note)
{
	const struct vmp_set *set = to_vmp_set(pass->ops);
	struct vmp_where where;
	u64 before;

	if (pass->last != VMSCAN_AGE)
		return;

	count_stat(pass->progress ? STAT_SYNC : STAT_FAILED);
	if (pass->waited)
		count_stat(STAT_WAITED);
	if (pass->progress)
		note_aged(pass, note);
	if (trace_aging_end_enabled()) {
		where = vmp_where(pass->ops, set->aging, pass->memcg, pass->nid);
		/* void if another set has come in */
		before = note->before ?: pass->max_seq - pass->progress;
		trace_aging_end(&where, vmp_end_id(VMP_SPAN_AGING), false, before,
				before + pass->progress);
	}
}

static bool age_later(const struct vmscan_pass *pass)
{
	const struct vmp_aging_request request = {
		.memcg = pass->memcg,
		.nid = pass->nid,
		.max_seq = pass->max_seq,
		.swappiness = pass->swappiness,
		.set = to_vmp_set(pass->ops)->number,
	};
	enum vmp_queued queued = vmp_aging_queue_add(&aging_queue, &request);

	count_stat(STAT_REQUESTS + queued);

	return queued == VMP_QUEUED;
}

/**
 * vmp_aging_step() - is it time to age?
 * @pass: the pass
 * @note: what is known of it
 *
 * After a step that was to age, a batch comes first, whatever came of it.
 *
 * Return: true if the next step is to make a generation; a worker may have been told to.
 */
bool vmp_aging_step(const struct vmscan_pass *pass, struct vmp_pass_note *note)
{
	if (pass->last == VMSCAN_AGE)
		return false;

	switch (vmp_aging_decide(to_vmp_set(pass->ops)->aging, pass)) {
	case VMP_AGE_NOW:
		vmp_aging_begin(pass, note);
		return true;
	case VMP_AGE_LATER:
		if (age_later(pass))
			note_aged(pass, note);
		break;
	case VMP_AGE_NO:
		break;
	}

	return false;
}

static void age_request(const struct vmp_aging_request *request)
{
	const struct vmp_where where = {
		.policy = VMP_AGING_ASYNC,
		.set = request->set,
		.cgroup = vmp_cgroup_id(request->memcg),
		.nid = request->nid,
	};
	bool aged;

	if (!mem_cgroup_online(request->memcg)) {
		count_stat(STAT_OFFLINE);
		return;
	}

	trace_begin(&where, true, request->max_seq);
	aged = vmscan_age_memcg(request->memcg, request->nid, request->max_seq,
				request->swappiness);
	count_stat(aged ? STAT_ASYNC : STAT_STALE);
	if (trace_aging_end_enabled())
		trace_aging_end(&where, vmp_end_id(VMP_SPAN_AGING), true, request->max_seq,
				request->max_seq + aged);
}

static void async_retire(void)
{
	vmp_aging_queue_drain(&aging_queue);
}

static const struct vmp_policy aging_policies[] = {
	[VMP_AGING_STOP] = { .name = "stop" },
	[VMP_AGING_CONTINUE] = { .name = "continue" },
	[VMP_AGING_ASYNC] = { .name = "async", .retire = async_retire },
};

static int stats_show(struct seq_file *m, void *v)
{
	vmp_show_counters(m, stat_names, aging_stats, NR_AGING_STATS);

	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

static void aging_create_files(struct dentry *dir)
{
	debugfs_create_file("stats", 0444, dir, NULL, &stats_fops);
}

const struct vmp_point vmp_aging_point = {
	.name = "aging",
	.policies = aging_policies,
	.nr_policies = ARRAY_SIZE(aging_policies),
	.needs = &vmp_scan_point,
	.in_effect = vmp_scan_ages,
	.create_files = aging_create_files,
};
EXPORT_SYMBOL_IF_KUNIT(vmp_aging_point);

/**
 * vmp_aging_init() - get the workers ready
 *
 * Return: 0 or -ENOMEM.
 */
int vmp_aging_init(void)
{
	return vmp_aging_queue_init(&aging_queue, age_request);
}

/* Nothing may be queued any more: after vmp_control_exit(). */
void vmp_aging_exit(void)
{
	vmp_aging_queue_destroy(&aging_queue);
}
