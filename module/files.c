// SPDX-License-Identifier: GPL-2.0
/* debugfs files: what is written to them is parsed, or refused with a reason. */
#include <linux/bits.h>
#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/percpu.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <kunit/visibility.h>

#include "internal.h"

#define LIST_MAX	(VMP_MAX_POLICIES * (VMSCAN_POLICY_NAME_MAX + 1))

static void list_names(char text[LIST_MAX], const char *const *names,
		       unsigned int nr_names, const char *between)
{
	unsigned int i;

	*text = '\0';
	for (i = 0; i < nr_names; i++) {
		if (i)
			strlcat(text, between, LIST_MAX);
		strlcat(text, names[i], LIST_MAX);
	}
}

/**
 * vmp_parse_choice() - look a name up
 * @file: the file written to, for the log line
 * @text: what was written, a newline at its end or not
 * @names: the names allowed
 * @nr_names: how many they are
 *
 * Return: the index of the name, or -EINVAL after a log line.
 */
int vmp_parse_choice(const char *file, const char *text,
		     const char *const *names, unsigned int nr_names)
{
	char allowed[LIST_MAX];
	int choice;

	choice = __sysfs_match_string(names, nr_names, text);
	if (choice >= 0)
		return choice;

	list_names(allowed, names, nr_names, " ");
	pr_err_ratelimited("%s takes one of: %s\n", file, allowed);

	return -EINVAL;
}
EXPORT_SYMBOL_IF_KUNIT(vmp_parse_choice);

/**
 * vmp_parse_choices() - look some names up
 * @file: the file written to, for the log line
 * @text: what was written: names with a comma between them, or "none"; is changed
 * @names: the names allowed
 * @nr_names: how many they are
 * @choices: gets a bit for each of them; unchanged on error
 *
 * Return: 0, or -EINVAL after a log line.
 */
int vmp_parse_choices(const char *file, char *text, const char *const *names,
		      unsigned int nr_names, unsigned int *choices)
{
	char allowed[LIST_MAX];
	unsigned int chosen = 0;
	char *name;
	int choice;

	if (sysfs_streq(text, "none")) {
		*choices = 0;
		return 0;
	}
	while ((name = strsep(&text, ","))) {
		/* a newline may follow the last one */
		choice = text ? match_string(names, nr_names, name) :
				__sysfs_match_string(names, nr_names, name);
		if (choice < 0) {
			list_names(allowed, names, nr_names, ",");
			pr_err_ratelimited("%s takes none, or any of: %s\n", file, allowed);
			return -EINVAL;
		}
		chosen |= BIT(choice);
	}
	*choices = chosen;

	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(vmp_parse_choices);

/**
 * vmp_parse_number() - read a number in a range
 * @file: the file written to, for the log line
 * @text: what was written: a number as kstrtouint() takes it
 * @min: the smallest number allowed
 * @max: the largest number allowed
 * @value: where the number goes; unchanged on error
 *
 * Return: 0, or after a log line -EINVAL when it is no number, -ERANGE when
 * it is out of the range.
 */
int vmp_parse_number(const char *file, const char *text, unsigned int min,
		     unsigned int max, unsigned int *value)
{
	unsigned int number;
	int err;

	err = kstrtouint(text, 0, &number);
	if (!err && (number < min || number > max))
		err = -ERANGE;
	if (err) {
		pr_err_ratelimited("%s takes a number from %u to %u\n", file,
				   min, max);
		return err;
	}
	*value = number;

	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(vmp_parse_number);

/**
 * vmp_copy_text() - get what was written to a file
 * @text: gets it
 * @ubuf: the user's buffer
 * @count: its length
 *
 * Return: 0, -EFAULT, or -EINVAL after a log line if it is too long to be anything that a file
 * takes.
 */
int vmp_copy_text(char text[VMP_TEXT_MAX + 1], const char __user *ubuf, size_t count)
{
	if (count > VMP_TEXT_MAX) {
		pr_err_ratelimited("a write takes %u characters at most\n",
				   VMP_TEXT_MAX);
		return -EINVAL;
	}
	text[count] = '\0';

	return copy_from_user(text, ubuf, count) ? -EFAULT : 0;
}

/* Print names, those with a bit in @chosen in brackets. */
static void show_chosen(struct seq_file *m, const char *const *names,
			unsigned int nr_names, unsigned long chosen)
{
	unsigned int i;

	for (i = 0; i < nr_names; i++)
		seq_printf(m, chosen & BIT(i) ? "%s[%s]" : "%s%s",
			   i ? " " : "", names[i]);
	seq_putc(m, '\n');
}

/**
 * vmp_show_names() - print names, the current one in brackets
 * @m: the file
 * @names: the names
 * @nr_names: how many they are
 * @current_name: the index of the current one; @nr_names for none
 */
void vmp_show_names(struct seq_file *m, const char *const *names,
		    unsigned int nr_names, unsigned int current_name)
{
	show_chosen(m, names, nr_names, BIT(current_name));
}

/**
 * vmp_show_counters() - print per-CPU counters, a line each
 * @m: the file
 * @names: their names
 * @counters: an array of counters on each CPU
 * @nr: how many they are
 */
void vmp_show_counters(struct seq_file *m, const char *const *names,
		       const u64 __percpu *counters, unsigned int nr)
{
	unsigned int i;
	int cpu;

	for (i = 0; i < nr; i++) {
		u64 sum = 0;

		for_each_possible_cpu(cpu)
			sum += READ_ONCE(per_cpu_ptr(counters, cpu)[i]);
		seq_printf(m, "%s %llu\n", names[i], sum);
	}
}

static const unsigned int *setting_of(const struct vmp_file *file, size_t setting)
{
	return (const void *)&file->entry->rule.settings + setting;
}

static int number_show(struct seq_file *m, void *v)
{
	const struct vmp_file *file = m->private;
	const struct vmp_number *number = file->item;

	seq_printf(m, "%u\n", number->get ? number->get() :
					    READ_ONCE(*setting_of(file, number->setting)));

	return 0;
}

static ssize_t number_write(struct file *file, const char __user *ubuf,
			    size_t count, loff_t *ppos)
{
	const struct vmp_file *to = file_inode(file)->i_private;
	const struct vmp_number *number = to->item;
	char text[VMP_TEXT_MAX + 1];
	unsigned int value;
	int err;

	err = vmp_copy_text(text, ubuf, count) ?:
	      vmp_parse_number(number->path, text, number->min, number->max, &value);
	if (err)
		return err;

	err = number->set ? number->set(value) : vmp_change(to->entry, number->setting, value);

	return err ?: count;
}
DEFINE_SHOW_STORE_ATTRIBUTE(number);

/**
 * vmp_nr_names() - what is there to choose from?
 * @option: the file
 * @traits: the kernel's
 *
 * Return: how many of its names mean something there.
 */
unsigned int vmp_nr_names(const struct vmp_option *option, unsigned long traits)
{
	return option->one_with & traits ? 1 : option->nr_names;
}
EXPORT_SYMBOL_IF_KUNIT(vmp_nr_names);

static int option_show(struct seq_file *m, void *v)
{
	const struct vmp_file *file = m->private;
	const struct vmp_option *option = file->item;
	unsigned int chosen = READ_ONCE(*setting_of(file, option->setting));
	unsigned int nr_names = vmp_nr_names(option, vmp_traits());

	/* A name by itself does not tell whether it is chosen. */
	if (nr_names == 1)
		seq_printf(m, chosen & 1 ? "none [%s]\n" : "[none] %s\n", *option->names);
	else
		show_chosen(m, option->names, nr_names, option->several ? chosen : BIT(chosen));

	return 0;
}

static ssize_t option_write(struct file *file, const char __user *ubuf,
			    size_t count, loff_t *ppos)
{
	const struct vmp_file *to = file_inode(file)->i_private;
	const struct vmp_option *option = to->item;
	unsigned int nr_names = vmp_nr_names(option, vmp_traits());
	char text[VMP_TEXT_MAX + 1];
	unsigned int value;
	int err;

	err = vmp_copy_text(text, ubuf, count);
	if (err)
		return err;

	if (option->several) {
		err = vmp_parse_choices(option->path, text, option->names, nr_names, &value);
	} else {
		err = vmp_parse_choice(option->path, text, option->names, nr_names);
		value = err;
	}
	if (err < 0)
		return err;

	return vmp_change(to->entry, option->setting, value) ?: count;
}
DEFINE_SHOW_STORE_ATTRIBUTE(option);

/**
 * vmp_create_file() - create a file in the directory of the machine or of a cgroup
 * @entry: whose
 * @dir: that directory, or one in it
 * @name: name of the file
 * @mode: its mode
 * @item: which of the settings or counters it is for; the file's data is a struct vmp_file
 * @fops: what it does
 */
void vmp_create_file(struct vmp_entry *entry, struct dentry *dir, const char *name, umode_t mode,
		     const void *item, const struct file_operations *fops)
{
	struct vmp_file *file = &entry->files[entry->nr_files];

	if (WARN_ON_ONCE(entry->nr_files == ARRAY_SIZE(entry->files)))
		return;
	entry->nr_files++;
	*file = (struct vmp_file) { .entry = entry, .item = item };
	if (IS_ERR(debugfs_create_file(name, mode, dir, file, fops)))
		entry->incomplete = true;
}

void vmp_create_number(struct vmp_entry *entry, struct dentry *dir,
		       const struct vmp_number *number)
{
	vmp_create_file(entry, dir, kbasename(number->path), 0600, number, &number_fops);
}

void vmp_create_option(struct vmp_entry *entry, struct dentry *dir,
		       const struct vmp_option *option)
{
	vmp_create_file(entry, dir, kbasename(option->path), 0600, option, &option_fops);
}
