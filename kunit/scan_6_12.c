// SPDX-License-Identifier: GPL-2.0
/* The steps of scan=v6.12. */
#include <kunit/test.h>
#include <linux/limits.h>
#include <linux/mmzone.h>

#include "../module/internal.h"

struct step_case {
	const char *name;
	struct vmscan_pass pass;
	struct vmp_pass_note note;
	bool offline;
	enum vmscan_action want;
	u32 budget;		/* when it evicts */
	enum vmp_end why;	/* when it ends */
};

#define PRIO(p)		.pass.priority = (p)
#define GENS(nr, ...)	.pass.nr_gens = (nr), .pass.nr_pages = { __VA_ARGS__ }
#define THREE		GENS(3, 4000, 4000, 4000)
#define ROOT		.pass.root_reclaim = true
#define ENOUGH		.pass.enough = true
#define OFFLINE		.offline = true

/* After a batch: pages moved so far, of that many when it was granted. */
#define BATCH(moved, granted) \
	.pass.last = VMSCAN_EVICT, .pass.progress = true, .pass.nr_batches = 1, \
	.pass.nr_moved = (moved), .note.scan = VMP_SCAN_6_12, .note.budget = (granted)
/* The same, but another loop has made the pass so far. */
#define OTHER_BATCH(moved, granted) \
	.pass.last = VMSCAN_EVICT, .pass.progress = true, .pass.nr_batches = 1, \
	.pass.nr_moved = (moved), .note.scan = VMP_SCAN_BUDGET, .note.budget = (granted)
#define DRY \
	.pass.last = VMSCAN_EVICT, .pass.nr_batches = 1, \
	.note.scan = VMP_SCAN_6_12, .note.budget = 100
#define TO_AGE		.pass.last = VMSCAN_AGE, .note.scan = VMP_SCAN_6_12
#define AGED		TO_AGE, .pass.progress = true, .note.aged = true

#define EVICT(pages)	.want = VMSCAN_EVICT, .budget = (pages)
#define AGE		.want = VMSCAN_AGE
#define END(reason)	.want = VMSCAN_END, .why = VMP_END_##reason

static const struct step_case step_cases[] = {
	/* the first step */
	{ "the priority of what there is", PRIO(12), GENS(3, 4096, 4096, 4096), EVICT(3) },
	{ "all of it", PRIO(0), GENS(4, 1, 2, 3, 4), EVICT(10) },
	{ "more than the note holds", PRIO(0), GENS(4, 1, 1, ULONG_MAX / 2, 1), EVICT(U32_MAX) },
	{ "the priority leaves nothing", PRIO(12), GENS(4, 1000, 1000, 1000, 1000),
	  END(NOTHING) },
	{ "removed: all of it", PRIO(12), GENS(4, 1000, 1000, 1000, 1000), OFFLINE, EVICT(4000) },
	/* aging */
	{ "nothing cold at the default priority", PRIO(12), GENS(2, 5000, 5000),
	  END(NOTHING) },
	{ "nothing cold", PRIO(11), GENS(2, 5000, 5000), AGE },
	{ "nothing cold, removed", PRIO(11), GENS(2, 5000, 5000), OFFLINE, AGE },
	{ "few old ones at the default priority", PRIO(12), GENS(3, 2000, 5000, 3000), EVICT(2) },
	{ "few old ones", PRIO(11), GENS(3, 2000, 5000, 3000), AGE },
	{ "few old ones, removed", PRIO(11), GENS(3, 2000, 5000, 3000), OFFLINE, EVICT(10000) },
	{ "many young ones", PRIO(11), GENS(3, 3000, 1000, 6000), AGE },
	{ "evenly spread", PRIO(11), THREE, EVICT(5) },
	{ "four generations", PRIO(11), GENS(4, 0, 0, 0, 9000), EVICT(4) },
	{ "it has aged", PRIO(11), GENS(3, 9000, 0, 0), AGED, END(AGED) },
	{ "it has aged, and had enough", PRIO(11), THREE, AGED, ROOT, ENOUGH, END(AGED) },
	{ "another task was at it", PRIO(11), THREE, TO_AGE, END(NOTHING) },
	/* from batch to batch */
	{ "settled anew, less", PRIO(2), GENS(3, 100, 100, 100), BATCH(64, 98), EVICT(75) },
	{ "settled anew, more", PRIO(0), GENS(3, 500, 500, 500), BATCH(64, 65), EVICT(1500) },
	{ "settled anew, less than it has scanned", PRIO(2), GENS(3, 100, 100, 100),
	  BATCH(80, 98), EVICT(75) },
	{ "a page less than granted", PRIO(0), THREE, BATCH(99, 100), EVICT(12000) },
	{ "as much as granted", PRIO(0), THREE, BATCH(100, 100), END(BUDGET) },
	{ "more than granted", PRIO(0), THREE, BATCH(611, 100), END(BUDGET) },
	{ "aging comes before the next batch", PRIO(11), GENS(3, 2000, 5000, 3000),
	  BATCH(64, 100), AGE },
	{ "a batch that did nothing", PRIO(11), THREE, DRY, END(NOTHING) },
	{ "a batch that left nothing cold", PRIO(11), GENS(2, 5000, 5000), BATCH(64, 100),
	  END(NOTHING) },
	{ "the priority leaves nothing any more", PRIO(12), GENS(3, 1000, 1000, 1000),
	  BATCH(1, 2), END(BUDGET) },
	/* enough */
	{ "enough, root", PRIO(11), THREE, BATCH(64, 100), ROOT, ENOUGH, END(ENOUGH) },
	{ "enough, a memory cgroup: goes on", PRIO(11), THREE, BATCH(4, 10), ENOUGH, EVICT(5) },
	{ "enough and as much as granted", PRIO(11), THREE, BATCH(100, 100), ROOT, ENOUGH,
	  END(BUDGET) },
	/* the pass began with another loop */
	{ "the other loop's note is no budget", PRIO(11), THREE, OTHER_BATCH(64, 10), EVICT(5) },
	{ "aged by the other loop", PRIO(11), THREE, OTHER_BATCH(64, 10), .note.aged = true,
	  END(AGED) },
};

static void step_desc(const struct step_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(step, step_cases, step_desc);

static void step_test(struct kunit *test)
{
	const struct step_case *c = test->param_value;
	struct vmp_decision got = vmp_scan_6_12_decide(&c->pass, &c->note, !c->offline);

	KUNIT_EXPECT_EQ(test, VMSCAN_STEP_ACTION(got.step), c->want);
	KUNIT_EXPECT_EQ(test, got.end, c->want == VMSCAN_END ? c->why : VMP_GO_ON);
	if (c->want == VMSCAN_EVICT) {
		KUNIT_EXPECT_EQ(test, got.budget, c->budget);
		KUNIT_EXPECT_EQ(test, VMSCAN_STEP_TAKE(got.step), 64);
		KUNIT_EXPECT_EQ(test, VMSCAN_STEP_MOVE(got.step), VMSCAN_MAX_BATCH);
	}
}

static struct kunit_case scan_6_12_cases[] = {
	KUNIT_CASE_PARAM(step_test, step_gen_params),
	{}
};

static struct kunit_suite scan_6_12_suite = {
	.name = "vmscan_policy_scan_6_12",
	.test_cases = scan_6_12_cases,
};

kunit_test_suite(scan_6_12_suite);
