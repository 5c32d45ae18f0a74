// SPDX-License-Identifier: GPL-2.0
/*
 * Trials: whoever writes a number of seconds to the file `trial`, and keeps it open, tries
 * settings out. When that time is over, or the file is closed, however its opener ends, what was
 * set before comes back.
 */
#include <linux/cleanup.h>
#include <linux/debugfs.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/string.h>

#include "internal.h"

#define MOST_SECONDS	604800

/*
 * Put back what was set before, but for policies if the guard has tripped. Where there is no memory
 * for that, or it trips in this moment, it is tried again.
 */
static void end_trial(struct vmp_entry *entry)
{
	struct vmp_trial *trial = &entry->trial;
	int err;

	lockdep_assert_held(&vmp_control_lock);
	if (trial->state == VMP_TRIAL_NONE)
		return;
	trial->state = VMP_TRIAL_ENDS;
	trial->file = NULL;
	if (READ_ONCE(entry->guard.tripped))
		vmp_set_stock(&trial->before, vmp_traits());
	err = vmp_change_all(entry, &trial->before);
	if (err && !entry->removed) {
		mod_delayed_work(system_long_wq, &trial->work, HZ);
		return;
	}
	trial->state = VMP_TRIAL_NONE;
	/* What is known of a guard that has tripped stays until it is cleared. */
	entry->over = trial->remove && !entry->guard.tripped;
	vmp_cgroups_changed();
}

static void trial_workfn(struct work_struct *work)
{
	struct vmp_entry *entry = container_of(work, struct vmp_entry, trial.work.work);

	guard(mutex)(&vmp_control_lock);
	/* While it waited for the lock there may have come another one, or more time. */
	if (entry->trial.state != VMP_TRIAL_RUNS || time_after_eq(jiffies, entry->trial.ends))
		end_trial(entry);
}

static int trial_show(struct seq_file *m, void *v)
{
	const struct vmp_file *file = m->private;
	const struct vmp_trial *trial = &file->entry->trial;
	long left = 0;

	guard(mutex)(&vmp_control_lock);
	if (trial->state == VMP_TRIAL_RUNS)
		left = max(DIV_ROUND_UP((long)(trial->ends - jiffies), HZ), 1);
	seq_printf(m, "%ld\n", left);

	return 0;
}

static int trial_open(struct inode *inode, struct file *file)
{
	return single_open(file, trial_show, inode->i_private);
}

/* Begin one, or give it another time to go; 0 seconds end it. */
static int begin_trial(struct vmp_entry *entry, struct file *file, unsigned int seconds,
		       bool remove)
{
	struct vmp_trial *trial = &entry->trial;

	guard(mutex)(&vmp_control_lock);
	if (entry->removed)
		return -ENOENT;
	if (trial->state != VMP_TRIAL_NONE && trial->file != file) {
		pr_err_ratelimited("trial: another one runs\n");
		return -EBUSY;
	}
	if (!seconds) {
		end_trial(entry);
		return 0;
	}
	if (entry->guard.tripped) {
		pr_err_ratelimited("trial: guard/state is tripped: write 1 to guard/clear first\n");
		return -EBUSY;
	}
	if (trial->state == VMP_TRIAL_NONE) {
		trial->before = entry->rule.settings;
		trial->file = file;
		trial->state = VMP_TRIAL_RUNS;
	}
	trial->remove = remove;
	trial->ends = jiffies + seconds * HZ;
	mod_delayed_work(system_long_wq, &trial->work, seconds * HZ);

	return 0;
}

static ssize_t trial_write(struct file *file, const char __user *ubuf, size_t count, loff_t *ppos)
{
	const struct vmp_file *to = file_inode(file)->i_private;
	char text[VMP_TEXT_MAX + 1];
	unsigned int seconds;
	bool remove = false;
	char *word;
	int err;

	err = vmp_copy_text(text, ubuf, count);
	if (err)
		return err;
	word = strstr(text, " remove");
	if (word && sysfs_streq(word, " remove") && to->entry->rule.cgroup) {
		remove = true;
		*word = '\0';
	}

	return vmp_parse_number("trial", text, 0, MOST_SECONDS, &seconds) ?:
	       begin_trial(to->entry, file, seconds, remove) ?: count;
}

/* The entry may be gone: none that is there has this file then. */
static int trial_release(struct inode *inode, struct file *file)
{
	struct vmp_entry *entry;

	scoped_guard(mutex, &vmp_control_lock)
		list_for_each_entry(entry, &vmp_entries, list)
			if (entry->trial.file == file)
				end_trial(entry);

	return single_release(inode, file);
}

static const struct file_operations trial_fops = {
	.owner = THIS_MODULE,
	.open = trial_open,
	.read = seq_read,
	.llseek = seq_lseek,
	.write = trial_write,
	.release = trial_release,
};

void vmp_trial_init_entry(struct vmp_entry *entry)
{
	INIT_DELAYED_WORK(&entry->trial.work, trial_workfn);
}

void vmp_trial_create(struct vmp_entry *entry)
{
	vmp_create_file(entry, entry->dir, "trial", 0600, NULL, &trial_fops);
}

/* No file of the entry is open for writing any more. */
void vmp_trial_exit_entry(struct vmp_entry *entry)
{
	cancel_delayed_work_sync(&entry->trial.work);
}
