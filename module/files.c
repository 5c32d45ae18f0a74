// SPDX-License-Identifier: GPL-2.0
/* debugfs files: what is written to them is parsed, or refused with a reason. */
#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <kunit/visibility.h>

#include "internal.h"

/* The longest name or number that makes sense, and then some. */
#define VMP_TEXT_MAX	64

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
	char allowed[VMP_TEXT_MAX] = "";
	unsigned int i;
	int choice;

	choice = __sysfs_match_string(names, nr_names, text);
	if (choice >= 0)
		return choice;

	for (i = 0; i < nr_names; i++) {
		if (i)
			strlcat(allowed, " ", sizeof(allowed));
		strlcat(allowed, names[i], sizeof(allowed));
	}
	pr_err_ratelimited("%s takes one of: %s\n", file, allowed);

	return -EINVAL;
}
EXPORT_SYMBOL_IF_KUNIT(vmp_parse_choice);

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

static int number_show(struct seq_file *m, void *v)
{
	const struct vmp_number *number = m->private;

	seq_printf(m, "%u\n", number->get());

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
	if (!err)
		err = number->set(value);
	kfree(text);

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
