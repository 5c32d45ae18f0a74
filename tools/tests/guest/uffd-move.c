// SPDX-License-Identifier: GPL-2.0
/*
 * uffd-move SECONDS MOVES [noio]: one thread writes over some pages, another has them paged out
 * with many more, which the flush waits for, a third moves one that has just been unmapped
 * elsewhere by UFFDIO_MOVE, and looks at what it got: nobody may write to that any more. Ends
 * when so many were moved, with 0 when time is up. With noio, it moves what a reclaimer has
 * unmapped that can't write it out, while that is held up at another page of the same list by the
 * file of mirror.h.
 */
#include <sys/prctl.h>
#include "guest.h"
#include "uffd.h"

#define NR_PAGES	PMD_PAGES
#define NR_MOVED	64	/* more than a CPU keeps from the LRU for a while */
#define PM_PRESENT	(1ULL << 63)
#define PM_SWAP		(1ULL << 62)

static char *src, *dst;
/* As many, with an anon_vma of their own, whose lock reclaim has; in other places of a TLB. */
static char *others;
static volatile uint64_t written;	/* times that all pages were written over */
static volatile bool paused;

static void *write_over(void *arg)
{
	size_t i;

	(void)arg;
	for (; time_left(); written++)
		for (i = 0; i < NR_MOVED; i++)
			*(volatile uint64_t *)(src + i * PAGE) = written;
	return NULL;
}

/* Reads first: what a write brings back leaves the swap cache. Is needed until the end. */
static void *read_and_write_over(void *arg)
{
	size_t i;

	(void)arg;
	for (; deadline; written++) {
		while (paused)
			usleep(1000);
		for (i = 0; i < 2 * NR_MOVED; i++) {
			char *page = (i % 2 ? others : src) + i / 2 * PAGE;
			volatile uint64_t *word = (volatile uint64_t *)page;

			(void)*word;
			*word = written;
		}
	}
	return NULL;
}

static void *reclaim(void *arg)
{
	size_t i;

	(void)arg;
	while (time_left()) {
		for (i = NR_MOVED; i < NR_PAGES; i++)
			src[i * PAGE]++;
		page_out(src, NR_PAGES);
	}
	return NULL;
}

static void *reclaim_noio(void *arg)
{
	(void)arg;
	if (prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0))
		die("PR_SET_IO_FLUSHER");
	while (deadline)
		if (paused)
			usleep(1000);
		else
			memcg_reclaim(NR_PAGES);
	return NULL;
}

static uint64_t entries[NR_MOVED];

/* A page that reclaim has unmapped since the last call, or -1. */
static int find_unmapped(int pagemap)
{
	static uint64_t before[NR_MOVED];
	off_t offset = (uintptr_t)src / PAGE * sizeof(*entries);
	int i;

	memcpy(before, entries, sizeof(before));
	if (pread(pagemap, entries, sizeof(entries), offset) != sizeof(entries))
		die("/proc/self/pagemap");
	for (i = 0; i < NR_MOVED; i++)
		if ((before[i] & PM_PRESENT) && (entries[i] & PM_SWAP))
			return i;
	return -1;
}

/* Looks at a moved page until all were written over: maybe through a stale TLB entry. */
static bool changes(const char *page)
{
	const volatile uint64_t *word = (const volatile uint64_t *)page;
	uint64_t first = *word, before = written;

	while (written < before + 2 && time_left())
		if (*word != first)
			return true;
	return false;
}

static long moves, changed;

static void move_page(int fd, int i)
{
	struct uffdio_move move = {
		.dst = (uintptr_t)dst + i * PAGE,
		.src = (uintptr_t)src + i * PAGE,
		.len = PAGE,
	};

	/* Busy, or mapped again and gone by now. */
	if (ioctl(fd, UFFDIO_MOVE, &move))
		return;
	moves++;
	changed += changes(dst + i * PAGE);
	if (madvise(dst + i * PAGE, PAGE, MADV_DONTNEED))
		die("MADV_DONTNEED");
}

static void wait_for_writer(void)
{
	uint64_t before = written;

	while (written < before + 2)
		usleep(1000);
}

/* The pages are paged out, then brought back to the swap cache. */
static void move_while_held(int fd, int pagemap, int mirror)
{
	int i, times;

	paused = false;
	wait_for_writer();
	paused = true;
	page_out(src, NR_MOVED);
	page_out(others, NR_MOVED);
	paused = false;
	for (times = 0; times < 8; times++) {
		mirror_write(mirror, 'u', others);
		mirror_write(mirror, 'w', others);
		/* what has no TLB entry is brought back */
		wait_for_writer();
		find_unmapped(pagemap);
		for (i = 0; i < NR_MOVED; i++)
			if (entries[i] & PM_SWAP) {
				move_page(fd, i);
				break;
			}
		mirror_write(mirror, '-', others);
	}
}

int main(int argc, char **argv)
{
	long wanted = argc > 2 ? atol(argv[2]) : 1000;
	int fd, pagemap, mirror = -1, i;
	pthread_t threads[2];

	set_deadline(argc > 1 ? argv[1] : NULL);
	src = map_pages(NR_PAGES, -1);
	others = map_pages(NR_PAGES, -1) + NR_MOVED * PAGE;
	dst = map_pages(NR_PAGES, -1);
	fd = uffd_open();
	if (fd < 0)
		die("userfaultfd");
	uffd_register(fd, dst, NR_PAGES);
	pagemap = open("/proc/self/pagemap", O_RDONLY);
	if (argc > 3)
		mirror = mirror_open();
	threads[0] = start_thread(argc > 3 ? read_and_write_over : write_over, NULL);
	threads[1] = start_thread(argc > 3 ? reclaim_noio : reclaim, NULL);
	while (time_left() && (!wanted || moves < wanted) && !changed) {
		if (argc > 3) {
			move_while_held(fd, pagemap, mirror);
			continue;
		}
		i = find_unmapped(pagemap);
		if (i >= 0)
			move_page(fd, i);
	}
	deadline = 0;
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("%ld moves, %ld pages written to afterwards\n", moves, changed);
	if (changed)
		return EXIT_DATA;
	return moves < wanted;
}
