/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _VMP_INTERNAL_H
#define _VMP_INTERNAL_H

#undef pr_fmt
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/dcache.h>
#include <linux/seq_file.h>
#include <linux/types.h>

#include "compat.h"

/**
 * struct vmp_policy - one of the policies of a point
 * @name: as debugfs shows and takes it
 * @fill: sets the callbacks of the point in a set; NULL for stock
 */
struct vmp_policy {
	const char *name;
	void (*fill)(struct vmscan_policy_ops *ops);
};

/**
 * struct vmp_point - a policy point of the kernel
 * @name: name of the point's directory in debugfs
 * @policies: what there is to choose from, stock first
 * @nr_policies: number of @policies
 * @create_files: adds the point's other files to its directory
 */
struct vmp_point {
	const char *name;
	const struct vmp_policy *policies;
	unsigned int nr_policies;
	void (*create_files)(struct dentry *dir);
};

/**
 * struct vmp_number - a debugfs file that holds a number
 * @path: the file, below the module's directory
 * @min: smallest number allowed
 * @max: largest number allowed
 * @get: reads the number
 * @set: puts a number in range into effect; 0 or an error
 */
struct vmp_number {
	const char *path;
	unsigned int min;
	unsigned int max;
	unsigned int (*get)(void);
	int (*set)(unsigned int value);
};

/* flush.c */
#define VMP_FLUSH_FOLIOS_MIN		1
#define VMP_FLUSH_FOLIOS_MAX		VMSCAN_FLUSH_MAX_FOLIOS
/* A batch may always hold as many pages as this, a PMD-sized folio on x86-64. */
#define VMP_FLUSH_PAGES_MIN		512

/* What became of a deferred folio by the time that it is to be locked again. */
enum vmp_recheck {
	VMP_DIRTY,		/* nothing has changed: page it out */
	VMP_CLEAN,		/* go on to free it */
	VMP_HWPOISON,
	VMP_NO_MAPPING,
	VMP_UNEVICTABLE,
	VMP_MAPPED,
	VMP_WRITEBACK,
	VMP_PINNED,
	VMP_LOCKED,		/* it could not be locked */
	VMP_NR_RECHECKS,
};

extern const struct vmp_point vmp_flush_point;

enum vmscan_defer vmp_flush_decide(unsigned int nr_folios,
				   unsigned int nr_pages,
				   unsigned int limit);
enum vmp_recheck vmp_flush_recheck(struct folio *folio);

/* observe.c */
int vmp_observe_set(unsigned int on);
unsigned int vmp_observe_get(void);
void vmp_observe_show(struct seq_file *m);

/* files.c */
int vmp_parse_choice(const char *file, const char *text,
		     const char *const *names, unsigned int nr_names);
int vmp_parse_number(const char *file, const char *text, unsigned int min,
		     unsigned int max, unsigned int *value);
char *vmp_copy_text(const char __user *ubuf, size_t count);
void vmp_create_number(struct dentry *dir, const struct vmp_number *number);

/* control.c */
int vmp_control_init(void);
void vmp_control_exit(void);
int vmp_control_attach(void);
void vmp_control_detach(void);

#endif /* _VMP_INTERNAL_H */
