// SPDX-License-Identifier: GPL-2.0
/*
 * torture DIR [KIND]...: memory of each kind, whose pages a thread writes over and checks all the
 * time, while another does to them what it is told: a line "OPERATION NUMBER" on stdin, where the
 * number says to which pages. At the end of stdin all pages are checked once more, and lines of
 * "checked NAME N" or "did NAME DONE REFUSED" say how often. Wrong data: status 3. DIR is for files.
 *
 * What changes the content of pages, or moves them, holds the lock of their block.
 */
#include <linux/falloc.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include "guest.h"
#include "uffd.h"

#define NR_PAGES	(2 * PMD_PAGES)
#define BLOCK		16UL		/* pages */
#define NR_BLOCKS	(NR_PAGES / BLOCK)
/*
 * Blocks in a row that are written over for a while: with more pages than a CPU's LRU cache holds,
 * from where another CPU can't take them.
 */
#define NR_HOT		8UL
#define HOT_ROUNDS	4
#define NR_CHILDREN	4
#define PAUSE_US	2000		/* others need the CPUs, too */

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE	25
#endif
/* What a page has: the content of its generation, zeroes, or after MADV_FREE either. */
enum has { CONTENT, ZEROES, EITHER };

struct kind {
	const char *name;
	bool shared, file, shmem, huge, movable;
};

static const struct kind kinds[] = {
	{ .name = "anon" },
	{ .name = "anon-large", .huge = true },
	{ .name = "moved", .movable = true },
	{ .name = "shared", .shared = true },
	{ .name = "shmem", .shared = true, .shmem = true },
	{ .name = "shmem-large", .shared = true, .shmem = true, .huge = true },
	{ .name = "shmem-private", .shmem = true },
	{ .name = "file", .shared = true, .file = true },
	{ .name = "file-private", .file = true },
};

#define NR_KINDS	(sizeof(kinds) / sizeof(*kinds))

static struct region {
	const struct kind *kind;
	char *mem, *other;	/* other: where moved pages may be, too */
	int fd;
	pthread_t thread;
	pthread_mutex_t locks[NR_BLOCKS];
	unsigned int gens[NR_PAGES];
	unsigned char has[NR_PAGES], there[NR_PAGES];
	unsigned long checked;
	volatile size_t hot;	/* the first block of those that are written over */
	volatile bool busy;	/* they are */
} regions[NR_KINDS];

static size_t nr_regions;
static const char *dir;
static volatile bool ended;
static int uffd;	/* below 0 where there is no UFFDIO_MOVE */

static char *page_of(const struct region *region, size_t i)
{
	return (region->there[i] ? region->other : region->mem) + i * PAGE;
}

/* No two regions have the same content, save the first two, where KSM finds something to merge. */
static size_t nr_of(const struct region *region, size_t i)
{
	size_t kind = region->kind - kinds;

	return (kind > 1 ? kind : 0) * NR_PAGES + i;
}

/* Reclaim may drop it while we look: what is zero stays so. Tell if it has. */
static bool check_either(const char *page, size_t nr, unsigned int gen)
{
	const volatile uint64_t *words = (const volatile uint64_t *)page;
	bool dropped = false;
	size_t i;

	for (i = 0; i < PAGE_WORDS; i++) {
		uint64_t word = words[i];

		dropped = dropped || !word;
		if (word != (dropped ? 0 : page_word(nr, gen, i)))
			quit(EXIT_DATA, "page %zu, word %zu: wrong after MADV_FREE", nr, i);
	}

	return dropped;
}

/* The block's lock is held. */
static void check(struct region *region, size_t i)
{
	char *page = page_of(region, i);
	size_t nr = nr_of(region, i);

	if (region->has[i] == ZEROES)
		check_zero(page, nr);
	else if (region->has[i] == CONTENT)
		check_page(page, nr, region->gens[i]);
	else if (check_either(page, nr, region->gens[i]))
		region->has[i] = ZEROES;
	region->checked++;
}

static void write_over(struct region *region, size_t i)
{
	fill_page(page_of(region, i), nr_of(region, i), ++region->gens[i]);
	region->has[i] = CONTENT;
}

static void work_on(struct region *region, size_t block, unsigned int *seed)
{
	size_t i;

	pthread_mutex_lock(&region->locks[block]);
	for (i = block * BLOCK; i < (block + 1) * BLOCK; i++) {
		check(region, i);
		if (rand_r(seed) % 4)
			write_over(region, i);
	}
	pthread_mutex_unlock(&region->locks[block]);
}

static void *work(void *arg)
{
	struct region *region = arg;
	unsigned int seed = region - regions;
	size_t i;

	while (!ended) {
		region->hot = rand_r(&seed) % (NR_BLOCKS - NR_HOT + 1);
		region->busy = true;
		for (i = 0; i < HOT_ROUNDS * NR_HOT; i++)
			work_on(region, region->hot + i % NR_HOT, &seed);
		region->busy = false;
		usleep(HOT_ROUNDS * NR_HOT * PAUSE_US);
	}
	return NULL;
}

static int open_file(const char *name)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, NR_PAGES * PAGE))
		die(path);
	return fd;
}

static void make_region(struct region *region, const struct kind *kind)
{
	int flags = MAP_FIXED | (kind->shared ? MAP_SHARED : MAP_PRIVATE);
	size_t i;

	region->kind = kind;
	region->fd = kind->file ? open_file(kind->name) : kind->shmem ? shmem_file(NR_PAGES) : -1;
	flags |= region->fd < 0 ? MAP_ANONYMOUS : 0;
	region->mem = mmap(map_pages(NR_PAGES, -1), NR_PAGES * PAGE, PROT_READ | PROT_WRITE, flags,
			   region->fd, 0);
	if (region->mem == MAP_FAILED)
		die(kind->name);
	if (kind->huge)
		madvise(region->mem, NR_PAGES * PAGE, MADV_HUGEPAGE);
	for (i = 0; i < NR_BLOCKS; i++)
		pthread_mutex_init(&region->locks[i], NULL);
	for (i = 0; i < NR_PAGES; i++)
		write_over(region, i);
	if (kind->movable) {
		region->other = map_pages(NR_PAGES, -1);
		uffd_register(uffd, region->mem, NR_PAGES);
		uffd_register(uffd, region->other, NR_PAGES);
	}
	region->thread = start_thread(work, region);
}

/* What an operation is for: a block if it holds that. It returns false if it was refused. */
struct target {
	struct region *region;
	size_t first, nr;
	char *mem;
};

static bool advise(const struct target *t, int advice)
{
	return !madvise(t->mem, t->nr * PAGE, advice);
}

/* Every other time what is written to in this moment: a write through a stale TLB entry is lost. */
static bool op_pageout(struct target *t)
{
	int tries = 100;

	if (t->nr % 2) {
		while (!t->region->busy && tries--)
			usleep(1000);
		t->mem = t->region->mem + t->region->hot * BLOCK * PAGE;
		t->nr = NR_HOT * BLOCK;
	}
	return advise(t, MADV_PAGEOUT);
}

static bool op_cold(struct target *t)
{
	return advise(t, MADV_COLD);
}

static bool op_collapse(struct target *t)
{
	return !madvise(t->region->mem, NR_PAGES * PAGE, MADV_COLLAPSE);
}

static bool op_merge(struct target *t)
{
	return advise(t, MADV_MERGEABLE);
}

static bool op_mlock(struct target *t)
{
	if (mlock(t->mem, t->nr * PAGE))
		return false;
	usleep(1000);
	return !munlock(t->mem, t->nr * PAGE);
}

static bool op_split(struct target *t)
{
	int fd = open("/sys/kernel/debug/split_huge_pages", O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && dprintf(fd, "%d,%#lx,%#lx,0", getpid(), (uintptr_t)t->mem,
				       (uintptr_t)t->mem + t->nr * PAGE) > 0;

	if (fd >= 0)
		close(fd);
	return done;
}

static void now_has(const struct target *t, enum has has)
{
	size_t i;

	for (i = t->first; i < t->first + t->nr; i++)
		if (has != EITHER || t->region->has[i] == CONTENT)
			t->region->has[i] = has;
}

static bool op_free(struct target *t)
{
	if (t->region->fd >= 0 || t->region->kind->shared || !advise(t, MADV_FREE))
		return false;
	now_has(t, EITHER);
	return true;
}

static bool op_dontneed(struct target *t)
{
	if (t->region->fd >= 0 || t->region->kind->shared || !advise(t, MADV_DONTNEED))
		return false;
	now_has(t, ZEROES);
	return true;
}

static bool op_punch(struct target *t)
{
	if (!t->region->kind->shared || t->region->fd < 0 ||
	    fallocate(t->region->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, t->first * PAGE,
		      t->nr * PAGE))
		return false;
	now_has(t, ZEROES);
	return true;
}

static bool op_sync(struct target *t)
{
	return t->region->kind->file && !fdatasync(t->region->fd) &&
	       !posix_fadvise(t->region->fd, 0, 0, POSIX_FADV_DONTNEED);
}

static bool op_protect(struct target *t)
{
	if (mprotect(t->mem, t->nr * PAGE, PROT_READ))
		return false;
	usleep(100);
	if (mprotect(t->mem, t->nr * PAGE, PROT_READ | PROT_WRITE))
		die("mprotect");
	return true;
}

static bool op_remap(struct target *t)
{
	static char *aside;

	aside = aside ?: map_pages(BLOCK, -1);
	if (mremap(t->mem, t->nr * PAGE, t->nr * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, aside) ==
	    MAP_FAILED)
		return false;
	usleep(100);
	if (mremap(aside, t->nr * PAGE, t->nr * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, t->mem) ==
	    MAP_FAILED)
		die("mremap");
	return true;
}

/* Between the two halves of an area: that of pages that may be anywhere now. */
static bool op_move(struct target *t)
{
	struct region *region = t->region;
	bool done = false;
	size_t i;

	for (i = t->first; region->kind->movable && i < t->first + t->nr; i++) {
		char *from = page_of(region, i);
		char *to = (region->there[i] ? region->mem : region->other) + i * PAGE;
		struct uffdio_move move = {
			.dst = (uintptr_t)to, .src = (uintptr_t)from, .len = PAGE,
		};

		if (ioctl(uffd, UFFDIO_MOVE, &move))
			continue;
		done = true;
		region->there[i] ^= 1;
		check(region, i);
	}
	return done;
}

static bool op_vmread(struct target *t)
{
	static char buffer[BLOCK * PAGE];
	struct iovec to = { buffer, t->nr * PAGE }, from = { t->mem, t->nr * PAGE };
	size_t i, page;

	if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != (ssize_t)(t->nr * PAGE))
		return false;
	for (i = 0; i < t->nr; i++) {
		page = t->first + i;
		if (t->region->has[page] == CONTENT)
			check_page(buffer + i * PAGE, nr_of(t->region, page),
				   t->region->gens[page]);
	}
	return true;
}

static bool op_vmwrite(struct target *t)
{
	static char buffer[PAGE];
	size_t i;

	for (i = 0; i < t->nr; i++) {
		struct iovec from = { buffer, PAGE }, to = { t->mem + i * PAGE, PAGE };
		size_t page = t->first + i;

		fill_page(buffer, nr_of(t->region, page), t->region->gens[page] + 1);
		if (process_vm_writev(getpid(), &from, 1, &to, 1, 0) != (ssize_t)PAGE)
			return false;
		t->region->gens[page]++;
		t->region->has[page] = CONTENT;
	}
	return true;
}

/* A debugger stops us, looks at each page, and writes what was there. */
static bool op_ptrace(struct target *t)
{
	pid_t self = gettid(), pid = start_child();
	int status;
	size_t i;

	if (pid) {
		if (waitpid(pid, &status, 0) < 0)
			die("waitpid");
		if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_DATA)
			quit(EXIT_DATA, "a debugger has seen wrong data");
		return status == 0;
	}
	if (ptrace(PTRACE_ATTACH, self, 0, 0) || waitpid(self, NULL, __WALL) != self)
		_exit(1);
	for (i = 0; i < t->nr; i++) {
		size_t page = t->first + i;
		long word;

		errno = 0;
		word = ptrace(PTRACE_PEEKDATA, self, t->mem + i * PAGE, 0);
		if (errno)
			_exit(1);
		if (t->region->has[page] == CONTENT &&
		    (uint64_t)word != page_word(nr_of(t->region, page), t->region->gens[page], 0))
			_exit(EXIT_DATA);
		if (t->region->has[page] == CONTENT &&
		    ptrace(PTRACE_POKEDATA, self, t->mem + i * PAGE, word))
			_exit(1);
	}
	_exit(0);
}

/* What was written out comes back by DMA, over newer content. */
static bool op_odirect(struct target *t)
{
	ssize_t size = t->nr * PAGE;
	static int fd = -1;
	size_t i;

	if (fd < 0) {
		char path[256];

		snprintf(path, sizeof(path), "%s/direct", dir);
		fd = open(path, O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);
	}
	if (fd < 0 || pwrite(fd, t->mem, size, 0) != size)
		return false;
	for (i = 0; i < t->nr; i++)
		*(volatile uint64_t *)(t->mem + i * PAGE) = 0;
	if (pread(fd, t->mem, size, 0) != size)
		die("O_DIRECT");
	return true;
}

static bool op_migrate(struct target *t)
{
	int nodes[BLOCK], status[BLOCK], node = t->region->gens[t->first] % 2;
	void *pages[BLOCK];
	size_t i;

	for (i = 0; i < t->nr; i++) {
		pages[i] = t->mem + i * PAGE;
		nodes[i] = node;
	}
	return syscall(SYS_move_pages, 0, t->nr, pages, nodes, status, 2 /* MPOL_MF_MOVE */) >= 0;
}

static pid_t children[NR_CHILDREN];

static void reap(pid_t *child, int flags)
{
	int status = 0;

	if (!*child || waitpid(*child, &status, flags) != *child)
		return;
	*child = 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_DATA)
		quit(EXIT_DATA, "a forked child has seen wrong data");
	if (status)
		quit(1, "a forked child ended with wait status %#x", status);
}

/* Its memory is as it was at the fork, whatever the parent writes; and the other way round. */
static void __attribute__((noreturn)) be_child(struct region *region)
{
	size_t i;

	for (int round = 0; round < 2; round++) {
		madvise(region->mem, NR_PAGES * PAGE, MADV_PAGEOUT);
		for (i = 0; i < NR_PAGES; i += 3) {
			check(region, i);
			if (round == 0 && i % 2)
				write_over(region, i);
		}
	}
	_exit(0);
}

static bool op_fork(struct target *t)
{
	struct region *region = t->region;
	pid_t *child = NULL;
	size_t i;

	for (i = 0; i < NR_CHILDREN; i++) {
		reap(&children[i], WNOHANG);
		if (!children[i])
			child = &children[i];
	}
	if (!child || region->kind->shared)
		return false;
	for (i = 0; i < NR_BLOCKS; i++)
		pthread_mutex_lock(&region->locks[i]);
	*child = start_child();
	if (!*child)
		be_child(region);
	for (i = 0; i < NR_BLOCKS; i++)
		pthread_mutex_unlock(&region->locks[i]);
	return true;
}

/* A write that never was: who finds that finds one that is lost. */
static bool op_spoil(struct target *t)
{
	size_t i;

	for (i = t->first; i < t->first + t->nr; i++) {
		t->region->gens[i]++;
		t->region->has[i] = CONTENT;
	}
	return true;
}

enum { HELD = 1, PRESENT = 2 };	/* with the lock of the block; not where a page may be missing */

static struct op {
	const char *name;
	bool (*run)(struct target *t);
	int how;
	unsigned long done, refused;
} ops[] = {
#define OP(op, how)	{ #op, op_##op, how, 0, 0 }
	OP(pageout, 0), OP(cold, 0), OP(merge, 0), OP(split, 0), OP(fork, 0), OP(sync, 0),
	OP(collapse, PRESENT), OP(mlock, PRESENT), OP(migrate, HELD), OP(move, HELD),
	OP(free, HELD | PRESENT), OP(dontneed, HELD | PRESENT), OP(punch, HELD | PRESENT),
	OP(protect, HELD | PRESENT), OP(remap, HELD | PRESENT), OP(vmread, HELD | PRESENT),
	OP(vmwrite, HELD | PRESENT), OP(ptrace, HELD | PRESENT), OP(odirect, HELD | PRESENT),
	OP(spoil, HELD),
};

#define NR_OPS	(sizeof(ops) / sizeof(*ops))

static void run_op(const char *name, unsigned long number)
{
	struct region *region = &regions[number % nr_regions];
	size_t block = number / nr_regions % NR_BLOCKS;
	struct target target = { .region = region, .first = block * BLOCK, .nr = BLOCK };
	struct op *op;

	for (op = ops; op < ops + NR_OPS && strcmp(op->name, name); op++)
		;
	if (op == ops + NR_OPS)
		quit(1, "there is no operation '%s'", name);
	/* What leaves the content alone may take more. */
	if (!(op->how & HELD)) {
		target.nr = 1 + number / nr_regions / NR_BLOCKS % PMD_PAGES;
		if (target.first + target.nr > NR_PAGES)
			target.first = NR_PAGES - target.nr;
	}
	target.mem = region->mem + target.first * PAGE;
	if (op->how & HELD)
		pthread_mutex_lock(&region->locks[block]);
	if (!(region->kind->movable && op->how & PRESENT) && op->run(&target))
		op->done++;
	else
		op->refused++;
	if (op->how & HELD)
		pthread_mutex_unlock(&region->locks[block]);
}

static bool wanted(const char *name, char **names, int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		if (!strcmp(name, names[i]))
			return true;
	return nr == 0;
}

int main(int argc, char **argv)
{
	char line[64], name[32];
	unsigned long number;
	size_t i, page;

	if (argc < 2)
		quit(1, "torture DIR [KIND]...");
	dir = argv[1];
	/* What waits is to wait in the pipe, which holds little. */
	setvbuf(stdin, NULL, _IOFBF, sizeof(line));
	uffd = uffd_open();
	for (i = 0; i < NR_KINDS; i++)
		if (wanted(kinds[i].name, argv + 2, argc - 2) && (!kinds[i].movable || uffd >= 0))
			make_region(&regions[nr_regions++], &kinds[i]);
	if (!nr_regions)
		quit(1, "no such kind of memory, or none that this kernel has");
	while (fgets(line, sizeof(line), stdin))
		if (sscanf(line, "%31s %lu", name, &number) == 2)
			run_op(name, number);
	ended = true;
	for (i = 0; i < nr_regions; i++)
		pthread_join(regions[i].thread, NULL);
	for (i = 0; i < NR_CHILDREN; i++)
		reap(&children[i], 0);
	for (i = 0; i < nr_regions; i++) {
		for (page = 0; page < NR_PAGES; page++)
			check(&regions[i], page);
		printf("checked %s %lu\n", regions[i].kind->name, regions[i].checked);
	}
	for (i = 0; i < NR_OPS; i++)
		if (ops[i].done || ops[i].refused)
			printf("did %s %lu %lu\n", ops[i].name, ops[i].done, ops[i].refused);
	return 0;
}
