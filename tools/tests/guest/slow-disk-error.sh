#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The disk fails while its writer is throttled: that gets an error, and nothing hangs.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
trap clean_up EXIT

mib=96 # in a memcg of 32 MiB
! full || mib=$(scaled 192 96)

# is_throttled BEFORE: ten times more than that?
is_throttled() {
	! gone "$writer" || fail "the writer ended before it was throttled"
	(($(throttled) > $1 + 10))
}

set_throttle feedback all
# Else a write waits for dirty pages to get fewer, before reclaim sees them.
set_dirty_limits 100 99
slow_new 400M
for failure in error flakey; do
	# So long that even a kernel which scans slowly has to wait for it.
	slow_load "$(slow_table 60000)"
	before=$(throttled)
	memcg_new 32M
	in_memcg dd if=/dev/zero of="$FS/$failure" bs=1M count="$mib" conv=fsync 2>"$WORK/said" &
	writer=$!
	wait_until is_throttled "$before" || fail "nobody is throttled"
	size=$(blockdev --getsz "$slow_disk")
	case $failure in
	error) slow_load "0 $size error" ;;
	flakey) slow_load "0 $size flakey $slow_disk 0 0 1000 1 error_writes" ;;
	esac
	wait_until gone "$writer" || fail "$failure: the writer hangs: $(<"/proc/$writer/stack")"
	status=0
	wait "$writer" || status=$?
	echo "$failure: status $status: $(grep -v records "$WORK/said" | head -n 1)"
	grep -q '^oom_kill 0$' "$VMP_MEMCG/memory.events" || fail "$failure: the writer was OOM-killed"
	((status == 1)) || fail "$failure: the writer was to fail"
	memcg_remove
	slow_load "$(slow_table 0)"
	rm -f "$FS/$failure"
done
check_throttle_stats
