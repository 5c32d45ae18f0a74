// SPDX-License-Identifier: GPL-2.0
/*
 * reclaim-flag MIB ROUNDS: has so much anonymous memory written out by reclaim, to swap where that
 * does not end. Then, again and again, it locks shared memory that is on the LRU still, and reclaims
 * until it is not. Proves that none of it is marked as to be reclaimed when it has been written.
 */
#include <sys/shm.h>
#include "guest.h"

/* Numbers of bits in /proc/kpageflags. */
#define KPF_RECLAIM	9
#define KPF_UNEVICTABLE	18

static uint64_t read_word(int fd, uint64_t nr)
{
	uint64_t word;

	if (pread(fd, &word, sizeof(word), nr * sizeof(word)) != sizeof(word))
		die("pagemap or kpageflags");
	return word;
}

/* How many of the pages, all of which are mapped, have the flag? */
static size_t count_pages(const char *mem, size_t nr_pages, int flag)
{
	int map = open("/proc/self/pagemap", O_RDONLY);
	int flags = open("/proc/kpageflags", O_RDONLY);
	size_t i, nr = 0;

	for (i = 0; i < nr_pages; i++) {
		uint64_t pfn = read_word(map, (uintptr_t)mem / PAGE + i) & ((1ULL << 55) - 1);

		nr += read_word(flags, pfn) >> flag & 1;
	}
	close(map);
	close(flags);
	return nr;
}

/* Of the whole machine. */
static size_t count_written(void)
{
	FILE *file = fopen("/proc/vmstat", "r");
	char line[128];
	size_t nr;

	if (!file)
		die("/proc/vmstat");
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "nr_writeback %zu", &nr) == 1) {
			fclose(file);
			return nr;
		}
	quit(1, "no nr_writeback in /proc/vmstat");
}

/*
 * On the LRU behind what reclaim has just put back: without recency a fault makes no page young.
 * Locked, it stays there until reclaim meets it. Returns how many pages got the flag.
 */
static size_t try_locked(size_t nr_pages)
{
	int id = shmget(IPC_PRIVATE, nr_pages * PAGE, 0600);
	char *mem = shmat(id, NULL, 0);
	size_t nr;

	if (id < 0 || mem == (char *)-1 || shmctl(id, IPC_RMID, NULL) ||
	    madvise(mem, nr_pages * PAGE, MADV_RANDOM))
		die("shared memory");
	memset(mem, 1, nr_pages * PAGE);
	if (shmctl(id, SHM_LOCK, NULL))
		die("SHM_LOCK");
	do
		memcg_reclaim(nr_pages);
	while (count_pages(mem, nr_pages, KPF_UNEVICTABLE) < nr_pages);
	nr = count_pages(mem, nr_pages, KPF_RECLAIM);
	if (shmdt(mem))
		die("shmdt");
	return nr;
}

int main(int argc, char **argv)
{
	size_t nr_pages, nr = 0;
	int rounds, i;
	char *mem;

	if (argc != 3)
		quit(1, "reclaim-flag MIB ROUNDS");
	nr_pages = atol(argv[1]) * 256;
	rounds = atoi(argv[2]);
	mem = map_pages(nr_pages, -1);
	/* What this CPU has yet to put on the LRU, our reclaim does. */
	pin_to_cpu(0);
	memset(mem, 1, nr_pages * PAGE);
	while (count_written() < nr_pages)
		memcg_reclaim(nr_pages);
	for (i = 0; i < rounds; i++)
		nr += try_locked(64);
	printf("%zu of %d locked pages are to be reclaimed\n", nr, 64 * rounds);
	return nr ? EXIT_DATA : 0;
}
