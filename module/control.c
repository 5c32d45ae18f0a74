// SPDX-License-Identifier: GPL-2.0
/*
 * What is in force, and the debugfs files that show and set it. Each change publishes a
 * whole new set, so the points that a profile covers change together, under load too.
 */
#include <linux/cleanup.h>
#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/utsname.h>
#include <kunit/visibility.h>

#include "internal.h"
#include "trace.h"

static DEFINE_PER_CPU(struct vmp_stats, machine_stats);
static struct vmp_entry machine = {
	.rule.stats = &machine_stats,
	.rule.guard = &machine.guard,
	.rule.stock = true,	/* while nothing is published */
};

/* Protects the entries but for their directories, files and guards. */
DEFINE_MUTEX(vmp_control_lock);
EXPORT_SYMBOL_IF_KUNIT(vmp_control_lock);
LIST_HEAD(vmp_entries);
EXPORT_SYMBOL_IF_KUNIT(vmp_entries);
static struct vmp_set __rcu *published;
static u32 set_number;		/* of the newest set */

#define published_set() \
	rcu_dereference_protected(published, lockdep_is_held(&vmp_control_lock))

/**
 * vmp_rule_now() - whose settings hold for a memory cgroup, where no context leads to a set?
 * @memcg: the memory cgroup, NULL for the machine
 * @set: gets the number of the set in force, if not NULL
 *
 * Context: in an RCU read-side section.
 * Return: the rule.
 */
const struct vmp_rule *vmp_rule_now(struct mem_cgroup *memcg, u32 *set)
{
	const struct vmp_set *now = rcu_dereference(published);

	if (set)
		*set = now ? now->number : 0;

	return now ? vmp_find_rule(now, memcg) : &machine.rule;
}

/* The set in force, or NULL. In an RCU read-side section. */
const struct vmp_set *vmp_set_now(void)
{
	return rcu_dereference(published);
}

u32 vmp_set_number(void)
{
	return READ_ONCE(set_number);
}

/* The set with that @number is about to be published, or was not after all. */
static void trace_switches(const struct vmp_entry *entry, const struct vmp_settings *from,
			   const struct vmp_settings *to, u32 number)
{
	unsigned int i;

	for (i = 0; i < VMP_NR_POINTS; i++) {
		const struct vmp_where where = {
			.policy = to->policy[i],
			.set = number,
			.cgroup = entry->rule.cgroup,
			.nid = NUMA_NO_NODE,
			.settings = entry->rule.cgroup,
		};

		if (from->policy[i] != to->policy[i])
			trace_policy_switch(&where, i, from->policy[i],
					    to->policy[i], current->pid);
	}
}

/**
 * vmp_all_stock() - is no policy in force, or about to be?
 *
 * Context: with vmp_control_lock.
 *
 * Return: that.
 */
bool vmp_all_stock(void)
{
	const struct vmp_entry *entry;

	lockdep_assert_held(&vmp_control_lock);
	list_for_each_entry(entry, &vmp_entries, list)
		if (!vmp_is_stock(&entry->rule.settings, vmp_traits()))
			return false;

	return true;
}

/* Put the settings of all entries in force, from nothing or in place of what there is. */
static int publish(void)
{
	struct vmp_set *old = published_set(), *new;
	int err = vmp_guard_want(!vmp_all_stock());

	if (err)
		return err;
	new = vmp_make_set(&vmp_entries, set_number + 1);
	if (IS_ERR(new)) {
		vmp_guard_want(false);
		return PTR_ERR(new);
	}

	/* Before the kernel waits for the readers of @old, who may be ours. */
	rcu_assign_pointer(published, new);
	err = vmscan_policy_publish(old ? &old->ops : NULL, &new->ops);
	if (err) {
		rcu_assign_pointer(published, old);
		synchronize_rcu();
		vmp_free_set(new);
		vmp_guard_want(false);
		return err;
	}
	vmp_free_set(old);
	WRITE_ONCE(set_number, new->number);

	return 0;
}

/**
 * vmp_change_all() - put other settings in force
 * @entry: for whom
 * @new: them
 *
 * Return: 0, -ENOENT if the cgroup has no settings any more, -EBUSY after a log line while nothing
 * is published, or for a policy where the guard has tripped, -ENOMEM, or what
 * vmscan_policy_publish() returned.
 */
int vmp_change_all(struct vmp_entry *entry, const struct vmp_settings *new)
{
	const struct vmp_settings old = entry->rule.settings;
	int err;

	lockdep_assert_held(&vmp_control_lock);
	if (entry->removed)
		return -ENOENT;
	if (!published_set()) {
		pr_err_ratelimited("tests have the registry for themselves\n");
		return -EBUSY;
	}
	if (entry->guard.tripped && !vmp_is_stock(new, vmp_traits())) {
		pr_err_ratelimited("guard/state is tripped: write 1 to guard/clear, then set policies\n");
		return -EBUSY;
	}

	trace_switches(entry, &old, new, set_number + 1);
	entry->rule.settings = *new;
	err = publish();
	if (err) {
		trace_switches(entry, new, &old, set_number);
		entry->rule.settings = old;
		return err;
	}
	vmp_guard_changed(entry);
	vmp_cgroups_changed();

	return 0;
}

/**
 * vmp_change() - set one thing
 * @entry: for whom
 * @setting: where it is in struct vmp_settings
 * @value: to what
 *
 * Return: 0, -ENOENT if the cgroup has no settings any more, or what else vmp_change_all()
 * returns.
 */
int vmp_change(struct vmp_entry *entry, size_t setting, unsigned int value)
{
	struct vmp_settings new;

	guard(mutex)(&vmp_control_lock);
	new = entry->rule.settings;
	*(unsigned int *)((void *)&new + setting) = value;

	return vmp_change_all(entry, &new);
}

/* The guard of an entry has tripped: a trial is over, and the policies are stock. */
static int tear_down(struct vmp_entry *entry)
{
	struct vmp_settings new = entry->rule.settings;
	int err = 0;

	if (entry->trial.state != VMP_TRIAL_NONE)
		new = entry->trial.before;
	vmp_set_stock(&new, vmp_traits());
	if (memcmp(&new, &entry->rule.settings, sizeof(new)))
		err = vmp_change_all(entry, &new);
	if (!err) {
		entry->trial.state = VMP_TRIAL_NONE;
		entry->trial.file = NULL;
	}

	return err;
}

/**
 * vmp_control_teardown() - set to stock, for good, what acts stock since a guard has tripped
 *
 * Return: 0, or the error of an entry that is left as it is.
 */
int vmp_control_teardown(void)
{
	struct vmp_entry *entry;
	int err = 0;

	guard(mutex)(&vmp_control_lock);
	if (!published_set())
		return 0;
	list_for_each_entry(entry, &vmp_entries, list)
		if (READ_ONCE(entry->guard.tripped))
			err = tear_down(entry) ?: err;

	return err;
}

/**
 * vmp_control_clear() - forget why a guard has tripped, and allow policies again
 * @entry: whose
 *
 * Return: 0, or what vmp_change_all() returned.
 */
int vmp_control_clear(struct vmp_entry *entry)
{
	int err;

	guard(mutex)(&vmp_control_lock);
	if (!READ_ONCE(entry->guard.tripped))
		return 0;
	err = tear_down(entry);
	if (!err)
		vmp_guard_clear(&entry->guard);

	return err;
}

/**
 * vmp_control_forget() - have stock where a policy is chosen that goes
 * @point: its point
 * @policy: the policy, which is in force nowhere
 */
void vmp_control_forget(unsigned int point, unsigned int policy)
{
	struct vmp_entry *entry;

	lockdep_assert_held(&vmp_control_lock);
	list_for_each_entry(entry, &vmp_entries, list) {
		/* another may get its index */
		if (entry->tried.policy[point] == policy)
			entry->tried = (struct vmp_settings) {};
		if (entry->rule.settings.policy[point] == policy)
			entry->rule.settings.policy[point] = 0;
		if (entry->trial.before.policy[point] == policy)
			entry->trial.before.policy[point] = 0;
	}
}
EXPORT_SYMBOL_IF_KUNIT(vmp_control_forget);

/**
 * vmp_control_withdraw() - have stock in force where a policy is chosen that can't wait to go
 * @point: its point
 * @policy: the policy
 *
 * Return: 0, -ENOMEM, or what vmscan_policy_publish() returned: some may still have it.
 */
int vmp_control_withdraw(unsigned int point, unsigned int policy)
{
	struct vmp_settings new;
	struct vmp_entry *entry;
	int err = 0;

	lockdep_assert_held(&vmp_control_lock);
	if (!published_set())
		return 0;
	list_for_each_entry(entry, &vmp_entries, list) {
		if (entry->rule.settings.policy[point] != policy)
			continue;
		new = entry->rule.settings;
		new.policy[point] = 0;
		err = vmp_change_all(entry, &new) ?: err;
	}

	return err;
}

#ifdef CONFIG_MEMCG
/**
 * vmp_control_add() - give a memory cgroup settings of its own: at first those that held for it
 * @entry: has its ids and counters, and gets the settings
 * @memcg: the memory cgroup
 *
 * Return: 0, -EEXIST if it has some, -ENOSPC if VMP_MAX_CGROUPS have, -EBUSY while nothing is
 * published, -ENOMEM, or what vmscan_policy_publish() returned.
 */
int vmp_control_add(struct vmp_entry *entry, struct mem_cgroup *memcg)
{
	struct vmp_entry *other;
	unsigned int nr = 0;
	int err;

	guard(mutex)(&vmp_control_lock);
	if (!published_set())
		return -EBUSY;
	list_for_each_entry(other, &vmp_entries, list) {
		if (other->rule.serial == entry->rule.serial)
			return -EEXIST;
		nr++;
	}
	if (nr > VMP_MAX_CGROUPS)
		return -ENOSPC;

	entry->rule.settings = vmp_find_rule(published_set(), memcg)->settings;
	list_add_tail(&entry->list, &vmp_entries);
	err = publish();
	if (err)
		list_del(&entry->list);
	else
		vmp_guard_changed(entry);

	return err;
}

/**
 * vmp_control_remove() - take settings of cgroups out of force
 * @is_gone: of which entries
 * @id: for that
 * @gone: gets them; nobody uses them any more but their files
 *
 * Return: 0, also if there is none; else, without effect, -ENOMEM or what
 * vmscan_policy_publish() returned.
 */
int vmp_control_remove(bool (*is_gone)(const struct vmp_entry *entry, u64 id), u64 id,
		       struct list_head *gone)
{
	struct vmp_entry *entry, *next;
	int err;

	guard(mutex)(&vmp_control_lock);
	list_for_each_entry_safe(entry, next, &vmp_entries, list)
		if (entry != &machine && is_gone(entry, id))
			list_move_tail(&entry->list, gone);
	if (list_empty(gone))
		return 0;

	err = published_set() ? publish() : 0;
	if (err) {
		list_splice_tail_init(gone, &vmp_entries);
		return err;
	}
	list_for_each_entry(entry, gone, list)
		entry->removed = true;

	return 0;
}
#endif

/**
 * vmp_control_detach() - take the set back from the kernel
 *
 * For module exit, and for tests that need the registry for themselves. What was set is
 * remembered.
 */
void vmp_control_detach(void)
{
	struct vmp_set *old;

	guard(mutex)(&vmp_control_lock);
	old = published_set();
	if (!old)
		return;
	rcu_assign_pointer(published, NULL);
	vmscan_policy_publish(&old->ops, NULL);
	vmp_free_set(old);
}
EXPORT_SYMBOL_IF_KUNIT(vmp_control_detach);

/**
 * vmp_control_attach() - give what is set to the kernel
 *
 * Return: 0, -ENOMEM, or what vmscan_policy_publish() returned.
 */
int vmp_control_attach(void)
{
	guard(mutex)(&vmp_control_lock);

	return published_set() ? 0 : publish();
}
EXPORT_SYMBOL_IF_KUNIT(vmp_control_attach);

/* The file of a policy leads to the point's place in vmp_points. */
static unsigned int point_of(const struct vmp_file *file)
{
	return (const struct vmp_point *const *)file->item - vmp_points;
}

static int policy_show(struct seq_file *m, void *v)
{
	const struct vmp_file *file = m->private;
	unsigned int point = point_of(file), i = 0;
	struct vmp_shown shown = vmp_shown_policies(vmp_points[point], vmp_traits());
	unsigned int policy;

	guard(mutex)(&vmp_control_lock);
	policy = file->entry->rule.settings.policy[point];
	vmp_add_plugins(&shown, point);
	while (i < shown.nr && shown.policy[i] != policy)
		i++;
	vmp_show_names(m, shown.names, shown.nr, i);

	return 0;
}

static ssize_t policy_write(struct file *file, const char __user *ubuf,
			    size_t count, loff_t *ppos)
{
	const struct vmp_file *to = file_inode(file)->i_private;
	unsigned int point = point_of(to);
	struct vmp_shown shown = vmp_shown_policies(vmp_points[point], vmp_traits());
	char text[VMP_TEXT_MAX + 1];
	struct vmp_settings new;
	char name[32];
	int i;

	i = vmp_copy_text(text, ubuf, count);
	if (i)
		return i;

	guard(mutex)(&vmp_control_lock);
	vmp_add_plugins(&shown, point);
	snprintf(name, sizeof(name), "%s/policy", vmp_points[point]->name);
	i = vmp_parse_choice(name, text, shown.names, shown.nr);
	if (i < 0)
		return i;
	new = to->entry->rule.settings;
	new.policy[point] = shown.policy[i];

	return vmp_change_all(to->entry, &new) ?: count;
}
DEFINE_SHOW_STORE_ATTRIBUTE(policy);

static int in_effect_show(struct seq_file *m, void *v)
{
	const struct vmp_file *file = m->private;
	unsigned int point = point_of(file), needs = vmp_points[point]->needs;
	const struct vmp_settings *settings = &file->entry->rule.settings;

	guard(mutex)(&vmp_control_lock);
	/* its settings may name a policy that is gone */
	if (file->entry->removed)
		return -ENOENT;
	if (vmp_in_effect(settings, point, vmp_traits()))
		seq_puts(m, "yes\n");
	else
		seq_printf(m, "no: %s/policy is %s\n", vmp_points[needs]->name,
			   vmp_policy_name(needs, settings->policy[needs],
					   vmp_plugin(needs, settings->policy[needs])));

	return 0;
}
DEFINE_SHOW_ATTRIBUTE(in_effect);

static int stats_show(struct seq_file *m, void *v)
{
	const struct vmp_file *file = m->private;

	vmp_points[point_of(file)]->show_stats(m, file->entry->rule.stats,
					       file->entry == &machine);

	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

static int profile_show(struct seq_file *m, void *v)
{
	const struct vmp_file *file = m->private;
	struct vmp_settings settings;

	scoped_guard(mutex, &vmp_control_lock)
		settings = file->entry->rule.settings;
	vmp_show_names(m, vmp_profile_names, vmp_nr_profiles,
		       vmp_find_profile(&settings, vmp_traits()));

	return 0;
}

static ssize_t profile_write(struct file *file, const char __user *ubuf,
			     size_t count, loff_t *ppos)
{
	const struct vmp_file *to = file_inode(file)->i_private;
	char text[VMP_TEXT_MAX + 1];
	struct vmp_settings new;
	int profile;

	profile = vmp_copy_text(text, ubuf, count) ?:
		  vmp_parse_choice("profile", text, vmp_profile_names, vmp_nr_profiles);
	if (profile < 0)
		return profile;

	guard(mutex)(&vmp_control_lock);
	new = to->entry->rule.settings;
	vmp_set_profile(&new, profile, vmp_traits());

	return vmp_change_all(to->entry, &new) ?: count;
}
DEFINE_SHOW_STORE_ATTRIBUTE(profile);

static unsigned int bypass_get(void)
{
	return vmscan_policy_bypassed();
}

static int bypass_set(unsigned int on)
{
	struct vmp_where where = { .nid = NUMA_NO_NODE };

	vmp_guard_before_bypass();
	vmscan_policy_set_bypass(on);
	where.set = READ_ONCE(set_number);
	trace_bypass(&where, on, current->pid);

	return 0;
}

static const struct vmp_number bypass = {
	.path = "bypass",
	.max = 1,
	.get = bypass_get,
	.set = bypass_set,
};

static int abi_show(struct seq_file *m, void *v)
{
	seq_printf(m, "abi %u\nmodule %s\nkernel %s\n", VMSCAN_POLICY_ABI,
		   THIS_MODULE->version, init_utsname()->release);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(abi);

/* By the position of the bit, as enum vmscan_trait has them. */
static const char *const trait_names[] = { "budget", "feedback", "unmap", "young", "discard" };

static int traits_show(struct seq_file *m, void *v)
{
	unsigned long traits = vmp_traits();
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(trait_names); i++)
		if (traits & BIT(i))
			seq_printf(m, "%s\n", trait_names[i]);

	return 0;
}
DEFINE_SHOW_ATTRIBUTE(traits);

static void create_point(struct vmp_entry *entry, const struct vmp_point *const *item)
{
	const struct vmp_point *point = *item;
	struct dentry *dir = debugfs_create_dir(point->name, entry->dir);
	unsigned int i;

	vmp_create_file(entry, dir, "policy", 0600, item, &policy_fops);
	vmp_create_file(entry, dir, "stats", 0400, item, &stats_fops);
	if (point->in_effect)
		vmp_create_file(entry, dir, "in_effect", 0400, item, &in_effect_fops);
	for (i = 0; i < point->nr_numbers; i++)
		if (entry == &machine || !point->numbers[i].get)
			vmp_create_number(entry, dir, &point->numbers[i]);
	if (point->option)
		vmp_create_option(entry, dir, point->option);
}

/**
 * vmp_create_settings() - create the files that are the same for the machine and for cgroups
 * @entry: whose; has its directory
 */
void vmp_create_settings(struct vmp_entry *entry)
{
	unsigned int i;

	vmp_create_file(entry, entry->dir, "profile", 0600, NULL, &profile_fops);
	vmp_trial_create(entry);
	vmp_guard_create(entry);
	for (i = 0; i < VMP_NR_POINTS; i++)
		if (vmp_point_exists(vmp_points[i], vmp_traits()))
			create_point(entry, &vmp_points[i]);
}

/**
 * vmp_control_init() - register with the kernel, all points stock
 *
 * Return: 0, -EOPNOTSUPP after a log line on a kernel without the hooks, or what vmp_guard_init()
 * or vmscan_policy_publish() returned.
 */
int vmp_control_init(void)
{
	int err;

	if (!vmscan_policy_publish) {
		pr_err("this kernel has no reclaim policy hooks (CONFIG_VMSCAN_POLICY)\n");
		return -EOPNOTSUPP;
	}

	machine.rule.settings = vmp_default_settings(vmp_traits());
	list_add(&machine.list, &vmp_entries);
	vmp_trial_init_entry(&machine);
	err = vmp_guard_init(&machine);
	if (err)
		return err;
	err = vmp_control_attach();
	if (err) {
		vmp_guard_exit();
		return err;
	}

	machine.dir = debugfs_create_dir(KBUILD_MODNAME, NULL);
	debugfs_create_file("abi", 0400, machine.dir, NULL, &abi_fops);
	debugfs_create_file("traits", 0400, machine.dir, NULL, &traits_fops);
	vmp_create_number(&machine, machine.dir, &bypass);
	vmp_create_settings(&machine);
	vmp_cgroups_create(machine.dir);
	vmp_plugins_create(machine.dir);

	return 0;
}

void vmp_control_exit(void)
{
	vmp_control_detach();
	vmp_bpf_exit();
	vmp_trial_exit_entry(&machine);
	vmp_guard_exit();
	vmp_cgroups_exit();
	debugfs_remove(machine.dir);
}
