#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# race.sh NAME: what happens to folios while they wait in a batch. Each race
# checks its own data; the counters show which hazards it has hit.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

name=$1
# Of one run; there are as many as it takes.
seconds=1
# So often each hazard is to be met with each setting.
enough=20
huge_before=$(chosen "$THP/shmem_enabled")

race_clean_up() {
	clean_up_begins
	echo "$huge_before" >"$THP/shmem_enabled"
	clean_up
}

# What else than being deferred is to happen to folios.
declare -A hazards=(
	[swapcache]="bounce_mapped"
	[exit]="bounce_gone"
	[swapoff]=""
	[mlock]="bounce_mapped"
	[pin]="bounce_mapped"
	[madvise-anon]="bounce_mapped"
	[madvise-anon-huge]=""
)

run_race() {
	case $name in
	swapoff) swap_loop ;;
	pin) in_memcg "$BIN/pin" "$seconds" /dev/ram0 ;;
	madvise-*)
		local kind=${name#madvise-}

		in_memcg "$BIN/madvise" "$seconds" "${kind%-huge}" "${kind#*-}"
		;;
	*) in_memcg "$BIN/$name" "$seconds" ;;
	esac
}

# Swap comes and goes, and what is in it returns to memory.
swap_loop() {
	local pid loops=0 status=0

	in_memcg "$BIN/madvise" "$seconds" anon &
	pid=$!
	while ! gone "$pid"; do
		swapoff /dev/zram0
		swapon /dev/zram0
		loops=$((loops + 1))
		sleep 0.05
	done
	wait "$pid" || status=$?
	echo "swapoff $loops times"
	return "$status"
}

count_events() {
	awk '/^(thp_fault_alloc|thp_file_alloc|thp_swpout|thp_split_page) / { printf "%s %s, ", $1, $2 }' \
		/proc/vmstat
}

# has_happened: sets missing to what has not happened often enough.
has_happened() {
	for missing in deferred ${hazards[$name]}; do
		work=${after[$missing]}
		((after[$missing] - before[$missing] >= enough)) || return 1
	done
}

# happens: another run, and that.
happens() {
	set_policy batch
	run_race || fail "$setting: failed with status $?"
	set_policy stock
	read_stats after
	check_stats
	has_happened
}

trap race_clean_up EXIT
memcg_new 64M
swap_new
echo advise >"$THP/shmem_enabled"
declare -A before=() after=()
for setting in "mglru 64" "classic 512"; do
	read -r lru max_folios <<<"$setting"
	set_lru "$lru"
	set_max_folios "$max_folios"
	read_stats before
	wait_until happens || fail "$setting: $missing was not seen $enough times:$(stats_delta before after)"
	echo "$setting:$(stats_delta before after)"
done
[[ $name != *huge ]] || echo "since boot: $(count_events)"
