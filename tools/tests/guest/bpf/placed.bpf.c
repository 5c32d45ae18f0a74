// SPDX-License-Identifier: GPL-2.0
/* In force in a memory cgroup as long as it is attached; the test puts in which. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

SEC("struct_ops/flush_group")
unsigned int BPF_PROG(flush_group, const struct vmscan_call *call)
{
	return 16;
}

SEC(".struct_ops.link")
struct vmscan_bpf_policy placed = {
	.abi = VMSCAN_BPF_ABI,
	.cgroup = 0x1122334455667788,
	.name = "placed",
	.flush_group = (void *)flush_group,
};

char LICENSE[] SEC("license") = "GPL";
