// SPDX-License-Identifier: GPL-2.0
/*
 * threads MIB NR: that many threads write to pages at random in memory that they share,
 * until the process is told to end.
 */
#include <signal.h>
#include "guest.h"

static uint64_t *mem;
static size_t nr_pages;

static void *write_on(void *arg)
{
	uint64_t x = (uintptr_t)arg * 0x9e3779b97f4a7c15ULL + 1;

	for (;;) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		mem[x % nr_pages * PAGE_WORDS + x / nr_pages % PAGE_WORDS] = x;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	sigset_t set;
	long i;
	int sig;

	if (argc != 3)
		quit(1, "threads MIB NR");
	nr_pages = atol(argv[1]) * 256;
	mem = (uint64_t *)map_pages(nr_pages, -1);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	for (i = 0; i < atol(argv[2]); i++)
		start_thread(write_on, (void *)(i + 1));
	sigwait(&set, &sig);
	return 0;
}
