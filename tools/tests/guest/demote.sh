#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A task whose reclaim must not wait for I/O can't swap, and moves anonymous pages to slow memory
# where stock does.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
demotion=/sys/kernel/mm/numa/demotion_enabled
tiers=(/sys/devices/virtual/memory_tiering/memory_tier[0-9]*)
((${#tiers[@]} > 1)) || skip "a node of slow memory (vm --numa 2 --slow-node)"
[[ -e $demotion ]] || skip "CONFIG_NUMA_MIGRATION"
trap 'clean_up_begins; echo 0 >"$demotion"; clean_up' EXIT

demoted() { awk '$1 == "pgdemote_direct" { print $2 }' /proc/vmstat; }

# demote SETTING: sets moved to how many pages the task's own reclaim has moved; a policy that
# leaves them alone has it follow the kernel's own loop in the end.
demote() {
	local status=0 before own

	before=$(demoted)
	own=$(counter scan reclaimed)
	in_memcg "$BIN/noio" 40 - || status=$?
	((status == 137)) || fail "$*: status $status: moved pages still count, so it can't have them all"
	moved=$(($(demoted) - before))
	own=$(($(counter scan reclaimed) - own))
	echo "$*: $moved pages moved, $own in passes that a policy steered"
	[[ $1 != budget* ]] || ((own >= moved / 2)) || fail "the kernel's own loop moved the others"
}

swap_new
memcg_new 64M
echo 1 >"$demotion"
# Each try ends with a kill.
echo off >"$POLICY/guard/state"
for setting in "${scan_settings[@]}"; do
	# shellcheck disable=SC2086 # two words
	set_scan $setting
	demote "$setting"
	[[ $setting != "${scan_settings[0]}" ]] || stock=$moved
	# Linux 6.12 isolates no anonymous folio for such a task, and moves a few of its files.
	((stock > 1000)) || skip "a kernel that moves them: stock has moved $stock pages"
	((moved >= stock / 2)) || fail "$setting: less than half of what stock moves, $stock pages"
done
