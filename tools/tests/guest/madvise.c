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
static bool shmem, huge;

/* Without page tables, because huge pages come only where there are none. */
static void get_fresh(char *own)
{
	if (shmem) {
		if (madvise(own, PMD, MADV_REMOVE))
			die("madvise");
	} else if (mmap(own, PMD, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != own) {
		die("mmap");
	}
	if (huge && madvise(own, PMD, MADV_HUGEPAGE))
		die("madvise");
}

static void *own_pages(void *arg)
{
	size_t owner = (uintptr_t)arg, base = owner * PMD_PAGES, i;
	unsigned int gens[PMD_PAGES], seed = owner, gen, pass;
	char *own = mem + base * PAGE;

	for (gen = 0; time_left(); gen++) {
		get_fresh(own);
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
	pthread_t owners[NR_OWNERS];
	size_t i;

	shmem = argc > 2 && !strcmp(argv[2], "shmem");
	huge = argc > 3 && !strcmp(argv[3], "huge");
	set_deadline(argc > 1 ? argv[1] : NULL);
	mem = map_pages(NR_PAGES, shmem ? shmem_file(NR_PAGES) : -1);
	for (i = 0; i < NR_OWNERS; i++)
		owners[i] = start_thread(own_pages, (void *)i);
	for (i = 0; i < NR_OWNERS; i++)
		pthread_join(owners[i], NULL);

	return 0;
}
