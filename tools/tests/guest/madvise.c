// SPDX-License-Identifier: GPL-2.0
/*
 * Proves that memory in use by several threads keeps its contents while all of
 * them page out all of it: small pages and large folios, anonymous and shmem.
 */
#include "guest.h"

#define NR_OWNERS	3
#define NR_PAGES	(NR_OWNERS * PMD_PAGES)
#define PASSES		4

static char *mem;

/* Each round starts with fresh memory, which is where huge pages come from. */
static void *own_pages(void *arg)
{
	size_t owner = (uintptr_t)arg, base = owner * PMD_PAGES, i;
	unsigned int gens[PMD_PAGES], seed = owner, gen, pass;
	char *own = mem + base * PAGE;

	for (gen = 0; time_left(); gen++) {
		/* MADV_REMOVE is for shmem, and refused for the other kind. */
		if (madvise(own, PMD, MADV_REMOVE) &&
		    madvise(own, PMD, MADV_DONTNEED))
			die("madvise");
		for (i = 0; i < PMD_PAGES; i++) {
			gens[i] = gen;
			fill_page(own + i * PAGE, base + i, gen);
		}
		for (pass = 0; pass < PASSES && time_left(); pass++) {
			page_out(mem, NR_PAGES);
			for (i = 0; i < PMD_PAGES; i++) {
				check_page(own + i * PAGE, base + i, gens[i]);
				if (rand_r(&seed) % 2)
					fill_page(own + i * PAGE, base + i,
						  ++gens[i]);
			}
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	bool shmem = argc > 2 && !strcmp(argv[2], "shmem");
	bool huge = argc > 3 && !strcmp(argv[3], "huge");
	pthread_t owners[NR_OWNERS];
	size_t i;

	set_deadline(argc > 1 ? argv[1] : NULL);
	mem = map_pages(NR_PAGES, shmem ? shmem_file(NR_PAGES) : -1);
	if (huge && madvise(mem, NR_PAGES * PAGE, MADV_HUGEPAGE))
		die("madvise");
	for (i = 0; i < NR_OWNERS; i++)
		owners[i] = start_thread(own_pages, (void *)i);
	for (i = 0; i < NR_OWNERS; i++)
		pthread_join(owners[i], NULL);

	return 0;
}
