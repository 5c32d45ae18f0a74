/* SPDX-License-Identifier: GPL-2.0 */
/* Opens a recording with the plugin, as KernelShark does, but without a display. */
#ifndef VMP_RECORDING_H
#define VMP_RECORDING_H

#include "spans.h"

/**
 * struct recording - an open recording
 * @context: of the library
 * @plugin: the plugin
 * @entries: of all streams, sorted by time
 * @nr_entries: number of entries
 * @stream_of: the plugin's vmp_stream_of()
 * @prepare: the plugin's vmp_prepare()
 * @kind_name: the plugin's vmp_kind_name()
 */
struct recording {
	struct kshark_context *context;
	struct kshark_plugin_list *plugin;
	struct kshark_entry **entries;
	ssize_t nr_entries;
	struct vmp_stream *(*stream_of)(int sd);
	bool (*prepare)(struct vmp_stream *vs);
	const char *(*kind_name)(enum vmp_kind kind);
};

void recording_open(struct recording *rec, const char *program, const char *file,
		    const char *plugin);
void recording_close(struct recording *rec);

#endif
