#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A process in a small memcg writes to a disk on which each write takes 5 s. Stock kills
# it although its pages would be clean soon, unless stock counts what batches meet; with
# feedback and throttling it gets done.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_disk
trap clean_up EXIT

mib=192 # in a memcg of 32 MiB

# write_file: sets $status and $took, in ms.
write_file() {
	local started=${EPOCHREALTIME/./}

	status=0
	in_memcg dd if=/dev/zero of="$FS/data" bs=1M count="$mib" status=none || status=$?
	took=$(((${EPOCHREALTIME/./} - started) / 1000))
}

event() { sed -n "s/^$1 //p" "$VMP_MEMCG/memory.events"; }

# run SCAN AGING WRITEBACK THROTTLE DIRTY_GEN
run() {
	# shellcheck disable=SC2034 # filled by name
	local -A before=() after=()

	set_scan "$1" "$2"
	set_throttle "$3" "$4"
	set_dirty_gen "$5"
	read_stats before throttle
	memcg_new 32M
	write_file
	read_stats after throttle
	ooms=$(event oom)
	waits=$((after[writeback] - before[writeback]))
	echo "scan=$1 aging=$2 writeback=$3 throttle=$4 dirty_gen=$5: status $status after $took ms," \
		"$ooms OOMs, throttled:$(stats_delta before after)"
	rm -f "$FS/data"
	memcg_remove
}

# What it leaves behind would be called when a task sleeps.
rmmod vmscan_policy
insmod "$VMP_MODULE_DIR/vmscan_policy.ko"
slow_new "$slow_disk"
slow_load "$(slow_table 5000)"
runs=1
! full || runs=3
for ((i = 0; i < runs; i++)); do
	run stock continue stock stock youngest
	has_trait feedback || ((status == 137 && ooms > 0)) || fail "stock was to be OOM-killed"
done
settings=("budget continue second-youngest")
# With youngest and budget a run was seen to end in a kill: all of the memcg was under writeback in
# the young generations, so rounds took nothing, and did not wait.
! full || settings+=("stock continue second-youngest" "budget continue youngest")
for setting in "${settings[@]}"; do
	read -r scan aging gen <<<"$setting"
	if [[ $gen == youngest ]]; then
		timeout 60 "$BIN/stalls" fsync "$FS/other" 30 | sed 's/^/fsync of a page beside it: /' &
	fi
	run "$scan" "$aging" feedback memcg "$gen"
	((status == 0 && ooms == 0)) || fail "it was to be completed without an OOM"
	# A slow machine may get there without.
	((waits)) || fail "nobody has waited for the disk"
	wait
done
check_throttle_stats
