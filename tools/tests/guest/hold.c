// SPDX-License-Identifier: GPL-2.0
/*
 * hold MIB: has so much anonymous memory that nobody can reclaim, although it is on the LRU: pipes
 * have references to it. It says when it has it, and keeps it until it is killed.
 */
#include <sys/uio.h>
#include "guest.h"

#define MIB	(1UL << 20)

int main(int argc, char **argv)
{
	size_t nr = argc > 1 ? atol(argv[1]) : 0, i;
	char *mem = map_pages(nr * 256, -1);
	int fds[2];

	for (i = 0; i < nr; i++) {
		struct iovec part = { .iov_base = mem + i * MIB, .iov_len = MIB };

		memset(part.iov_base, i + 1, MIB);
		if (pipe(fds) || fcntl(fds[1], F_SETPIPE_SZ, MIB) < 0)
			die("pipe");
		if (vmsplice(fds[1], &part, 1, 0) != (ssize_t)MIB)
			die("vmsplice");
	}
	printf("holds %zu MiB\n", nr);
	fflush(stdout);
	pause();
	return 0;
}
