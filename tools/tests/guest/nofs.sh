#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Who writes to a slow disk: what waits for that may wait for a commit of the journal, and so for who
# holds it open. Reclaim that may not enter file systems, as all by writers to XFS, does not sleep
# for writeback by a policy. Nor does any twice at a priority, on however many nodes. The kernel
# itself has only kswapd sleep for that, and memcgs of version 1. With VARIABLE, which names a module
# that waits for the flushers as for those: who may not, does not.
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
# __GFP_FS
fs=0x80

# judge: of the trace, how many reclaims might not enter file systems, how many of these slept for
# writeback, how often others did, and how often twice at a priority.
judge() {
	awk '
		{ task = $1 }
		/ mm_vmscan_memcg_reclaim_begin: / {
			nofs[task] = 1
			reclaims++
		}
		/ mm_vmscan_memcg_reclaim_end: / {
			delete nofs[task]
			delete slept[task]
		}
		match($0, / priority=[0-9]+/) {
			at = substr($0, RSTART, RLENGTH)
			if (at != priority[task])
				delete slept[task]
			priority[task] = at
		}
		/ mm_vmscan_throttled: .*VMSCAN_THROTTLE_WRITEBACK/ && !/ kswapd/ {
			if (task in nofs)
				wrong++
			else
				sleeps++
			twice += slept[task]++ > 0
		}
		END { print reclaims + 0, wrong + 0, sleeps + 0, twice + 0 }' "$instance/trace"
}

# run [xfs]: writers on all nodes.
run() {
	local started=${EPOCHREALTIME/./} node writers=()

	slow_new "$slow_disk" "$@"
	slow_load "$(slow_table 1000)"
	memcg_new 32M
	echo >"$instance/trace"
	for node in /sys/devices/system/node/node[0-9]*; do
		in_memcg taskset -c "$(<"$node/cpulist")" \
			dd if=/dev/zero of="$FS/${node##*/}" bs=64K count=$((mib * 16)) status=none &
		writers+=($!)
	done
	status=0
	for node in "${writers[@]}"; do
		wait "$node" || status=$?
	done
	read -r reclaims wrong sleeps twice < <(judge)
	echo "${1:-ext4}: status $status after $(((${EPOCHREALTIME/./} - started) / 1000)) ms," \
		"$(xargs <"$VMP_MEMCG/memory.events")"
	echo "$reclaims reclaims without the file system, which slept $wrong times for writeback; others" \
		"slept $sleeps times, $twice of these again at a priority"
	memcg_remove
	slow_remove
	((!wrong)) || fail "reclaim slept that may hold up what it waits for"
	((!twice)) || fail "reclaim slept twice at a priority"
}

raise_dirty_limits
mkdir "$instance"
echo 16384 >"$instance/buffer_size_kb"
echo "!(gfp_flags & $fs)" >"$events/mm_vmscan_memcg_reclaim_begin/filter"
for event in mm_vmscan_{memcg_reclaim_begin,memcg_reclaim_end,lru_shrink_inactive,throttled}; do
	echo 1 >"$events/$event/enable"
done
set_scan budget continue
if [[ ${1:-} ]]; then
	set_throttle feedback stock
else
	set_throttle feedback memcg
	run
	((status == 0)) || fail "it was to be completed"
	((sleeps)) || fail "nobody has waited for the disk"
fi
run xfs
((reclaims)) || fail "all might enter the file system"
[[ ! ${1:-} ]] || above writeback waits 0 || fail "nobody was to wait"
