/* SPDX-License-Identifier: GPL-2.0 */
/* What the test programs share: time, page contents, and ways to reclaim. */
#ifndef _GUEST_H
#define _GUEST_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE		4096UL
#define PAGE_WORDS	(PAGE / sizeof(uint64_t))
/* One PMD: the most that one MADV_PAGEOUT call reclaims at a time. */
#define PMD_PAGES	512UL
#define PMD		(PMD_PAGES * PAGE)

/* Exit status for "the data is wrong"; 1 is for "the test could not be done". */
#define EXIT_DATA	3

static inline __attribute__((format(printf, 2, 3), noreturn))
void quit(int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	_exit(status);
}

#define die(what) quit(1, "%s: %s", what, strerror(errno))

static inline double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* Threads work until then. */
static volatile double deadline;

static inline bool time_left(void)
{
	return now() < deadline;
}

static inline void set_deadline(const char *seconds)
{
	deadline = now() + (seconds ? atof(seconds) : 1);
}

/* One that has gone offline meanwhile, as CPUs do under torture, is none to run on. */
static inline void pin_to_cpu(long cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) && errno != EINVAL)
		die("sched_setaffinity");
}

static inline pthread_t start_thread(void *(*fn)(void *), void *arg)
{
	pthread_t thread;

	errno = pthread_create(&thread, NULL, fn, arg);
	if (errno)
		die("pthread_create");
	return thread;
}

static inline pid_t start_child(void)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	return pid;
}

/* A child's wrong data is ours. */
static inline void wait_child(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) < 0)
		die("waitpid");
	if (WIFSIGNALED(status))
		quit(1, "a child died of signal %d", WTERMSIG(status));
	if (WEXITSTATUS(status))
		_exit(WEXITSTATUS(status));
}

/* Anonymous memory, or a file's, at a multiple of 2 MiB. */
static inline char *map_pages(size_t nr_pages, int fd)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	size_t size = nr_pages * PAGE;
	char *reserved = mmap(NULL, size + PMD, PROT_NONE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *mem;

	if (reserved == MAP_FAILED)
		die("mmap");
	mem = (char *)(((uintptr_t)reserved + PMD - 1) & ~(PMD - 1));
	mem = mmap(mem, size, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0);
	if (mem == MAP_FAILED)
		die("mmap");
	return mem;
}

static inline int shmem_file(size_t nr_pages)
{
	int fd = memfd_create("guest", 0);

	if (fd < 0 || ftruncate(fd, nr_pages * PAGE))
		die("memfd_create");
	return fd;
}

/* The contents of a page follow from its number and its generation. */
static inline uint64_t page_word(size_t nr, unsigned int gen, size_t word)
{
	return ((uint64_t)gen << 32 | nr) + word * 0x9e3779b97f4a7c15ULL + 1;
}

static inline void fill_page(char *page, size_t nr, unsigned int gen)
{
	uint64_t *words = (uint64_t *)page;
	size_t i;

	for (i = 0; i < PAGE_WORDS; i++)
		words[i] = page_word(nr, gen, i);
}

static inline void check_page(const char *page, size_t nr, unsigned int gen)
{
	const volatile uint64_t *words = (const volatile uint64_t *)page;
	size_t i;

	for (i = 0; i < PAGE_WORDS; i++) {
		uint64_t word = words[i];

		if (word != page_word(nr, gen, i))
			quit(EXIT_DATA, "page %zu, word %zu: %#llx instead of %#llx",
			     nr, i, (unsigned long long)word,
			     (unsigned long long)page_word(nr, gen, i));
	}
}

static inline void check_zero(const char *page, size_t nr)
{
	const volatile uint64_t *words = (const volatile uint64_t *)page;
	size_t i;

	for (i = 0; i < PAGE_WORDS; i++)
		if (words[i])
			quit(EXIT_DATA, "page %zu, word %zu: not zero", nr, i);
}

static inline void page_out(char *mem, size_t nr_pages)
{
	if (madvise(mem, nr_pages * PAGE, MADV_PAGEOUT))
		die("madvise");
}

/* Reclaim from the memcg that we run in; to get less than asked for is fine. */
static inline void memcg_reclaim(size_t nr_pages)
{
	const char *memcg = getenv("VMP_MEMCG");
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/memory.reclaim", memcg ? memcg : "");
	fd = open(path, O_WRONLY);
	if (fd < 0)
		die(path);
	if (dprintf(fd, "%zu", nr_pages * PAGE) < 0 && errno != EAGAIN)
		die(path);
	close(fd);
}

/* What a faulty module has: see mirror.h. */
static inline int mirror_open(void)
{
	int fd = open("/sys/kernel/debug/vmscan_policy/flush/mirror", O_RDWR);

	if (fd < 0)
		die("mirror");
	return fd;
}

static inline void mirror_write(int fd, char what, char *mem)
{
	if (pwrite(fd, &what, 1, (uintptr_t)mem) != 1)
		die("mirror");
}

#endif /* _GUEST_H */
