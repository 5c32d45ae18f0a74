// SPDX-License-Identifier: GPL-2.0
/*
 * KernelShark's entry points: one struct vmp_stream for each stream that has events
 * of vmscan_policy.
 */
#include <stdlib.h>

#include "draw.h"
#include "spans.h"

typedef int (*change_handler)(struct kshark_data_stream *stream, int event,
			      kshark_plugin_event_handler_func func);

static void free_context(struct vmp_stream *vs)
{
	vmp_stream_free(vs);
	free(vs);
}

KS_DEFINE_PLUGIN_CONTEXT(struct vmp_stream, free_context);

struct vmp_stream *vmp_stream_of(int sd)
{
	return __get_context(sd);
}

static void take_event(struct kshark_data_stream *stream, void *record, struct kshark_entry *entry)
{
	struct vmp_stream *vs = vmp_stream_of(stream->stream_id);

	if (vs)
		vmp_collect(vs, stream, record, entry);
}

static void change_handlers(struct vmp_stream *vs, struct kshark_data_stream *stream,
			    change_handler change)
{
	int i;

	for (i = 0; i < VMP_NR_KINDS; i++) {
		if (vs->kind[i].begin_event >= 0)
			change(stream, vs->kind[i].begin_event, take_event);
		if (vs->kind[i].end_event >= 0)
			change(stream, vs->kind[i].end_event, take_event);
	}
	if (vs->switch_event >= 0)
		change(stream, vs->switch_event, take_event);
}

/* Called before the records of a stream are read; returns 0 if there is nothing to do. */
int KSHARK_PLOT_PLUGIN_INITIALIZER(struct kshark_data_stream *stream)
{
	struct vmp_stream *vs = __init(stream->stream_id);

	if (!vs)
		return 0;
	if (!vmp_stream_init(vs, stream)) {
		__close(stream->stream_id);
		return 0;
	}
	change_handlers(vs, stream, kshark_register_event_handler);
	kshark_register_draw_handler(stream, vmp_draw);
	return 1;
}

/* Called when a stream is closed, or the plugin switched off for it. */
int KSHARK_PLOT_PLUGIN_DEINITIALIZER(struct kshark_data_stream *stream)
{
	struct vmp_stream *vs = vmp_stream_of(stream->stream_id);

	if (!vs)
		return 0;
	change_handlers(vs, stream, kshark_unregister_event_handler);
	kshark_unregister_draw_handler(stream, vmp_draw);
	__close(stream->stream_id);
	return 1;
}

static void __attribute__((destructor)) unload(void)
{
	__close(KS_PLUGIN_CONTEXT_FREE);
}
