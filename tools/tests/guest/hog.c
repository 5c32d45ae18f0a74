// SPDX-License-Identifier: GPL-2.0
/*
 * hog MIB: leaves about so much memory for everybody else. It says when it has
 * the rest, and keeps that until it is killed.
 */
#include "guest.h"

static size_t available_kib(void)
{
	FILE *file = fopen("/proc/meminfo", "r");
	char line[128];
	size_t kib;

	if (!file)
		die("/proc/meminfo");
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %zu", &kib) == 1)
			return kib;
	quit(1, "no MemAvailable in /proc/meminfo");
}

int main(int argc, char **argv)
{
	long have = available_kib();
	long left = argc > 1 ? atol(argv[1]) * 1024 : 0;
	size_t nr_pages;
	char *mem;

	if (left <= 0 || have <= left)
		quit(1, "hog: %ld KiB are available, %ld to be left", have, left);
	nr_pages = (have - left) / 4 / PMD_PAGES * PMD_PAGES;
	mem = map_pages(nr_pages, -1);
	/* Large folios: quicker. */
	madvise(mem, nr_pages * PAGE, MADV_HUGEPAGE);
	if (mlock(mem, nr_pages * PAGE))
		die("mlock");
	printf("has %zu of %ld MiB\n", nr_pages / 256, have / 1024);
	fflush(stdout);
	pause();
	return 0;
}
