// SPDX-License-Identifier: GPL-2.0
/* A policy in BPF: flush for half as many folios as "batch" does at first. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

SEC("struct_ops/flush_group")
unsigned int BPF_PROG(flush_group, const struct vmscan_call *call)
{
	return 32 | 1U << 31; /* VMSCAN_FLUSH_SPAN */
}

SEC(".struct_ops.link")
struct vmscan_bpf_policy bpf_half = {
	.abi = VMSCAN_BPF_ABI,
	.name = "bpf-half",
	.about = "Flushes once for 32 dirty folios.",
	.flush_group = (void *)flush_group,
};

char LICENSE[] SEC("license") = "GPL";
