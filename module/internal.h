/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _VMP_INTERNAL_H
#define _VMP_INTERNAL_H

#undef pr_fmt
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/dcache.h>
#include <linux/mm.h>
#include <linux/seq_file.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "compat.h"

/* The policies of the aging point, in the order in which debugfs shows them. */
enum vmp_aging {
	VMP_AGING_STOP,
	VMP_AGING_CONTINUE,
	VMP_AGING_ASYNC,
};

/* The policies of the throttle point. */
enum vmp_throttle {
	VMP_THROTTLE_STOCK,
	VMP_THROTTLE_MEMCG,
	VMP_THROTTLE_ALL,
};

/* The policy points, in the order in which profiles and trace events number them. */
enum vmp_point_id {
	VMP_POINT_FLUSH,
	VMP_POINT_SCAN,
	VMP_POINT_AGING,
	VMP_POINT_WRITEBACK,
	VMP_POINT_THROTTLE,
	VMP_POINT_UNMAP,
	VMP_POINT_YOUNG,
	VMP_NR_POINTS,
};

/* The policies of the scan point. */
enum vmp_scan {
	VMP_SCAN_STOCK,
	VMP_SCAN_BUDGET,
	VMP_SCAN_6_12,
};

/* For each point the index of a policy. */
struct vmp_choice {
	unsigned int policy[VMP_NR_POINTS];
};

/**
 * struct vmp_set - a set of policies as it is published
 * @ops: what the kernel sees of it
 * @number: 1 for the first, one more for each that followed
 * @scan: which loop goes over an lruvec
 * @aging: for the passes of that loop
 * @feedback: writeback is feedback
 * @throttle: which batches count for throttling
 */
struct vmp_set {
	struct vmscan_policy_ops ops;
	u32 number;
	enum vmp_scan scan;
	enum vmp_aging aging;
	bool feedback;
	enum vmp_throttle throttle;
};

#define to_vmp_set(set)	container_of(set, struct vmp_set, ops)

/**
 * struct vmp_policy - one of the policies of a point
 * @name: as debugfs shows and takes it
 * @only_with: traits that the kernel has to have for the policy to exist
 * @fill: sets the callbacks of the point in a set; NULL if it has none
 * @retire: called when the policy has gone and no reclaimer uses it; may be NULL
 */
struct vmp_policy {
	const char *name;
	unsigned long only_with;
	void (*fill)(struct vmscan_policy_ops *ops);
	void (*retire)(void);
};

/**
 * struct vmp_point - a policy point of the kernel
 * @name: name of the point's directory in debugfs
 * @not_with: traits of which the kernel must have none for the point to exist
 * @policies: what there is to choose from; the first is in force where the point doesn't
 *	exist. Traces know them by their place, so new ones come last
 * @nr_policies: number of @policies
 * @needs: another point, whose policy decides whether this one is in effect; may be NULL
 * @in_effect: whether it is, with that policy and the kernel's traits
 * @create_files: adds the point's other files to its directory
 */
struct vmp_point {
	const char *name;
	unsigned long not_with;
	const struct vmp_policy *policies;
	unsigned int nr_policies;
	const struct vmp_point *needs;
	bool (*in_effect)(unsigned int policy, unsigned long traits);
	void (*create_files)(struct dentry *dir);
};

#define VMP_MAX_POLICIES	8

/**
 * struct vmp_shown - the policies of a point that a kernel has
 * @nr: how many they are
 * @names: their names
 * @policy: their indices in the point's table
 */
struct vmp_shown {
	unsigned int nr;
	const char *names[VMP_MAX_POLICIES];
	unsigned int policy[VMP_MAX_POLICIES];
};

/**
 * struct vmp_where - what every trace event tells
 * @policy: index of the policy in force at its point
 * @set: number of the set in force
 * @cgroup: id of the cgroup that pages are taken from; 0: none
 * @nid: node; -1: none
 */
struct vmp_where {
	u32 policy;
	u32 set;
	u64 cgroup;
	s32 nid;
};

/**
 * struct vmp_number - a debugfs file that holds a number
 * @path: the file, below the module's directory
 * @min: smallest number allowed
 * @max: largest number allowed
 * @value: where the number is; NULL with @get and @set instead
 * @get: reads the number
 * @set: puts a number in range into effect; 0 or an error
 */
struct vmp_number {
	const char *path;
	unsigned int min;
	unsigned int max;
	unsigned int *value;
	unsigned int (*get)(void);
	int (*set)(unsigned int value);
};

/**
 * struct vmp_option - a debugfs file that holds one of some names, or some of them
 * @path: the file, below the module's directory
 * @names: the names
 * @nr_names: how many they are
 * @value: where the index of the current one is; with vmp_create_options(), a bit for each
 */
struct vmp_option {
	const char *path;
	const char *const *names;
	unsigned int nr_names;
	unsigned int *value;
};

/* flush.c */
/* The policies of the flush point. */
enum vmp_flush {
	VMP_FLUSH_STOCK,
	VMP_FLUSH_BATCH,
};

extern const struct vmp_point vmp_flush_point;

/* scan.c */
/* Why a pass ends. */
enum vmp_end {
	VMP_END_BUDGET,		/* the budget is used up */
	VMP_END_NOTHING,	/* there was nothing to scan */
	VMP_END_BELOW_MIN,	/* the memcg fell below its memory.min */
	VMP_END_ENOUGH,		/* enough is reclaimed */
	VMP_END_AGED,		/* it has aged, and so had its turn */
	VMP_NR_ENDS,
	VMP_GO_ON = VMP_NR_ENDS,
};

/**
 * struct vmp_pass_note - what is known of a pass from one step to the next
 * @before: the youngest generation before the last aging
 * @budget: for the loop of 6.12, until it ages: what it may scan, as settled last
 * @scan: the loop that made the last step
 * @to_age: for the loop of 6.12: that was to age
 * @aged: a generation was made in the pass, or a worker told to
 * @batches_before: batches of the pass before that
 */
struct vmp_pass_note {
	union {
		u32 before;
		u32 budget;
	};
	u32 scan : 2;
	u32 to_age : 1;
	u32 aged : 1;
	u32 batches_before : 28;
};

static_assert(sizeof(struct vmp_pass_note) <= sizeof(struct vmscan_note));

extern const struct vmp_point vmp_scan_point;

unsigned long vmp_scan_budget(unsigned long evictable,
			      unsigned long unprotected, int priority,
			      bool online, unsigned long floor);
unsigned long vmp_scan_move(unsigned long budget, unsigned long moved,
			    unsigned long floor, unsigned long batch);
enum vmp_end vmp_scan_end(const struct vmscan_pass *pass, const struct vmp_pass_note *note,
			  enum vmp_aging aging, unsigned long budget, unsigned long floor);
bool vmp_scan_walks(enum vmp_scan scan, enum vmp_aging aging, unsigned long traits);
bool vmp_scan_ages(unsigned int scan, unsigned long traits);

/* scan_6_12.c */
enum vmp_end vmp_scan_6_12_end(const struct vmscan_pass *pass, const struct vmp_pass_note *note);
u64 vmp_scan_6_12_step(const struct vmscan_pass *pass, struct vmp_pass_note *note, bool online);

/* aging.c */
enum vmp_age {
	VMP_AGE_NO,
	VMP_AGE_NOW,
	VMP_AGE_LATER,		/* by a worker */
};

extern const struct vmp_point vmp_aging_point;

int vmp_aging_init(void);
void vmp_aging_exit(void);
bool vmp_aging_cold(const struct vmscan_pass *pass);
enum vmp_age vmp_aging_decide(enum vmp_aging aging, const struct vmscan_pass *pass);
void vmp_aging_begin(const struct vmscan_pass *pass, struct vmp_pass_note *note);
void vmp_aging_result(const struct vmscan_pass *pass, struct vmp_pass_note *note);
bool vmp_aging_step(const struct vmscan_pass *pass, struct vmp_pass_note *note);

/* aging_queue.c */
#define VMP_AGING_SLOTS		64
#define VMP_AGING_WORKERS	4

/* What became of a request to age. */
enum vmp_queued {
	VMP_QUEUED,
	VMP_MERGED,		/* one for the same lruvec is pending */
	VMP_FULL,		/* VMP_AGING_SLOTS are pending */
	VMP_GONE,		/* the memcg is about to be freed */
};

/**
 * struct vmp_aging_request - which lruvec to age, and what is known of it
 * @memcg: its memcg; NULL when there are none
 * @nid: its node
 * @max_seq: its youngest generation
 * @swappiness: of the pass that asks
 * @set: number of the set of policies that asks
 */
struct vmp_aging_request {
	struct mem_cgroup *memcg;
	int nid;
	unsigned long max_seq;
	int swappiness;
	u32 set;
};

struct vmp_aging_queue;

/**
 * struct vmp_aging_slot - a place for a request
 * @work: does it
 * @queue: the queue it is in
 * @request: what is asked for; holds a reference to the memcg's css while @busy
 * @busy: from the request until it is done
 */
struct vmp_aging_slot {
	struct work_struct work;
	struct vmp_aging_queue *queue;
	struct vmp_aging_request request;
	bool busy;
};

/**
 * struct vmp_aging_queue - requests to age, done by workers
 * @lock: protects the slots' @request and @busy
 * @wq: the workers
 * @age: does one request, in process context
 * @slots: the requests
 */
struct vmp_aging_queue {
	spinlock_t lock; /* see above */
	struct workqueue_struct *wq;
	void (*age)(const struct vmp_aging_request *request);
	struct vmp_aging_slot slots[VMP_AGING_SLOTS];
};

int vmp_aging_queue_init(struct vmp_aging_queue *queue,
			 void (*age)(const struct vmp_aging_request *request));
enum vmp_queued vmp_aging_queue_add(struct vmp_aging_queue *queue,
				    const struct vmp_aging_request *request);
void vmp_aging_queue_drain(struct vmp_aging_queue *queue);
void vmp_aging_queue_destroy(struct vmp_aging_queue *queue);

/* writeback.c */

/* The policies of the writeback point. */
enum vmp_writeback {
	VMP_WRITEBACK_STOCK,
	VMP_WRITEBACK_FEEDBACK,
};

extern const struct vmp_point vmp_writeback_point;

unsigned int vmp_writeback_decide(unsigned int nr_taken, const struct reclaim_stat *stat,
				  bool writers_throttled);
bool vmp_evict(const struct vmscan_evict *evict);
unsigned int vmp_evicted(const struct vmscan_evicted *evicted);

/* throttle.c */
/**
 * struct vmp_fruitless - the rounds of a kswapd since it last reclaimed a page
 * @taken: pages that they have taken
 * @pending: pages that were dirty or under writeback at the end of a round, at most
 * @set: number of the set of policies that has counted them
 */
struct vmp_fruitless {
	unsigned long taken;
	unsigned long pending;
	u32 set;
};

extern const struct vmp_point vmp_throttle_point;

int vmp_throttle_init(void);
void vmp_throttle_exit(void);
bool vmp_throttle_accounts(enum vmp_throttle throttle, bool root_reclaim);
void vmp_throttle_count(struct vmp_fruitless *fruitless, const struct vmscan_round *round,
			u32 set);
unsigned int vmp_throttle_decide(const struct vmscan_round *round,
				 const struct vmp_fruitless *fruitless);

/* rmap.c */
/* The policies of the unmap and the young point. */
enum vmp_rmap {
	VMP_RMAP_STOCK,
	VMP_RMAP_BATCH,
};

extern const struct vmp_point vmp_unmap_point;
extern const struct vmp_point vmp_young_point;

/* observe.c */
int vmp_observe_set(unsigned int on);
unsigned int vmp_observe_get(void);
void vmp_observe_show(struct seq_file *m);

/* files.c */
int vmp_parse_choice(const char *file, const char *text,
		     const char *const *names, unsigned int nr_names);
int vmp_parse_choices(const char *file, char *text, const char *const *names,
		      unsigned int nr_names, unsigned int *choices);
int vmp_parse_number(const char *file, const char *text, unsigned int min,
		     unsigned int max, unsigned int *value);
char *vmp_copy_text(const char __user *ubuf, size_t count);
void vmp_create_number(struct dentry *dir, const struct vmp_number *number);
void vmp_create_option(struct dentry *dir, const struct vmp_option *option);
void vmp_create_options(struct dentry *dir, const struct vmp_option *option);
void vmp_show_names(struct seq_file *m, const char *const *names,
		    unsigned int nr_names, unsigned int current_name);
void vmp_show_counters(struct seq_file *m, const char *const *names,
		       const u64 __percpu *counters, unsigned int nr);

/* trace.c */
/* What begins and ends, in trace events. */
enum vmp_span {
	VMP_SPAN_FLUSH,
	VMP_SPAN_SCAN,
	VMP_SPAN_AGING,
	VMP_SPAN_THROTTLE,
	VMP_NR_SPANS,
};

u64 vmp_begin_id(enum vmp_span span);
u64 vmp_end_id(enum vmp_span span);
u64 vmp_cgroup_id(struct mem_cgroup *memcg);
struct vmp_where vmp_where(const struct vmscan_policy_ops *ops, u32 policy,
			   struct mem_cgroup *memcg, int nid);
int vmp_throttle_trace(void);
void vmp_throttle_untrace(void);
void vmp_trace_throttled(int nid, u32 reason, u32 us);

/* control.c */
bool vmp_point_exists(const struct vmp_point *point, unsigned long traits);
bool vmp_policy_ends(const struct vmp_choice *old, const struct vmp_choice *new,
		     enum vmp_point_id point, unsigned long traits);
struct vmp_shown vmp_shown_policies(const struct vmp_point *point, unsigned long traits);
struct vmp_choice vmp_profile_choice(const char *name, unsigned long traits);
void vmp_control_in_force(enum vmp_point_id point, struct vmp_where *where);
int vmp_control_init(void);
void vmp_control_exit(void);
int vmp_control_attach(void);
void vmp_control_detach(void);

#endif /* _VMP_INTERNAL_H */
