// SPDX-License-Identifier: GPL-2.0
/*
 * Fills memory, or writes and maps a file, and has it reclaimed by MADV_PAGEOUT, again and
 * again; with --limit, the cgroup's limit is to reclaim it. The folios are as large as the
 * kernel makes them for anonymous memory, and as one write for a file. The progress file has
 * the pages that were filled so far.
 */
#include <fcntl.h>
#include <sys/mman.h>

#include "common.h"

#define PAGE	4096UL
#define ALIGN	(2UL << 20)

static size_t size = 16UL << 20, folio = 64UL << 10, step = 1UL << 20;
static const char *file;
static bool by_limit;
static int progress;

static char *reserve(void)
{
	char *mem = mmap(NULL, size + ALIGN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mem == MAP_FAILED)
		die("mmap");
	return (char *)(((unsigned long)mem + ALIGN - 1) & ~(ALIGN - 1));
}

static void map(char *mem, size_t length, int flags, int fd)
{
	if (mmap(mem, length, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0) != mem)
		die("mmap");
}

static void reclaim(char *mem)
{
	static size_t nr_pages;
	char text[24];
	int length;

	if (!by_limit && madvise(mem, step, MADV_PAGEOUT))
		die("MADV_PAGEOUT");
	nr_pages += step / PAGE;
	length = snprintf(text, sizeof(text), "%zu\n", nr_pages);
	if (pwrite(progress, text, length, 0) != length)
		die("the progress file");
}

static void fill(char *mem, bool lazyfree)
{
	size_t i;

	/* Anew: what was paged out would come back page by page. */
	map(mem, step, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	for (i = 0; i < step; i += PAGE)
		*(volatile unsigned long *)(mem + i) = i + 1;
	if (lazyfree && madvise(mem, step, MADV_FREE))
		die("MADV_FREE");
}

/* Clean, and used. */
static void write_and_read(char *mem, const char *buffer, int fd, size_t from)
{
	size_t i;

	for (i = from; i < from + step; i += folio)
		if (pwrite(fd, buffer, folio, i) != (ssize_t)folio)
			die(file);
	if (sync_file_range(fd, from, step, SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_BEFORE |
			    SYNC_FILE_RANGE_WAIT_AFTER))
		die(file);
	for (i = from; i < from + step; i += PAGE)
		(void)*(volatile unsigned long *)(mem + i);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "kind", required_argument, NULL, 'k' },
		{ "folio", required_argument, NULL, 'o' },
		{ "size", required_argument, NULL, 's' },
		{ "file", required_argument, NULL, 'f' },
		{ "limit", no_argument, NULL, 'l' },
		{ "progress", required_argument, NULL, 'p' },
		{ }
	};
	const char *kind = "", *count_in = "/dev/null";
	char *mem, *buffer;
	size_t at;
	int option, fd = -1;

	while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0)
		switch (option) {
		case 'k':
			kind = optarg;
			break;
		case 'o':
			folio = strtoul(optarg, NULL, 0) << 10;
			break;
		case 's':
			size = strtoul(optarg, NULL, 0) << 20;
			break;
		case 'f':
			file = optarg;
			break;
		case 'l':
			by_limit = true;
			break;
		case 'p':
			count_in = optarg;
			break;
		default:
			return 2;
		}
	if ((strcmp(kind, "lazyfree") && strcmp(kind, "anon") && strcmp(kind, "file")) ||
	    !size || folio < PAGE || size % folio || !strcmp(kind, "file") != !!file) {
		fprintf(stderr, "usage: large --kind lazyfree|anon|file [--folio KIB] [--size MIB] "
			"[--limit] [--progress FILE] [--file FILE]\n"
			"A size is a multiple of the folios', which is 4 at least; a file needs its name.\n");
		return 2;
	}
	progress = open(count_in, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (progress < 0)
		die(count_in);
	step = folio > step ? folio : step;
	mem = reserve();
	buffer = calloc(1, folio);
	if (!buffer)
		die("calloc");
	if (file) {
		fd = open(file, O_RDWR | O_CREAT | O_TRUNC, 0600);
		if (fd < 0 || ftruncate(fd, size))
			die(file);
		map(mem, size, MAP_SHARED, fd);
	}
	for (at = 0; true; at = (at + step) % size) {
		if (file)
			write_and_read(mem, buffer, fd, at);
		else
			fill(mem + at, !strcmp(kind, "lazyfree"));
		reclaim(mem + at);
	}
}
