// SPDX-License-Identifier: GPL-2.0
/*
 * Which policy is in force at which point, and the debugfs files that show and
 * set it. Each setting publishes a whole new set, so the points that a profile
 * covers change together, under load too.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/utsname.h>
#include <kunit/visibility.h>

#include "internal.h"
#include "trace.h"

static const struct vmp_point *const points[VMP_NR_POINTS] = {
	[VMP_POINT_FLUSH] = &vmp_flush_point,
	[VMP_POINT_SCAN] = &vmp_scan_point,
	[VMP_POINT_AGING] = &vmp_aging_point,
	[VMP_POINT_WRITEBACK] = &vmp_writeback_point,
	[VMP_POINT_THROTTLE] = &vmp_throttle_point,
	[VMP_POINT_UNMAP] = &vmp_unmap_point,
	[VMP_POINT_YOUNG] = &vmp_young_point,
};

struct vmp_profile {
	const char *name;
	struct vmp_choice choice;
};

static const struct vmp_profile profiles[] = {
	{
		.name = "stock",
		.choice.policy[VMP_POINT_AGING] = VMP_AGING_CONTINUE,
	},
	/*
	 * With the multi-gen LRU no worse than stock under any load of
	 * docs/results/recommended.md, and better under some. With "budget" there are fewer
	 * waits, but each is longer.
	 */
	{
		.name = "recommended",
		.choice.policy = {
			[VMP_POINT_FLUSH] = VMP_FLUSH_BATCH,
			[VMP_POINT_AGING] = VMP_AGING_CONTINUE,
			[VMP_POINT_WRITEBACK] = VMP_WRITEBACK_FEEDBACK,
			[VMP_POINT_THROTTLE] = VMP_THROTTLE_MEMCG,
			[VMP_POINT_UNMAP] = VMP_RMAP_BATCH,
			[VMP_POINT_YOUNG] = VMP_RMAP_BATCH,
		},
	},
	{
		.name = "max",
		.choice.policy = {
			[VMP_POINT_FLUSH] = VMP_FLUSH_BATCH,
			[VMP_POINT_SCAN] = VMP_SCAN_BUDGET,
			[VMP_POINT_AGING] = VMP_AGING_CONTINUE,
			[VMP_POINT_WRITEBACK] = VMP_WRITEBACK_FEEDBACK,
			[VMP_POINT_THROTTLE] = VMP_THROTTLE_ALL,
			[VMP_POINT_UNMAP] = VMP_RMAP_BATCH,
			[VMP_POINT_YOUNG] = VMP_RMAP_BATCH,
		},
	},
};

static DEFINE_MUTEX(control_lock);
static struct vmp_choice current_choice;
static struct vmp_set *published;
static u32 set_number;		/* of the newest set */
static struct dentry *root;

/**
 * vmp_point_exists() - is there such a decision to take?
 * @point: the point
 * @traits: the kernel's
 *
 * Return: false where stock does by itself what the point's policies are for.
 */
bool vmp_point_exists(const struct vmp_point *point, unsigned long traits)
{
	return !(point->not_with & traits);
}
EXPORT_SYMBOL_IF_KUNIT(vmp_point_exists);

/**
 * vmp_shown_policies() - what is there to choose from?
 * @point: the point
 * @traits: the kernel's
 *
 * Return: the policies of the point that mean something there.
 */
struct vmp_shown vmp_shown_policies(const struct vmp_point *point, unsigned long traits)
{
	struct vmp_shown shown = {};
	unsigned int i;

	for (i = 0; i < point->nr_policies; i++) {
		if (point->policies[i].only_with & ~traits)
			continue;
		shown.names[shown.nr] = point->policies[i].name;
		shown.policy[shown.nr++] = i;
	}

	return shown;
}
EXPORT_SYMBOL_IF_KUNIT(vmp_shown_policies);

static struct vmp_choice fit(struct vmp_choice choice, unsigned long traits)
{
	unsigned int i;

	for (i = 0; i < VMP_NR_POINTS; i++)
		if (!vmp_point_exists(points[i], traits))
			choice.policy[i] = 0;

	return choice;
}

/**
 * vmp_profile_choice() - the policies of a profile
 * @name: its name
 * @traits: the kernel's
 *
 * Return: the policy of each point, 0 for those that don't exist and without such a profile.
 */
struct vmp_choice vmp_profile_choice(const char *name, unsigned long traits)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(profiles); i++)
		if (!strcmp(profiles[i].name, name))
			return fit(profiles[i].choice, traits);

	return (struct vmp_choice) {};
}
EXPORT_SYMBOL_IF_KUNIT(vmp_profile_choice);

static const struct vmp_policy *chosen(const struct vmp_choice *choice,
				       unsigned int point)
{
	return &points[point]->policies[choice->policy[point]];
}

static struct vmp_set *make_set(const struct vmp_choice *choice)
{
	struct vmp_set *set = kzalloc(sizeof(*set), GFP_KERNEL);
	unsigned int i;

	if (!set)
		return NULL;

	set->ops.abi = VMSCAN_POLICY_ABI;
	set->ops.owner = THIS_MODULE;
	set->ops.name = KBUILD_MODNAME;
	set->number = set_number + 1;
	set->scan = choice->policy[VMP_POINT_SCAN];
	/* 6.12 ages as it does, whatever is chosen */
	set->aging = set->scan == VMP_SCAN_6_12 ? VMP_AGING_STOP :
						  choice->policy[VMP_POINT_AGING];
	set->feedback = choice->policy[VMP_POINT_WRITEBACK] ==
			VMP_WRITEBACK_FEEDBACK;
	set->throttle = choice->policy[VMP_POINT_THROTTLE];
	for (i = 0; i < VMP_NR_POINTS; i++)
		if (chosen(choice, i)->fill)
			chosen(choice, i)->fill(&set->ops);

	return set;
}

/* The policy that is in force at a point; NULL where the one at another point rules it out. */
static const struct vmp_policy *in_effect(const struct vmp_choice *choice, unsigned int point,
					  unsigned long traits)
{
	const struct vmp_point *needs = points[point]->needs;
	unsigned int i;

	for (i = 0; needs && i < VMP_NR_POINTS; i++)
		if (points[i] == needs && !points[point]->in_effect(choice->policy[i], traits))
			return NULL;

	return chosen(choice, point);
}

/**
 * vmp_policy_ends() - is a policy that was in effect at a point so no longer?
 * @old: the policies before
 * @new: those after, NULL for none
 * @point: the point
 * @traits: the kernel's
 *
 * Return: true if it is not.
 */
bool vmp_policy_ends(const struct vmp_choice *old, const struct vmp_choice *new,
		     enum vmp_point_id point, unsigned long traits)
{
	const struct vmp_policy *before = in_effect(old, point, traits);

	return before && (!new || before != in_effect(new, point, traits));
}
EXPORT_SYMBOL_IF_KUNIT(vmp_policy_ends);

/* No reclaimer uses what @new doesn't have of @old: end what it left to do. */
static void retire(const struct vmp_choice *old, const struct vmp_choice *new)
{
	unsigned int i;

	for (i = 0; i < VMP_NR_POINTS; i++)
		if (chosen(old, i)->retire && vmp_policy_ends(old, new, i, vmp_traits()))
			chosen(old, i)->retire();
}

/* The set with that @number is about to be published, or was not after all. */
static void trace_switches(const struct vmp_choice *from,
			   const struct vmp_choice *to, u32 number)
{
	unsigned int i;

	for (i = 0; i < VMP_NR_POINTS; i++) {
		const struct vmp_where where = {
			.policy = to->policy[i],
			.set = number,
			.nid = NUMA_NO_NODE,
		};

		if (from->policy[i] != to->policy[i])
			trace_policy_switch(&where, i, from->policy[i],
					    to->policy[i], current->pid);
	}
}

/* Put @choice in force, from nothing or in place of what there is. */
static int publish(const struct vmp_choice *choice)
{
	struct vmp_set *set = make_set(choice);
	struct vmp_choice old = current_choice;
	int err;

	if (!set)
		return -ENOMEM;

	trace_switches(&old, choice, set->number);
	err = vmscan_policy_publish(published ? &published->ops : NULL, &set->ops);
	if (err) {
		trace_switches(choice, &old, set_number);
		kfree(set);
		return err;
	}
	kfree(published);
	published = set;
	current_choice = *choice;
	WRITE_ONCE(set_number, set->number);
	retire(&old, choice);

	return 0;
}

/**
 * vmp_control_detach() - take the set back from the kernel
 *
 * For module exit, and for tests that need the registry for themselves. The
 * chosen policies are remembered.
 */
void vmp_control_detach(void)
{
	mutex_lock(&control_lock);
	if (published) {
		vmscan_policy_publish(&published->ops, NULL);
		kfree(published);
		published = NULL;
		retire(&current_choice, NULL);
	}
	mutex_unlock(&control_lock);
}
EXPORT_SYMBOL_IF_KUNIT(vmp_control_detach);

/**
 * vmp_control_attach() - give the chosen policies to the kernel
 *
 * Return: 0, or what vmscan_policy_publish() returned.
 */
int vmp_control_attach(void)
{
	int err = 0;

	mutex_lock(&control_lock);
	if (!published)
		err = publish(&current_choice);
	mutex_unlock(&control_lock);

	return err;
}
EXPORT_SYMBOL_IF_KUNIT(vmp_control_attach);

/**
 * vmp_control_in_force() - tell what is in force, where a set is out of reach
 * @point: of which point
 * @where: gets the policy and the number of the set
 */
void vmp_control_in_force(enum vmp_point_id point, struct vmp_where *where)
{
	where->policy = READ_ONCE(current_choice.policy[point]);
	where->set = READ_ONCE(set_number);
}

static unsigned int profile_names(const char **names)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(profiles); i++)
		names[i] = profiles[i].name;

	return ARRAY_SIZE(profiles);
}

static int policy_show(struct seq_file *m, void *v)
{
	unsigned int point = (unsigned long)m->private;
	unsigned int policy = READ_ONCE(current_choice.policy[point]);
	struct vmp_shown shown = vmp_shown_policies(points[point], vmp_traits());
	unsigned int i = 0;

	while (i < shown.nr && shown.policy[i] != policy)
		i++;
	vmp_show_names(m, shown.names, shown.nr, i);

	return 0;
}

static ssize_t policy_write(struct file *file, const char __user *ubuf,
			    size_t count, loff_t *ppos)
{
	unsigned int point = (unsigned long)file_inode(file)->i_private;
	struct vmp_shown shown = vmp_shown_policies(points[point], vmp_traits());
	char *text = vmp_copy_text(ubuf, count);
	struct vmp_choice choice;
	char name[32];
	int i, err;

	if (IS_ERR(text))
		return PTR_ERR(text);

	snprintf(name, sizeof(name), "%s/policy", points[point]->name);
	i = vmp_parse_choice(name, text, shown.names, shown.nr);
	kfree(text);
	if (i < 0)
		return i;

	mutex_lock(&control_lock);
	choice = current_choice;
	choice.policy[point] = shown.policy[i];
	err = publish(&choice);
	mutex_unlock(&control_lock);

	return err ?: count;
}
DEFINE_SHOW_STORE_ATTRIBUTE(policy);

static int in_effect_show(struct seq_file *m, void *v)
{
	unsigned int point = (unsigned long)m->private;
	const struct vmp_point *needs = points[point]->needs;
	struct vmp_choice choice;
	unsigned int i;

	mutex_lock(&control_lock);
	choice = current_choice;
	mutex_unlock(&control_lock);
	if (in_effect(&choice, point, vmp_traits())) {
		seq_puts(m, "yes\n");
		return 0;
	}
	for (i = 0; points[i] != needs; i++)
		;
	seq_printf(m, "no: %s/policy is %s\n", needs->name, chosen(&choice, i)->name);

	return 0;
}
DEFINE_SHOW_ATTRIBUTE(in_effect);

static int profile_show(struct seq_file *m, void *v)
{
	const char *names[ARRAY_SIZE(profiles)];
	unsigned int nr = profile_names(names);
	struct vmp_choice choice;
	unsigned int i;

	mutex_lock(&control_lock);
	for (i = 0; i < nr; i++) {
		choice = fit(profiles[i].choice, vmp_traits());
		if (!memcmp(&choice, &current_choice, sizeof(choice)))
			break;
	}
	mutex_unlock(&control_lock);
	vmp_show_names(m, names, nr, i);

	return 0;
}

static ssize_t profile_write(struct file *file, const char __user *ubuf,
			     size_t count, loff_t *ppos)
{
	char *text = vmp_copy_text(ubuf, count);
	const char *names[ARRAY_SIZE(profiles)];
	struct vmp_choice choice;
	int profile, err;

	if (IS_ERR(text))
		return PTR_ERR(text);

	profile = vmp_parse_choice("profile", text, names,
				   profile_names(names));
	kfree(text);
	if (profile < 0)
		return profile;

	choice = fit(profiles[profile].choice, vmp_traits());
	mutex_lock(&control_lock);
	err = publish(&choice);
	mutex_unlock(&control_lock);

	return err ?: count;
}
DEFINE_SHOW_STORE_ATTRIBUTE(profile);

static unsigned int bypass_get(void)
{
	return vmscan_policy_bypassed();
}

static int bypass_set(unsigned int on)
{
	struct vmp_where where = { .nid = NUMA_NO_NODE };

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
static const char *const trait_names[] = { "budget", "feedback", "unmap", "young" };

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

/**
 * vmp_control_init() - register with the kernel, all points stock
 *
 * Return: 0, -EOPNOTSUPP after a log line on a kernel without the hooks, or what
 * vmscan_policy_publish() returned.
 */
int vmp_control_init(void)
{
	unsigned long i;
	int err;

	if (!vmscan_policy_publish) {
		pr_err("this kernel has no reclaim policy hooks (CONFIG_VMSCAN_POLICY)\n");
		return -EOPNOTSUPP;
	}

	current_choice = fit(profiles[0].choice, vmp_traits());
	err = vmp_control_attach();
	if (err)
		return err;

	root = debugfs_create_dir(KBUILD_MODNAME, NULL);
	debugfs_create_file("abi", 0444, root, NULL, &abi_fops);
	debugfs_create_file("traits", 0444, root, NULL, &traits_fops);
	vmp_create_number(root, &bypass);
	debugfs_create_file("profile", 0644, root, NULL, &profile_fops);
	for (i = 0; i < VMP_NR_POINTS; i++) {
		struct dentry *dir;

		if (!vmp_point_exists(points[i], vmp_traits()))
			continue;
		dir = debugfs_create_dir(points[i]->name, root);
		debugfs_create_file("policy", 0644, dir, (void *)i,
				    &policy_fops);
		if (points[i]->needs)
			debugfs_create_file("in_effect", 0444, dir, (void *)i,
					    &in_effect_fops);
		points[i]->create_files(dir);
	}

	return 0;
}

void vmp_control_exit(void)
{
	debugfs_remove(root);
	vmp_control_detach();
}
