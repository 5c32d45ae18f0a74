// SPDX-License-Identifier: GPL-2.0
/*
 * Proves that no write is lost that goes through a stale TLB entry: threads
 * write without pause to pages that others page out, and miss none of it.
 *
 * lostwrite anon|shmem|large SECONDS. Large: each window is in memory that was mapped anew, for
 * pages that were paged out come back as small folios.
 */
#include "guest.h"

#define MAX_WRITERS	8
/* Each writer has a PMD: what one MADV_PAGEOUT call takes at a time is hot. */
#define NR_COLD		(12 * PMD_PAGES)
/*
 * So few pages that the writer's CPU has all of their TLB entries; so many that
 * most aren't in its LRU cache, from where another CPU can't isolate them.
 */
#define WINDOW		128
#define ROUNDS		200
/* A writer outlasts a batch in its window: it mustn't fault, but write. */
#define WINDOW_SECONDS	0.05
#define COLD_PAGES	64
#define COLD_PAUSE_US	2000

/* What each writer wrote last to each of its pages: not in reclaim's reach. */
static uint64_t expected[MAX_WRITERS][PMD_PAGES];
static uint64_t nr_writes[MAX_WRITERS], nr_lost[MAX_WRITERS];
static char *mem;
static bool large;

static void get_fresh(size_t writer)
{
	char *own = mem + writer * PMD;
	size_t i;

	if (mmap(own, PMD, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		die("mmap");
	memset(expected[writer], 0, sizeof(expected[writer]));
	/* what is read first is a zero page */
	for (i = 0; i < PMD_PAGES; i++)
		*(volatile uint64_t *)(own + i * PAGE) = 0;
}

static unsigned int write_window(size_t writer, size_t first)
{
	unsigned int lost = 0, round;
	size_t i;

	for (round = 0; round < ROUNDS; round++) {
		for (i = first; i < first + WINDOW; i++) {
			volatile uint64_t *word = (volatile uint64_t *)
				(mem + writer * PMD + i * PAGE);

			if (*word != expected[writer][i])
				lost++;
			*word = ++expected[writer][i];
		}
	}
	nr_writes[writer] += ROUNDS * WINDOW;
	return lost;
}

static void *write_pages(void *arg)
{
	size_t writer = (uintptr_t)arg;
	unsigned int seed = writer;

	pin_to_cpu(1 + writer);
	while (time_left()) {
		size_t first = rand_r(&seed) % (PMD_PAGES - WINDOW);
		double end = now() + WINDOW_SECONDS;

		if (large)
			get_fresh(writer);
		while (now() < end)
			nr_lost[writer] += write_window(writer, first);
	}
	return NULL;
}

/*
 * More than the memcg's limit, so that it has to reclaim all the time. In a
 * process of its own: its reclaim would flush the writers' TLB entries too.
 */
static void write_cold(bool shmem)
{
	char *cold = map_pages(NR_COLD, shmem ? shmem_file(NR_COLD) : -1);
	uint64_t value, lost = 0;
	size_t i;

	for (value = 0; time_left(); value++) {
		for (i = 0; i < NR_COLD && time_left(); i++) {
			volatile uint64_t *word = (volatile uint64_t *)
				(cold + i * PAGE);

			if (*word != value)
				lost++;
			*word = value + 1;
			if (i % COLD_PAGES == 0)
				usleep(COLD_PAUSE_US);
		}
	}
	if (lost)
		quit(EXIT_DATA, "%llu writes to cold pages lost",
		     (unsigned long long)lost);
	_exit(0);
}

int main(int argc, char **argv)
{
	bool shmem = argc > 1 && !strcmp(argv[1], "shmem");
	long nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t writes = 0, lost = 0;
	pthread_t threads[MAX_WRITERS];
	size_t nr_writers, i;
	pid_t cold;

	if (nr_cpus < 2)
		quit(1, "needs two CPUs");
	nr_writers = nr_cpus - 1 < MAX_WRITERS ? nr_cpus - 1 : MAX_WRITERS;
	if (mlock(expected, sizeof(expected)))
		die("mlock");
	mem = map_pages(nr_writers * PMD_PAGES,
			shmem ? shmem_file(nr_writers * PMD_PAGES) : -1);
	large = argc > 1 && !strcmp(argv[1], "large");
	set_deadline(argc > 2 ? argv[2] : NULL);

	/* Off the writers' CPUs: a switch of processes flushes a TLB. */
	pin_to_cpu(0);
	cold = start_child();
	if (!cold)
		write_cold(shmem);
	for (i = 0; i < nr_writers; i++)
		threads[i] = start_thread(write_pages, (void *)i);
	while (time_left()) {
		double start = now();

		page_out(mem, nr_writers * PMD_PAGES);
		/* As long again for the writers to get their pages back. */
		usleep((now() - start) * 1e6);
	}
	for (i = 0; i < nr_writers; i++) {
		pthread_join(threads[i], NULL);
		writes += nr_writes[i];
		lost += nr_lost[i];
	}
	printf("%llu of %llu writes lost\n", (unsigned long long)lost,
	       (unsigned long long)writes);
	fflush(stdout);
	wait_child(cold);

	return lost ? EXIT_DATA : 0;
}
