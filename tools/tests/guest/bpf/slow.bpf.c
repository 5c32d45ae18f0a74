// SPDX-License-Identifier: GPL-2.0
/* Takes long each time that it is asked; the verifier allows that, and the guard does not. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

SEC("struct_ops/flush_group")
unsigned int BPF_PROG(flush_group, const struct vmscan_call *call)
{
	int i;

	bpf_for(i, 0, 1 << 22)
		barrier_var(i);

	return 32;
}

SEC(".struct_ops.link")
struct vmscan_bpf_policy slow = {
	.abi = VMSCAN_BPF_ABI,
	.name = "slow",
	.flush_group = (void *)flush_group,
};

char LICENSE[] SEC("license") = "GPL";
