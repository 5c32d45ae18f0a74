#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The policies and their limits are switched all the time while a load reclaims.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

switch_clean_up() {
	clean_up_begins
	rm -f "$WORK/switching"
	clean_up
}
trap switch_clean_up EXIT

# does POINT NAME [BEFORE]: the policy that has been set does something, now or earlier.
does() { wait_until above "$1" "$2" "${3:-0}" || fail "$1: no $2:$(tail -n +1 "$POLICY"/*/stats)"; }

# Somebody else switches, too, what the checks below don't look at.
switch_on() {
	while [[ -e $WORK/switching ]]; do
		echo stop >"$POLICY/aging/policy"
		echo continue >"$POLICY/aging/policy"
		pause 0.0$((RANDOM % 10))
	done
}

switch_probe() {
	local i

	for ((i = 0; i < 20; i++)); do
		echo 1 >"$POLICY/flush/observe"
		echo 0 >"$POLICY/flush/observe"
	done
}

# A call that was under way at the switch to stock counts what it deferred when it ends.
nothing_deferred() {
	local before

	before=$(counter flush deferred)
	count_written
	wait_until written_beyond $((written + 1000)) || fail "the load has stopped to swap"
	(($(counter flush deferred) == before))
}

# large_does POINT BEFORE: the policy handles entries of large folios at once: BEFORE is how many
# batches there were. Not the load's: what it swaps in is small, so they are soon gone.
large_does() {
	VMP_MEMCG=$CGROUPS/large in_memcg "$BIN/large" forked "$FS/file" 1 >/dev/null ||
		fail "$1: large folios can't be reclaimed"
	above "$1" batches "$2" || fail "$1: no batches:$(tail -n +1 "$POLICY"/*/stats)"
}

# Before the load: QEMU has lost guests that ran the code which the probe changes.
switchers=()
for ((i = 0; i < 2; i++)); do
	switch_probe &
	switchers+=($!)
done
wait "${switchers[@]}" || fail "the probe can't be set or removed"
# For unmap and young.
large_set always never
load_start
: >"$WORK/switching"
switch_on &
switcher=$!
# shellcheck disable=SC2034 # filled by name
declare -A before=() after=()
read_stats before
switches=$(scaled 400)
for ((i = 1; i <= switches; i++)); do
	set_scan_random
	set_span $((RANDOM % 2))
	set_throttle_random
	set_rmap_random
	if ((i % 2)); then
		set_max_folios $(((RANDOM % 4096 >> RANDOM % 12) + 1))
		set_policy batch
		pause 0.0$((RANDOM % 10))
	else
		set_policy stock
		check_stats
		set_scan stock continue
		check_scan_stats
	fi
	load_check
done
rm "$WORK/switching"
wait "$switcher" || fail "a switch failed"
set_policy batch
does flush deferred "${before[deferred]}"
set_throttle feedback all
! has writeback || does writeback batches
set_kinds "${unmap_kinds[@]}"
mkdir "$CGROUPS/large"
for point in unmap young; do
	has "$point" || continue
	set_rmap "$point" batch
	large_does "$point" "$(counter "$point" batches)"
done
rmdir "$CGROUPS/large"
set_scan budget continue
does aging sync
if has_trait budget; then
	set_scan stock stop
	does scan passes "$(counter scan passes)"
	set_scan v6.12 continue
	does scan passes "$(counter scan passes)"
fi
set_policy stock
set_scan stock continue
check_scan_stats
read_stats after
echo "$switches switches:$(stats_delta before after)"
wait_until nothing_deferred || fail "folios are deferred with stock"
load_end
