// SPDX-License-Identifier: GPL-2.0
/*
 * Settings of memory cgroups, in debugfs: cgroups/add takes the id of a cgroup, as
 * `stat -c %i` prints it of its directory, and makes cgroups/ID/ with the files that the
 * machine has; cgroups/remove takes it away.
 *
 * An entry pins nothing. When its cgroup is removed it holds for nothing any more, since the
 * serial number that it is found by is never used again, and goes with the next change of a
 * setting, or when its path is read. So does one that a trial was to have alone.
 */
#include <linux/cgroup.h>
#include <linux/cleanup.h>
#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/memcontrol.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/stringify.h>
#include <linux/workqueue.h>

#include "internal.h"

/* Directories come and go under it. No file in cgroups/ID/ takes it: who removes that waits. */
static DEFINE_MUTEX(cgroups_lock);
static struct dentry *cgroups_dir;

/* The memory controller's part of a cgroup, with a reference; or -ENOENT, -EOPNOTSUPP. */
static struct cgroup_subsys_state *get_css(u64 id)
{
	struct cgroup *cgroup = cgroup_get_from_id(id);
	struct cgroup_subsys_state *css;

	if (IS_ERR(cgroup))
		return ERR_PTR(-ENOENT);
	css = cgroup_get_e_css(cgroup, &memory_cgrp_subsys);
	if (css->cgroup != cgroup) {
		css_put(css);
		css = ERR_PTR(-EOPNOTSUPP);
	}
	cgroup_put(cgroup);

	return css;
}

/*
 * The same of an entry; -ENOENT if it was removed, or its memory controller taken away: another
 * one that came is not the entry's.
 */
static struct cgroup_subsys_state *css_of(const struct vmp_entry *entry)
{
	struct cgroup_subsys_state *css = get_css(entry->rule.cgroup);

	if (IS_ERR(css))
		return ERR_PTR(-ENOENT);
	if (css->serial_nr != entry->rule.serial) {
		css_put(css);
		return ERR_PTR(-ENOENT);
	}

	return css;
}

static bool is_gone(const struct vmp_entry *entry, u64 id)
{
	struct cgroup_subsys_state *css = entry->over ? ERR_PTR(-ENOENT) : css_of(entry);

	if (IS_ERR(css))
		return true;
	css_put(css);

	return false;
}

static bool has_id(const struct vmp_entry *entry, u64 id)
{
	return entry->rule.cgroup == id;
}

static void free_entry(struct vmp_entry *entry)
{
	debugfs_remove(entry->dir);
	vmp_trial_exit_entry(entry);
	free_percpu(entry->rule.stats);
	kfree(entry);
}

/* Returns how many there were, or an error. */
static int remove_entries(bool (*which)(const struct vmp_entry *entry, u64 id), u64 id)
{
	struct vmp_entry *entry, *next;
	LIST_HEAD(gone);
	int nr, err;

	lockdep_assert_held(&cgroups_lock);
	err = vmp_control_remove(which, id, &gone);
	if (err)
		return err;
	nr = list_count_nodes(&gone);
	list_for_each_entry_safe(entry, next, &gone, list)
		free_entry(entry);

	return nr;
}

static void purge_workfn(struct work_struct *work)
{
	guard(mutex)(&cgroups_lock);
	/* for want of memory, the next time */
	remove_entries(is_gone, 0);
}

static DECLARE_WORK(purge_work, purge_workfn);

/* Settings have changed: a time to drop those of cgroups that are gone. */
void vmp_cgroups_changed(void)
{
	schedule_work(&purge_work);
}

static int path_show(struct seq_file *m, void *v)
{
	const struct vmp_file *file = m->private;
	struct cgroup_subsys_state *css = css_of(file->entry);
	int len = -ENOMEM;
	char *path;

	if (IS_ERR(css)) {
		vmp_cgroups_changed();
		return PTR_ERR(css);
	}
	path = kmalloc(PATH_MAX, GFP_KERNEL);
	if (path)
		len = cgroup_path(css->cgroup, path, PATH_MAX);
	css_put(css);
	if (len >= 0) {
		seq_escape(m, path, "\n\\");
		seq_putc(m, '\n');
	}
	kfree(path);

	return min(len, 0);
}
DEFINE_SHOW_ATTRIBUTE(path);

static int add_css(struct cgroup_subsys_state *css, u64 id)
{
	struct vmp_entry *entry = kzalloc(sizeof(*entry), GFP_KERNEL);
	char name[24];
	int err;

	if (!entry)
		return -ENOMEM;
	entry->rule.serial = css->serial_nr;
	entry->rule.cgroup = id;
	vmp_guard_init_entry(entry);
	vmp_trial_init_entry(entry);
	entry->rule.stats = alloc_percpu(struct vmp_stats);
	err = entry->rule.stats ? vmp_control_add(entry, mem_cgroup_from_css(css)) : -ENOMEM;
	if (err) {
		free_entry(entry);
		return err;
	}

	snprintf(name, sizeof(name), "%llu", id);
	entry->dir = debugfs_create_dir(name, cgroups_dir);
	vmp_create_file(entry, entry->dir, "path", 0400, NULL, &path_fops);
	vmp_create_settings(entry);
	if (!entry->incomplete)
		return 0;
	/* where there is no memory for that either, later */
	entry->over = true;
	remove_entries(has_id, id);

	return -ENOMEM;
}

/* Returns 0 or an error, as refusal() has them. */
static int add(u64 id)
{
	struct cgroup_subsys_state *css = get_css(id);
	int err;

	if (IS_ERR(css))
		return PTR_ERR(css);
	err = css->parent ? add_css(css, id) : -EINVAL;
	css_put(css);

	return err;
}

static int remove_id(u64 id)
{
	int nr = remove_entries(has_id, id);

	return nr > 0 ? 0 : nr ?: -ENOENT;
}

#ifdef VMP_BPF
static bool has_id_and_is_stock(const struct vmp_entry *entry, u64 id)
{
	/* What is known of a guard that has tripped stays until it is cleared. */
	return has_id(entry, id) && vmp_is_stock(&entry->rule.settings, vmp_traits()) &&
	       !READ_ONCE(entry->guard.tripped);
}

/**
 * vmp_cgroups_place() - put a policy in force in a cgroup
 * @id: id of the cgroup
 * @point: the policy's point
 * @policy: the policy
 *
 * Return: 0, or 1 if it had no settings and has them for that; else an error, and no change.
 */
int vmp_cgroups_place(u64 id, unsigned int point, unsigned int policy)
{
	int err, added, changed = -ENOENT;
	struct vmp_settings new;
	struct vmp_entry *entry;

	guard(mutex)(&cgroups_lock);
	/* One that is gone may have had that id. */
	remove_entries(is_gone, 0);
	err = add(id);
	if (err && err != -EEXIST)
		return err;
	added = !err;
	scoped_guard(mutex, &vmp_control_lock)
		list_for_each_entry(entry, &vmp_entries, list) {
			if (entry->rule.cgroup != id)
				continue;
			new = entry->rule.settings;
			new.policy[point] = policy;
			changed = vmp_change_all(entry, &new);
			break;
		}
	if (!changed)
		return added;
	if (added)
		remove_id(id);

	return changed;
}

/**
 * vmp_cgroups_unplace() - take the settings of a cgroup away if they are all stock, and the guard
 * has not tripped
 * @id: its id
 *
 * Return: 0 or an error.
 */
int vmp_cgroups_unplace(u64 id)
{
	guard(mutex)(&cgroups_lock);

	return min(remove_entries(has_id_and_is_stock, id), 0);
}
#endif

static const char *refusal(int err)
{
	switch (err) {
	case -ENOENT:
		return "no such cgroup of version 2";
	case -EOPNOTSUPP:
		return "it has no memory controller: put +memory in its parent's subtree_control";
	case -EINVAL:
		return "the root cgroup's settings are the machine's";
	case -EEXIST:
		return "it has settings already";
	case -ENOSPC:
		return __stringify(VMP_MAX_CGROUPS) " cgroups have settings, which is the limit";
	case -EBUSY:
		return "tests have the registry for themselves";
	default:
		return "out of memory";
	}
}

/* Does with the id that was written to a file what that is for. */
static ssize_t take_id(const char *name, const char __user *ubuf, size_t count,
		       int (*take)(u64 id))
{
	char text[VMP_TEXT_MAX + 1];
	u64 id;
	int err;

	err = vmp_copy_text(text, ubuf, count);
	if (err)
		return err;
	err = kstrtou64(text, 10, &id);
	if (err) {
		pr_err_ratelimited("cgroups/%s takes the id of a cgroup: the inode number of its directory\n",
				   name);
		return err;
	}

	/* Not by this task, which may be in a cgroup namespace that has not all cgroups. */
	vmp_cgroups_changed();
	flush_work(&purge_work);
	guard(mutex)(&cgroups_lock);
	err = take(id);
	if (err == -ENOENT && take == remove_id)
		pr_err_ratelimited("cgroups/remove %llu: it has no settings\n", id);
	else if (err)
		pr_err_ratelimited("cgroups/%s %llu: %s\n", name, id, refusal(err));

	return err ?: count;
}

static ssize_t add_write(struct file *file, const char __user *ubuf, size_t count, loff_t *ppos)
{
	return take_id("add", ubuf, count, add);
}

static ssize_t remove_write(struct file *file, const char __user *ubuf, size_t count, loff_t *ppos)
{
	return take_id("remove", ubuf, count, remove_id);
}

static const struct file_operations add_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = add_write,
};

static const struct file_operations remove_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = remove_write,
};

/**
 * vmp_cgroups_create() - create the directory
 * @root: in which one
 */
void vmp_cgroups_create(struct dentry *root)
{
	cgroups_dir = debugfs_create_dir("cgroups", root);
	debugfs_create_file("add", 0200, cgroups_dir, NULL, &add_fops);
	debugfs_create_file("remove", 0200, cgroups_dir, NULL, &remove_fops);
}

static bool any(const struct vmp_entry *entry, u64 id)
{
	return true;
}

/* Remove all settings of cgroups: nothing is published any more, and no file is open. */
void vmp_cgroups_exit(void)
{
	/* The work of a trial that ends may ask for the other one. */
	scoped_guard(mutex, &cgroups_lock)
		remove_entries(any, 0);
	cancel_work_sync(&purge_work);
}
