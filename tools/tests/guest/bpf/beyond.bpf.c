// SPDX-License-Identifier: GPL-2.0
/* Answers beyond what the kernel takes. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

SEC("struct_ops/flush_group")
unsigned int BPF_PROG(flush_group, const struct vmscan_call *call)
{
	return -1;
}

SEC(".struct_ops.link")
struct vmscan_bpf_policy beyond = {
	.abi = VMSCAN_BPF_ABI,
	.name = "beyond",
	.flush_group = (void *)flush_group,
};

char LICENSE[] SEC("license") = "GPL";
