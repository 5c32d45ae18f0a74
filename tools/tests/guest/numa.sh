#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Reclaim of a memcg takes from each node what it would take with stock: no node gives all.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
trap clean_up EXIT

nodes=(/sys/devices/system/node/node[0-9]*)
((${#nodes[@]} > 1)) || skip "a second node"
# MiB of each node's.
size=24
# Percent of all that is taken, for the rest that fills up a request.
slack=3

# Folios of one page, which is what a pass may end after: without readahead there are no others.
read_ahead=$(blockdev --getra /dev/ram0)
numa_clean_up() {
	clean_up_begins
	blockdev --setra "$read_ahead" /dev/ram0
	clean_up
}
trap numa_clean_up EXIT
blockdev --setra 0 /dev/ram0

# on_node N COMMAND...: with the memory of that node.
on_node() {
	in_memcg taskset -c "$(<"${nodes[$1]}/cpulist")" "${@:2}"
}

# Sets pages to how many the memcg has on each node.
count_pages() {
	local text kind fields field i

	pages=()
	read_file text "$VMP_MEMCG/memory.numa_stat"
	while read -r kind fields; do
		[[ $kind == file ]] || continue
		i=0
		for field in $fields; do
			pages[i++]=$((${field#*=} / 4096))
		done
	done <<<"$text"
}

# shares: sets taken to the percentage of each node when half of all is reclaimed.
shares() {
	local i before sum=0

	for i in "${!nodes[@]}"; do
		on_node "$i" cat "$FS/data$i" >/dev/null
	done
	count_pages
	before=("${pages[@]}")
	# A little at a time, as for a task that allocates. Reclaim begins with the node that it runs
	# on, which has to be the same each time: if one gave more, the other would, too.
	taskset -pc "$(<"${nodes[0]}/cpulist")" $$ >/dev/null
	while (($(<"$VMP_MEMCG/memory.current") > (size * ${#nodes[@]} << 20) / 2)); do
		echo 256K >"$VMP_MEMCG/memory.reclaim" || fail "not all reclaimed"
	done
	count_pages
	for i in "${!nodes[@]}"; do
		((before[i] >= size * 256 * 9 / 10)) || fail "node $i has only ${before[i]} pages"
		taken[i]=$((before[i] - pages[i]))
		sum=$((sum + taken[i]))
	done
	for i in "${!nodes[@]}"; do
		taken[i]=$((100 * taken[i] / sum))
	done
}

memcg_new
fs_new
for i in "${!nodes[@]}"; do
	truncate -s "${size}M" "$FS/data$i"
done
taken=()
shares
want=("${taken[@]}")
echo "stock takes from ${#nodes[@]} nodes: ${want[*]} %"
# A pass makes one batch at least: a small part of what the others of a node can make.
set_scan_batch 1
# With one, each node's pass goes on to it whoever had enough.
set_scan_floor 0
for aging in stop continue; do
	set_scan budget "$aging"
	shares
	echo "budget $aging takes: ${taken[*]} %"
	for i in "${!nodes[@]}"; do
		((taken[i] >= want[i] - slack && taken[i] <= want[i] + slack)) ||
			fail "node $i gives ${taken[i]} % instead of ${want[i]} %"
	done
done
