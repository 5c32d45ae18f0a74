#!/bin/bash
# race.sh NAME: what happens to folios while they wait in a batch. Each race
# checks its own data; the counters show which hazards it has hit.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

name=$1
seconds=$(scaled 4)
huge_before=$(chosen "$THP/shmem_enabled")

race_clean_up() {
	local status=$?

	echo "$huge_before" >"$THP/shmem_enabled"
	clean_up "$status"
}

# What a test hits for certain, or nearly so, at full size.
declare -A hazards=(
	[swapcache]="bounce_mapped"
	[exit]="bounce_no_mapping"
	[truncate]="bounce_no_mapping bounce_mapped"
	[swapoff]=""
	[mlock]="bounce_unevictable"
	[pin]="bounce_mapped"
	[madvise-anon]="bounce_mapped"
	[madvise-shmem]="bounce_mapped"
	[madvise-anon-huge]="deferred"
	[madvise-shmem-huge]="deferred"
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
	while [[ -d /proc/$pid ]]; do
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

# What is to happen. A smaller size may be too short for the hazards.
wanted=(deferred)
# shellcheck disable=SC2206 # words
((${VMP_SCALE:-100} < 100)) || wanted+=(${hazards[$name]})

trap race_clean_up EXIT
memcg_new 64M
swap_new
echo advise >"$THP/shmem_enabled"
# shellcheck disable=SC2034 # filled by name
declare -A first=() before=() after=()
read_stats first
for ((try = 0; try < 5; try++)); do
	for setting in "mglru 64" "classic 512"; do
		read -r lru max_folios <<<"$setting"
		set_lru "$lru"
		set_max_folios "$max_folios"
		set_policy batch
		read_stats before
		run_race || fail "$setting: failed with status $?"
		set_policy stock
		read_stats after
		echo "$setting:$(stats_delta before after)"
		check_stats
	done
	# Again if a busy host left it no CPU.
	! all_grown first after "${wanted[@]}" || break
done
[[ $name != *huge ]] || echo "since boot: $(count_events)"
all_grown first after "${wanted[@]}" || fail "the race never hit $missing"
