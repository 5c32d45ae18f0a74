// SPDX-License-Identifier: GPL-2.0
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "libkshark-tepdata.h"

#include "recording.h"

static const char *program_name;

static _Noreturn void die(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s: %s\n", program_name, what, why);
	exit(1);
}

static void *find(struct recording *rec, const char *symbol)
{
	void *found = dlsym(rec->plugin->handle, symbol);

	if (!found)
		die(rec->plugin->file, "is not the plugin of vmscan-policy");
	return found;
}

static void load_plugin(struct recording *rec, const char *file)
{
	rec->plugin = kshark_register_plugin(rec->context, "vmscan_policy", file);
	if (!rec->plugin || !rec->plugin->handle || !rec->plugin->process_interface)
		die(file, "can't be loaded as a plugin of KernelShark");
	rec->stream_of = find(rec, "vmp_stream_of");
	rec->prepare = find(rec, "vmp_prepare");
	rec->kind_name = find(rec, "vmp_kind_name");
}

/**
 * recording_open - open a recording and load it through the plugin
 * @rec: filled in
 * @program: name for messages
 * @file: as trace-cmd wrote it
 * @plugin: the plugin's file
 *
 * Exits with one sentence when that fails.
 */
void recording_open(struct recording *rec, const char *program, const char *file,
		    const char *plugin)
{
	struct kshark_data_stream *stream;
	bool found = false;
	int *streams;
	int sd, i;

	program_name = program;
	memset(rec, 0, sizeof(*rec));
	if (!kshark_instance(&rec->context))
		die(file, "out of memory");
	sd = kshark_open(rec->context, file);
	if (sd < 0)
		die(file, "is not a recording of trace-cmd");
	stream = kshark_get_data_stream(rec->context, sd);
	if (!kshark_is_tep(stream))
		die(file, "is not a recording of trace-cmd");
	kshark_tep_init_all_buffers(rec->context, sd);
	load_plugin(rec, plugin);

	streams = kshark_all_streams(rec->context);
	for (i = 0; i < rec->context->n_streams; i++) {
		stream = kshark_get_data_stream(rec->context, streams[i]);
		kshark_register_plugin_to_stream(stream, rec->plugin->process_interface, true);
		kshark_handle_all_dpis(stream, KSHARK_PLUGIN_INIT);
		if (rec->stream_of(streams[i]))
			found = true;
	}
	free(streams);
	if (!found)
		die(file, "holds no events of vmscan_policy");
	rec->nr_entries = kshark_load_all_entries(rec->context, &rec->entries);
	if (rec->nr_entries <= 0)
		die(file, "holds no events");
}

/**
 * recording_close - free all of a recording and unload the plugin
 * @rec: from recording_open()
 */
void recording_close(struct recording *rec)
{
	ssize_t i;

	for (i = 0; i < rec->nr_entries; i++)
		free(rec->entries[i]);
	free(rec->entries);
	kshark_close_all(rec->context);
	kshark_free(rec->context);
}
