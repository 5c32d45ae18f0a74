// SPDX-License-Identifier: GPL-2.0
/*
 * A flush that is sized by pressure: groups double as long as a CPU reclaims again soon, and are
 * small where it seldom does, so that few folios are unmapped long before they are written. User
 * space may change the three numbers meanwhile.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

unsigned int least = 16, most = 512; /* folios */
unsigned long long soon = 10000000; /* ns */

struct growth {
	unsigned long long last;
	unsigned int folios;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, unsigned int);
	__type(value, struct growth);
} growths SEC(".maps");

SEC("struct_ops/flush_group")
unsigned int BPF_PROG(flush_group, const struct vmscan_call *call)
{
	unsigned long long now = bpf_ktime_get_ns();
	unsigned int key = 0, folios = least;
	struct growth *growth = bpf_map_lookup_elem(&growths, &key);

	if (!growth)
		return 0;
	if (now - growth->last < soon)
		folios = 2 * growth->folios < most ? 2 * growth->folios : most;
	if (folios < least)
		folios = least;
	growth->last = now;
	growth->folios = folios;

	return folios | 1U << 31; /* VMSCAN_FLUSH_SPAN */
}

SEC(".struct_ops.link")
struct vmscan_bpf_policy pressure = {
	.abi = VMSCAN_BPF_ABI,
	.name = "bpf-pressure",
	.about = "Flushes for the more folios the more often reclaim runs.",
	.flush_group = (void *)flush_group,
};

char LICENSE[] SEC("license") = "GPL";
