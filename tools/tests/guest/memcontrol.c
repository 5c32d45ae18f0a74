// SPDX-License-Identifier: GPL-2.0
/*
 * memcontrol NAME...: the subtests named of the kernel's own test_memcontrol.c, which has
 * no way to choose. Linked with --wrap=cg_read_long, it prints each usage that it looks
 * at, since it only says if all were right.
 */
#define main run_all
#include "test_memcontrol.c"
#undef main

long __real_cg_read_long(const char *cgroup, const char *control);
long __wrap_cg_read_long(const char *cgroup, const char *control);

long __wrap_cg_read_long(const char *cgroup, const char *control)
{
	long value = __real_cg_read_long(cgroup, control);

	if (!strcmp(control, "memory.current"))
		printf("# %s %.1f\n", strrchr(cgroup, '/') + 1, value / 1048576.0);
	return value;
}

static int skip(const char *root)
{
	return KSFT_SKIP;
}

int main(int argc, char **argv)
{
	int i, j;

	for (i = 0; i < ARRAY_SIZE(tests); i++) {
		for (j = 1; j < argc && strcmp(argv[j], tests[i].name); j++)
			;
		if (j >= argc)
			tests[i].fn = skip;
	}
	return run_all(argc, argv);
}
