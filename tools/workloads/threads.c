// SPDX-License-Identifier: GPL-2.0
/*
 * Threads of one process that write to pages of its memory at random, for ever. All of it is
 * written to once before they start: the first write to a page that was only read would copy the
 * zero page, and flush TLBs for that. One thread does that, for which no other CPU is interrupted.
 * Nor do they write before all are there: what starts the others would hardly get a turn beside
 * them. The progress file is there from then on, and has the writes so far.
 *
 * A parent does nothing but watch: where the OOM killer takes the process, it starts another, as
 * a load of several processes goes on, too.
 *
 * A page holds one number and is zero otherwise, so that compressed swap stays small.
 */
#include "common.h"
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define PAGE		4096UL
#define MAX_THREADS	1024UL
#define MAX_MIB		(1UL << 20)

/* On cache lines of their own: the threads are not to slow each other down. */
struct writer {
	uint64_t writes;
	char pad[64 - sizeof(uint64_t)];
};

/* Shared with the parent, which reads it. */
static struct shared {
	bool filled;
	struct writer writers[MAX_THREADS];
} *shared;

static size_t nr_threads = 8, nr_pages = 128UL << 20 >> 12;
static const char *progress;
static char *memory;
static pthread_barrier_t ready;

static const char usage[] =
"usage: threads [--threads N] [--size MIB] [--progress FILE]\n"
"Fill MIB of memory, 128 unless given, then have N threads, 8 unless given, write to\n"
"pages of it at random until killed. FILE has the writes after the filling.\n";

static void parse_options(int argc, char **argv)
{
	static const struct option options[] = {
		{ "threads", required_argument, NULL, 't' },
		{ "size", required_argument, NULL, 's' },
		{ "progress", required_argument, NULL, 'p' },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (option) {
		case 't':
			nr_threads = parse_number("threads", optarg, false, 1, MAX_THREADS);
			break;
		case 's':
			nr_pages = (parse_number("size", optarg, false, 1, MAX_MIB) << 20) / PAGE;
			break;
		case 'p':
			progress = optarg;
			break;
		case 'h':
			help(usage);
		default:
			wrong_option(argv);
		}
	end_options(argc, argv);
}

static void write_page(size_t page, uint64_t number)
{
	*(volatile uint64_t *)(memory + page * PAGE) = number;
}

static void *write_pages(void *data)
{
	struct writer *writer = data;
	uint64_t state = writer - shared->writers + 1;

	pthread_barrier_wait(&ready);
	for (;;) {
		write_page(next_random(&state) % nr_pages, state);
		__atomic_store_n(&writer->writes, writer->writes + 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void report_progress(void)
{
	uint64_t writes = 0;
	size_t i;

	for (i = 0; i < nr_threads; i++)
		writes += __atomic_load_n(&shared->writers[i].writes, __ATOMIC_RELAXED);
	write_progress(progress, writes);
}

static __attribute__((noreturn)) void fill_and_write(void)
{
	pthread_t thread;
	size_t i;

	memory = mmap(NULL, nr_pages * PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		die("mmap");
	/* Single pages, whatever is set; a kernel that has no others doesn't know the advice. */
	madvise(memory, nr_pages * PAGE, MADV_NOHUGEPAGE);
	for (i = 0; i < nr_pages; i++)
		write_page(i, i + 1);
	errno = pthread_barrier_init(&ready, NULL, nr_threads + 1);
	if (errno)
		die("pthread_barrier_init");
	for (i = 0; i < nr_threads; i++) {
		errno = pthread_create(&thread, NULL, write_pages, &shared->writers[i]);
		if (errno)
			die("pthread_create");
	}
	pthread_barrier_wait(&ready);
	__atomic_store_n(&shared->filled, true, __ATOMIC_RELEASE);
	for (;;)
		pause();
}

static pid_t start(void)
{
	pid_t parent = getpid(), child = fork();

	if (child < 0)
		die("fork");
	if (child)
		return child;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL))
		die("prctl");
	if (getppid() != parent)
		_exit(1);
	fill_and_write();
}

int main(int argc, char **argv)
{
	int status;
	pid_t child;

	parse_options(argc, argv);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		die("mmap");
	child = start();
	for (;;) {
		usleep(REPORT_USEC);
		if (progress && __atomic_load_n(&shared->filled, __ATOMIC_ACQUIRE))
			report_progress();
		if (waitpid(child, &status, WNOHANG) != child)
			continue;
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
			return 1;
		fprintf(stderr, "threads: killed, as the OOM killer does; starting again\n");
		child = start();
	}
}
