// SPDX-License-Identifier: GPL-2.0
/*
 * Proves that pages which several processes share keep their contents when
 * these fault them back in, from the swap cache, while they are paged out.
 */
#include "guest.h"

#define NR_PAGES	(2 * PMD_PAGES)
#define NR_CHILDREN	3
#define CHILD_SECONDS	0.7

static char *mem;

static void child(unsigned int number)
{
	unsigned int gens[NR_PAGES] = { 0 }, seed = number;
	double end = now() + CHILD_SECONDS;

	while (now() < end) {
		size_t i = rand_r(&seed) % NR_PAGES;

		check_page(mem + i * PAGE, i, gens[i]);
		/* The first write ends the sharing of the page. */
		if (rand_r(&seed) % 16 == 0) {
			gens[i] = number << 16 | ((gens[i] + 1) & 0xffff);
			fill_page(mem + i * PAGE, i, gens[i]);
		}
	}
	_exit(0);
}

static void *reclaim(void *arg)
{
	(void)arg;
	while (time_left())
		memcg_reclaim(NR_PAGES / 2);
	return NULL;
}

int main(int argc, char **argv)
{
	pid_t pids[NR_CHILDREN];
	pthread_t reclaimer;
	size_t i;

	set_deadline(argc > 1 ? argv[1] : NULL);
	mem = map_pages(NR_PAGES, -1);
	reclaimer = start_thread(reclaim, NULL);
	while (time_left()) {
		for (i = 0; i < NR_PAGES; i++)
			fill_page(mem + i * PAGE, i, 0);
		for (i = 0; i < NR_CHILDREN; i++) {
			pids[i] = start_child();
			if (!pids[i])
				child(i + 1);
		}
		for (i = 0; i < NR_CHILDREN; i++)
			wait_child(pids[i]);
		for (i = 0; i < NR_PAGES; i++)
			check_page(mem + i * PAGE, i, 0);
	}
	pthread_join(reclaimer, NULL);

	return 0;
}
