// SPDX-License-Identifier: GPL-2.0
/*
 * Memory pressure from two sides: processes that keep re-reading one mapped
 * file, and threads of one more process that free and fill anonymous memory.
 *
 * A round is one pass over the file by a reader, or over its memory by a
 * thread. It is done in steps of STEP bytes, and the progress file has the
 * rounds done so far, with a fraction for those under way.
 */
#include "common.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define PAGE		4096UL
#define STEP		(256 * PAGE)
#define MAX_WORKERS	1024UL
#define MAX_PAUSE	1000000UL
#define SLEEP_USEC	200000
/* A worker that was killed starts again after this. */
#define RESTART_USEC	100000

static struct {
	const char *file;
	const char *progress;
	size_t file_size;
	size_t anon_size;	/* of all threads together */
	size_t nr_readers;
	size_t nr_threads;
	size_t pause_usec;	/* of readers, after each step */
	size_t anon_pause_usec;	/* of threads */
	size_t nr_sleepers;
} conf = {
	.file_size = 180UL << 20,
	.anon_size = 300UL << 20,
	.nr_readers = 8,
	.nr_threads = 8,
	.pause_usec = 1000,
	.anon_pause_usec = 1000,
};

/* Steps done, in memory that all processes share. */
static struct {
	uint64_t file;
	uint64_t anon;
} *steps;

static const char usage[] =
"usage: pressure --file PATH [OPTION]...\n"
"Re-read a mapped file, and free and fill anonymous memory, until killed.\n"
"\n"
"  --file PATH       the file to read; made anew unless it has the size\n"
"  --file-size SIZE  its size (180M)\n"
"  --readers N       processes that read it (8)\n"
"  --pause USEC      pause of each of them after each MiB (1000)\n"
"  --anon-size SIZE  anonymous memory of all threads together (300M)\n"
"  --threads N       threads that free and fill it (8)\n"
"  --anon-pause USEC pause of each of them after each MiB (1000)\n"
"  --sleepers N      processes that only wake up now and then (0)\n"
"  --progress PATH   file to keep the number of rounds in\n"
"  --help            print this\n"
"\n"
"A round is one pass over the file by a reader, or over its memory by a thread,\n"
"which frees each MiB and fills it again. A reader or the threads' process is\n"
"started again when it is killed.\n";

static size_t parse_size(const char *option, const char *text)
{
	return parse_number(option, text, true, STEP, 1UL << 40);
}

static void parse_options(int argc, char **argv)
{
	enum {
		FILE_PATH, FILE_SIZE, READERS, PAUSE, ANON_SIZE, THREADS, ANON_PAUSE, SLEEPERS,
		PROGRESS, HELP
	};
	static const struct option options[] = {
		[FILE_PATH] = { "file", required_argument, NULL, FILE_PATH },
		[FILE_SIZE] = { "file-size", required_argument, NULL, FILE_SIZE },
		[READERS] = { "readers", required_argument, NULL, READERS },
		[PAUSE] = { "pause", required_argument, NULL, PAUSE },
		[ANON_SIZE] = { "anon-size", required_argument, NULL, ANON_SIZE },
		[THREADS] = { "threads", required_argument, NULL, THREADS },
		[ANON_PAUSE] = { "anon-pause", required_argument, NULL, ANON_PAUSE },
		[SLEEPERS] = { "sleepers", required_argument, NULL, SLEEPERS },
		[PROGRESS] = { "progress", required_argument, NULL, PROGRESS },
		[HELP] = { "help", no_argument, NULL, HELP },
		{ }
	};
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case FILE_PATH:
			conf.file = optarg;
			break;
		case FILE_SIZE:
			conf.file_size = parse_size("file-size", optarg);
			break;
		case READERS:
			conf.nr_readers = parse_number("readers", optarg, false, 1, MAX_WORKERS);
			break;
		case PAUSE:
			conf.pause_usec = parse_number("pause", optarg, false, 0, MAX_PAUSE);
			break;
		case ANON_SIZE:
			conf.anon_size = parse_size("anon-size", optarg);
			break;
		case THREADS:
			conf.nr_threads = parse_number("threads", optarg, false, 0, MAX_WORKERS);
			break;
		case ANON_PAUSE:
			conf.anon_pause_usec =
				parse_number("anon-pause", optarg, false, 0, MAX_PAUSE);
			break;
		case SLEEPERS:
			conf.nr_sleepers = parse_number("sleepers", optarg, false, 0, MAX_WORKERS);
			break;
		case PROGRESS:
			conf.progress = optarg;
			break;
		case HELP:
			help(usage);
		default:
			wrong_option(argv);
		}
	}
	end_options(argc, argv);
	if (!conf.file)
		quit("give the file to read with --file: see --help");
}

/* How many steps `size` bytes take; the last one may be shorter. */
static size_t nr_steps(size_t size)
{
	return (size + STEP - 1) / STEP;
}

static size_t step_size(size_t step, size_t size)
{
	return step * STEP + STEP > size ? size - step * STEP : STEP;
}

/* Make the file unless it is there in full; it has no holes and is on disk. */
static void make_file(void)
{
	static char data[STEP];
	struct stat st;
	size_t done;
	ssize_t n;
	int fd;

	if (!stat(conf.file, &st) && (size_t)st.st_size == conf.file_size)
		return;
	fd = open(conf.file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0)
		die(conf.file);
	memset(data, 0x5a, sizeof(data));
	for (done = 0; done < conf.file_size; done += n) {
		n = write(fd, data, step_size(done / STEP, conf.file_size) - done % STEP);
		if (n < 0)
			die(conf.file);
	}
	if (fsync(fd) || close(fd))
		die(conf.file);
}

static void pause_step(size_t usec)
{
	if (usec)
		usleep(usec);
}

/* Read a byte of each page for ever; reader `nr` of all starts at its share. */
static __attribute__((noreturn)) void read_file(size_t nr)
{
	size_t count = nr_steps(conf.file_size);
	size_t step = count * nr / conf.nr_readers;
	int fd = open(conf.file, O_RDONLY);
	const volatile char *mem;
	size_t i, size;

	if (fd < 0)
		die(conf.file);
	mem = mmap(NULL, conf.file_size, PROT_READ, MAP_SHARED, fd, 0);
	if (mem == MAP_FAILED)
		die("mmap of the file");
	for (;; step = (step + 1) % count) {
		size = step_size(step, conf.file_size);
		for (i = 0; i < size; i += PAGE)
			(void)mem[step * STEP + i];
		__atomic_add_fetch(&steps->file, 1, __ATOMIC_RELAXED);
		pause_step(conf.pause_usec);
	}
}

static size_t thread_size(void)
{
	size_t size = conf.anon_size / (conf.nr_threads ?: 1) / PAGE * PAGE;

	return size ? size : PAGE;
}

/*
 * Free a step's memory and fill it anew, for ever. The rest stays in use: if all
 * were freed at once, the pressure would come and go with the threads' phases.
 */
static void *free_and_fill(void *unused)
{
	size_t size = thread_size(), count = nr_steps(size), step, i;
	char *mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)unused;
	if (mem == MAP_FAILED)
		die("mmap");
	for (step = 0;; step = (step + 1) % count) {
		char *start = mem + step * STEP;

		if (madvise(start, step_size(step, size), MADV_DONTNEED))
			die("madvise");
		for (i = 0; i < step_size(step, size); i += PAGE)
			((volatile char *)start)[i] = 1;
		__atomic_add_fetch(&steps->anon, 1, __ATOMIC_RELAXED);
		pause_step(conf.anon_pause_usec);
	}
	return NULL;
}

static __attribute__((noreturn)) void use_anon(void)
{
	pthread_t thread;
	size_t i;

	for (i = 1; i < conf.nr_threads; i++) {
		errno = pthread_create(&thread, NULL, free_and_fill, NULL);
		if (errno)
			die("pthread_create");
	}
	free_and_fill(NULL);
	_exit(1);
}

/* What ages an lruvec walks the page tables of a process that has run since. */
static __attribute__((noreturn)) void sleep_and_wake(void)
{
	for (;;)
		usleep(SLEEP_USEC);
}

/* Worker 0 has the threads, then come the readers. It goes when its parent does. */
static pid_t start_worker(size_t nr)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		die("fork");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	if (!nr && conf.nr_threads)
		use_anon();
	if (nr && nr <= conf.nr_readers)
		read_file(nr - 1);
	sleep_and_wake();
}

static void report_progress(void)
{
	double file = __atomic_load_n(&steps->file, __ATOMIC_RELAXED);
	double anon = __atomic_load_n(&steps->anon, __ATOMIC_RELAXED);

	write_progress(conf.progress,
		       file / nr_steps(conf.file_size) + anon / nr_steps(thread_size()));
}

/* The OOM killer is part of the game: whoever it took is started again. */
static void restart_killed(pid_t *workers, size_t count)
{
	int status;
	pid_t pid;
	size_t i;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
			quit("a worker ended by itself (wait status %#x)", status);
		usleep(RESTART_USEC);
		for (i = 0; i < count; i++)
			if (workers[i] == pid)
				workers[i] = start_worker(i);
	}
}

int main(int argc, char **argv)
{
	static pid_t workers[2 * MAX_WORKERS + 1];
	size_t count, i;

	parse_options(argc, argv);
	make_file();
	steps = mmap(NULL, sizeof(*steps), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (steps == MAP_FAILED)
		die("mmap");
	count = 1 + conf.nr_readers + conf.nr_sleepers;
	for (i = 0; i < count; i++)
		workers[i] = start_worker(i);
	for (;;) {
		usleep(REPORT_USEC);
		report_progress();
		restart_killed(workers, count);
	}
}
