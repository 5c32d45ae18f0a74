// SPDX-License-Identifier: GPL-2.0
/*
 * Collects the events of vmscan_policy and pairs begin and end by their id.
 *
 * KernelShark hands over the records of one CPU after those of another, so a
 * begin and its end come in any order; they are paired when all have been read.
 */
#include <stdio.h>
#include <stdlib.h>

#include "spans.h"

#define SYSTEM	"vmscan_policy/"

static const char * const kind_names[VMP_NR_KINDS] = {
	[VMP_FLUSH_BATCH]	= "flush_batch",
	[VMP_SCAN]		= "scan",
	[VMP_AGING]		= "aging",
	[VMP_THROTTLE]		= "throttle",
};

const char *vmp_kind_name(enum vmp_kind kind)
{
	return kind_names[kind];
}

static int find_event(struct kshark_data_stream *stream, const char *kind, const char *end)
{
	char name[64];

	snprintf(name, sizeof(name), SYSTEM "%s%s", kind, end);
	return kshark_find_event_id(stream, name);
}

/**
 * vmp_stream_init - find the events of a stream
 * @vs: zeroed
 * @stream: the stream
 *
 * Return: whether there is anything to collect; if not, vmp_stream_free() is due all the same.
 */
bool vmp_stream_init(struct vmp_stream *vs, struct kshark_data_stream *stream)
{
	bool found = false;
	int i;

	for (i = 0; i < VMP_NR_KINDS; i++) {
		struct vmp_spans *spans = &vs->kind[i];

		spans->begin_event = find_event(stream, kind_names[i], "_begin");
		spans->end_event = find_event(stream, kind_names[i], "_end");
		spans->begins = kshark_init_data_container();
		spans->ends = kshark_init_data_container();
		if (!spans->begins || !spans->ends)
			return false;
		found |= spans->begin_event >= 0 || spans->end_event >= 0;
	}
	vs->switch_event = find_event(stream, "policy_switch", "");
	vs->switches = kshark_init_data_container();
	if (!vs->switches)
		return false;
	return found || vs->switch_event >= 0;
}

static void free_container(struct kshark_data_container *container)
{
	if (container)
		kshark_free_data_container(container);
}

/**
 * vmp_stream_free - free what was collected
 * @vs: from vmp_stream_init()
 */
void vmp_stream_free(struct vmp_stream *vs)
{
	int i;

	for (i = 0; i < VMP_NR_KINDS; i++) {
		free_container(vs->kind[i].begins);
		free_container(vs->kind[i].ends);
		free(vs->kind[i].span);
		free(vs->kind[i].latest);
	}
	free_container(vs->switches);
	free(vs->sw);
}

/**
 * vmp_collect - take an event
 * @vs: where to
 * @stream: the stream
 * @record: its record, as KernelShark gives it to an event handler
 * @entry: its entry, which lives as long as the data are loaded
 */
void vmp_collect(struct vmp_stream *vs, struct kshark_data_stream *stream,
		 void *record, struct kshark_entry *entry)
{
	int64_t id;
	int i;

	vs->prepared = false;
	if (entry->event_id == vs->switch_event) {
		kshark_data_container_append(vs->switches, entry, 0);
		return;
	}
	if (kshark_read_record_field_int(stream, record, "id", &id) < 0)
		return;
	for (i = 0; i < VMP_NR_KINDS; i++) {
		struct vmp_spans *spans = &vs->kind[i];

		if (entry->event_id == spans->begin_event)
			kshark_data_container_append(spans->begins, entry, id);
		else if (entry->event_id == spans->end_event)
			kshark_data_container_append(spans->ends, entry, id);
	}
}

static int compare(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

/* A module that is loaded anew counts its ids from the start, so time decides too. */
static int by_id(const void *a, const void *b)
{
	const struct kshark_data_field_int64 *x = *(struct kshark_data_field_int64 **)a;
	const struct kshark_data_field_int64 *y = *(struct kshark_data_field_int64 **)b;
	int order = compare(x->field, y->field);

	return order ? order : compare(x->entry->ts, y->entry->ts);
}

static int by_time(const void *a, const void *b)
{
	return compare(vmp_span_first(a)->ts, vmp_span_first(b)->ts);
}

static int switches_by_time(const void *a, const void *b)
{
	const struct vmp_switch *x = a, *y = b;

	return compare(x->entry->ts, y->entry->ts);
}

/* The library's own sort is by time, and breaks a container that is empty. */
static void sort_by_id(struct kshark_data_container *container)
{
	qsort(container->data, container->size, sizeof(container->data[0]), by_id);
	container->sorted = false;
}

static void add_span(struct vmp_spans *spans, const struct kshark_entry *begin,
		     const struct kshark_entry *end)
{
	spans->span[spans->nr].begin = begin;
	spans->span[spans->nr].end = end;
	spans->nr++;
	spans->nr_open += !end;
	spans->nr_headless += !begin;
}

/*
 * Walk both lists, sorted by id and time, and take what comes first. A begin whose
 * next event is its end makes a span; any other is open. An end with the id 0 says
 * that its begin was not recorded: no begin has that id.
 */
static void pair(struct vmp_spans *spans)
{
	struct kshark_data_field_int64 **begin = spans->begins->data;
	struct kshark_data_field_int64 **begins_end = begin + spans->begins->size;
	struct kshark_data_field_int64 **end = spans->ends->data;
	struct kshark_data_field_int64 **ends_end = end + spans->ends->size;

	while (begin < begins_end || end < ends_end) {
		if (begin == begins_end || (end < ends_end && by_id(end, begin) < 0)) {
			add_span(spans, NULL, (*end++)->entry);
		} else if (end == ends_end || (*begin)->field != (*end)->field ||
			   (begin + 1 < begins_end && by_id(begin + 1, end) < 0)) {
			add_span(spans, (*begin++)->entry, NULL);
		} else {
			add_span(spans, (*begin++)->entry, (*end++)->entry);
		}
	}
}

static bool prepare_spans(struct vmp_spans *spans)
{
	size_t most = spans->begins->size + spans->ends->size;
	const struct kshark_entry *latest = NULL;
	size_t i;

	free(spans->span);
	free(spans->latest);
	spans->nr = 0;
	spans->nr_open = 0;
	spans->nr_headless = 0;
	spans->span = calloc(most + 1, sizeof(spans->span[0]));
	spans->latest = calloc(most + 1, sizeof(spans->latest[0]));
	if (!spans->span || !spans->latest)
		return false;

	sort_by_id(spans->begins);
	sort_by_id(spans->ends);
	pair(spans);
	qsort(spans->span, spans->nr, sizeof(spans->span[0]), by_time);
	for (i = 0; i < spans->nr; i++) {
		const struct kshark_entry *last = vmp_span_last(&spans->span[i]);

		if (!latest || last->ts > latest->ts)
			latest = last;
		spans->latest[i] = latest;
	}
	return true;
}

/* The word after NAME= in the text of an event. */
static void copy_word(const char *text, const char *name, char *word, size_t size)
{
	const char *found = strstr(text, name);
	size_t length = 0;

	if (found) {
		found += strlen(name);
		length = strcspn(found, " \n");
		if (length >= size)
			length = size - 1;
		memcpy(word, found, length);
	}
	word[length] = '\0';
}

/**
 * vmp_label - what a policy switch is called
 * @sw: its label is set
 * @info: the text of its event
 */
void vmp_label(struct vmp_switch *sw, const char *info)
{
	char point[16], from[16], to[16], settings[21];
	bool of_cgroup;

	copy_word(info, " point=", point, sizeof(point));
	copy_word(info, " from=", from, sizeof(from));
	copy_word(info, " to=", to, sizeof(to));
	/* Missing in recordings of older modules, 0 for the machine's settings. */
	copy_word(info, " settings=", settings, sizeof(settings));
	of_cgroup = settings[0] && strcmp(settings, "0");
	snprintf(sw->label, sizeof(sw->label), "%s: %s -> %s%s%s", point, from, to,
		 of_cgroup ? " of cgroup " : "", of_cgroup ? settings : "");
}

static void set_label(struct vmp_switch *sw)
{
	char *info = kshark_get_info(sw->entry);

	if (info)
		vmp_label(sw, info);
	free(info);
}

static bool prepare_switches(struct vmp_stream *vs)
{
	size_t i;

	free(vs->sw);
	vs->nr_switches = 0;
	vs->sw = calloc(vs->switches->size + 1, sizeof(vs->sw[0]));
	if (!vs->sw)
		return false;
	for (i = 0; i < (size_t)vs->switches->size; i++) {
		vs->sw[i].entry = vs->switches->data[i]->entry;
		set_label(&vs->sw[i]);
	}
	vs->nr_switches = vs->switches->size;
	qsort(vs->sw, vs->nr_switches, sizeof(vs->sw[0]), switches_by_time);
	return true;
}

/**
 * vmp_prepare - pair what was collected
 * @vs: the stream
 *
 * Costs nothing when nothing was collected since it was called last.
 *
 * Return: false when there is no memory for it.
 */
bool vmp_prepare(struct vmp_stream *vs)
{
	int i;

	if (vs->prepared)
		return true;
	for (i = 0; i < VMP_NR_KINDS; i++) {
		if (!prepare_spans(&vs->kind[i]))
			return false;
	}
	vs->prepared = prepare_switches(vs);
	return vs->prepared;
}

/**
 * vmp_first_at - where to start drawing
 * @spans: prepared
 * @time: the left edge
 *
 * Return: the number of the first span that may reach beyond @time.
 */
size_t vmp_first_at(const struct vmp_spans *spans, int64_t time)
{
	size_t low = 0, high = spans->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (spans->latest[middle]->ts < time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
