#!/bin/bash
# The policies and their limits are switched all the time while a load reclaims.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
trap clean_up EXIT

load_start
# shellcheck disable=SC2034 # filled by name
declare -A before=() after=()
read_stats before
switches=$(scaled 200)
for ((i = 1; i <= switches; i++)); do
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
echo "$switches switches:$(stats_delta before after)"
sleep 1
declare -A idle=()
read_stats idle
((idle[deferred] == after[deferred])) || fail "folios are deferred with stock"
((after[deferred] > before[deferred])) || fail "no folio was deferred with batch"
read_stats idle scan
((idle[scanned])) || fail "nothing was scanned with budget"
read_stats idle writeback
((idle[batches])) || fail "no batch was seen with feedback or throttling"
read_stats idle aging
((idle[sync] && idle[async])) || fail "no generation was made, or none by a worker"
load_end
