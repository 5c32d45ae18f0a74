#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What happens while a worker is about to make a generation: the policy is switched,
# the module is unloaded, the memcg is removed. The worker of this test build is slow.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_fault_module VMP_FAULT_SLOW_AGING
trap fault_clean_up EXIT

# Sets left to the number of requests that are not done; without a process to start.
count_left() {
	local -A stats=()
	local line lines

	mapfile -t lines <"$POLICY/aging/stats"
	for line in "${lines[@]}"; do
		stats[${line% *}]=${line#* }
	done
	left=$((stats[queued] - stats[async] - stats[stale] - stats[offline]))
	offline=${stats[offline]}
}

is_requested() {
	count_left
	((left))
}

wait_for_request() { wait_until is_requested || fail "nobody asks a worker to age"; }

# finished: how many requests are done.
finished() {
	local -A stats=()

	read_stats stats aging
	echo $((stats[async] + stats[stale] + stats[offline]))
}

# Another point is switched while a request is pending: nobody waits for that. The worker may
# happen to be done just then.
switch_meanwhile() {
	local before

	is_requested || return 1
	before=$(finished)
	set_policy batch
	(($(finished) == before))
}

load_start
load_fault_module
set_scan budget async
wait_until switch_meanwhile || fail "a switch of another policy waits for the workers"
set_policy stock
rounds=2
! full || rounds=5
for ((i = 0; i < rounds; i++)); do
	set_scan budget async
	wait_for_request
	echo continue >"$POLICY/aging/policy"
	count_left
	((left == 0)) || fail "$left requests are left after a switch away from async"
	set_scan budget async
	wait_for_request
	rmmod vmscan_policy
	insmod "$fault_dir/vmscan_policy.ko"
	load_check
done
load_end
memcg_remove

# A slow kernel may take longer to remove one than the worker waits.
read_clock
end=$((clock + 180))
for ((i = 0; i < rounds || offline == 0; i++)); do
	read_clock
	((clock < end)) || fail "no memcg was removed while a request for it was there"
	memcg_new 16M
	set_scan budget async
	in_memcg stress-ng --vm 2 --vm-bytes 48M --vm-keep --vm-method write64 -q >/dev/null 2>&1 &
	wait_for_request
	memcg_remove
	wait
	set_scan budget continue
	count_left
done
echo "$offline of $i memcgs were removed before the worker came"
