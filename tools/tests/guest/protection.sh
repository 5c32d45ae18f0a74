#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What memory.low protects does not count for the budget of a pass, nor does a floor reach it:
# reclaim from above presses on the rest alone. test_memcontrol sees no more than where that ends.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
trap clean_up EXIT

child=$VMP_MEMCG/child
# MiB.
size=64
low=48

# budgets: the largest, first in pages of an lruvec that such a budget would be all of.
budgets() {
	awk '
		/ scan_begin: / {
			for (i = 1; i <= NF; i++)
				if (split($i, pair, "="))
					field[pair[1]] = pair[2]
			budget = field["budget"]
			all = budget * 2 ^ field["priority"]
			if (all > most)
				most = all
			if (budget > largest)
				largest = budget
		}
		END { print most + 0, largest + 0 }' "$instance/trace"
}

# try_low LOW: sets got and budget.
try_low() {
	(
		echo "$BASHPID" >"$child/cgroup.procs"
		exec cat "$FS/data"
	) >/dev/null
	echo "$1" >"$child/memory.low"
	echo >"$instance/trace"
	echo 4M >"$VMP_MEMCG/memory.reclaim" || fail "memory.low=$1: not all reclaimed"
	read -r got budget < <(budgets)
	echo "memory.low=$1 of ${size}M: budgets of $budget pages at most, as for $got pages at most"
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
set_scan_floor 0
set_scan budget continue
pages=$((size * 256))
try_low 0
# A budget is a multiple of two to the power of the priority.
((got > pages * 3 / 4 && got <= pages * 5 / 4)) || fail "that is not the size"
try_low "${low}M"
((got > 0 && got <= (size - low) * 256 * 5 / 4)) || fail "that is more than is left unprotected"
set_scan_floor 4096
try_low 0
((budget == 4096)) || fail "that is not the floor"
low=56
try_low "${low}M"
((budget > 0 && budget <= (size - low) * 256 * 5 / 4)) || fail "the floor reaches what is protected"
