// SPDX-License-Identifier: GPL-2.0
/*
 * Policies that BPF programs are: a struct_ops type. Who attaches a map of it offers a policy, as
 * a module does that registers one.
 *
 * BPF attaches and detaches with a lock of its own that all of its users share. So to detach does
 * not wait here for those who reclaim: what is detached answers stock from then on, which is enough
 * for the program to be freed a grace period later; a worker has stock put in force, and forgets
 * the policy. To attach may wait for a change of settings that is under way.
 */
#include <linux/bpf.h>
#include <linux/bpf_verifier.h>
#include <linux/btf.h>
#include <linux/cleanup.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/printk.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#include "internal.h"

#ifdef VMP_BPF
/* In the module's types, too, so that no program has a number of its own. */
enum { VMSCAN_BPF_ABI = VMSCAN_POLICY_ABI };

/**
 * struct vmscan_bpf_policy - a policy, with the callback of one point
 * @abi: VMSCAN_BPF_ABI
 * @cgroup: id of a memory cgroup where it is in force until it is detached; 0: who likes chooses it
 * @name: as in struct vmscan_module_policy
 * @about: likewise; may be empty
 * @flush_group: likewise, and so are the others; programs have no use for the note of next_step
 * @next_step: likewise
 * @evicted: likewise
 * @throttle: likewise
 * @unmap_ptes: likewise
 * @young_ptes: likewise
 */
struct vmscan_bpf_policy {
	u32 abi;
	u64 cgroup;
	char name[VMSCAN_POLICY_NAME_MAX + 1];
	char about[VMSCAN_POLICY_ABOUT_MAX + 1];
	unsigned int (*flush_group)(const struct vmscan_call *call);
	u64 (*next_step)(const struct vmscan_pass *pass, u64 *note);
	unsigned int (*evicted)(const struct vmscan_evicted *evicted);
	unsigned int (*throttle)(const struct vmscan_round *round);
	unsigned int (*unmap_ptes)(const struct vmscan_walk *walk);
	unsigned int (*young_ptes)(const struct vmscan_walk *walk);
};

/* Stock, for what was detached; also what BPF takes the types of the callbacks from. */
static unsigned int stock_group(const struct vmscan_call *call)
{
	return 0;
}

static u64 stock_step(const struct vmscan_pass *pass, u64 *note)
{
	return VMSCAN_STEP(VMSCAN_STOCK, 0, 0);
}

static unsigned int stock_evicted(const struct vmscan_evicted *evicted)
{
	return 0;
}

static unsigned int stock_throttle(const struct vmscan_round *round)
{
	return 0;
}

static unsigned int stock_ptes(const struct vmscan_walk *walk)
{
	return 0;
}

static struct vmscan_bpf_policy stock = {
	.flush_group = stock_group,
	.next_step = stock_step,
	.evicted = stock_evicted,
	.throttle = stock_throttle,
	.unmap_ptes = stock_ptes,
	.young_ptes = stock_ptes,
};

/* One that is attached, or was. */
struct program {
	struct list_head list;
	struct vmscan_bpf_policy *from;		/* NULL: it was detached */
	struct vmscan_module_policy policy;
	unsigned int point, index;		/* where it stands */
	char name[VMSCAN_POLICY_NAME_MAX + 1];
	char about[VMSCAN_POLICY_ABOUT_MAX + 1];
	u64 cgroup;				/* is to have it still; or 0 */
	u64 placed;				/* has settings for it */
};

/* Protects the list. The worker alone takes one out of it. */
static DEFINE_MUTEX(programs_lock);
static LIST_HEAD(programs);

static void settle(struct work_struct *work);
static DECLARE_DELAYED_WORK(settle_work, settle);

/* Has something to do for it? */
static struct program *unsettled(void)
{
	struct program *program;

	guard(mutex)(&programs_lock);
	list_for_each_entry(program, &programs, list)
		if (!program->from || program->cgroup)
			return program;

	return NULL;
}

static int end(struct program *program)
{
	int err = vmp_plugin_withdraw(&program->policy);

	if (!err && program->placed)
		err = vmp_cgroups_unplace(program->placed);
	if (err)
		return err;
	scoped_guard(mutex, &programs_lock)
		list_del(&program->list);
	kfree(program);

	return 0;
}

static void begin(struct program *program)
{
	int added = vmp_cgroups_place(program->cgroup, program->point, program->index);

	if (added < 0)
		pr_err("%s can't be in force in cgroup %llu: %d\n", program->name, program->cgroup,
		       added);
	else if (added)
		program->placed = program->cgroup;
	program->cgroup = 0;
}

static void settle(struct work_struct *work)
{
	struct program *program;

	while ((program = unsettled())) {
		if (program->from) {
			begin(program);
		} else if (end(program)) {
			schedule_delayed_work(&settle_work, HZ / 10);
			return;
		}
	}
}

static const char *point_of(const struct vmscan_bpf_policy *from)
{
	return from->flush_group ? "flush" : from->next_step ? "scan" :
	       from->evicted ? "writeback" : from->throttle ? "throttle" :
	       from->unmap_ptes ? "unmap" : "young";
}

static int attach(void *kdata, struct bpf_link *link)
{
	struct vmscan_bpf_policy *from = kdata;
	struct program *program = kzalloc(sizeof(*program), GFP_KERNEL);
	int err;

	if (!program)
		return -ENOMEM;
	program->from = from;
	program->cgroup = from->cgroup;
	strscpy(program->name, from->name);
	strscpy(program->about, *from->about ? from->about : "A BPF program.");
	program->policy = (struct vmscan_module_policy) {
		.abi = from->abi,
		.owner = THIS_MODULE,
		.point = point_of(from),
		.name = program->name,
		.about = program->about,
		.flush_group = from->flush_group,
		.next_step = from->next_step,
		.evicted = from->evicted,
		.throttle = from->throttle,
		.unmap_ptes = from->unmap_ptes,
		.young_ptes = from->young_ptes,
	};
	err = vmscan_policy_register(&program->policy);
	if (err) {
		kfree(program);
		return err;
	}
	scoped_guard(mutex, &vmp_control_lock)
		program->index = vmp_plugin_of(&program->policy, &program->point);
	scoped_guard(mutex, &programs_lock)
		list_add_tail(&program->list, &programs);
	if (program->cgroup)
		schedule_delayed_work(&settle_work, 0);

	return 0;
}

static void answer_stock(struct vmscan_module_policy *policy)
{
	WRITE_ONCE(policy->flush_group, stock.flush_group);
	WRITE_ONCE(policy->next_step, stock.next_step);
	WRITE_ONCE(policy->evicted, stock.evicted);
	WRITE_ONCE(policy->throttle, stock.throttle);
	WRITE_ONCE(policy->unmap_ptes, stock.unmap_ptes);
	WRITE_ONCE(policy->young_ptes, stock.young_ptes);
}

static void detach(void *kdata, struct bpf_link *link)
{
	struct program *program;

	guard(mutex)(&programs_lock);
	list_for_each_entry(program, &programs, list) {
		if (program->from != kdata)
			continue;
		answer_stock(&program->policy);
		program->from = NULL;
		schedule_delayed_work(&settle_work, 0);
		return;
	}
}

static int check_member(const struct btf_type *t, const struct btf_member *member,
			const struct bpf_prog *prog)
{
	return prog->sleepable ? -EINVAL : 0;
}

/* Data: 1, BPF has not to copy it; a callback: 0. */
static int init_member(const struct btf_type *t, const struct btf_member *member, void *kdata,
		       const void *udata)
{
	const struct vmscan_bpf_policy *from = udata;
	struct vmscan_bpf_policy *to = kdata;

	switch (__btf_member_bit_offset(t, member) / BITS_PER_BYTE) {
	case offsetof(struct vmscan_bpf_policy, abi):
		to->abi = from->abi;
		return 1;
	case offsetof(struct vmscan_bpf_policy, cgroup):
		to->cgroup = from->cgroup;
		return 1;
	case offsetof(struct vmscan_bpf_policy, name):
		memcpy(to->name, from->name, sizeof(to->name));
		return to->name[sizeof(to->name) - 1] ? -EINVAL : 1;
	case offsetof(struct vmscan_bpf_policy, about):
		memcpy(to->about, from->about, sizeof(to->about));
		return to->about[sizeof(to->about) - 1] ? -EINVAL : 1;
	}

	return 0;
}

static int init(struct btf *btf)
{
	return 0;
}

/* In reclaim nothing may sleep, take long, or take a lock that reclaimers could hold. */
static const struct bpf_func_proto *func_proto(enum bpf_func_id id, const struct bpf_prog *prog)
{
	switch (id) {
	case BPF_FUNC_map_lookup_elem:
	case BPF_FUNC_map_lookup_percpu_elem:
	case BPF_FUNC_per_cpu_ptr:
	case BPF_FUNC_this_cpu_ptr:
	case BPF_FUNC_get_smp_processor_id:
	case BPF_FUNC_get_numa_node_id:
	case BPF_FUNC_get_prandom_u32:
	case BPF_FUNC_ktime_get_ns:
	case BPF_FUNC_jiffies64:
		return bpf_base_func_proto(id, prog);
	default:
		return NULL;
	}
}

static bool is_valid_access(int off, int size, enum bpf_access_type type,
			    const struct bpf_prog *prog, struct bpf_insn_access_aux *info)
{
	return bpf_tracing_btf_ctx_access(off, size, type, prog, info);
}

static int struct_access(struct bpf_verifier_log *log, const struct bpf_reg_state *reg, int off,
			 int size)
{
	return -EACCES;
}

static const struct bpf_verifier_ops verifier_ops = {
	.get_func_proto = func_proto,
	.is_valid_access = is_valid_access,
	.btf_struct_access = struct_access,
};

static struct bpf_struct_ops struct_ops = {
	.verifier_ops = &verifier_ops,
	.init = init,
	.check_member = check_member,
	.init_member = init_member,
	.reg = attach,
	.unreg = detach,
	.cfi_stubs = &stock,
	.owner = THIS_MODULE,
	.name = "vmscan_bpf_policy",
};

/* Without BTF of the module there is no such type; all else is as ever. */
void vmp_bpf_init(void)
{
	int err = register_bpf_struct_ops(&struct_ops, vmscan_bpf_policy);

	BTF_TYPE_EMIT_ENUM(VMSCAN_BPF_ABI);
	if (err)
		pr_info("no policies by BPF programs: %d\n", err);
}

/* No program is attached: each holds the module. */
void vmp_bpf_exit(void)
{
	flush_delayed_work(&settle_work);
	cancel_delayed_work_sync(&settle_work);
}
#endif
