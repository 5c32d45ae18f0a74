#!/bin/bash
# The policy and its limit are switched all the time while a load reclaims.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
trap clean_up EXIT

load_start
# shellcheck disable=SC2034 # filled by name
declare -A before=() after=()
read_stats before
switches=$(scaled 200)
for ((i = 1; i <= switches; i++)); do
	if ((i % 2)); then
		set_max_folios $(((RANDOM % 4096 >> RANDOM % 12) + 1))
		set_policy batch
		pause 0.0$((RANDOM % 10))
	else
		set_policy stock
		check_stats
	fi
	load_check
done
set_policy stock
read_stats after
echo "$switches switches:$(stats_delta before after)"
sleep 1
declare -A idle=()
read_stats idle
((idle[deferred] == after[deferred])) || fail "folios are deferred with stock"
((after[deferred] > before[deferred])) || fail "no folio was deferred with batch"
load_end
