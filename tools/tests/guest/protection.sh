#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What memory.low protects does not count for the budget of a pass, so reclaim from above
# presses on the rest alone. test_memcontrol sees no more than where that ends.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
trap clean_up EXIT

child=$VMP_MEMCG/child
# MiB.
size=64
low=48

# largest: of all passes, in pages of an lruvec that such a budget would be all of.
largest() {
	awk '
		/ scan_begin: / {
			for (i = 1; i <= NF; i++)
				if (split($i, pair, "="))
					field[pair[1]] = pair[2]
			all = field["budget"] * 2 ^ field["priority"]
			if (all > most)
				most = all
		}
		END { print most + 0 }' "$instance/trace"
}

# try_low LOW: sets got.
try_low() {
	(
		echo "$BASHPID" >"$child/cgroup.procs"
		exec cat "$FS/data"
	) >/dev/null
	echo "$1" >"$child/memory.low"
	echo >"$instance/trace"
	echo 4M >"$VMP_MEMCG/memory.reclaim" || fail "memory.low=$1: not all reclaimed"
	got=$(largest)
	echo "memory.low=$1 of ${size}M: budgets are those of $got pages at most"
}

memcg_new
echo +memory >"$VMP_MEMCG/cgroup.subtree_control"
mkdir "$child"
fs_new
truncate -s "${size}M" "$FS/data"
mkdir "$instance"
echo "cgroup == $(stat -c %i "$child")" >"$instance/events/vmscan_policy/scan_begin/filter"
echo 1 >"$instance/events/vmscan_policy/scan_begin/enable"
# Or the budget is the floor.
set_scan_floor none
set_scan budget continue
pages=$((size * 256))
try_low 0
# A budget is a multiple of two to the power of the priority.
((got > pages * 3 / 4 && got <= pages * 5 / 4)) || fail "that is not the size"
try_low "${low}M"
((got > 0 && got <= (size - low) * 256 * 5 / 4)) || fail "that is more than is left unprotected"
