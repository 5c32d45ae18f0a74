/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _VMP_INTERNAL_H
#define _VMP_INTERNAL_H

#undef pr_fmt
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/dcache.h>
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
	VMP_NR_POINTS,
};

/**
 * struct vmp_set - a set of policies as it is published
 * @ops: what the kernel sees of it
 * @number: 1 for the first, one more for each that followed
 * @aging: for the passes of scan=budget
 * @feedback: writeback is feedback
 * @throttle: which batches count for throttling
 */
struct vmp_set {
	struct vmscan_policy_ops ops;
	u32 number;
	enum vmp_aging aging;
	bool feedback;
	enum vmp_throttle throttle;
};

/**
 * struct vmp_policy - one of the policies of a point
 * @name: as debugfs shows and takes it
 * @fill: sets the callbacks of the point in a set; NULL if it has none
 * @retire: called when no reclaimer uses the policy any more; may be NULL
 */
struct vmp_policy {
	const char *name;
	void (*fill)(struct vmscan_policy_ops *ops);
	void (*retire)(void);
};

/**
 * struct vmp_point - a policy point of the kernel
 * @name: name of the point's directory in debugfs
 * @policies: what there is to choose from
 * @nr_policies: number of @policies
 * @needs: a point whose policy must not be stock, the first, for this one to be
 *	in effect; may be NULL
 * @create_files: adds the point's other files to its directory
 */
struct vmp_point {
	const char *name;
	const struct vmp_point *needs;
	const struct vmp_policy *policies;
	unsigned int nr_policies;
	void (*create_files)(struct dentry *dir);
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
 * struct vmp_option - a debugfs file that holds one of some names
 * @path: the file, below the module's directory
 * @names: the names
 * @nr_names: how many they are
 * @value: where the index of the current one is
 */
struct vmp_option {
	const char *path;
	const char *const *names;
	unsigned int nr_names;
	unsigned int *value;
};

/* flush.c */
#define VMP_FLUSH_FOLIOS_MIN		1
#define VMP_FLUSH_FOLIOS_MAX		VMSCAN_FLUSH_MAX_FOLIOS
/* A batch may always hold as many pages as this, a PMD-sized folio on x86-64. */
#define VMP_FLUSH_PAGES_MIN		512

/* The policies of the flush point. */
enum vmp_flush {
	VMP_FLUSH_STOCK,
	VMP_FLUSH_BATCH,
};

/* What became of a deferred folio by the time that it is to be locked again. */
enum vmp_recheck {
	VMP_DIRTY,		/* nothing has changed: page it out */
	VMP_CLEAN,		/* go on to free it */
	VMP_HWPOISON,
	VMP_NO_MAPPING,
	VMP_UNEVICTABLE,
	VMP_MAPPED,
	VMP_WRITEBACK,
	VMP_PINNED,
	VMP_LOCKED,		/* it could not be locked */
	VMP_NR_RECHECKS,
};

/**
 * struct vmp_flush_batch - a batch as its end is traced
 * @folios: that were deferred
 * @pages: their base pages
 * @bounced: folios put back because of what happened to them meanwhile
 * @written: folios written out
 * @flushed: it took a TLB flush
 */
struct vmp_flush_batch {
	unsigned int folios;
	unsigned int pages;
	unsigned int bounced;
	unsigned int written;
	bool flushed;
};

extern const struct vmp_point vmp_flush_point;

enum vmscan_defer vmp_flush_decide(unsigned int nr_folios,
				   unsigned int nr_pages,
				   unsigned int limit);
enum vmp_recheck vmp_flush_recheck(struct folio *folio);

/* scan.c */
#define VMP_SCAN_BATCH_MAX	VMSCAN_SCAN_MAX_BATCH

/* The policies of the scan point. */
enum vmp_scan {
	VMP_SCAN_STOCK,
	VMP_SCAN_BUDGET,
};

/* What a pass scans at least, when the priority leaves little or nothing. */
enum vmp_floor {
	VMP_FLOOR_NONE,
	VMP_FLOOR_SMALL,
	VMP_FLOOR_ALWAYS,
};

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
 * struct vmp_pass - how far a pass is, as the decision to end it sees it
 * @budget: pages it may scan
 * @scanned: pages it has scanned
 * @batches_aged: batches evicted since it aged
 * @dry: its last batches that found nothing to scan
 * @cold: there is a generation that can be evicted from
 * @aging: the aging policy
 * @aged: it has aged, or had a worker do it
 * @below_min: the memcg is below its memory.min
 * @enough: as much is reclaimed as was asked for
 * @root_reclaim: on behalf of the whole machine
 */
struct vmp_pass {
	unsigned long budget;
	unsigned long scanned;
	unsigned int batches_aged;
	unsigned int dry;
	bool cold;
	enum vmp_aging aging;
	bool aged;
	bool below_min;
	bool enough;
	bool root_reclaim;
};

extern const struct vmp_point vmp_scan_point;

unsigned long vmp_scan_budget(unsigned long evictable,
			      unsigned long unprotected, int priority,
			      bool online, enum vmp_floor floor);
enum vmp_end vmp_scan_end(const struct vmp_pass *pass);

/* aging.c */
enum vmp_age {
	VMP_AGE_NO,
	VMP_AGE_NOW,
	VMP_AGE_LATER,		/* by a worker */
};

extern const struct vmp_point vmp_aging_point;

int vmp_aging_init(void);
void vmp_aging_exit(void);
bool vmp_aging_cold(const struct vmscan_gens *gens);
enum vmp_age vmp_aging_decide(enum vmp_aging aging,
			      const struct vmscan_gens *gens,
			      unsigned long evictable, int priority);
bool vmp_aging_step(struct vmscan_scan_ctx *ctx, const struct vmp_set *set,
		    const struct vmscan_gens *gens, unsigned long evictable);

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
 * @can_swap: anonymous folios can be evicted
 * @set: number of the set of policies that asks
 */
struct vmp_aging_request {
	struct mem_cgroup *memcg;
	int nid;
	unsigned long max_seq;
	bool can_swap;
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

/* What to do after a batch. */
enum vmp_feedback {
	VMP_FEEDBACK_NONE,
	VMP_FEEDBACK_WAKE,	/* wake the flushers */
	VMP_FEEDBACK_WAIT,	/* wake them, and wait for writeback */
};

extern const struct vmp_point vmp_writeback_point;

enum vmp_feedback vmp_writeback_decide(const struct vmscan_evict_stat *stat,
				       bool writers_throttled);
void vmp_evicted(struct vmscan_evicted_ctx *ctx);

/* throttle.c */
#define VMP_NO_STALL	NR_VMSCAN_THROTTLE

/**
 * struct vmp_verdict - what follows a round over a node
 * @mark_writeback: mark it: kswapd meets nothing but writeback
 * @mark_congested: mark it: direct reclaimers have to wait
 * @stall: why the task has to sleep; VMP_NO_STALL if not
 */
struct vmp_verdict {
	bool mark_writeback;
	bool mark_congested;
	enum vmscan_throttle_state stall;
};

/**
 * struct vmp_fruitless - the rounds of a kswapd since it last reclaimed a page
 * @taken: pages that they have taken
 * @pending: pages that were dirty or under writeback at the end of a round, at most
 */
struct vmp_fruitless {
	unsigned long taken;
	unsigned long pending;
};

extern const struct vmp_point vmp_throttle_point;

int vmp_throttle_init(void);
void vmp_throttle_exit(void);
bool vmp_throttle_accounts(enum vmp_throttle throttle, bool root_reclaim);
void vmp_throttle_count(struct vmp_fruitless *fruitless,
			const struct vmscan_node_ctx *ctx);
struct vmp_verdict vmp_throttle_decide(const struct vmscan_node_ctx *ctx,
				       const struct vmp_fruitless *fruitless);

/* observe.c */
int vmp_observe_set(unsigned int on);
unsigned int vmp_observe_get(void);
void vmp_observe_show(struct seq_file *m);

/* files.c */
int vmp_parse_choice(const char *file, const char *text,
		     const char *const *names, unsigned int nr_names);
int vmp_parse_number(const char *file, const char *text, unsigned int min,
		     unsigned int max, unsigned int *value);
char *vmp_copy_text(const char __user *ubuf, size_t count);
void vmp_create_number(struct dentry *dir, const struct vmp_number *number);
void vmp_create_option(struct dentry *dir, const struct vmp_option *option);
void vmp_show_names(struct seq_file *m, const char *const *names,
		    unsigned int nr_names, unsigned int current_name);
void vmp_show_counters(struct seq_file *m, const char *const *names,
		       const u64 __percpu *counters, unsigned int nr);

/* trace.c */

/* Who has set or cleared the bypass. */
enum vmp_bypass {
	VMP_BYPASS_USER,	/* through debugfs */
};

u64 vmp_trace_id(void);
u64 vmp_cgroup_id(struct mem_cgroup *memcg);
int vmp_throttle_trace(void);
void vmp_throttle_untrace(void);
void vmp_trace_throttled(int nid, u32 reason, u32 us);

/* control.c */
void vmp_control_in_force(enum vmp_point_id point, struct vmp_where *where);
int vmp_control_init(void);
void vmp_control_exit(void);
int vmp_control_attach(void);
void vmp_control_detach(void);

#endif /* _VMP_INTERNAL_H */
