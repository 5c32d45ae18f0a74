// SPDX-License-Identifier: GPL-2.0
/*
 * Spares what is in the foreground: user space puts the ids of such memory cgroups into a map, and
 * as long as reclaim is not urgent their passes end at once. All else is left to stock.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define URGENT	6 /* VMSCAN_LIVE_PRIORITY */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, unsigned long long);
	__type(value, unsigned int);
} foreground SEC(".maps");

SEC("struct_ops/next_step")
unsigned long long BPF_PROG(next_step, const struct vmscan_pass *pass)
{
	unsigned long long id = pass->memcg->css.cgroup->kn->id;

	if (pass->priority > URGENT && bpf_map_lookup_elem(&foreground, &id))
		return VMSCAN_END;

	return VMSCAN_STOCK;
}

SEC(".struct_ops.link")
struct vmscan_bpf_policy bpf_foreground = {
	.abi = VMSCAN_BPF_ABI,
	.name = "bpf-foreground",
	.about = "Spares memory cgroups that are in a map, until reclaim is urgent.",
	.next_step = (void *)next_step,
};

char LICENSE[] SEC("license") = "GPL";
