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
# loses KIND: has a write to such memory been lost?
loses() {
	status=0
	result=$(in_memcg "$BIN/lostwrite" "$1" 2.5 2>&1) || status=$?
	echo "$1: $result"
	((status == 0 || status == 3)) || fail "$1: failed with status $status"
	((status))
}

# As soon as it is seen. An anonymous page is back after one fault, and its writer seldom
# in the window between the copy to swap and the flush; a shmem page is there for many.
for kind in shmem anon; do
	wait_until loses "$kind" || fail "$kind: no lost write was seen"
done
