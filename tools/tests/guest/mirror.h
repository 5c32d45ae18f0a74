/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Part of a faulty module/flush.c: another MMU, which has the pages of the process that opens
 * flush/mirror, and has accessed all of them. Reclaim asks it, and so can be held up once, at
 * what is written; the write of a WAIT returns when it is. What counts is the PMD of the address
 * that it is written at: threads' stacks are large folios, too.
 */
#include <linux/completion.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/slab.h>

#define UNMAP	'u'	/* before the lock of the page table, until something else is written */
#define CHECK	'c'	/* under that lock, until the VMA is mlocked */
#define WAIT	'w'

struct mirror {
	struct mmu_notifier notifier;
	struct completion held, released;
	unsigned long pmd;
	int hold;
	bool idle;
	u64 nr_pages_asked;	/* one by one */
};

static bool mirror_holds(struct mirror *mirror, unsigned long address, int what)
{
	if (address >> PMD_SHIFT != mirror->pmd || cmpxchg(&mirror->hold, what, 0) != what)
		return false;
	complete(&mirror->held);

	return true;
}

static int mirror_invalidate(struct mmu_notifier *notifier, const struct mmu_notifier_range *range)
{
	struct mirror *mirror = container_of(notifier, struct mirror, notifier);

	if (current->flags & PF_MEMALLOC && mirror_holds(mirror, range->start, UNMAP))
		wait_for_completion_killable(&mirror->released);

	return 0;
}

static int mirror_clear_young(struct mmu_notifier *notifier, struct mm_struct *mm,
			      unsigned long start, unsigned long end)
{
	struct mirror *mirror = container_of(notifier, struct mirror, notifier);
	unsigned long timeout = jiffies + 15 * HZ;

	if (end - start == PAGE_SIZE && start >> PMD_SHIFT == mirror->pmd)
		mirror->nr_pages_asked++;
	/* mlock() of all of a VMA leaves it where it is */
	if (mirror_holds(mirror, start, CHECK))
		while (!(READ_ONCE(vma_lookup(mm, start)->vm_flags) & VM_LOCKED) &&
		       !WARN_ON(time_after(jiffies, timeout)))
			cpu_relax();

	return !mirror->idle;
}

static const struct mmu_notifier_ops mirror_ops = {
	.invalidate_range_start = mirror_invalidate,
	.clear_young = (void *)mirror_clear_young,	/* bool on later kernels */
};

static int mirror_open(struct inode *inode, struct file *file)
{
	struct mirror *mirror = kzalloc(sizeof(*mirror), GFP_KERNEL);
	int err;

	if (!mirror)
		return -ENOMEM;
	init_completion(&mirror->held);
	init_completion(&mirror->released);
	mirror->notifier.ops = &mirror_ops;
	err = mmu_notifier_register(&mirror->notifier, current->mm);
	if (err)
		kfree(mirror);
	file->private_data = mirror;

	return err;
}

static int mirror_release(struct inode *inode, struct file *file)
{
	struct mirror *mirror = file->private_data;

	complete(&mirror->released);
	mmu_notifier_unregister(&mirror->notifier, mirror->notifier.mm);
	kfree(mirror);

	return 0;
}

static ssize_t mirror_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	struct mirror *mirror = file->private_data;
	char what;

	if (get_user(what, buf))
		return -EFAULT;
	if (what == WAIT)
		return wait_for_completion_killable(&mirror->held) ?: len;

	mirror->pmd = *pos >> PMD_SHIFT;
	if (what == UNMAP || what == CHECK) {
		mirror->idle = what == UNMAP;	/* or nothing would be unmapped */
		WRITE_ONCE(mirror->hold, what);
	} else {
		complete(&mirror->released);
	}

	return len;
}

static ssize_t mirror_read(struct file *file, char __user *buf, size_t len, loff_t *pos)
{
	struct mirror *mirror = file->private_data;

	return put_user(mirror->nr_pages_asked, (u64 __user *)buf) ?: sizeof(u64);
}

static const struct file_operations mirror_fops = {
	.owner = THIS_MODULE,
	.open = mirror_open,
	.release = mirror_release,
	.write = mirror_write,
	.read = mirror_read,
};
