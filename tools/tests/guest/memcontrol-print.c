// SPDX-License-Identifier: GPL-2.0
/*
 * Linked to the kernel's test_memcontrol with --wrap=cg_read_long: prints each
 * usage that it looks at, since it only says if all were right.
 */
#include <stdio.h>
#include <string.h>

long __real_cg_read_long(const char *cgroup, const char *control);
long __wrap_cg_read_long(const char *cgroup, const char *control);

long __wrap_cg_read_long(const char *cgroup, const char *control)
{
	long value = __real_cg_read_long(cgroup, control);

	if (!strcmp(control, "memory.current"))
		printf("# %s %.1f\n", strrchr(cgroup, '/') + 1, value / 1048576.0);
	return value;
}
