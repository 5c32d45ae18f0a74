#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Threads of one process that write at random, in four times the memory that they may have,
# are not OOM-killed by a switch of the flush policy, the first one or a later one. Most flushes
# of other CPUs' TLBs, and the interrupts by them, are reclaim's, but not more than there are.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
trap clean_up EXIT

switches=$(scaled 5)
! full || switches=$(scaled 100)

was_killed() {
	local events

	read_file events "$VMP_MEMCG/memory.events"
	[[ $events != *"oom_kill 0"$'\n'* ]]
}
is_alive() {
	! was_killed || fail "a thread was OOM-killed after $i switches"
	! gone "$writer" || fail "the threads have ended after $i switches"
}
has_deferred() { is_alive && above flush deferred "$deferred"; }
has_written() { written_beyond $((swapped + 500)); }
steals_more() { is_alive && has_written; }
swaps_or_was_killed() { has_written || was_killed; }

# Stock was seen to kill when the first memcg of a guest met its limit, with nothing swapped out.
# It fits that its reclaimers fail at once while another task makes a generation, which takes long
# where the emulator has to translate that code first. What is tested comes after that.
threads_new() {
	local try

	for ((try = 1; try <= 5; try++)); do
		memcg_new 64M
		count_written
		swapped=$written
		in_memcg "$BIN/threads" 256 8 &
		writer=$!
		wait_until swaps_or_was_killed || fail "the threads don't swap"
		was_killed || return 0
		echo "stock kills with $(<"$VMP_MEMCG/memory.swap.current") bytes swapped out"
		memcg_remove
	done
	fail "stock kills each time"
}

# Where a flush interrupts no CPU none is counted; flushes of the machine only with DEBUG_TLBFLUSH.
interrupts=1
[[ $(uname -m) == x86_64 ]] || interrupts=0

# flushes_and_interrupts: of the whole machine, so far.
flushes_and_interrupts() {
	awk '/^nr_tlb_remote_flush / { n = $2 } END { print n + 0 }' /proc/vmstat
	awk '$1 == "TLB:" { for (i = 2; $i ~ /^[0-9]+$/; i++) n += $i } END { print n + 0 }' \
		/proc/interrupts
}

# own_flushes_and_interrupts: those that are reclaim's.
own_flushes_and_interrupts() {
	counter flush observed_remote_flushes
	if ((interrupts)); then counter flush observed_interrupts; else echo 0; fi
}

swap_new
# Before the load: QEMU has lost guests that ran the code which the probes change.
echo 1 >"$POLICY/flush/observe"
mapfile -t all < <(flushes_and_interrupts)
mapfile -t before < <(own_flushes_and_interrupts)
i=0
threads_new
for ((i = 1; i <= switches; i++)); do
	deferred=$(counter flush deferred)
	set_policy batch
	wait_until has_deferred || fail "nothing is deferred"
	set_policy stock
	count_written
	swapped=$written
	wait_until steals_more || fail "the threads don't swap any more"
done
check_stats
mapfile -t own < <(own_flushes_and_interrupts)
own=($((own[0] - before[0])) $((own[1] - before[1])))
mapfile -t now < <(flushes_and_interrupts)
echo "reclaim's own flushes and interrupts: ${own[*]}, of $((now[0] - all[0])) $((now[1] - all[1]))"
(($(nproc) == 1 || own[0])) || fail "no flush is reclaim's"
(($(nproc) == 1 || !interrupts || now[1])) || fail "the machine counts no TLB shootdowns"
for what in 0 1; do
	((now[what])) || continue
	total=$((now[what] - all[what]))
	((own[what] <= total)) || fail "there were not as many"
	(($(nproc) == 1 || own[what] * 2 > total)) || fail "most are to be reclaim's"
done
echo "$switches switches to batch and back: $(xargs <"$VMP_MEMCG/memory.events")"
