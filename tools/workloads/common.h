/* SPDX-License-Identifier: GPL-2.0 */
/* What the workloads share: errors, numbers of the command line, the progress file. */
#ifndef WORKLOADS_COMMON_H
#define WORKLOADS_COMMON_H

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REPORT_USEC	200000

static inline __attribute__((format(printf, 1, 2), noreturn))
void quit(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	_exit(1);
}

#define die(what) quit("%s: %s", what, strerror(errno))

static inline __attribute__((noreturn)) void help(const char *usage)
{
	fputs(usage, stdout);
	exit(0);
}

/* What getopt_long() has just returned '?' for. */
static inline __attribute__((noreturn)) void wrong_option(char **argv)
{
	quit("wrong option '%s': see --help", argv[optind - 1]);
}

/* All is options: nothing may come after them. */
static inline void end_options(int argc, char **argv)
{
	if (optind < argc)
		quit("unknown argument '%s': see --help", argv[optind]);
}

/* A number from min to max; with units, K, M or G may follow it. */
static inline size_t parse_number(const char *option, const char *text, bool units,
				  size_t min, size_t max)
{
	const char *letters = "KMG", *letter;
	unsigned long value = 0;
	int shift = 0;
	char *end = (char *)text;

	errno = 0;
	if (*text >= '0' && *text <= '9')
		value = strtoul(text, &end, 10);
	if (end != text && units && *end) {
		letter = strchr(letters, *end);
		if (letter) {
			shift = 10 * (letter - letters + 1);
			end++;
		}
	}
	if (end == text || *end || errno || value > max >> shift ||
	    value << shift < min)
		quit("--%s '%s': give a number from %zu to %zu%s", option, text,
		     min, max, units ? " bytes, K, M or G may follow it" : "");
	return value << shift;
}

/* Replace the file as a whole, so that nobody reads half a number. */
static inline void write_progress(const char *path, double count)
{
	char *fresh;
	FILE *out;

	if (!path)
		return;
	if (asprintf(&fresh, "%s.new", path) < 0)
		die("asprintf");
	out = fopen(fresh, "w");
	if (!out || fprintf(out, "%.3f\n", count) < 0 || fclose(out) || rename(fresh, path))
		die(path);
	free(fresh);
}

/* Marsaglia's xorshift; the state is not 0. */
static inline uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

#endif
