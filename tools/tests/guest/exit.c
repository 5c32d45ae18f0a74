// SPDX-License-Identifier: GPL-2.0
/*
 * Proves that processes can unmap and drop pages, or exit, while these are
 * paged out: dropped pages come back as zeroes, all others keep their contents.
 */
#include <sys/pidfd.h>
#include "guest.h"

#define NR_PAGES	PMD_PAGES
#define NR_CHILDREN	3
#define ROUNDS		8

static char *mem;
static int pidfds[NR_CHILDREN];

/* Pages out its own pages until they, or the process, have gone. */
static void *page_out_own(void *arg)
{
	(void)arg;
	while (!madvise(mem, NR_PAGES * PAGE, MADV_PAGEOUT))
		;
	return NULL;
}

static void child(unsigned int number)
{
	unsigned int seed = number, round, gen;
	size_t i, first, nr;

	for (i = 0; i < NR_PAGES; i++)
		fill_page(mem + i * PAGE, i, number);
	if (number % 2)
		start_thread(page_out_own, NULL);
	for (round = 0; round < ROUNDS; round++) {
		gen = round << 8 | number;
		first = rand_r(&seed) % NR_PAGES;
		nr = rand_r(&seed) % (NR_PAGES - first) + 1;
		if (madvise(mem + first * PAGE, nr * PAGE, MADV_DONTNEED))
			die("madvise");
		for (i = first; i < first + nr; i++) {
			check_zero(mem + i * PAGE, i);
			fill_page(mem + i * PAGE, i, gen);
		}
		for (i = first; i < first + nr; i++) {
			check_page(mem + i * PAGE, i, gen);
			fill_page(mem + i * PAGE, i, number);
		}
	}
	for (i = 0; i < NR_PAGES; i++)
		check_page(mem + i * PAGE, i, number);
	/* One way to leave: unmap, and live on for a moment. */
	if (number % 4 < 2 && munmap(mem, NR_PAGES * PAGE / 2))
		die("munmap");
	_exit(0);
}

static void *page_out_children(void *arg)
{
	struct iovec iov = { .iov_base = mem, .iov_len = NR_PAGES * PAGE };
	unsigned int i;

	(void)arg;
	while (time_left()) {
		/* A child that has gone, or is not there yet, is no error. */
		for (i = 0; i < NR_CHILDREN; i++)
			process_madvise(__atomic_load_n(&pidfds[i],
							__ATOMIC_RELAXED),
					&iov, 1, MADV_PAGEOUT, 0);
	}
	return NULL;
}

static void *reclaim(void *arg)
{
	(void)arg;
	while (time_left())
		memcg_reclaim(NR_PAGES);
	return NULL;
}

int main(int argc, char **argv)
{
	pid_t pids[NR_CHILDREN] = { 0 };
	pthread_t pageout, reclaimer;
	unsigned int i, number;

	set_deadline(argc > 1 ? argv[1] : NULL);
	mem = map_pages(NR_PAGES, -1);
	for (i = 0; i < NR_CHILDREN; i++)
		pidfds[i] = -1;
	pageout = start_thread(page_out_children, NULL);
	reclaimer = start_thread(reclaim, NULL);
	for (number = 0; time_left(); number++) {
		i = number % NR_CHILDREN;
		if (pids[i]) {
			wait_child(pids[i]);
			close(pidfds[i]);
		}
		pids[i] = start_child();
		if (!pids[i])
			child(number + 1);
		pidfds[i] = pidfd_open(pids[i], 0);
		if (pidfds[i] < 0)
			die("pidfd_open");
	}
	for (i = 0; i < NR_CHILDREN; i++)
		if (pids[i])
			wait_child(pids[i]);
	pthread_join(pageout, NULL);
	pthread_join(reclaimer, NULL);

	return 0;
}
