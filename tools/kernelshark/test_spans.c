// SPDX-License-Identifier: GPL-2.0
/* Checks how begin and end events are paired, and switches called; silent if all is well. */
#include <stdio.h>
#include <stdlib.h>

#include "spans.h"

#define MAX_EVENTS	8

struct event {
	int64_t time;
	int64_t id;
};

/* Spans are written as begin-end, by their times; a missing one is left out. */
struct test {
	const char *name;
	struct event begins[MAX_EVENTS];
	struct event ends[MAX_EVENTS];
	const char *spans;
};

static const struct test tests[] = {
	{ "none", { }, { }, "" },
	{ "one", { { 1, 7 } }, { { 2, 7 } }, "1-2 " },
	{ "nested, out of order", { { 5, 8 }, { 1, 7 } }, { { 9, 7 }, { 6, 8 } }, "1-9 5-6 " },
	{ "no end", { { 1, 7 }, { 3, 8 } }, { { 4, 8 } }, "1- 3-4 " },
	{ "no begin", { { 3, 8 } }, { { 2, 7 }, { 4, 8 } }, "-2 3-4 " },
	{ "neither belongs to the other", { { 1, 7 } }, { { 4, 9 } }, "1- -4 " },
	{ "begin not traced", { { 3, 8 } }, { { 2, 0 }, { 4, 8 }, { 5, 0 } }, "-2 3-4 -5 " },
	{ "all at one time", { { 3, 8 }, { 3, 9 } }, { { 3, 9 }, { 3, 8 } }, "3-3 3-3 " },
	{ "an id again", { { 1, 7 }, { 5, 7 } }, { { 2, 7 }, { 6, 7 } }, "1-2 5-6 " },
	{ "an id again, no end before", { { 1, 7 }, { 5, 7 } }, { { 6, 7 } }, "1- 5-6 " },
	{ "an id again, no begin after", { { 1, 7 } }, { { 2, 7 }, { 6, 7 } }, "1-2 -6 " },
};

static struct kshark_entry entries[2 * MAX_EVENTS];
static size_t nr_entries;

static void append(struct kshark_data_container *container, const struct event *events)
{
	int i;

	for (i = 0; i < MAX_EVENTS && events[i].time; i++) {
		struct kshark_entry *entry = &entries[nr_entries++];

		entry->ts = events[i].time;
		kshark_data_container_append(container, entry, events[i].id);
	}
}

static void init(struct vmp_stream *vs)
{
	int i;

	memset(vs, 0, sizeof(*vs));
	vs->switches = kshark_init_data_container();
	for (i = 0; i < VMP_NR_KINDS; i++) {
		vs->kind[i].begins = kshark_init_data_container();
		vs->kind[i].ends = kshark_init_data_container();
	}
}

static void describe(const struct vmp_spans *spans, char *text, size_t size)
{
	size_t used = 0;
	size_t i;

	text[0] = '\0';
	for (i = 0; i < spans->nr; i++) {
		const struct vmp_span *span = &spans->span[i];

		if (span->begin)
			used += snprintf(text + used, size - used, "%ld", (long)span->begin->ts);
		used += snprintf(text + used, size - used, "-");
		if (span->end)
			used += snprintf(text + used, size - used, "%ld", (long)span->end->ts);
		used += snprintf(text + used, size - used, " ");
	}
}

/* A window has to be searched from the first span on that reaches into it. */
static bool first_is_right(const struct vmp_spans *spans)
{
	int64_t time;

	for (time = 0; time < 12; time++) {
		size_t first = vmp_first_at(spans, time);
		size_t right = 0;

		while (right < spans->nr && vmp_span_last(&spans->span[right])->ts < time)
			right++;
		if (first != right)
			return false;
	}
	return true;
}

static bool run(const struct test *test)
{
	struct vmp_spans *spans;
	struct vmp_stream vs;
	char text[128];
	bool good;

	nr_entries = 0;
	init(&vs);
	spans = &vs.kind[VMP_AGING];
	append(spans->begins, test->begins);
	append(spans->ends, test->ends);
	good = vmp_prepare(&vs);
	describe(spans, text, sizeof(text));
	if (strcmp(text, test->spans) || !first_is_right(spans))
		good = false;
	if (!good)
		fprintf(stderr, "test_spans: %s: '%s' instead of '%s'\n", test->name, text,
			test->spans);
	vmp_stream_free(&vs);
	return good;
}

#define SWITCH(settings) \
	"policy=batch set=3 cgroup=57 nid=-1 " settings "point=flush from=stock to=batch pid=9\n"

static const struct {
	const char *info;
	const char *label;
} switches[] = {
	{ SWITCH(""), "flush: stock -> batch" },
	{ SWITCH("settings=0 "), "flush: stock -> batch" },
	{ SWITCH("settings=18446744073709551615 "),
	  "flush: stock -> batch of cgroup 18446744073709551615" },
};

static bool label_is_right(const char *info, const char *label)
{
	struct vmp_switch sw;

	vmp_label(&sw, info);
	if (strcmp(sw.label, label) == 0)
		return true;
	fprintf(stderr, "test_spans: '%s' instead of '%s'\n", sw.label, label);
	return false;
}

int main(void)
{
	bool good = true;
	size_t i;

	for (i = 0; i < sizeof(switches) / sizeof(switches[0]); i++)
		good &= label_is_right(switches[i].info, switches[i].label);

	for (i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		good &= run(&tests[i]);
	return !good;
}
