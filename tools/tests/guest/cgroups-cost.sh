#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# cgroups-cost.sh: what it costs that memory cgroups can have settings, in instructions for each
# page of a file that is reclaimed: in a guest that counts them (tools/vm --icount --cpus 1), else
# in ns. Of a cgroup at some depth without settings of its own, with every policy in force and so
# many others that have some; and of one that is stock beside such. It prints a table, and is no test.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
trap clean_up EXIT

dirs=$POLICY/cgroups
rounds=9
size=16 # MiB of a round

# used: sets usage to the CPU time of this shell's cgroup, in us.
used() {
	local text

	read_file text "$VMP_MEMCG/reclaimer/cpu.stat"
	text=${text#usage_usec }
	usage=${text%%$'\n'*}
}

# stolen_from DIR: sets stolen to the pages that reclaim has taken.
stolen_from() {
	local text

	# adds up the CPUs' counts
	read_file text "$1/cpu.stat"
	read_file text "$1/memory.stat"
	text=${text#*$'\n'pgsteal }
	stolen=${text%%$'\n'*}
}

# reclaim_all DIR: sets cost to the instructions of a page, in the middle of some rounds.
reclaim_all() {
	local before pages costs=() round

	for ((round = 0; round < rounds; round++)); do
		(
			echo "$BASHPID" >"$1/cgroup.procs"
			exec cat "$FS/data" >/dev/null
		)
		stolen_from "$1"
		pages=$stolen
		used
		before=$usage
		echo "${size}M swappiness=0" >"$1/memory.reclaim" 2>/dev/null || true
		used
		stolen_from "$1"
		pages=$((stolen - pages))
		((pages > 1000)) || fail "$pages pages were reclaimed"
		costs+=("$(((usage - before) * 10000 / pages))")
	done
	mapfile -t costs < <(printf '%s\n' "${costs[@]}" | sort -n)
	cost=${costs[rounds / 2]}
	spread="${costs[0]} to ${costs[-1]}"
}

# in_tenths N: as a number with a place behind the point.
in_tenths() { echo "$(($1 / 10)).$(($1 % 10))"; }

# entries N: so many siblings have settings: as much as each point can.
entries() {
	local i

	settings_remove
	for ((i = 0; i < $1; i++)); do
		[[ -d $VMP_MEMCG/other-$i ]] || mkdir "$VMP_MEMCG/other-$i"
		id_of "$VMP_MEMCG/other-$i" >"$dirs/add"
	done
	(($1 == 0)) || echo max >"$dirs/$(id_of "$VMP_MEMCG/other-0")/profile"
}

memcg_new
echo +memory >"$VMP_MEMCG/cgroup.subtree_control"
mkdir "$VMP_MEMCG/reclaimer"
echo $$ >"$VMP_MEMCG/reclaimer/cgroup.procs"
fs_new
truncate -s $((size + 8))M "$FS/data"
dir=$VMP_MEMCG
declare -A leaf=()
for depth in {2..8}; do
	leaf[$depth]=$dir/leaf
	dir=$dir/level
	mkdir "${leaf[$depth]}" "$dir"
	echo +memory >"$dir/cgroup.subtree_control"
done
declare -A base=()
for others in 0 1 100 1000; do
	entries "$others"
	echo max >"$POLICY/profile"
	for depth in 2 4 8; do
		reclaim_all "${leaf[$depth]}"
		base[$depth]=${base[$depth]:-$cost}
		echo "max, $others others, depth $depth: $(in_tenths "$cost") a page (tenths: $spread), $(((cost - base[$depth]) * 10000 / base[$depth])) in 10,000 more than with none"
	done
done
echo stock >"$POLICY/profile"
entries 0
reclaim_all "$VMP_MEMCG/leaf"
alone=$cost
echo "stock, alone: $(in_tenths "$cost") a page (tenths: $spread)"
entries 1
reclaim_all "$VMP_MEMCG/leaf"
echo "stock, beside one with max: $(in_tenths "$cost") a page (tenths: $spread), $(((cost - alone) * 10000 / alone)) in 10,000 more"
id_of "$VMP_MEMCG/leaf" >"$dirs/add"
reclaim_all "$VMP_MEMCG/leaf"
echo "stock of its own, beside one with max: $(in_tenths "$cost") a page (tenths: $spread), $(((cost - alone) * 10000 / alone)) in 10,000 more"
echo $$ >"$CGROUPS/cgroup.procs"
