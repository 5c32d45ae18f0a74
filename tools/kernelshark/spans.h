/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The spans of a recording of the trace system vmscan_policy: what begins with
 * one event and ends with another one, and the policy switches. It is collected
 * from the records of one stream while KernelShark reads them, and knows nothing
 * of drawing.
 */
#ifndef VMP_SPANS_H
#define VMP_SPANS_H

#ifdef __cplusplus
#include <cstdint>
extern "C" {
#endif

#include "libkshark.h"

enum vmp_kind {
	VMP_FLUSH_BATCH,
	VMP_SCAN,
	VMP_AGING,
	VMP_THROTTLE,
	VMP_NR_KINDS
};

/**
 * struct vmp_span - one span
 * @begin: NULL if it was not recorded
 * @end: NULL if it was not recorded, or never was: a throttle that did not sleep
 */
struct vmp_span {
	const struct kshark_entry *begin;
	const struct kshark_entry *end;
};

/**
 * struct vmp_spans - all spans of one kind
 * @begins: begin events; the field is the id
 * @ends: end events; the field is the id
 * @span: sorted by time, valid after vmp_prepare()
 * @latest: of each span, the latest entry of it and of those before it
 * @nr: number of spans, whole or not
 * @nr_open: of these, those without an end
 * @nr_headless: of these, those without a begin
 * @begin_event: event id in this stream
 * @end_event: event id in this stream
 */
struct vmp_spans {
	struct kshark_data_container *begins;
	struct kshark_data_container *ends;
	struct vmp_span *span;
	const struct kshark_entry **latest;
	size_t nr;
	size_t nr_open;
	size_t nr_headless;
	int begin_event;
	int end_event;
};

/**
 * struct vmp_switch - one policy switch
 * @entry: its event
 * @label: such as "flush: stock -> batch", and of a cgroup's settings its id
 */
struct vmp_switch {
	const struct kshark_entry *entry;
	char label[88];
};

/**
 * struct vmp_stream - what is known of one stream
 * @kind: the spans
 * @switches: events of switches
 * @sw: sorted by time, valid after vmp_prepare()
 * @nr_switches: number of switches
 * @switch_event: event id in this stream
 * @prepared: nothing was collected since vmp_prepare()
 * @last_base: where the row that was drawn last is, in pixels
 */
struct vmp_stream {
	struct vmp_spans kind[VMP_NR_KINDS];
	struct kshark_data_container *switches;
	struct vmp_switch *sw;
	size_t nr_switches;
	int switch_event;
	bool prepared;
	int last_base;
};

/* What the plugin exports besides KernelShark's entry points, for the check. */
struct vmp_stream *vmp_stream_of(int sd);
const char *vmp_kind_name(enum vmp_kind kind);

bool vmp_stream_init(struct vmp_stream *vs, struct kshark_data_stream *stream);
void vmp_stream_free(struct vmp_stream *vs);
void vmp_collect(struct vmp_stream *vs, struct kshark_data_stream *stream,
		 void *record, struct kshark_entry *entry);
bool vmp_prepare(struct vmp_stream *vs);
void vmp_label(struct vmp_switch *sw, const char *info);
size_t vmp_first_at(const struct vmp_spans *spans, int64_t time);

static inline const struct kshark_entry *vmp_span_first(const struct vmp_span *span)
{
	return span->begin ? span->begin : span->end;
}

static inline const struct kshark_entry *vmp_span_last(const struct vmp_span *span)
{
	return span->end ? span->end : span->begin;
}

#ifdef __cplusplus
}
#endif

#endif
