// SPDX-License-Identifier: GPL-2.0
/*
 * Writes a small file in memory, 1 KiB at a time, over and over. Each write marks its folio
 * as accessed. After the first round its folios are on the LRU, and not in a batch of those that
 * come to it, where a mark would be another case. The progress file has the writes done so far.
 */
#include "common.h"
#include <fcntl.h>
#include <sys/mman.h>

#define BLOCK	1024
#define REPORT	500
#define OTHERS	(1UL << 20)	/* bytes, of far more pages than a batch of a CPU has */

static size_t size = 64 * BLOCK;
static const char *count_in;

static const char usage[] =
"usage: writes [--size KIB] --progress FILE\n"
"Write KIB of a file in memory, 64 unless given, 1 KiB at a time, again and again\n"
"until killed. FILE has the writes so far.\n";

static void parse_options(int argc, char **argv)
{
	static const struct option options[] = {
		{ "size", required_argument, NULL, 's' },
		{ "progress", required_argument, NULL, 'p' },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (option) {
		case 's':
			size = parse_number("size", optarg, false, 1, 1UL << 20) * BLOCK;
			break;
		case 'p':
			count_in = optarg;
			break;
		case 'h':
			help(usage);
		default:
			wrong_option(argv);
		}
	end_options(argc, argv);
	if (!count_in)
		quit("--progress is missing: see --help");
}

static void fill_batches(void)
{
	char *others = mmap(NULL, OTHERS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (others == MAP_FAILED)
		die("mmap");
	madvise(others, OTHERS, MADV_NOHUGEPAGE);
	memset(others, 1, OTHERS);
	munmap(others, OTHERS);
}

int main(int argc, char **argv)
{
	static const char block[BLOCK];
	unsigned long done;
	char text[24];
	int file, progress, length;

	parse_options(argc, argv);
	progress = open(count_in, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (progress < 0)
		die(count_in);
	file = memfd_create("writes", 0);
	if (file < 0)
		die("memfd_create");
	for (done = 0;; done++) {
		if (pwrite(file, block, BLOCK, done * BLOCK % size) != BLOCK)
			die("pwrite");
		if (done * BLOCK == size - BLOCK)
			fill_batches();
		if (done % REPORT)
			continue;
		length = snprintf(text, sizeof(text), "%lu\n", done);
		if (pwrite(progress, text, length, 0) != length)
			die("the progress file");
	}
}
