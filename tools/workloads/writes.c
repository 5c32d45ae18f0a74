// SPDX-License-Identifier: GPL-2.0
/*
 * Writes a small file in memory, 1 KiB at a time, over and over. Each write marks its folio
 * as accessed. The progress file has the writes done so far.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BLOCK	1024
#define SIZE	(64 * BLOCK)
#define REPORT	500

static void die(const char *what)
{
	perror(what);
	exit(1);
}

int main(int argc, char **argv)
{
	static const char block[BLOCK];
	unsigned long done;
	char text[24];
	int file, progress, length;

	if (argc != 3 || strcmp(argv[1], "--progress")) {
		fprintf(stderr, "usage: writes --progress FILE\n");
		return 2;
	}
	progress = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (progress < 0)
		die(argv[2]);
	file = memfd_create("writes", 0);
	if (file < 0)
		die("memfd_create");
	for (done = 0;; done++) {
		if (pwrite(file, block, BLOCK, done * BLOCK % SIZE) != BLOCK)
			die("pwrite");
		if (done % REPORT)
			continue;
		length = snprintf(text, sizeof(text), "%lu\n", done);
		if (pwrite(progress, text, length, 0) != length)
			die("the progress file");
	}
}
