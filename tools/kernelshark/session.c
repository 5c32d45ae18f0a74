// SPDX-License-Identifier: GPL-2.0
/*
 * session PLUGIN FILE SESSION TASKS SWITCH MS: writes a session for kernelshark -s.
 *
 * It shows all CPUs, the TASKS tasks that have the most events of vmscan_policy, and
 * of the events only those that belong to the picture: MS milliseconds around the
 * policy switch number SWITCH, from 1, or all of the recording if that is 0.
 *
 * The library's own functions write what it has functions for. Which rows there are and
 * how large the window is only the program KernelShark writes, so that is added here.
 */
#include <stdio.h>
#include <stdlib.h>

#include "libkshark-model.h"

#include "recording.h"

#define BINS	1024		/* any number: KernelShark takes one for each pixel */
#define MAX_PID	(4 << 20)

/* Shown besides all of vmscan_policy: what reclaims, and what tools/ab says of its slices. */
static const char * const other_events[] = {
	"vmscan/mm_vmscan_direct_reclaim_begin",
	"vmscan/mm_vmscan_direct_reclaim_end",
	"vmscan/mm_vmscan_memcg_reclaim_begin",
	"vmscan/mm_vmscan_memcg_reclaim_end",
	"vmscan/mm_vmscan_kswapd_wake",
	"vmscan/mm_vmscan_kswapd_sleep",
	"oom/mark_victim",
	"ftrace/print",
};

struct task {
	int pid;
	size_t events;
};

static bool is_ours(struct kshark_data_stream *stream, int event)
{
	char *name = kshark_event_from_id(stream->stream_id, event);
	bool ours = name && strncmp(name, "vmscan_policy/", strlen("vmscan_policy/")) == 0;

	free(name);
	return ours;
}

static void show_events(struct recording *rec, struct kshark_data_stream *stream)
{
	int *events = kshark_get_all_event_ids(stream);
	size_t i;

	for (i = 0; events && i < (size_t)stream->n_events; i++) {
		if (is_ours(stream, events[i]))
			kshark_filter_add_id(rec->context, stream->stream_id, KS_SHOW_EVENT_FILTER,
					     events[i]);
	}
	free(events);
	for (i = 0; i < sizeof(other_events) / sizeof(other_events[0]); i++) {
		int event = kshark_find_event_id(stream, other_events[i]);

		if (event >= 0)
			kshark_filter_add_id(rec->context, stream->stream_id, KS_SHOW_EVENT_FILTER,
					     event);
	}
}

static bool is_shown(struct recording *rec, const struct kshark_entry *entry)
{
	struct kshark_data_stream *stream = kshark_get_data_stream(rec->context, entry->stream_id);

	return kshark_hash_id_find(stream->show_event_filter, entry->event_id);
}

static int by_events(const void *a, const void *b)
{
	const struct task *x = a, *y = b;

	return x->events < y->events ? 1 : x->events > y->events ? -1 : x->pid - y->pid;
}

static struct json_object *task_plots(struct recording *rec, int sd, size_t most)
{
	struct task *tasks = calloc(MAX_PID, sizeof(*tasks));
	struct json_object *plots = json_object_new_array();
	ssize_t i;

	for (i = 0; tasks && i < rec->nr_entries; i++) {
		const struct kshark_entry *entry = rec->entries[i];
		bool counts = entry->stream_id == sd && entry->pid > 0 && entry->pid < MAX_PID;

		if (counts && is_shown(rec, entry)) {
			tasks[entry->pid].pid = entry->pid;
			tasks[entry->pid].events++;
		}
	}
	if (tasks)
		qsort(tasks, MAX_PID, sizeof(*tasks), by_events);
	for (i = 0; tasks && i < (ssize_t)most && tasks[i].events; i++)
		json_object_array_add(plots, json_object_new_int(tasks[i].pid));
	free(tasks);
	return plots;
}

/* Plugins of KernelShark's own that it would use without a session. */
static void add_builtin_plugins(struct json_object *stream)
{
	static const char * const names[] = { "missed_events", "sched_events" };
	struct json_object *plugins, *list;
	size_t i;

	json_object_object_get_ex(stream, "plugins", &plugins);
	json_object_object_get_ex(plugins, "registered", &list);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct json_object *plugin = json_object_new_array();

		json_object_array_add(plugin, json_object_new_string(names[i]));
		json_object_array_add(plugin, json_object_new_boolean(true));
		json_object_array_add(list, plugin);
	}
}

static struct json_object *cpu_plots(struct kshark_data_stream *stream)
{
	struct json_object *plots = json_object_new_array();
	int cpu;

	for (cpu = 0; cpu < stream->n_cpus; cpu++)
		json_object_array_add(plots, json_object_new_int(cpu));
	return plots;
}

/* Which rows there are is a part of the stream. */
static void complete_streams(struct recording *rec, struct kshark_config_doc *session, size_t most)
{
	struct json_object *streams, *stream, *id;
	size_t i;

	json_object_object_get_ex(session->conf_doc, KS_DSTREAMS_NAME, &streams);
	for (i = 0; i < json_object_array_length(streams); i++) {
		int sd;

		stream = json_object_array_get_idx(streams, i);
		json_object_object_get_ex(stream, "stream id", &id);
		sd = json_object_get_int(id);
		add_builtin_plugins(stream);
		json_object_object_add(stream, "CPUPlots",
				       cpu_plots(kshark_get_data_stream(rec->context, sd)));
		json_object_object_add(stream, "TaskPlots", task_plots(rec, sd, most));
	}
}

static const struct kshark_entry *find_switch(struct recording *rec, int number)
{
	const struct kshark_entry *found = NULL;
	int *streams = kshark_all_streams(rec->context);
	int i;

	for (i = 0; i < rec->context->n_streams && !found; i++) {
		struct vmp_stream *vs = rec->stream_of(streams[i]);

		if (vs && rec->prepare(vs) && (size_t)number <= vs->nr_switches)
			found = vs->sw[number - 1].entry;
	}
	free(streams);
	return found;
}

static void add_window(struct recording *rec, struct kshark_config_doc *session,
		       const struct kshark_entry *middle, int ms)
{
	int64_t first = rec->entries[0]->ts;
	int64_t last = rec->entries[rec->nr_entries - 1]->ts;
	struct kshark_trace_histo histo;

	if (middle) {
		int64_t half = ms * 500000LL;

		first = middle->ts - half > first ? middle->ts - half : first;
		last = middle->ts + half < last ? middle->ts + half : last;
	}
	ksmodel_init(&histo);
	ksmodel_set_bining(&histo, BINS, first, last);
	kshark_config_doc_add(session, "Model", kshark_export_model(&histo, KS_CONFIG_JSON));
	ksmodel_clear(&histo);
}

/* KernelShark wants both markers, set or not. */
static void add_marker(struct json_object *markers, const char *name, bool set, ssize_t row)
{
	struct json_object *marker = json_object_new_object();

	json_object_object_add(marker, "isSet", json_object_new_boolean(set));
	if (set)
		json_object_object_add(marker, "row", json_object_new_int64(row));
	json_object_object_add(markers, name, marker);
}

/* Mark an event, if any, and have the table, which has only what is shown, begin with it. */
static void add_markers(struct recording *rec, struct kshark_config_doc *session,
			const struct kshark_entry *marked)
{
	struct kshark_config_doc *markers;
	ssize_t row = 0, table_row = 0;

	while (marked && rec->entries[row] != marked)
		table_row += is_shown(rec, rec->entries[row++]);
	markers = kshark_config_new("kshark.config.markers", KS_CONFIG_JSON);
	add_marker(markers->conf_doc, "markA", marked, row);
	add_marker(markers->conf_doc, "markB", false, 0);
	json_object_object_add(markers->conf_doc, "Active", json_object_new_string("A"));
	kshark_config_doc_add(session, "Markers", markers);
	json_object_object_add(session->conf_doc, "ViewTop", json_object_new_int64(table_row));
}

static void add_sizes(struct kshark_config_doc *session, const char *key, int first, int second)
{
	struct json_object *sizes = json_object_new_array();

	json_object_array_add(sizes, json_object_new_int(first));
	json_object_array_add(sizes, json_object_new_int(second));
	json_object_object_add(session->conf_doc, key, sizes);
}

int main(int argc, char **argv)
{
	const struct kshark_entry *middle = NULL;
	struct kshark_config_doc *session;
	struct recording rec;
	int *streams;
	int number, i;

	if (argc != 7) {
		fprintf(stderr, "usage: session PLUGIN FILE SESSION TASKS SWITCH MS\n");
		return 1;
	}
	recording_open(&rec, "session", argv[2], argv[1]);
	number = atoi(argv[5]);
	if (number) {
		middle = find_switch(&rec, number);
		if (!middle) {
			fprintf(stderr, "session: %s: holds no policy switch number %d\n", argv[2],
				number);
			return 1;
		}
	}
	session = kshark_session_config_new(KS_CONFIG_JSON);
	rec.context->filter_mask = KS_TEXT_VIEW_FILTER_MASK | KS_GRAPH_VIEW_FILTER_MASK |
				   KS_EVENT_VIEW_FILTER_MASK;
	streams = kshark_all_streams(rec.context);
	for (i = 0; i < rec.context->n_streams; i++)
		show_events(&rec, kshark_get_data_stream(rec.context, streams[i]));
	free(streams);

	kshark_config_doc_add(session, "User Plugins",
			      kshark_export_all_plugins(rec.context, KS_CONFIG_JSON));
	kshark_export_all_dstreams(rec.context, &session);
	complete_streams(&rec, session, atoi(argv[4]));
	add_window(&rec, session, middle, atoi(argv[6]));
	add_markers(&rec, session, middle);
	add_sizes(session, "MainWindow", 1280, 800);
	add_sizes(session, "Splitter", 600, 150);
	if (!kshark_save_config_file(argv[3], session)) {
		fprintf(stderr, "session: %s: can't be written\n", argv[3]);
		return 1;
	}
	kshark_free_config_doc(session);
	recording_close(&rec);
	return 0;
}
