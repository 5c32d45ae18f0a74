// SPDX-License-Identifier: GPL-2.0
/*
 * large CASE FILE CPUS: brings large folios into a state that reclaim has to keep, reclaims them,
 * and tells what has become of each page: in memory or in swap, soft-dirty, write-protected by
 * userfaultfd. Checks the contents, too. What it tells doesn't depend on the policy. On two CPUs,
 * the TLB is flushed later. Without arguments: the names of the cases, but for those that need
 * the file of mirror.h.
 */
#include "guest.h"

#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define FOLIO		16UL		/* pages: 64 KiB */
#define NR_FOLIOS	4UL
#define NR_PAGES	(NR_FOLIOS * FOLIO)
#define NR_SHARERS	70		/* more than a swap count holds without a continuation */

/* <linux/gup_test.h> is no header for programs */
struct pin_longterm_test {
	uint64_t addr;
	uint64_t size;
	uint32_t flags;
};
#define PIN_LONGTERM_TEST_START	_IOW('g', 7, struct pin_longterm_test)

/* nor is that of the HMM test driver, a device with a page table of its own */
struct hmm_dmirror_cmd {
	uint64_t addr;
	uint64_t ptr;
	uint64_t npages;
	uint64_t cpages;
	uint64_t faults;
};
#define HMM_DMIRROR_READ	_IOWR('H', 0, struct hmm_dmirror_cmd)

enum { ENTRY_SOFT_DIRTY = 55, ENTRY_WP = 57, ENTRY_FILE = 61, ENTRY_SWAP, ENTRY_PRESENT };

static char *mem;
static unsigned int gens[NR_PAGES];
static bool may_be_zero[NR_PAGES], not_inherited[NR_PAGES];
static const char *file_name;

static void read_entries(uint64_t entries[NR_PAGES])
{
	off_t offset = (uintptr_t)mem / PAGE * sizeof(*entries);
	ssize_t size = NR_PAGES * sizeof(*entries);
	int fd = open("/proc/self/pagemap", O_RDONLY);

	if (fd < 0 || pread(fd, entries, size, offset) != size)
		die("pagemap");
	close(fd);
}

static bool bit(uint64_t number, unsigned int nr)
{
	return number >> nr & 1;
}

static bool in_memory(size_t i)
{
	uint64_t entries[NR_PAGES];

	read_entries(entries);
	return bit(entries[i], ENTRY_PRESENT);
}

static const char *state(uint64_t found)
{
	static char text[8];
	char *end = text;

	*end++ = bit(found, ENTRY_PRESENT) ? 'P' : bit(found, ENTRY_SWAP) ? 'S' : '-';
	if (bit(found, ENTRY_SOFT_DIRTY))
		*end++ = 's';
	if (bit(found, ENTRY_WP))
		*end++ = 'w';
	if (bit(found, ENTRY_FILE))
		*end++ = 'f';
	*end = '\0';
	return text;
}

/* All pages' states, a number before those that are so many times the same. */
static void tell(const char *when)
{
	uint64_t entries[NR_PAGES];
	char last[8] = "";
	size_t i, same = 0;

	read_entries(entries);
	printf("%s:", when);
	for (i = 0; i <= NR_PAGES; i++) {
		const char *text = i < NR_PAGES ? state(entries[i]) : "";

		if (same && strcmp(text, last)) {
			printf(" %zu%s", same, last);
			same = 0;
		}
		strcpy(last, text);
		same++;
	}
	putchar('\n');
}

static void write_page(size_t i, unsigned int gen)
{
	gens[i] = gen;
	fill_page(mem + i * PAGE, i, gen);
}

static void write_all(void)
{
	size_t i;

	for (i = 0; i < NR_PAGES; i++)
		write_page(i, 0);
}

static void check(size_t i)
{
	if (may_be_zero[i] && !*(volatile uint64_t *)(mem + i * PAGE))
		check_zero(mem + i * PAGE, i);
	else
		check_page(mem + i * PAGE, i, gens[i]);
}

static void check_all(void)
{
	size_t i;

	for (i = 0; i < NR_PAGES; i++)
		check(i);
}

static void clear_soft_dirty(void)
{
	int fd = open("/proc/self/clear_refs", O_WRONLY);

	if (fd < 0 || write(fd, "4", 1) != 1)
		die("clear_refs");
	close(fd);
}

/* From the memcg: what MADV_PAGEOUT would leave, or split before, goes this way. */
static void reclaim(void)
{
	int i;

	for (i = 0; i < 4; i++)
		memcg_reclaim(8 * NR_PAGES);
}

static int userfault(void)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM,
	};
	struct uffdio_register reg = {
		.range = { (uintptr_t)mem, NR_PAGES * PAGE },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &reg))
		die("userfaultfd");
	return fd;
}

/* Every third page of the first folios, and all of the last. */
static bool is_protected(size_t i)
{
	return i % 3 == 0 || i >= NR_PAGES - FOLIO;
}

static void protect(int fd)
{
	size_t i;

	for (i = 0; i < NR_PAGES; i++) {
		struct uffdio_writeprotect wp = {
			.range = { (uintptr_t)(mem + i * PAGE), PAGE },
			.mode = UFFDIO_WRITEPROTECT_MODE_WP,
		};

		if (is_protected(i) && ioctl(fd, UFFDIO_WRITEPROTECT, &wp))
			die("UFFDIO_WRITEPROTECT");
	}
}

static void dirty(void)
{
	write_all();
	page_out(mem, NR_PAGES);
}

static void aged(void)
{
	write_all();
	reclaim();
}

static void soft_dirty(void)
{
	size_t i;

	write_all();
	clear_soft_dirty();
	for (i = 0; i < NR_PAGES / 2; i += 5)
		write_page(i, 1);
	page_out(mem, NR_PAGES);
}

static void uffd(void)
{
	write_all();
	protect(userfault());
	reclaim();
}

/* The child has the old pages, and checks them when we are done. */
static int until_then[2];

static void shared_by(unsigned int nr)
{
	char byte;
	size_t i;

	if (pipe(until_then))
		die("pipe");
	while (nr--)
		if (!start_child()) {
			close(until_then[1]);
			if (read(until_then[0], &byte, 1))
				_exit(1);
			for (i = 0; i < NR_PAGES; i++)
				if (!not_inherited[i])
					check(i);
			_exit(0);
		}
}

static void end_sharers(void)
{
	int status;
	size_t i;

	/* has to copy the pages, which are not ours alone */
	for (i = 0; i < NR_PAGES; i++)
		write_page(i, 2);
	close(until_then[1]);
	while (wait(&status) > 0)
		if (status)
			quit(EXIT_DATA, "a child has found wrong data, or died: %#x", status);
}

static void forked(void)
{
	size_t i;

	write_all();
	shared_by(1);
	for (i = 1; i < NR_PAGES / 2; i += 4)
		write_page(i, 1);
	reclaim();
}

/* Half of each folio is ours alone; no entry may be written to, so this alone tells them apart. */
static void half_forked(void)
{
	size_t i;

	write_all();
	for (i = 0; i < NR_PAGES; i++)
		not_inherited[i] = i % FOLIO < FOLIO / 2;
	for (i = 0; i < NR_PAGES; i += FOLIO)
		if (madvise(mem + i * PAGE, FOLIO / 2 * PAGE, MADV_DONTFORK))
			die("MADV_DONTFORK");
	shared_by(1);
	if (madvise(mem, NR_PAGES * PAGE, MADV_DOFORK) ||
	    mprotect(mem, NR_PAGES * PAGE, PROT_READ))
		die("mprotect");
	reclaim();
	if (mprotect(mem, NR_PAGES * PAGE, PROT_READ | PROT_WRITE))
		die("mprotect");
}

static void sharers(void)
{
	write_all();
	shared_by(NR_SHARERS);
	reclaim();
}

static void read_only(void)
{
	size_t i;

	write_all();
	for (i = 0; i < NR_PAGES / 2; i += FOLIO)
		if (mprotect(mem + (i + 3) * PAGE, 6 * PAGE, PROT_READ) ||
		    mprotect(mem + (i + 3) * PAGE, 6 * PAGE, PROT_READ | PROT_WRITE))
			die("mprotect");
	page_out(mem, NR_PAGES);
}

static void unmapped(void)
{
	size_t i;

	write_all();
	for (i = 5; i < NR_PAGES / 2; i += FOLIO) {
		mem[i * PAGE] = 0;
		if (mmap(mem + i * PAGE, PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
			die("mmap");
		may_be_zero[i] = true;
	}
	reclaim();
}

/*
 * The end of the first folio and the begin of the second. What comes before them goes; but the
 * classic LRU has both on its active list, and leaves that alone until the memcg's statistics
 * are up to date: every two seconds.
 */
static void locked(void)
{
	int i;

	write_all();
	if (mlock(mem + (FOLIO - 4) * PAGE, 8 * PAGE))
		die("mlock");
	reclaim();
	for (i = 0; i < 200 && in_memory(0); i++) {
		usleep(50000);
		reclaim();
	}
}

/* So that the second folio is in two page tables. */
static void moved(void)
{
	char *to = map_pages(2 * PMD_PAGES, -1) + (PMD_PAGES - FOLIO - FOLIO / 2) * PAGE;

	write_all();
	if (mremap(mem, NR_PAGES * PAGE, NR_PAGES * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to)
		die("mremap");
	mem = to;
	reclaim();
}

static void make_lazyfree(void)
{
	write_all();
	if (madvise(mem, NR_PAGES * PAGE, MADV_FREE))
		die("MADV_FREE");
}

static void lazyfree(void)
{
	size_t i;

	make_lazyfree();
	for (i = 0; i < NR_PAGES; i++)
		may_be_zero[i] = true;
	page_out(mem, NR_PAGES);
}

/* The first page of each folio but one: stock meets it before it drops any, too. */
static void lazyfree_dirty(void)
{
	size_t i;

	make_lazyfree();
	clear_soft_dirty();
	for (i = 0; i < NR_PAGES; i++)
		may_be_zero[i] = i < FOLIO;
	for (i = FOLIO; i < NR_PAGES; i += FOLIO)
		write_page(i, 1);
	page_out(mem, NR_PAGES);
}

/* Somebody holds a reference to a page of the first two. */
static void lazyfree_held(void)
{
	struct iovec page = { mem + 3 * PAGE, PAGE }, other = { mem + (FOLIO + 9) * PAGE, PAGE };
	int ends[2];
	size_t i;

	make_lazyfree();
	clear_soft_dirty();
	for (i = 0; i < NR_PAGES; i++)
		may_be_zero[i] = i >= 2 * FOLIO;
	if (pipe(ends) || vmsplice(ends[1], &page, 1, 0) < 0 || vmsplice(ends[1], &other, 1, 0) < 0)
		die("vmsplice");
	page_out(mem, NR_PAGES);
}

static void pin_page(size_t i)
{
	struct pin_longterm_test pin = { .addr = (uintptr_t)(mem + i * PAGE), .size = PAGE };
	int fd = open("/sys/kernel/debug/gup_test", O_RDWR);

	if (fd < 0 || ioctl(fd, PIN_LONGTERM_TEST_START, &pin))
		die("gup_test");
}

static void pinned(void)
{
	write_all();
	pin_page(5);
	page_out(mem, NR_PAGES);
}

/*
 * Back from the swap cache, which they are still in if the device takes its time. Reclaim
 * looks for pins before it brings a folio there, so now it meets this one while it unmaps.
 */
static void pinned_again(void)
{
	int i;

	write_all();
	page_out(mem, NR_PAGES);
	check_all();
	/* the first: stock meets it before it unmaps any, too */
	pin_page(0);
	/* what the device is still writing stays in memory */
	for (i = 0; i < 1000; i++) {
		page_out(mem, NR_PAGES);
		if (!in_memory(FOLIO) && !in_memory(2 * FOLIO) && !in_memory(3 * FOLIO))
			break;
		usleep(10000);
	}
}

/* The device reads so many pages from the i-th on. Returns how often it missed an entry. */
static uint64_t device_read(int fd, size_t i, size_t nr)
{
	static char read[NR_PAGES * PAGE];
	struct hmm_dmirror_cmd cmd = {
		.addr = (uintptr_t)(mem + i * PAGE),
		.ptr = (uintptr_t)read,
		.npages = nr,
	};

	if (ioctl(fd, HMM_DMIRROR_READ, &cmd) || cmd.cpages != nr)
		die("HMM_DMIRROR_READ");
	return cmd.faults;
}

/* What reclaim takes from the process, an MMU notifier has to take from the device. */
static void mirrored(void)
{
	int fd = open("/dev/hmm_dmirror0", O_RDWR);
	uint64_t entries[NR_PAGES];
	size_t i, nr_taken = 0;

	if (fd < 0)
		die("/dev/hmm_dmirror0");
	write_all();
	device_read(fd, 0, NR_PAGES);
	if (device_read(fd, 0, NR_PAGES))
		quit(1, "the device keeps no entries");
	page_out(mem, NR_PAGES);
	read_entries(entries);
	for (i = 0; i < NR_PAGES; i++) {
		if (bit(entries[i], ENTRY_PRESENT))
			continue;
		nr_taken++;
		if (!device_read(fd, i, 1))
			quit(EXIT_DATA, "the device still reads page %zu, which is reclaimed", i);
	}
	if (!nr_taken)
		quit(1, "no page was reclaimed");
	close(fd);
}

static void map_file(int flags)
{
	int fd = open(file_name, O_RDWR | O_CREAT | O_TRUNC, 0600);
	char *buffer = map_pages(FOLIO, -1);
	size_t i;

	if (fd < 0)
		die(file_name);
	/* what one write brings is one folio */
	for (i = 0; i < NR_PAGES; i++) {
		fill_page(buffer + i % FOLIO * PAGE, i, 0);
		if (i % FOLIO == FOLIO - 1 &&
		    write(fd, buffer, FOLIO * PAGE) != (ssize_t)(FOLIO * PAGE))
			die(file_name);
	}
	if (fsync(fd))
		die("fsync");
	mem = mmap(mem, NR_PAGES * PAGE, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0);
	if (mem == MAP_FAILED)
		die("mmap");
	close(fd);
}

static void file_clean(void)
{
	map_file(MAP_SHARED);
	check_all();
	page_out(mem, NR_PAGES);
}

/* What was written has to reach the file, though nothing but an entry knew of it. */
static void file_dirty(void)
{
	size_t i;
	int fd;

	map_file(MAP_SHARED);
	check_all();
	for (i = 0; i < NR_PAGES / 2; i += 7)
		write_page(i, 1);
	page_out(mem, NR_PAGES);
	fd = open(file_name, O_RDWR);
	if (fd < 0 || fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		die(file_name);
	close(fd);
}

static void file_private(void)
{
	size_t i;

	map_file(MAP_PRIVATE);
	check_all();
	for (i = 0; i < NR_PAGES / 2; i += 7)
		write_page(i, 1);
	page_out(mem, NR_PAGES);
}

static void map_shmem(void)
{
	mem = mmap(mem, NR_PAGES * PAGE, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (mem == MAP_FAILED)
		die("mmap");
	write_all();
}

static void shmem(void)
{
	map_shmem();
	page_out(mem, NR_PAGES);
}

static void shmem_uffd(void)
{
	map_shmem();
	protect(userfault());
	page_out(mem, NR_PAGES);
}

static volatile bool held;

static void *reclaim_until_held(void *arg)
{
	(void)arg;
	pin_to_cpu(0);
	while (!held)
		memcg_reclaim(8 * NR_PAGES);
	return NULL;
}

/* Returns when a thread's reclaim is held up there. */
static pthread_t hold(int fd, char where)
{
	pthread_t thread;

	/* it may have the other for itself */
	pin_to_cpu(1);
	mirror_write(fd, where, mem);
	thread = start_thread(reclaim_until_held, NULL);
	mirror_write(fd, 'w', mem);
	held = true;
	return thread;
}

/* What was mlocked or protected when reclaim was about to unmap it is that afterwards. */
static void mlocked_meanwhile(void)
{
	int fd = mirror_open();
	pthread_t thread;
	size_t i;

	write_all();
	thread = hold(fd, 'u');
	if (mlock(mem, NR_PAGES * PAGE))
		die("mlock");
	mirror_write(fd, '-', mem);
	pthread_join(thread, NULL);
	for (i = 0; i < NR_PAGES; i++)
		if (!in_memory(i))
			quit(EXIT_DATA, "page %zu is mlocked, and not in memory", i);
}

static void protected_meanwhile(void)
{
	uint64_t entries[NR_PAGES];
	int fd = mirror_open();
	pthread_t thread;
	size_t i;

	map_shmem();
	thread = hold(fd, 'u');
	protect(userfault());
	mirror_write(fd, '-', mem);
	pthread_join(thread, NULL);
	read_entries(entries);
	for (i = 0; i < NR_PAGES; i++)
		if (bit(entries[i], ENTRY_WP) != is_protected(i))
			quit(EXIT_DATA, "the protection of page %zu is lost", i);
}

/* One folio, which reclaim asks about when it is mlocked. */
static void checked_meanwhile(void)
{
	int fd = mirror_open();
	pthread_t thread;
	size_t i;

	for (i = 0; i < NR_PAGES; i++)
		may_be_zero[i] = i >= FOLIO;
	for (i = 0; i < FOLIO; i++)
		write_page(i, 0);
	thread = hold(fd, 'c');
	if (mlock(mem, NR_PAGES * PAGE))
		die("mlock");
	pthread_join(thread, NULL);
}

/* What another MMU has accessed is old here. */
static void accessed_elsewhere(void)
{
	uint64_t nr_asked;
	int fd = mirror_open();

	mirror_write(fd, '-', mem);
	write_all();
	if (madvise(mem, NR_PAGES * PAGE, MADV_COLD))
		die("MADV_COLD");
	memcg_reclaim(NR_PAGES);
	if (read(fd, &nr_asked, sizeof(nr_asked)) != sizeof(nr_asked))
		die("mirror");
	if (nr_asked <= NR_PAGES)
		quit(1, "nobody has looked around: %lu pages asked about", nr_asked);
}

static const struct {
	const char *name;
	void (*prepare)(void);
} cases[] = {
	{ "dirty", dirty },
	{ "aged", aged },
	{ "soft-dirty", soft_dirty },
	{ "uffd", uffd },
	{ "forked", forked },
	{ "half-forked", half_forked },
	{ "sharers", sharers },
	{ "read-only", read_only },
	{ "unmapped", unmapped },
	{ "locked", locked },
	{ "moved", moved },
	{ "lazyfree", lazyfree },
	{ "lazyfree-dirty", lazyfree_dirty },
	{ "lazyfree-held", lazyfree_held },
	{ "pinned", pinned },
	{ "pinned-again", pinned_again },
	{ "mirrored", mirrored },
	{ "file-clean", file_clean },
	{ "file-dirty", file_dirty },
	{ "file-private", file_private },
	{ "shmem", shmem },
	{ "shmem-uffd", shmem_uffd },
	{ "mlocked-meanwhile", mlocked_meanwhile },
	{ "protected-meanwhile", protected_meanwhile },
	{ "checked-meanwhile", checked_meanwhile },
	{ "accessed-elsewhere", accessed_elsewhere },
};

static volatile bool spins;

static void *spin(void *arg)
{
	(void)arg;
	pin_to_cpu(1);
	while (true)
		spins = true;
	return NULL;
}

#define NR_CASES	(sizeof(cases) / sizeof(*cases))
#define NR_MIRROR_CASES	4UL	/* the last */

int main(int argc, char **argv)
{
	size_t i;

	if (argc != 4) {
		for (i = 0; i < NR_CASES - NR_MIRROR_CASES; i++)
			puts(cases[i].name);
		return 0;
	}
	/* With a wrong swap entry a page never comes back: its fault is taken again and again. */
	alarm(180);
	file_name = argv[2];
	for (i = 0; i < NR_CASES; i++)
		if (!strcmp(argv[1], cases[i].name))
			break;
	if (i == NR_CASES)
		quit(1, "no case '%s'", argv[1]);
	if (!strcmp(argv[3], "2")) {
		start_thread(spin, NULL);
		while (!spins)
			sched_yield();
	}
	/* what is added to the LRU by one CPU is on it when the same reclaims */
	pin_to_cpu(0);
	mem = map_pages(NR_PAGES, -1);
	cases[i].prepare();
	tell("reclaimed");
	check_all();
	tell("read");
	if (until_then[1])
		end_sharers();

	return 0;
}
