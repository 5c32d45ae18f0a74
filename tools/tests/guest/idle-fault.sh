#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# idle-fault.sh VARIABLE [held]: a policy that gets next to nothing done must not end in an OOM
# kill, whatever it says: the kernel's own loop follows half-way to the highest priority. With
# "held", what it moves is memory that nobody can reclaim, and clean files are behind that.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_fault_module "$1"
trap fault_clean_up EXIT

# Sets stolen to the pages that reclaim has taken so far.
count_stolen() { stolen=$(awk '$1 == "pgsteal" { print $2 }' "$VMP_MEMCG/memory.stat"); }

# Until there was enough reclaim: a busy host may leave it no CPU.
swap_some() {
	local try

	for ((try = 0, stolen = 0; try < 10 && stolen <= 1000; try++)); do
		in_memcg stress-ng --vm 1 --vm-bytes 48M --vm-keep --vm-method write64 --timeout 5 -q ||
			fail "the load failed: $(xargs <"$VMP_MEMCG/memory.events")"
		count_stolen
	done
}

# Reads twice what the memcg has left for files. Before an OOM kill the kernel goes through its 13
# priorities some 40 times. In passes of 32 pages that takes half of what is held.
read_files() {
	in_memcg cat "$FS/data" >/dev/null || fail "cat failed: $(xargs <"$VMP_MEMCG/memory.events")"
	count_stolen
}

memcg_new 32M
swap_new
if [[ ${2:-} ]]; then
	echo 160M >"$VMP_MEMCG/memory.max"
	fs_new
	truncate -s 64M "$FS/data"
	exec {said}< <(in_memcg "$BIN/hold" 128)
	read -ru "$said" _ || fail "the memory can't be held"
	# What it holds is not young any more then, and comes before all files.
	age_memcg 3
	echo 200 >/proc/sys/vm/swappiness
fi
load_fault_module
# It would take the policy away.
echo off >"$POLICY/guard/state"
set_scan budget continue
if [[ ${2:-} ]]; then
	read_files
else
	swap_some
fi
set_scan stock continue
declare -A stats=()
read_stats stats scan
echo "$stolen pages stolen; $(xargs <"$VMP_MEMCG/memory.events")"
# One in seven: at the seventh priority. When what is held is not cold any more, none has to.
echo "the kernel's own loop followed ${stats[stock_followed]} of ${stats[passes]} passes"
least=$((stats[passes] / 20))
[[ ! ${2:-} ]] || least=1
((stats[stock_followed] >= least)) || fail "it is to follow more of them"
((stolen > 1000)) || fail "there was no reclaim"
grep -q '^oom_kill 0$' "$VMP_MEMCG/memory.events" || fail "a process was OOM-killed"
