// SPDX-License-Identifier: GPL-2.0
/*
 * Proves that what a device puts into pages by direct I/O is there afterwards,
 * although the pages are paged out all the time. Uses the device it is given.
 */
#include "guest.h"

#define NR_PAGES	(PMD_PAGES / 2)
#define SIZE		(NR_PAGES * PAGE)

static char *mem;

/*
 * Reclaim flushes the TLB late for clean pages, with no policy in force too:
 * until then this CPU may see a page that has been replaced, by the one that
 * direct I/O went to. A change of protection has pending flushes done.
 */
static void flush_stale_entries(void)
{
	if (mprotect(mem, SIZE, PROT_READ) ||
	    mprotect(mem, SIZE, PROT_READ | PROT_WRITE))
		die("mprotect");
}

static void *page_out_always(void *arg)
{
	(void)arg;
	while (time_left())
		page_out(mem, NR_PAGES);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t pager;
	unsigned int gen;
	size_t i;
	int fd;

	if (argc < 3)
		quit(1, "usage: pin SECONDS DEVICE");
	fd = open(argv[2], O_RDWR | O_DIRECT);
	if (fd < 0)
		die(argv[2]);
	mem = map_pages(NR_PAGES, -1);
	for (gen = 0; gen < 2; gen++) {
		for (i = 0; i < NR_PAGES; i++)
			fill_page(mem + i * PAGE, i, gen);
		if (pwrite(fd, mem, SIZE, gen * SIZE) != (ssize_t)SIZE)
			die("pwrite");
	}
	set_deadline(argv[1]);
	pager = start_thread(page_out_always, NULL);
	for (gen = 0; time_left(); gen = !gen) {
		if (pread(fd, mem, SIZE, gen * SIZE) != (ssize_t)SIZE)
			die("pread");
		flush_stale_entries();
		for (i = 0; i < NR_PAGES; i++)
			check_page(mem + i * PAGE, i, gen);
	}
	pthread_join(pager, NULL);

	return 0;
}
