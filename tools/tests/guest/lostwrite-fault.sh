#!/bin/bash
# Without the flush writes are lost, and the test that lostwrite.sh runs sees it.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_fault_module VMP_FAULT_NO_FLUSH
trap fault_clean_up EXIT

memcg_new 16M
swap_new
load_fault_module
set_policy batch
# As soon as it is seen: a busy host may leave no CPU for the writers at first.
# An anonymous page is back after one fault, and its writer seldom in the window
# between the copy to swap and the flush; a shmem page is there for many.
declare -A tries=([shmem]=8 [anon]=1)
for kind in shmem anon; do
	for max_folios in 64 512; do
		set_max_folios "$max_folios"
		for ((try = 0, status = 0; try < tries[$kind] && !status; try++)); do
			result=$(in_memcg "$BIN/lostwrite" "$kind" 3 2>&1) || status=$?
			echo "$kind, $max_folios: $result"
		done
		((status == 0 || status == 3)) || fail "$kind, $max_folios: failed with status $status"
		[[ $kind == anon ]] || ((status)) || fail "$kind, $max_folios: no lost write was seen"
	done
done
