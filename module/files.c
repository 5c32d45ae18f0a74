// SPDX-License-Identifier: GPL-2.0
/* debugfs files: what is written to them is parsed, or refused with a reason. */
#include <linux/bits.h>
#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <kunit/visibility.h>

#include "internal.h"

/* The longest name or number that makes sense, and then some. */
#define VMP_TEXT_MAX	64

static void list_names(char text[VMP_TEXT_MAX], const char *const *names,
		       unsigned int nr_names, const char *between)
{
	unsigned int i;

	*text = '\0';
	for (i = 0; i < nr_names; i++) {
		if (i)
			strlcat(text, between, VMP_TEXT_MAX);
		strlcat(text, names[i], VMP_TEXT_MAX);
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
	char allowed[VMP_TEXT_MAX];
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
	char allowed[VMP_TEXT_MAX];
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
 * @ubuf: the user's buffer
 * @count: its length
 *
 * Return: the text, to be freed by kfree(), or an error pointer: -EINVAL if
 * it is too long to be anything that a file takes.
 */
char *vmp_copy_text(const char __user *ubuf, size_t count)
{
	if (count > VMP_TEXT_MAX) {
		pr_err_ratelimited("a write takes %u characters at most\n",
				   VMP_TEXT_MAX);
		return ERR_PTR(-EINVAL);
	}

	return memdup_user_nul(ubuf, count);
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
	unsigned int i;

	for (i = 0; i < nr_names; i++)
		seq_printf(m, i == current_name ? "%s[%s]" : "%s%s",
			   i ? " " : "", names[i]);
	seq_putc(m, '\n');
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

static int number_show(struct seq_file *m, void *v)
{
	const struct vmp_number *number = m->private;

	seq_printf(m, "%u\n",
		   number->value ? READ_ONCE(*number->value) : number->get());

	return 0;
}

static ssize_t number_write(struct file *file, const char __user *ubuf,
			    size_t count, loff_t *ppos)
{
	const struct vmp_number *number = file_inode(file)->i_private;
	char *text = vmp_copy_text(ubuf, count);
	unsigned int value;
	int err;

	if (IS_ERR(text))
		return PTR_ERR(text);

	err = vmp_parse_number(number->path, text, number->min, number->max,
			       &value);
	kfree(text);
	if (err)
		return err;

	if (number->value)
		WRITE_ONCE(*number->value, value);
	else
		err = number->set(value);

	return err ?: count;
}
DEFINE_SHOW_STORE_ATTRIBUTE(number);

/**
 * vmp_create_number() - create the file of a number
 * @dir: the directory
 * @number: the number; has to stay for as long as the file does
 */
void vmp_create_number(struct dentry *dir, const struct vmp_number *number)
{
	debugfs_create_file(kbasename(number->path), 0644, dir, (void *)number,
			    &number_fops);
}

static int option_show(struct seq_file *m, void *v)
{
	const struct vmp_option *option = m->private;

	vmp_show_names(m, option->names, option->nr_names,
		       READ_ONCE(*option->value));

	return 0;
}

static ssize_t option_write(struct file *file, const char __user *ubuf,
			    size_t count, loff_t *ppos)
{
	const struct vmp_option *option = file_inode(file)->i_private;
	char *text = vmp_copy_text(ubuf, count);
	int value;

	if (IS_ERR(text))
		return PTR_ERR(text);

	value = vmp_parse_choice(option->path, text, option->names,
				 option->nr_names);
	kfree(text);
	if (value < 0)
		return value;
	WRITE_ONCE(*option->value, value);

	return count;
}
DEFINE_SHOW_STORE_ATTRIBUTE(option);

/**
 * vmp_create_option() - create the file of an option
 * @dir: the directory
 * @option: the option; has to stay for as long as the file does
 */
void vmp_create_option(struct dentry *dir, const struct vmp_option *option)
{
	debugfs_create_file(kbasename(option->path), 0644, dir, (void *)option,
			    &option_fops);
}

static int options_show(struct seq_file *m, void *v)
{
	const struct vmp_option *option = m->private;
	unsigned int chosen = READ_ONCE(*option->value);
	unsigned int i;

	for (i = 0; i < option->nr_names; i++)
		seq_printf(m, chosen & BIT(i) ? "%s[%s]" : "%s%s",
			   i ? " " : "", option->names[i]);
	seq_putc(m, '\n');

	return 0;
}

static ssize_t options_write(struct file *file, const char __user *ubuf,
			     size_t count, loff_t *ppos)
{
	const struct vmp_option *option = file_inode(file)->i_private;
	char *text = vmp_copy_text(ubuf, count);
	unsigned int chosen;
	int err;

	if (IS_ERR(text))
		return PTR_ERR(text);

	err = vmp_parse_choices(option->path, text, option->names,
				option->nr_names, &chosen);
	kfree(text);
	if (err)
		return err;
	WRITE_ONCE(*option->value, chosen);

	return count;
}
DEFINE_SHOW_STORE_ATTRIBUTE(options);

/**
 * vmp_create_options() - create the file of an option of which any subset is allowed
 * @dir: the directory
 * @option: the option; has to stay for as long as the file does
 */
void vmp_create_options(struct dentry *dir, const struct vmp_option *option)
{
	debugfs_create_file(kbasename(option->path), 0644, dir, (void *)option,
			    &options_fops);
}
