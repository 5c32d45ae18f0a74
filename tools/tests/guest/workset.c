// SPDX-License-Identifier: GPL-2.0
/*
 * workset FILE MIB: uses so much memory until it is killed, each page as often as
 * the others. Half of it is anonymous and written, half is FILE's and read. It is
 * slow enough that reclaim keeps up: most pages have not been used since they were
 * last looked at.
 */
#include "guest.h"

int main(int argc, char **argv)
{
	size_t nr_pages, half, nr, touched;
	uint64_t random = getpid();
	char *anon, *file;
	int fd;

	if (argc != 3)
		quit(1, "workset FILE MIB");
	half = atol(argv[2]) * 128;
	nr_pages = 2 * half;
	fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, half * PAGE))
		die(argv[1]);
	anon = map_pages(half, -1);
	file = map_pages(half, fd);
	/* No readahead: only what is asked for comes back. */
	if (madvise(file, half * PAGE, MADV_RANDOM))
		die("madvise");
	for (touched = 0;; touched++) {
		if (touched >= nr_pages && touched % 4 == 0)
			usleep(10000);
		/* xorshift */
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		nr = random % nr_pages;
		if (nr < half)
			anon[nr * PAGE]++;
		else
			(void)*(volatile char *)(file + (nr - half) * PAGE);
	}
}
