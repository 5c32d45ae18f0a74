// SPDX-License-Identifier: GPL-2.0
/*
 * noio MIB FILE|-: has so much memory, then reads the file, or takes as much memory again,
 * as a task whose allocations must not wait for I/O: its reclaim can't swap.
 */
#include <sys/prctl.h>
#include "guest.h"

static void read_all(const char *path)
{
	static char buffer[1 << 20];
	int fd = open(path, O_RDONLY);
	ssize_t got;

	if (fd < 0)
		die(path);
	do
		got = read(fd, buffer, sizeof(buffer));
	while (got > 0);
	if (got)
		die(path);
}

int main(int argc, char **argv)
{
	size_t nr_pages, i;
	char *mem;

	if (argc != 3)
		quit(1, "noio MIB FILE|-");
	nr_pages = atol(argv[1]) * 256;
	mem = map_pages(2 * nr_pages, -1);
	for (i = 0; i < nr_pages; i++)
		mem[i * PAGE] = 1;
	if (prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0))
		die("PR_SET_IO_FLUSHER");
	if (strcmp(argv[2], "-"))
		read_all(argv[2]);
	else
		for (; i < 2 * nr_pages; i++)
			mem[i * PAGE] = 1;
	return 0;
}
