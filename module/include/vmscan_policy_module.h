/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Policies of page reclaim in a module of one's own.
 *
 * Such a policy stands in the list of its point beside those of vmscan_policy.ko: it can be chosen
 * for the machine or a memory cgroup, is counted, traced and guarded like these. Its callback is
 * called as linux/vmscan_policy.h says of the kernel's own: by the task that reclaims, in an RCU
 * read-side section, so it can't sleep or allocate. What it answers is limited by the kernel; an
 * answer beyond that is counted, and too many of them trip the guard. So does too much CPU time.
 *
 * It is valid for one VMSCAN_POLICY_ABI: what is here changes with that number alone.
 */
#ifndef _VMSCAN_POLICY_MODULE_H
#define _VMSCAN_POLICY_MODULE_H

#include <linux/device/driver.h>
#include <linux/module.h>
#include <linux/vmscan_policy.h>

/* Of a name, and of a sentence about it, without what ends the text. */
#define VMSCAN_POLICY_NAME_MAX	15
#define VMSCAN_POLICY_ABOUT_MAX	100

/**
 * struct vmscan_module_policy - a policy, with the callback of its point and no other
 * @abi: VMSCAN_POLICY_ABI
 * @owner: the module that it lives in: THIS_MODULE
 * @point: "flush", "scan", "writeback", "throttle", "unmap" or "young"
 * @name: what it is chosen by: lower-case letters, digits, '.', '-' and '_', a letter first
 * @about: what it does, in one sentence, for those who choose
 * @flush_group: as in struct vmscan_policy_ops
 * @next_step: likewise, but for @note: 8 bytes of the policy's own, kept over a pass; 0 at first,
 *	and when other settings have come in
 * @evicted: as there; asked after each batch, so there is no evict
 * @throttle: as there
 * @unmap_ptes: as there, for the folios that unmap/kinds names
 * @young_ptes: as there
 *
 * It has to stay valid and unchanged while it is registered.
 */
struct vmscan_module_policy {
	unsigned int abi;
	struct module *owner;
	const char *point;
	const char *name;
	const char *about;
	unsigned int (*flush_group)(const struct vmscan_call *call);
	u64 (*next_step)(const struct vmscan_pass *pass, u64 *note);
	unsigned int (*evicted)(const struct vmscan_evicted *evicted);
	unsigned int (*throttle)(const struct vmscan_round *round);
	unsigned int (*unmap_ptes)(const struct vmscan_walk *walk);
	unsigned int (*young_ptes)(const struct vmscan_walk *walk);
};

/**
 * vmscan_policy_register() - offer a policy
 * @policy: the policy
 *
 * While it is in force anywhere, its module can't be unloaded.
 *
 * Context: process context, may sleep.
 * Return: 0, or after one log line, and without effect: -EPROTONOSUPPORT when it is for another
 * ABI, -ENOENT when there is no such point here, -EINVAL when it has no owner, a wrong name, no
 * sentence about it, or not just the callback of its point, -EEXIST when the point has a policy of
 * that name, -ENOSPC when it has too many, -ENOMEM.
 */
int vmscan_policy_register(const struct vmscan_module_policy *policy);

/**
 * vmscan_policy_unregister() - offer it no longer
 * @policy: the policy
 *
 * When the function returns nobody uses it any more: who had chosen it has stock.
 *
 * Context: process context, may sleep; the module's exit function.
 */
void vmscan_policy_unregister(const struct vmscan_module_policy *policy);

/*
 * The same, looked up now, so that a module can be built without the symbols of vmscan_policy.ko.
 * -ENOENT when that is not loaded.
 */
static inline int vmscan_policy_offer(const struct vmscan_module_policy *policy)
{
	int (*offer)(const struct vmscan_module_policy *policy) =
		symbol_get(vmscan_policy_register);
	int err;

	if (!offer) {
		pr_err(KBUILD_MODNAME ": load vmscan_policy before\n");
		return -ENOENT;
	}
	err = offer(policy);
	if (err)
		symbol_put(vmscan_policy_register);

	return err;
}

static inline void vmscan_policy_take_back(const struct vmscan_module_policy *policy)
{
	void (*take_back)(const struct vmscan_module_policy *policy) =
		symbol_get(vmscan_policy_unregister);

	take_back(policy);
	symbol_put(vmscan_policy_unregister);
	symbol_put(vmscan_policy_register);
}

/* All that a module with one policy has to do. */
#define module_vmscan_policy(policy) \
	MODULE_SOFTDEP("pre: vmscan_policy"); \
	module_driver(policy, vmscan_policy_offer, vmscan_policy_take_back)

#endif /* _VMSCAN_POLICY_MODULE_H */
