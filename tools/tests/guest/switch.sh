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

load_start
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
set_policy stock
set_scan stock continue
check_scan_stats
read_stats after
echo "$((i - 1)) switches:$(stats_delta before after)"
sleep 1
declare -A idle=()
read_stats idle
((idle[deferred] == after[deferred])) || fail "folios are deferred with stock"
seen_all || fail "a policy has done nothing:$(tail -n +1 "$POLICY"/*/stats)"
load_end
