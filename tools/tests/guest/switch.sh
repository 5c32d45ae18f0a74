#!/bin/bash
# The policies and their limits are switched all the time while a load reclaims.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
trap clean_up EXIT

# seen_all: each policy has done something.
seen_all() {
	above flush deferred "${before[deferred]}" && above scan scanned 0 &&
		above writeback batches 0 && above aging sync 0 && above aging async 0
}

# Somebody else switches, too, what the checks below don't look at.
switch_on() {
	while [[ -e $WORK/switching ]]; do
		echo 1 >"$POLICY/flush/observe"
		echo stop >"$POLICY/aging/policy"
		echo 0 >"$POLICY/flush/observe"
		echo async >"$POLICY/aging/policy"
		pause 0.0$((RANDOM % 10))
	done
}

writes_more() { (($(written) > $1 + 1000)); }

switchers=()
load_start
: >"$WORK/switching"
for ((i = 0; i < 2; i++)); do
	switch_on &
	switchers+=($!)
done
# shellcheck disable=SC2034 # filled by name
declare -A before=() after=()
read_stats before
switches=$(scaled 200)
# As many more as it takes: a busy host may leave the load no CPU.
for ((i = 1; i <= 20 * switches; i++)); do
	((i <= switches)) || ! seen_all || break
	set_scan_random
	set_throttle_random
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
wait "${switchers[@]}" || fail "a switch failed"
set_policy stock
set_scan stock continue
check_scan_stats
read_stats after
echo "$((i - 1)) switches:$(stats_delta before after)"
wait_until writes_more "$(written)" || fail "the load has stopped to swap"
declare -A idle=()
read_stats idle
((idle[deferred] == after[deferred])) || fail "folios are deferred with stock"
seen_all || fail "a policy has done nothing:$(tail -n +1 "$POLICY"/*/stats)"
load_end
