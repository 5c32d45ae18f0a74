// SPDX-License-Identifier: GPL-2.0
/*
 * count PLUGIN FILE: says how many spans of each kind the plugin finds in a recording,
 * to be compared with what trace-cmd counts, and which of them are not whole. KernelShark's
 * library writes a line of its own before.
 */
#include <stdio.h>
#include <stdlib.h>

#include "recording.h"

static void print_alone(const struct kshark_entry *entry)
{
	char *info = kshark_get_info(entry);

	printf("  %.6f %s\n", entry->ts / 1e9, info ? info : "");
	free(info);
}

static void print_stream(struct recording *rec, struct vmp_stream *vs)
{
	size_t number;
	int i;

	for (i = 0; i < VMP_NR_KINDS; i++) {
		struct vmp_spans *spans = &vs->kind[i];
		size_t whole = spans->nr - spans->nr_open - spans->nr_headless;

		printf("%s %zu spans, %zu open, %zu without begin\n", rec->kind_name(i), whole,
		       spans->nr_open, spans->nr_headless);
		for (number = 0; number < spans->nr; number++)
			if (!spans->span[number].begin || !spans->span[number].end)
				print_alone(vmp_span_first(&spans->span[number]));
	}
	printf("policy_switch %zu\n", vs->nr_switches);
	for (i = 0; i < (int)vs->nr_switches; i++)
		printf("  %d %.6f %s\n", i + 1, vs->sw[i].entry->ts / 1e9, vs->sw[i].label);
}

int main(int argc, char **argv)
{
	struct recording rec;
	int found = 0;
	int *streams;
	int i;

	if (argc != 3) {
		fprintf(stderr, "usage: count PLUGIN FILE\n");
		return 1;
	}
	recording_open(&rec, "count", argv[2], argv[1]);
	streams = kshark_all_streams(rec.context);
	for (i = 0; i < rec.context->n_streams; i++) {
		struct vmp_stream *vs = rec.stream_of(streams[i]);

		if (!vs || !rec.prepare(vs))
			continue;
		if (found++)
			printf("stream %d\n", streams[i]);
		print_stream(&rec, vs);
	}
	free(streams);
	recording_close(&rec);
	return 0;
}
