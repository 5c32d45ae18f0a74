// SPDX-License-Identifier: GPL-2.0
/*
 * memcg-remove ROUNDS DIR: memcgs below VMP_MEMCG are removed ROUNDS times while they are
 * reclaimed and aged: through their own memory.reclaim, through those of their
 * parent and of the root, and through debugfs. DIR is for files.
 */
#include "guest.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#define LRU_GEN		"/sys/kernel/debug/lru_gen"
#define ROOT_RECLAIM	"/sys/fs/cgroup/memory.reclaim"
#define ANON_PAGES	512UL
#define FILE_PAGES	256UL
/* So many removed memcgs keep page cache: removed ones are reclaimed differently. */
#define NR_DYING	8
#define PATH_SIZE	256

static struct shared {
	int writing;	/* the memcg's reclaimer is in its write */
	long done;	/* its writes that ended, with or without enough reclaimed */
	long root, parent, aged;
} *shared;

static char parent[PATH_SIZE], memcg[PATH_SIZE + 32];

static int open_in(const char *directory, const char *name)
{
	char path[2 * PATH_SIZE];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return open(path, O_WRONLY | O_CLOEXEC);
}

/* One that would go on for ever ends with us. */
static pid_t start_helper(void)
{
	pid_t pid = start_child();

	if (!pid && prctl(PR_SET_PDEATHSIG, SIGKILL))
		die("prctl");
	return pid;
}

static void write_all(int fd, const char *text, const char *what)
{
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(what);
}

/* Fills the memcg, says so, and uses its pages until it is killed. */
static void __attribute__((noreturn)) victim(int file, int ready)
{
	char *anon, *cache;
	size_t i;

	write_all(open_in(memcg, "cgroup.procs"), "0", "cgroup.procs");
	anon = map_pages(ANON_PAGES, -1);
	cache = map_pages(FILE_PAGES, file);
	for (bool first = true;; first = false) {
		for (i = 0; i < ANON_PAGES; i++)
			anon[i * PAGE]++;
		for (i = 0; i < FILE_PAGES; i++)
			(void)*(volatile char *)(cache + i * PAGE);
		if (first && write(ready, "", 1) != 1)
			_exit(1);
	}
}

/* Reclaims from the memcg until it is gone, however little it gets. */
static void __attribute__((noreturn)) reclaimer(int fd)
{
	ssize_t done;

	for (;;) {
		__atomic_store_n(&shared->writing, 1, __ATOMIC_SEQ_CST);
		done = write(fd, "1M", 2);
		if (done < 0 && errno == ENODEV)
			_exit(0);
		if (done < 0 && errno != EAGAIN)
			die("memory.reclaim");
		__atomic_add_fetch(&shared->done, 1, __ATOMIC_SEQ_CST);
		__atomic_store_n(&shared->writing, 0, __ATOMIC_SEQ_CST);
	}
}

/*
 * Reclaims from the memcg's parent or from the root again and again. The root's has to
 * be rare: it takes the program text of all that runs, and that comes back slowly.
 */
static void __attribute__((noreturn)) reclaimer_above(int fd, const char *bytes, long *counter,
							      useconds_t interval)
{
	for (;; usleep(interval)) {
		if (write(fd, bytes, strlen(bytes)) < 0 && errno != EAGAIN)
			die("memory.reclaim above");
		++*counter;
	}
}

/*
 * Ages the memcgs below the parent all the time. Any of them can go, or be aged by
 * others, between the read and the write: that gives EINVAL, or EEXIST on newer kernels.
 */
static void __attribute__((noreturn)) ager(void)
{
	const char *name = strrchr(parent, '/');
	int commands = open(LRU_GEN, O_WRONLY | O_CLOEXEC);

	for (;;) {
		FILE *file = fopen(LRU_GEN, "re");
		unsigned long id = 0, number, age;
		unsigned int node = 0;
		char line[512];
		long gen = -1;

		if (!file || commands < 0)
			die(LRU_GEN);
		/* memcg ID PATH; node NUMBER; then a line per generation, the oldest first. */
		for (;;) {
			bool more = fgets(line, sizeof(line), file);

			if (more && sscanf(line, " %lu %lu", &number, &age) == 2) {
				gen = number;
				continue;
			}
			if (id && gen >= 0) {
				if (dprintf(commands, "+ %lu %u %ld 1 1\n", id, node, gen) > 0)
					shared->aged++;
				else if (errno != EINVAL && errno != EEXIST)
					die(LRU_GEN);
			}
			gen = -1;
			if (!more)
				break;
			if (sscanf(line, "memcg %lu", &id) == 1 && !strstr(line, name))
				id = 0;
			sscanf(line, " node %u", &node);
		}
		fclose(file);
		usleep(10000);
	}
}

static void remove_memcg(void)
{
	int try;

	for (try = 0; rmdir(memcg); try++) {
		if (errno != EBUSY || try == 10000)
			die("rmdir");
		usleep(1000);
	}
}

int main(int argc, char **argv)
{
	const char *top = getenv("VMP_MEMCG");
	pid_t helpers[3];
	long rounds, round, hit = 0;
	int files[NR_DYING];
	size_t i;

	if (argc != 3 || !top)
		quit(1, "VMP_MEMCG=MEMCG memcg-remove ROUNDS DIR");
	rounds = atol(argv[1]);
	snprintf(parent, sizeof(parent), "%s", top);
	srand(1);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		die("mmap");
	for (i = 0; i < NR_DYING; i++)
		files[i] = -1;
	for (i = 0; i < 3; i++) {
		helpers[i] = start_helper();
		if (helpers[i])
			continue;
		if (i == 0)
			reclaimer_above(open_in(parent, "memory.reclaim"), "256K", &shared->parent, 20000);
		if (i == 1)
			reclaimer_above(open(ROOT_RECLAIM, O_WRONLY), "64K", &shared->root, 500000);
		ager();
	}
	for (round = 0; round < rounds; round++) {
		int *file = &files[round % NR_DYING];
		pid_t pid, reclaim_pid;
		int ready[2], writing, fd;
		long before;
		char byte;

		snprintf(memcg, sizeof(memcg), "%s/%ld", parent, round);
		if (mkdir(memcg, 0755))
			die("mkdir");
		/* What the memcg of NR_DYING rounds ago still has goes now. */
		if (*file >= 0)
			close(*file);
		*file = open(argv[2], O_TMPFILE | O_RDWR, 0600);
		if (*file < 0 || ftruncate(*file, FILE_PAGES * PAGE) || pipe(ready))
			die(argv[2]);
		pid = start_helper();
		if (!pid)
			victim(*file, ready[1]);
		close(ready[1]);
		if (read(ready[0], &byte, 1) != 1)
			quit(1, "round %ld: the process has ended", round);
		close(ready[0]);
		/* The child may run only when the memcg has gone. */
		fd = open_in(memcg, "memory.reclaim");
		if (fd < 0)
			die("memory.reclaim");
		reclaim_pid = start_helper();
		if (!reclaim_pid)
			reclaimer(fd);
		close(fd);
		usleep(rand() % 10000);
		kill(pid, SIGKILL);
		if (waitpid(pid, NULL, 0) < 0)
			die("waitpid");
		/* A write that is under way now ends by itself, and its reclaim with it. */
		before = __atomic_load_n(&shared->done, __ATOMIC_SEQ_CST);
		writing = __atomic_load_n(&shared->writing, __ATOMIC_SEQ_CST);
		remove_memcg();
		wait_child(reclaim_pid);
		hit += writing && shared->done > before;
		__atomic_store_n(&shared->writing, 0, __ATOMIC_SEQ_CST);
	}
	for (i = 0; i < 3; i++) {
		int status;

		/* One that has ended by itself has failed. */
		if (waitpid(helpers[i], &status, WNOHANG))
			quit(1, "helper %zu has ended", i);
		kill(helpers[i], SIGKILL);
		waitpid(helpers[i], NULL, 0);
	}
	printf("%ld rounds: in %ld a write to memory.reclaim was under way at the removal; "
	       "%ld writes, %ld to the parent, %ld to the root; aged %ld times\n",
	       rounds, hit, shared->done, shared->parent, shared->root, shared->aged);
	return 0;
}
