// SPDX-License-Identifier: GPL-2.0
/*
 * Programs that must not load, or must not be taken: the macros say what is wrong with one. Without
 * any it is right.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#ifndef ABI
#define ABI	VMSCAN_BPF_ABI
#endif
#ifndef NAME
#define NAME	"wrong"
#endif
#ifndef ABOUT
#define ABOUT	"Is wrong."
#endif
#ifndef CGROUP
#define CGROUP	0
#endif
#ifndef SECTION
#define SECTION	"struct_ops/flush_group"
#endif

#ifndef NONE
SEC(SECTION)
unsigned int BPF_PROG(flush_group, struct vmscan_call *call)
{
#if defined(HELPER)
	long (*helper)(long a, long b, long c, long d, long e) = (void *)HELPER;

	return helper(0, 0, 0, 0, 0);
#elif defined(OFFSET)
	return *(volatile unsigned int *)((void *)call + OFFSET);
#elif defined(WRITTEN)
	call->WRITTEN = 0;
	return 1;
#elif defined(FOLLOWED)
	return *(volatile unsigned int *)(unsigned long)call->FOLLOWED;
#elif defined(ENDLESS)
	for (;;)
		asm volatile("" ::: "memory");
	return 1;
#elif defined(STACK)
	asm volatile("r1 = 0; *(u64 *)(r10 - %0) = r1" :: "i"(STACK) : "r1", "memory");
	return 1;
#else
	return 32;
#endif
}
#endif

#ifdef TWO
SEC("struct_ops/throttle")
unsigned int BPF_PROG(throttle, const struct vmscan_round *round)
{
	return 0;
}
#endif

SEC(".struct_ops.link")
struct vmscan_bpf_policy wrong = {
	.abi = ABI,
	.name = NAME,
	.about = ABOUT,
	.cgroup = CGROUP,
#ifndef NONE
	.flush_group = (void *)flush_group,
#endif
#ifdef TWO
	.throttle = (void *)throttle,
#endif
};

char LICENSE[] SEC("license") = "GPL";
