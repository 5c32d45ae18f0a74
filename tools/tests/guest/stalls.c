// SPDX-License-Identifier: GPL-2.0
/*
 * stalls anon MIB SECONDS: fills and frees so much memory, page by page.
 * stalls fsync FILE SECONDS: writes a page of the file and syncs it.
 * Each again and again; says how often, and how long a page took.
 */
#include "guest.h"

#define MAX_TIMES	(1UL << 20)

static double times[MAX_TIMES];
static size_t nr_times;
static double longest;

static void note(double started)
{
	double took = now() - started;

	if (took > longest)
		longest = took;
	if (nr_times < MAX_TIMES)
		times[nr_times++] = took;
}

static void fill(size_t nr_pages)
{
	char *mem = map_pages(nr_pages, -1);
	size_t i;

	for (i = 0; i < nr_pages && time_left(); i++) {
		double started = now();

		mem[i * PAGE] = 1;
		note(started);
	}
	if (munmap(mem, nr_pages * PAGE))
		die("munmap");
}

static void sync_page(int fd)
{
	static char page[PAGE];
	double started = now();

	page[0]++;
	if (pwrite(fd, page, PAGE, 0) != PAGE || fsync(fd))
		die("write");
	note(started);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	int fd = -1;

	if (argc != 4)
		quit(1, "stalls anon MIB SECONDS, or fsync FILE SECONDS");
	if (!strcmp(argv[1], "fsync")) {
		fd = open(argv[2], O_WRONLY | O_CREAT, 0600);
		if (fd < 0)
			die(argv[2]);
	}
	set_deadline(argv[3]);
	do {
		if (fd < 0)
			fill(atol(argv[2]) * 256);
		else
			sync_page(fd);
	} while (time_left());
	qsort(times, nr_times, sizeof(times[0]), by_size);
	printf("%zu times, median %.3f ms, longest %.1f ms\n", nr_times,
	       times[nr_times / 2] * 1e3, longest * 1e3);
	return 0;
}
