// SPDX-License-Identifier: GPL-2.0
/*
 * Policies of other modules. Settings know one by its place among those of its point, behind our
 * own policies; a rule has a pointer to it, and a set holds its module for as long as it is there.
 */
#include <linux/array_size.h>
#include <linux/ctype.h>
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <kunit/visibility.h>

#include "internal.h"

/* With vmp_control_lock. */
static struct vmp_plugin *plugins[VMP_NR_POINTS][VMP_MAX_PLUGINS];
static struct dentry *dir;

#define CALLBACK(name)	offsetof(struct vmscan_module_policy, name)
/* Which callback the policies of a point have; aging has none. */
static const size_t callbacks[VMP_NR_POINTS] = {
	[VMP_POINT_FLUSH] = CALLBACK(flush_group),
	[VMP_POINT_SCAN] = CALLBACK(next_step),
	[VMP_POINT_WRITEBACK] = CALLBACK(evicted),
	[VMP_POINT_THROTTLE] = CALLBACK(throttle),
	[VMP_POINT_UNMAP] = CALLBACK(unmap_ptes),
	[VMP_POINT_YOUNG] = CALLBACK(young_ptes),
};

/**
 * vmp_plugin() - which policy of another module do settings mean?
 * @point: the point
 * @policy: its policy, as settings have it
 *
 * Return: the policy; NULL for one of our own, and for one that has gone.
 */
struct vmp_plugin *vmp_plugin(unsigned int point, unsigned int policy)
{
	if (policy < VMP_FIRST_PLUGIN)
		return NULL;
	lockdep_assert_held(&vmp_control_lock);

	return plugins[point][policy - VMP_FIRST_PLUGIN];
}

/**
 * vmp_add_plugins() - what else is there to choose from?
 * @shown: our own policies of a point; gets those of other modules
 * @point: the point
 */
void vmp_add_plugins(struct vmp_shown *shown, unsigned int point)
{
	unsigned int i;

	lockdep_assert_held(&vmp_control_lock);
	for (i = 0; i < VMP_MAX_PLUGINS; i++) {
		if (!plugins[point][i])
			continue;
		shown->names[shown->nr] = plugins[point][i]->policy->name;
		shown->policy[shown->nr++] = VMP_FIRST_PLUGIN + i;
	}
}
EXPORT_SYMBOL_IF_KUNIT(vmp_add_plugins);

static unsigned int point_of(const struct vmscan_module_policy *policy)
{
	unsigned int i;

	for (i = 0; i < VMP_NR_POINTS; i++)
		if (callbacks[i] && vmp_point_exists(vmp_points[i], vmp_traits()) &&
		    !strcmp(vmp_points[i]->name, policy->point ?: ""))
			break;

	return i;
}

static bool is_name(const char *name)
{
	const char *c;

	if (!name || !islower(*name) || strlen(name) > VMSCAN_POLICY_NAME_MAX)
		return false;
	for (c = name; *c; c++)
		if (!islower(*c) && !isdigit(*c) && !strchr(".-_", *c))
			return false;

	return true;
}

static bool is_sentence(const char *text)
{
	const char *c;

	if (!text || !*text || strlen(text) > VMSCAN_POLICY_ABOUT_MAX)
		return false;
	for (c = text; *c; c++)
		if (!isprint(*c))
			return false;

	return true;
}

/* Has it the callback of the point, and none of others? */
static bool has_callback(const struct vmscan_module_policy *policy, unsigned int point)
{
	bool has, wanted;
	unsigned int i;

	for (i = 0; i < VMP_NR_POINTS; i++) {
		has = callbacks[i] && *(void *const *)((const void *)policy + callbacks[i]);
		wanted = i == point;
		if (has != wanted)
			return false;
	}

	return true;
}

static int check(const struct vmscan_module_policy *policy, unsigned int point)
{
	if (policy->abi != VMSCAN_POLICY_ABI) {
		pr_err("a policy was built for hook ABI %u, this is ABI %u: build its module again\n",
		       policy->abi, VMSCAN_POLICY_ABI);
		return -EPROTONOSUPPORT;
	}
	if (!policy->owner) {
		pr_err("a policy has no owner: it is to be THIS_MODULE\n");
		return -EINVAL;
	}
	if (!is_name(policy->name)) {
		pr_err("%s: a policy's name has up to %u of a-z, 0-9, '.', '-' and '_', a letter first\n",
		       module_name(policy->owner), VMSCAN_POLICY_NAME_MAX);
		return -EINVAL;
	}
	if (point == VMP_NR_POINTS) {
		pr_err("%s: this kernel has no point %s for policies of modules\n", policy->name,
		       policy->point ?: "without a name");
		return -ENOENT;
	}
	if (!is_sentence(policy->about)) {
		pr_err("%s: a policy needs a sentence about it, of up to %u characters\n",
		       policy->name, VMSCAN_POLICY_ABOUT_MAX);
		return -EINVAL;
	}
	if (!has_callback(policy, point)) {
		pr_err("%s: a policy needs the callback of its point, %s, and no other\n",
		       policy->name, policy->point);
		return -EINVAL;
	}

	return 0;
}

/* Finds it a place among those of its point. */
static int place(const struct vmscan_module_policy *policy, unsigned int point)
{
	unsigned int i, free = VMP_MAX_PLUGINS;

	for (i = 0; i < vmp_points[point]->nr_policies; i++)
		if (!strcmp(vmp_points[point]->policies[i].name, policy->name))
			goto exists;
	for (i = 0; i < VMP_MAX_PLUGINS; i++) {
		if (!plugins[point][i])
			free = min(free, i);
		else if (!strcmp(plugins[point][i]->policy->name, policy->name))
			goto exists;
	}
	if (free < VMP_MAX_PLUGINS)
		return free;
	pr_err("%s: %s has %u policies of modules: unload one\n", policy->name, policy->point,
	       VMP_MAX_PLUGINS);

	return -ENOSPC;

exists:
	pr_err("%s: %s has a policy of that name\n", policy->name, policy->point);
	return -EEXIST;
}

static int plugin_show(struct seq_file *m, void *v)
{
	const struct vmp_plugin *plugin = m->private;
	u64 answers = 0, clamps = 0, ns = 0;
	int cpu;

	for_each_possible_cpu(cpu) {
		const struct vmp_plugin_stats *stats = per_cpu_ptr(plugin->stats, cpu);

		answers += READ_ONCE(stats->answers);
		clamps += READ_ONCE(stats->clamps);
		ns += READ_ONCE(stats->ns);
	}
	seq_printf(m, "about %s\nmodule %s\nindex %u\nanswers %llu\nlimited %llu\nns %llu\n",
		   plugin->policy->about, module_name(plugin->policy->owner), plugin->index,
		   answers, clamps, ns);

	return 0;
}
DEFINE_SHOW_ATTRIBUTE(plugin);

static void free_plugin(struct vmp_plugin *plugin)
{
	debugfs_remove(plugin->file);
	free_percpu(plugin->stats);
	kfree(plugin);
}

int vmscan_policy_register(const struct vmscan_module_policy *policy)
{
	unsigned int point = point_of(policy);
	struct vmp_plugin *plugin;
	char name[32];
	int i = check(policy, point);

	if (i)
		return i;
	plugin = kzalloc(sizeof(*plugin), GFP_KERNEL);
	if (!plugin)
		return -ENOMEM;
	plugin->policy = policy;
	plugin->stats = alloc_percpu(struct vmp_plugin_stats);
	i = -ENOMEM;
	if (!plugin->stats)
		goto failed;

	scoped_guard(mutex, &vmp_control_lock) {
		i = place(policy, point);
		if (i < 0)
			break;
		plugin->index = VMP_FIRST_PLUGIN + i;
		plugins[point][i] = plugin;
	}
	if (i < 0)
		goto failed;
	snprintf(name, sizeof(name), "%s.%s", policy->point, policy->name);
	plugin->file = debugfs_create_file(name, 0400, dir, plugin, &plugin_fops);

	return 0;

failed:
	free_plugin(plugin);
	return i;
}
EXPORT_SYMBOL_GPL(vmscan_policy_register);

/**
 * vmp_plugin_of() - where does a policy stand?
 * @policy: the policy
 * @point: gets its point
 *
 * Return: what settings call it; 0 if it isn't registered.
 */
unsigned int vmp_plugin_of(const struct vmscan_module_policy *policy, unsigned int *point)
{
	unsigned int i;

	lockdep_assert_held(&vmp_control_lock);
	*point = point_of(policy);
	for (i = 0; *point < VMP_NR_POINTS && i < VMP_MAX_PLUGINS; i++)
		if (plugins[*point][i] && plugins[*point][i]->policy == policy)
			return VMP_FIRST_PLUGIN + i;

	return 0;
}

/**
 * vmp_plugin_withdraw() - have stock in force in place of a policy, and forget it
 * @policy: the policy; nothing is done if it isn't registered
 *
 * In one step: nobody can choose it in between.
 *
 * Return: 0, or what vmp_control_withdraw() returned: then it stays.
 */
int vmp_plugin_withdraw(const struct vmscan_module_policy *policy)
{
	struct vmp_plugin *plugin;
	unsigned int point, index;
	int err;

	scoped_guard(mutex, &vmp_control_lock) {
		index = vmp_plugin_of(policy, &point);
		if (!index)
			return 0;
		err = vmp_control_withdraw(point, index);
		if (err)
			return err;
		plugin = vmp_plugin(point, index);
		vmp_control_forget(point, index);
		plugins[point][index - VMP_FIRST_PLUGIN] = NULL;
	}
	free_plugin(plugin);

	return 0;
}

/*
 * A module that goes has its policy in force nowhere: there is nothing to publish. One whose init
 * function fails may have: want of memory, or a guard that has tripped, passes.
 */
void vmscan_policy_unregister(const struct vmscan_module_policy *policy)
{
	while (vmp_plugin_withdraw(policy))
		schedule_timeout_uninterruptible(HZ / 10);
}
EXPORT_SYMBOL_GPL(vmscan_policy_unregister);

/* All that stands in its rules is as long as it; false if some of it is about to go. */
bool vmp_hold_plugins(struct vmp_rule *rule)
{
	unsigned int point;

	for (point = 0; point < VMP_NR_POINTS; point++) {
		struct vmp_plugin *plugin = vmp_plugin(point, rule->settings.policy[point]);

		if (plugin && !try_module_get(plugin->policy->owner))
			return false;
		rule->plugin[point] = plugin;
	}

	return true;
}

void vmp_release_plugins(const struct vmp_rule *rule)
{
	unsigned int point;

	for (point = 0; point < VMP_NR_POINTS; point++)
		if (rule->plugin[point])
			module_put(rule->plugin[point]->policy->owner);
}

/* The root directory is there. */
void vmp_plugins_create(struct dentry *root)
{
	dir = debugfs_create_dir("plugins", root);
}
