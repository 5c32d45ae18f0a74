#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Threads of one process that write at random, in four times the memory that they may have,
# are not OOM-killed by a switch of the flush policy, the first one or a later one.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
trap clean_up EXIT

switches=$(scaled 5)
! full || switches=$(scaled 100)

has_deferred() { is_alive && above flush deferred "$deferred"; }
steals_more() {
	is_alive
	count_written
	((written > swapped + 500))
}
is_alive() {
	local events

	read_file events "$VMP_MEMCG/memory.events"
	[[ $events == *"oom_kill 0"$'\n'* ]] || fail "a thread was OOM-killed after $i switches"
	[[ -d /proc/$writer ]] || fail "the threads have ended after $i switches"
}

swap_new
memcg_new 64M
i=0
in_memcg "$BIN/threads" 256 8 &
writer=$!
count_written
swapped=$written
wait_until steals_more || fail "the threads don't swap"
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
echo "$switches switches to batch and back: $(xargs <"$VMP_MEMCG/memory.events")"
