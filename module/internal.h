/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _VMP_INTERNAL_H
#define _VMP_INTERNAL_H

#undef pr_fmt
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/dcache.h>
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/timekeeping.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "settings.h"
#include "stats.h"

/**
 * struct vmp_number - a debugfs file that holds a number
 * @path: the file, below the directory of the machine or of a cgroup
 * @min: smallest number allowed
 * @max: largest number allowed
 * @setting: where the number is in the settings; unless there are @get and @set
 * @get: reads a number of the machine's
 * @set: puts one in range into effect; 0 or an error
 */
struct vmp_number {
	const char *path;
	unsigned int min;
	unsigned int max;
	size_t setting;
	unsigned int (*get)(void);
	int (*set)(unsigned int value);
};

/**
 * struct vmp_option - a debugfs file that holds one of some names, or some of them
 * @path: the file, below the directory of the machine or of a cgroup
 * @names: the names
 * @nr_names: how many they are
 * @one_with: traits with one of which the first of them is all that there is
 * @several: any subset of them is allowed
 * @setting: where in the settings the index of the name is, with @several a bit for each
 */
struct vmp_option {
	const char *path;
	const char *const *names;
	unsigned int nr_names;
	unsigned long one_with;
	bool several;
	size_t setting;
};

/**
 * struct vmp_policy - one of the policies of a point
 * @name: as debugfs shows and takes it
 * @only_with: traits that the kernel has to have for the policy to exist
 */
struct vmp_policy {
	const char *name;
	unsigned long only_with;
};

/**
 * struct vmp_point - a policy point of the kernel
 * @name: name of the point's directory in debugfs
 * @not_with: traits of which the kernel must have none for the point to exist
 * @policies: what there is to choose from; the first is in force where the point doesn't
 *	exist. Traces know them by their place, so new ones come last
 * @nr_policies: number of @policies
 * @needs: another point, whose policy decides whether this one is in effect
 * @in_effect: whether it is, with that policy and the kernel's traits; NULL if it always is
 * @numbers: the point's files with a number
 * @nr_numbers: how many they are
 * @option: its file with names; may be NULL
 * @fill: adds to a set the callbacks that settings need, which others may, too; NULL where they
 *	are another point's
 * @show_stats: prints the counters of a rule; @machine: those that there are but once, too
 */
struct vmp_point {
	const char *name;
	unsigned long not_with;
	const struct vmp_policy *policies;
	unsigned int nr_policies;
	enum vmp_point_id needs;
	bool (*in_effect)(unsigned int policy, unsigned long traits);
	const struct vmp_number *numbers;
	unsigned int nr_numbers;
	const struct vmp_option *option;
	void (*fill)(struct vmscan_policy_ops *ops, const struct vmp_settings *settings);
	void (*show_stats)(struct seq_file *m, const struct vmp_stats __percpu *stats,
			   bool machine);
};

#define VMP_MAX_POLICIES	(8 + VMP_MAX_PLUGINS)

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

struct vmp_entry;

/**
 * struct vmp_file - what a debugfs file leads to
 * @entry: whose settings or counters
 * @item: which of them
 */
struct vmp_file {
	struct vmp_entry *entry;
	const void *item;
};

#define VMP_MAX_FILES	48

enum vmp_trial_state {
	VMP_TRIAL_NONE,
	VMP_TRIAL_RUNS,
	VMP_TRIAL_ENDS,		/* had there been memory, it would have */
};

/**
 * struct vmp_trial - a trial of settings
 * @state: whether there is one
 * @file: the open file that it is bound to
 * @before: the settings that come back
 * @remove: instead, the cgroup is to have none of its own any more
 * @ends: when it ends, in jiffies
 * @work: ends it
 */
struct vmp_trial {
	enum vmp_trial_state state;
	struct file *file;
	struct vmp_settings before;
	bool remove;
	unsigned long ends;
	struct delayed_work work;
};

/**
 * struct vmp_entry - who has settings: the machine, or a memory cgroup
 * @list: the other ones; the machine's is the first
 * @rule: the settings and counters in force, which go into each set that is published
 * @guard: the guard of these settings
 * @tried: the settings, not all stock, that were in force last
 * @trial: a trial of them
 * @over: they are to go: a trial is over, for which alone there are settings, or @incomplete
 * @removed: no set has it any more
 * @dir: its directory
 * @incomplete: there was no memory for one of its files
 * @nr_files: number of @files
 * @files: the files in it
 */
struct vmp_entry {
	struct list_head list;
	struct vmp_rule rule;
	struct vmp_guard guard;
	struct vmp_settings tried;
	struct vmp_trial trial;
	bool over;
	bool removed;
	struct dentry *dir;
	bool incomplete;
	unsigned int nr_files;
	struct vmp_file files[VMP_MAX_FILES];
};

/**
 * struct vmp_where - what every trace event tells
 * @policy: index of the policy in force at its point
 * @set: number of the set in force
 * @cgroup: id of the cgroup that pages are taken from; 0: none
 * @nid: node; -1: none
 * @settings: id of the cgroup whose settings hold there; 0: the machine's
 */
struct vmp_where {
	u32 policy;
	u32 set;
	u64 cgroup;
	s32 nid;
	u64 settings;
};

/* points.c */
extern const struct vmp_point *const vmp_points[VMP_NR_POINTS];
extern const char *const vmp_profile_names[];
extern const unsigned int vmp_nr_profiles;

bool vmp_point_exists(const struct vmp_point *point, unsigned long traits);
struct vmp_shown vmp_shown_policies(const struct vmp_point *point, unsigned long traits);
void vmp_set_profile(struct vmp_settings *settings, unsigned int profile, unsigned long traits);
unsigned int vmp_find_profile(const struct vmp_settings *settings, unsigned long traits);
void vmp_set_stock(struct vmp_settings *settings, unsigned long traits);
bool vmp_is_stock(const struct vmp_settings *settings, unsigned long traits);
struct vmp_settings vmp_default_settings(unsigned long traits);
bool vmp_in_effect(const struct vmp_settings *settings, enum vmp_point_id point,
		   unsigned long traits);

/* plugins.c */
/* What a policy of another module answers. That of a BPF program goes meanwhile, see bpf.c. */
#define vmp_ask(plugin, callback, ...) READ_ONCE((plugin)->policy->callback)(__VA_ARGS__)
struct vmp_plugin *vmp_plugin(unsigned int point, unsigned int policy);
void vmp_add_plugins(struct vmp_shown *shown, unsigned int point);
bool vmp_hold_plugins(struct vmp_rule *rule);
void vmp_release_plugins(const struct vmp_rule *rule);
unsigned int vmp_plugin_of(const struct vmscan_module_policy *policy, unsigned int *point);
int vmp_plugin_withdraw(const struct vmscan_module_policy *policy);
void vmp_plugins_create(struct dentry *root);

/* bpf.c */
#if defined(CONFIG_BPF_SYSCALL) && defined(CONFIG_BPF_JIT) && \
	defined(CONFIG_DEBUG_INFO_BTF_MODULES) && defined(CONFIG_MEMCG)
#define VMP_BPF
void vmp_bpf_init(void);
void vmp_bpf_exit(void);
#else
static inline void vmp_bpf_init(void) {}
static inline void vmp_bpf_exit(void) {}
#endif

/* set.c */
struct vmp_set *vmp_make_set(struct list_head *entries, u32 number);
void vmp_free_set(struct vmp_set *set);

/* @plugin: which it is of those of other modules, if it is one. */
static inline const char *vmp_policy_name(unsigned int point, unsigned int policy,
					  const struct vmp_plugin *plugin)
{
	return plugin ? plugin->policy->name : vmp_points[point]->policies[policy].name;
}

/* flush.c */
extern const struct vmp_point vmp_flush_point;

/* scan.c */
/**
 * struct vmp_pass_note - what is known of a pass from one step to the next
 * @budget: what it may scan, as settled last
 * @scan: the loop that made the last step
 * @aged: a generation was made in the pass
 * @end: why the pass ends, if the last step was to end it
 * @batches_before: batches of the pass before that
 */
struct vmp_pass_note {
	u32 budget;
	u32 scan : 5;
	u32 aged : 1;
	u32 end : 4;
	u32 batches_before : 22;
};

static_assert(sizeof(struct vmp_pass_note) <= sizeof(u64));
static_assert(VMP_FIRST_PLUGIN + VMP_MAX_PLUGINS <= 1 << 5);
static_assert(VMP_GO_ON < 1 << 4);

/**
 * struct vmp_decision - the next step of a pass, and why
 * @step: as made by VMSCAN_STEP()
 * @end: why the pass ends, or VMP_GO_ON
 * @budget: pages that the pass may scan
 */
struct vmp_decision {
	u64 step;
	enum vmp_end end;
	unsigned long budget;
};

extern const struct vmp_point vmp_scan_point;

unsigned long vmp_scan_budget(unsigned long evictable,
			      unsigned long unprotected, int priority,
			      bool online, unsigned long floor);
unsigned long vmp_scan_move(unsigned long budget, unsigned long moved,
			    unsigned long floor, unsigned long batch);
enum vmp_end vmp_scan_end(const struct vmscan_pass *pass, const struct vmp_pass_note *note,
			  enum vmp_aging aging, unsigned long budget, unsigned long floor);
struct vmp_decision vmp_scan_decide(const struct vmp_settings *settings,
				    const struct vmscan_pass *pass,
				    const struct vmp_pass_note *note, bool online);
bool vmp_scan_walks(enum vmp_scan scan, enum vmp_aging aging, unsigned long traits);
bool vmp_scan_ages(unsigned int scan, unsigned long traits);

/* scan_6_12.c */
struct vmp_decision vmp_scan_6_12_decide(const struct vmscan_pass *pass,
					 const struct vmp_pass_note *note, bool online);

/* aging.c */
extern const struct vmp_point vmp_aging_point;

bool vmp_aging_cold(const struct vmscan_pass *pass);
enum vmp_aging vmp_aging_policy(const struct vmp_settings *settings);
bool vmp_aging_decide(enum vmp_aging aging, const struct vmscan_pass *pass);
void vmp_aging_begins(const struct vmp_rule *rule, const struct vmscan_pass *pass);
void vmp_aging_result(const struct vmp_rule *rule, const struct vmscan_pass *pass);

/* writeback.c */
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
				 const struct vmp_fruitless *fruitless, bool swap);

/* rmap.c */
extern const struct vmp_point vmp_unmap_point;
extern const struct vmp_point vmp_young_point;

/* walks.c */
int vmp_unmap_probe(void);
void vmp_unmap_unprobe(void);
int vmp_young_probe(void);
void vmp_young_unprobe(void);

/* probes.c */
enum vmp_probe_id {
	VMP_PROBE_SLEEPS,
	VMP_PROBE_UNMAP,
	VMP_PROBE_YOUNG,
	VMP_NR_PROBES,
};

int vmp_probe_want(enum vmp_probe_id id, bool on);
void vmp_probes_exit(void);

/* observe.c */
int vmp_observe_set(unsigned int on);
unsigned int vmp_observe_get(void);
void vmp_observe_show(struct seq_file *m);

/* files.c */
/* The longest name or number that makes sense, and then some. */
#define VMP_TEXT_MAX	64

int vmp_parse_choice(const char *file, const char *text,
		     const char *const *names, unsigned int nr_names);
int vmp_parse_choices(const char *file, char *text, const char *const *names,
		      unsigned int nr_names, unsigned int *choices);
int vmp_parse_number(const char *file, const char *text, unsigned int min,
		     unsigned int max, unsigned int *value);
int vmp_copy_text(char text[VMP_TEXT_MAX + 1], const char __user *ubuf, size_t count);
void vmp_create_file(struct vmp_entry *entry, struct dentry *dir, const char *name, umode_t mode,
		     const void *item, const struct file_operations *fops);
void vmp_create_number(struct vmp_entry *entry, struct dentry *dir,
		       const struct vmp_number *number);
void vmp_create_option(struct vmp_entry *entry, struct dentry *dir,
		       const struct vmp_option *option);
unsigned int vmp_nr_names(const struct vmp_option *option, unsigned long traits);
void vmp_show_names(struct seq_file *m, const char *const *names,
		    unsigned int nr_names, unsigned int current_name);
void vmp_show_counters(struct seq_file *m, const char *const *names,
		       const u64 __percpu *counters, unsigned int nr);

/* trace.c */
struct tracepoint;

struct tracepoint *vmp_tracepoint(const char *name);
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
struct vmp_where vmp_where(u32 set, const struct vmp_rule *rule, u32 policy,
			   struct mem_cgroup *memcg, int nid);
int vmp_sleeps_probe(void);
void vmp_sleeps_unprobe(void);
int vmp_sleeps_event_on(void);
void vmp_sleeps_event_off(void);
int vmp_unmap_event_on(void);
void vmp_unmap_event_off(void);
int vmp_young_event_on(void);
void vmp_young_event_off(void);
void vmp_trace_throttled(const struct vmp_rule *rule, u32 set, struct mem_cgroup *memcg, int nid,
			 u32 reason, u32 us);

/* guard_rules.c */
bool vmp_guard_beyond_chance(const struct vmp_kills *now, const struct vmp_kills *before);
bool vmp_guard_kills(const struct vmp_kills *now, const struct vmp_kills *before,
		     const struct vmp_settings *settings);
unsigned long vmp_guard_stalls(struct vmp_stall *stall, unsigned long now);
void vmp_guard_window(struct vmp_window *window, u64 now, unsigned int seconds);
bool vmp_guard_waits(const struct vmp_window *window);
bool vmp_guard_slow(u64 ns, unsigned int times, unsigned int limit);

/* guard_probes.c */
int vmp_guard_want(bool want);
int vmp_guard_probes_init(struct vmp_guard *machine);
void vmp_guard_probes_exit(void);

/* guard.c */
/* A point that a cause is not about. */
#define VMP_ANY_POINT	VMP_NR_POINTS

static inline u64 vmp_guard_ms(void)
{
	return ktime_to_ms(ktime_get());
}

__printf(7, 8)
void vmp_trip(const struct vmp_rule *rule, struct mem_cgroup *memcg, enum vmp_cause cause,
	      unsigned int point, u64 figure, u64 limit, const char *format, ...);
void vmp_guard_stall(const struct vmp_rule *rule, struct mem_cgroup *memcg, unsigned int point);
bool vmp_guard_walks(const struct vmp_rule *rule);
void vmp_guard_pass_time(struct vmp_guard *guard, u64 now);
void vmp_guard_before_bypass(void);
void vmp_guard_changed(struct vmp_entry *entry);
void vmp_guard_clear(struct vmp_guard *guard);
void vmp_guard_create(struct vmp_entry *entry);
void vmp_guard_init_entry(struct vmp_entry *entry);
int vmp_guard_init(struct vmp_entry *machine);
void vmp_guard_exit(void);

/* trial.c */
void vmp_trial_create(struct vmp_entry *entry);
void vmp_trial_init_entry(struct vmp_entry *entry);
void vmp_trial_exit_entry(struct vmp_entry *entry);

/* control.c */
extern struct mutex vmp_control_lock;
extern struct list_head vmp_entries;

const struct vmp_rule *vmp_rule_now(struct mem_cgroup *memcg, u32 *set);
const struct vmp_set *vmp_set_now(void);
u32 vmp_set_number(void);
int vmp_change_all(struct vmp_entry *entry, const struct vmp_settings *new);
int vmp_change(struct vmp_entry *entry, size_t setting, unsigned int value);
bool vmp_all_stock(void);
int vmp_control_teardown(void);
int vmp_control_clear(struct vmp_entry *entry);
void vmp_control_forget(unsigned int point, unsigned int policy);
int vmp_control_withdraw(unsigned int point, unsigned int policy);
int vmp_control_add(struct vmp_entry *entry, struct mem_cgroup *memcg);
int vmp_control_remove(bool (*is_gone)(const struct vmp_entry *entry, u64 id), u64 id,
		       struct list_head *gone);
void vmp_create_settings(struct vmp_entry *entry);
int vmp_control_init(void);
void vmp_control_exit(void);
int vmp_control_attach(void);
void vmp_control_detach(void);

/* cgroups.c */
#define VMP_MAX_CGROUPS	1024

#ifdef CONFIG_MEMCG
void vmp_cgroups_create(struct dentry *root);
int vmp_cgroups_place(u64 id, unsigned int point, unsigned int policy);
int vmp_cgroups_unplace(u64 id);
void vmp_cgroups_exit(void);
void vmp_cgroups_changed(void);

/* A task's memcg, for an RCU read-side section. */
static inline struct mem_cgroup *vmp_memcg_of(struct task_struct *task)
{
	return mem_cgroup_from_task(task);
}
#else
static inline struct mem_cgroup *vmp_memcg_of(struct task_struct *task)
{
	return NULL;
}

static inline void vmp_cgroups_create(struct dentry *root) {}
static inline void vmp_cgroups_exit(void) {}
static inline void vmp_cgroups_changed(void) {}
#endif

#endif /* _VMP_INTERNAL_H */
