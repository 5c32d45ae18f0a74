#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Who writes to a slow disk sleeps for it, by a policy, in reclaim: also who may not enter file
# systems there, as all writers to XFS, but nobody twice at a priority, on however many nodes. Those
# whom the disk itself may need, by PR_SET_IO_FLUSHER, don't. The kernel has only kswapd sleep for
# writeback, and memcgs of version 1. With VARIABLE, which names a module that waits for the flushers
# as for those: the same.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_disk
clean=clean_up
if [[ ${1:-} ]]; then
	need_point writeback
	need_fault_module "$1"
	load_fault_module
	clean=fault_clean_up
fi
trap '"$clean"' EXIT

mib=96 # for each node, in a memcg of 32 MiB
events=$instance/events/vmscan
# __GFP_IO, __GFP_FS
io=0x40
fs=0x80

# judge: of the trace, how many reclaims might not do what is asked for, how often these slept for
# writeback, how often others did, and how often twice at a priority.
judge() {
	awk '
		{ task = $1 }
		/ mm_vmscan_memcg_reclaim_begin: / {
			without[task] = 1
			reclaims++
		}
		/ mm_vmscan_memcg_reclaim_end: / {
			delete without[task]
			delete slept[task]
		}
		match($0, / priority=[0-9]+/) {
			at = substr($0, RSTART, RLENGTH)
			if (at != priority[task])
				delete slept[task]
			priority[task] = at
		}
		/ mm_vmscan_throttled: .*VMSCAN_THROTTLE_WRITEBACK/ && !/ kswapd/ {
			if (task in without)
				inside++
			else
				sleeps++
			twice += slept[task]++ > 0
		}
		END { print reclaims + 0, inside + 0, sleeps + 0, twice + 0 }' "$instance/trace"
}

# PR_SET_IO_FLUSHER
flusher='import ctypes, os, sys
if ctypes.CDLL(None).prctl(57, 1, 0, 0, 0):
    raise SystemExit("no PR_SET_IO_FLUSHER")
os.execvp(sys.argv[1], sys.argv[1:])'

# run WHAT FLAG [COMMAND...]: writers on all nodes, to WHAT, by that command; tells reclaims without
# the flag from others.
run() {
	local started=${EPOCHREALTIME/./} node writers=() what=$1

	echo "!(gfp_flags & $2)" >"$events/mm_vmscan_memcg_reclaim_begin/filter"
	shift 2
	if [[ $what == xfs ]]; then
		slow_new "$slow_disk" xfs
	else
		slow_new "$slow_disk"
	fi
	slow_load "$(slow_table 1000)"
	memcg_new 32M
	echo >"$instance/trace"
	for node in /sys/devices/system/node/node[0-9]*; do
		in_memcg taskset -c "$(<"$node/cpulist")" "$@" \
			dd if=/dev/zero of="$FS/${node##*/}" bs=64K count=$((mib * 16)) status=none &
		writers+=($!)
	done
	status=0
	for node in "${writers[@]}"; do
		wait "$node" || status=$?
	done
	read -r reclaims inside sleeps twice < <(judge)
	echo "$what: status $status after $(((${EPOCHREALTIME/./} - started) / 1000)) ms," \
		"$(xargs <"$VMP_MEMCG/memory.events")"
	echo "$reclaims reclaims without the flag, which slept $inside times for writeback; others" \
		"slept $sleeps times, $twice of all again at a priority"
	memcg_remove
	slow_remove
	((reclaims)) || fail "all have the flag"
	((!twice)) || fail "reclaim slept twice at a priority"
}

raise_dirty_limits
mkdir "$instance"
echo 16384 >"$instance/buffer_size_kb"
for event in mm_vmscan_{memcg_reclaim_begin,memcg_reclaim_end,lru_shrink_inactive,throttled}; do
	echo 1 >"$events/$event/enable"
done
set_scan budget continue
if [[ ${1:-} ]]; then
	set_throttle feedback stock
else
	set_throttle feedback memcg
	run xfs "$fs"
	((status == 0)) || fail "it was to be completed"
	((inside)) || fail "nobody has waited for the disk"
fi
# They may be killed: nothing slows them down. It is no reason to go over to stock.
echo off >"$POLICY/guard/state"
run flusher "$io" python3 -c "$flusher"
((!inside)) || fail "a task slept that the disk may need"
[[ ! ${1:-} ]] || above writeback waits 0 || fail "nobody was to wait"
