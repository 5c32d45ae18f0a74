// SPDX-License-Identifier: GPL-2.0
/*
 * Proves that no write is lost that goes through a stale TLB entry: threads
 * write without pause to pages that others page out, and miss none of it.
 *
 * lostwrite SECONDS. Each window is in fresh memory: pages that were paged out come back as small
 * folios, and, one by one, so slowly on a busy machine that nobody writes.
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
static char *mem, *spare;
static bool paging_out;

static void begin_window(size_t writer)
{
	size_t i;

	memset(expected[writer], 0, sizeof(expected[writer]));
	/* what is read first is a zero page */
	for (i = 0; i < PMD_PAGES; i++)
		*(volatile uint64_t *)(mem + writer * PMD + i * PAGE) = 0;
}

/* Moves the pages to where no TLB has an entry: there they are what page tables say. */
static unsigned int end_window(size_t writer)
{
	int flags = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
	char *moved = spare + writer * PMD;
	unsigned int lost = 0;
	size_t i;

	if (mremap(mem + writer * PMD, PMD, PMD, flags, moved) != moved)
		die("mremap");
	for (i = 0; i < PMD_PAGES; i++)
		if (*(volatile uint64_t *)(moved + i * PAGE) != expected[writer][i])
			lost++;
	return lost;
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
		double end;

		begin_window(writer);
		end = now() + WINDOW_SECONDS;
		while (now() < end || __atomic_load_n(&paging_out, __ATOMIC_RELAXED))
			nr_lost[writer] += write_window(writer, first);
		nr_lost[writer] += end_window(writer);
	}
	return NULL;
}

/*
 * More than the memcg's limit, so that it has to reclaim all the time. In a
 * process of its own: its reclaim would flush the writers' TLB entries too.
 */
static void write_cold(void)
{
	char *cold = map_pages(NR_COLD, -1);
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
	mem = map_pages(nr_writers * PMD_PAGES, -1);
	spare = map_pages(nr_writers * PMD_PAGES, -1);
	set_deadline(argc > 1 ? argv[1] : NULL);

	/* Off the writers' CPUs: a switch of processes flushes a TLB. */
	pin_to_cpu(0);
	cold = start_child();
	if (!cold)
		write_cold();
	for (i = 0; i < nr_writers; i++)
		threads[i] = start_thread(write_pages, (void *)i);
	while (time_left()) {
		double start = now();

		__atomic_store_n(&paging_out, true, __ATOMIC_RELAXED);
		page_out(mem, nr_writers * PMD_PAGES);
		__atomic_store_n(&paging_out, false, __ATOMIC_RELAXED);
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
