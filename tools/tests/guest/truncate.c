// SPDX-License-Identifier: GPL-2.0
/*
 * Proves that holes can be punched into a shmem file, and its end cut off,
 * while its pages are paged out: holes read as zeroes, the rest is unchanged.
 */
#include "guest.h"

#define NR_OWNERS	3
#define OWN_PAGES	(PMD_PAGES / 4)
#define NR_PAGES	(NR_OWNERS * OWN_PAGES)
#define MAX_HOLE	32

static char *mem;
static int fd;

static void cut_hole(size_t first, size_t nr)
{
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		      first * PAGE, nr * PAGE))
		die("fallocate");
}

static void cut_end(size_t first)
{
	if (ftruncate(fd, first * PAGE) || ftruncate(fd, NR_PAGES * PAGE))
		die("ftruncate");
}

/* Only the owner touches a page; the last one may also cut off the end. */
static void *own_pages(void *arg)
{
	size_t owner = (uintptr_t)arg, base = owner * OWN_PAGES, i, first, nr;
	unsigned int gens[OWN_PAGES], seed = owner, gen;

	for (i = 0; i < OWN_PAGES; i++) {
		gens[i] = 0;
		fill_page(mem + (base + i) * PAGE, base + i, 0);
	}
	for (gen = 1; time_left(); gen++) {
		first = rand_r(&seed) % OWN_PAGES;
		nr = rand_r(&seed) % MAX_HOLE + 1;
		if (nr > OWN_PAGES - first)
			nr = OWN_PAGES - first;
		if (owner == NR_OWNERS - 1 && gen % 2) {
			nr = OWN_PAGES - first;
			cut_end(base + first);
		} else {
			cut_hole(base + first, nr);
		}
		for (i = first; i < first + nr; i++) {
			check_zero(mem + (base + i) * PAGE, base + i);
			gens[i] = gen;
			fill_page(mem + (base + i) * PAGE, base + i, gen);
		}
		for (i = 0; i < OWN_PAGES; i++)
			check_page(mem + (base + i) * PAGE, base + i, gens[i]);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t owners[NR_OWNERS];
	size_t i;

	set_deadline(argc > 1 ? argv[1] : NULL);
	fd = shmem_file(NR_PAGES);
	mem = map_pages(NR_PAGES, fd);
	for (i = 0; i < NR_OWNERS; i++)
		owners[i] = start_thread(own_pages, (void *)i);
	while (time_left())
		page_out(mem, NR_PAGES);
	for (i = 0; i < NR_OWNERS; i++)
		pthread_join(owners[i], NULL);

	return 0;
}
