#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# memory.reclaim and memory.high take what was asked for; a loop of ours but v6.12 does not take
# more than a batch and the floor beyond it, and the flush policy changes nothing about it.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
shmem=/dev/shm/vmp-test
# Without it each page is read by itself. Else it makes large folios where ext4 has them, and what
# is asked for is only met to within a folio.
readahead=/sys/block/ram0/queue/read_ahead_kb
readahead_before=$(<"$readahead")
trap 'clean_up_begins; rm -f "$shmem"; echo "$readahead_before" >"$readahead"; clean_up' EXIT

# However little it wants, memcg reclaim asks for SWAP_CLUSTER_MAX pages, so up to
# 31 of them nobody wanted. What a pass finds when one page is left is a batch.
cluster=32
# MEMCG_CHARGE_BATCH: so much is charged at a time, and what is not used of it waits
# for its CPU.
charge=64
mib_pages=256
size=16
! full || size=$(scaled 64 16)

pages_used() { echo $(($(<"$VMP_MEMCG/memory.current") / 4096)); }

# What was taken comes back. Nothing runs in the memcg after it.
fill() {
	case $1 in
	shmem) in_memcg cat "$shmem" ;;
	file) in_memcg cat "$FS/data" ;;
	esac >/dev/null
}

# unbound: is no bound known for the loop? What it takes is only printed then.
unbound() { [[ "$scan $aging" == "stock continue" || $scan == v6.12 ]]; }

# judge WHAT ASKED STOLEN SLACK
judge() {
	echo "$1: asked for $2 pages, got $3"
	unbound || (($3 <= $2 + $4)) || fail "$1: that is more than $4 pages too many"
}

# check_reclaim PAGES [OPTION]: sets stolen.
check_reclaim() {
	local asked=$1 before

	before=$(pages_stolen)
	echo $((asked * 4096)) "${@:2}" >"$VMP_MEMCG/memory.reclaim" || fail "$label: not all reclaimed"
	stolen=$(($(pages_stolen) - before))
	judge "$label, memory.reclaim" "$asked" "$stolen" $((cluster - 1 + batch + floor))
	((stolen >= asked)) || fail "$label: success, but not all reclaimed"
}

# The write reclaims until usage is not above the new limit. First it uncharges what
# waits for a CPU, so there can be less to reclaim, but never more: nobody charges.
check_high_write() {
	local asked=$1 high before stolen above

	before=$(pages_stolen)
	high=$(($(pages_used) - asked))
	echo $((high * 4096)) >"$VMP_MEMCG/memory.high"
	above=$(($(pages_used) - high))
	stolen=$(($(pages_stolen) - before))
	echo max >"$VMP_MEMCG/memory.high"
	judge "$label, memory.high lowered" "$asked" "$stolen" $((cluster - 1 + batch + floor))
	((above <= 0)) || fail "$label: usage is $above pages above the new memory.high"
}

# A task that finds usage above the limit after a charge reclaims as much as it has
# charged in this system call, 32 pages of readahead or two charges at most. So the
# last time it can go that far, a batch and the floor, below the limit; and at its end its own
# pages, less than a MiB, are uncharged, too. What waits for CPUs can be above it.
# How much is taken in all says less: it may be charged again at once.
check_high_task() {
	local asked=$1 high before stolen above slack=$((2 * charge + mib_pages + batch + floor))

	truncate -s $((asked * 4096)) "$FS/more"
	before=$(pages_stolen)
	high=$(pages_used)
	echo $((high * 4096)) >"$VMP_MEMCG/memory.high"
	in_memcg cat "$FS/more" >/dev/null
	above=$(($(pages_used) - high))
	stolen=$(($(pages_stolen) - before))
	echo max >"$VMP_MEMCG/memory.high"
	rm "$FS/more"
	echo "$label, a task above memory.high by $asked pages: got $stolen, usage is $above above it"
	unbound || ((above >= -slack)) || fail "$label: that is more than $slack below it"
	((above <= charge * $(nproc))) || fail "$label: usage stays $above pages above memory.high"
}

declare -A before=() after=()
memcg_new
swap_new
echo 0 >"$readahead"
fs_new
truncate -s "${size}M" "$FS/data"
in_memcg dd if=/dev/urandom of="$shmem" bs=1M count="$size" status=none
settings=("stock continue 64 0" "budget continue 1 0" "budget continue 64 0" "budget continue 64 256")
if full; then
	settings=()
	for setting in "${scan_settings[@]}"; do
		settings+=("$setting 64 0")
		# The other loops have batches of their own, and no floor.
		[[ $setting != budget* ]] || settings+=("$setting "{"1 0","512 0","64 256"})
	done
fi
for kind in shmem file; do
	for setting in "${settings[@]}"; do
		read -r scan aging batch floor <<<"$setting"
		label="$kind, $scan $aging, batch $batch, floor $floor"
		set_scan_batch "$batch"
		set_scan_floor "$floor"
		set_scan "$scan" "$aging"
		read_stats before scan
		fill "$kind"
		check_reclaim $((6 * mib_pages))
		check_reclaim 64
		check_high_write $((2 * mib_pages))
		# So little that it takes one or two passes which the kernel watches. A floor takes more.
		fill "$kind"
		for asked in {96..152..8}; do
			check_high_write "$asked"
		done
		check_high_task $((2 * mib_pages))
		set_scan stock continue
		read_stats after scan
		batches=$((after[batches] - before[batches]))
		reclaimed=$((after[reclaimed] - before[reclaimed]))
		((reclaimed <= batches * batch)) ||
			fail "$label: $reclaimed pages were reclaimed in $batches batches"
	done
done

# Folios that wait for their flush are reclaimed, too, whatever the LRU: less than what
# was asked for fails the write, and half as much again is far too much. A group is no
# larger than it may be.
set_scan stock continue
floor=0
rm "$FS/data" # or its pages are taken
set_policy batch
fill shmem
deferred=$(counter flush deferred)
check_reclaim $((6 * mib_pages))
! above flush deferred "$deferred" || fail "shmem folios are deferred"
set_policy stock
rm "$shmem"
# Every page is another.
exec {said}< <(in_memcg python3 -c "import os, signal
memory = bytearray(os.urandom($size << 20))
print('has it', flush=True)
signal.pause()")
holder=$!
read -ru "$said" _ || fail "the memory can't be taken"
# On 7.x a call gets some 14 folios: a group has to be far smaller for its end to be seen.
sizes=(4)
! full || sizes=(1 4 4096)
for lru in mglru classic; do
	set_lru "$lru"
	for max_folios in "${sizes[@]}"; do
		label="anon, $lru, flush=batch, $max_folios folios"
		set_max_folios "$max_folios"
		set_policy batch
		read_stats before
		# Of the holder's memory, not of the files that it has read.
		check_reclaim $((3 * mib_pages)) swappiness=200
		set_policy stock
		read_stats after
		deferred=$((after[deferred] - before[deferred]))
		batches=$((after[batches] - before[batches]))
		((stolen <= 9 * mib_pages / 2)) || fail "$label: that is far too many"
		((deferred > 0)) || fail "$label: nothing was deferred"
		((deferred <= batches * max_folios)) ||
			fail "$label: $deferred folios were deferred in $batches batches"
	done
done

# Small requests, and groups that span calls: what waits for its flush counts as reclaimed, else
# each takes nearly twice what it takes with stock. mglru takes a batch of its own each time.
set_lru classic
set_max_folios 512
for policy in stock batch; do
	set_policy "$policy"
	stolen=$(pages_stolen)
	for _ in {1..20}; do
		echo "$((cluster * 4))K swappiness=200" >"$VMP_MEMCG/memory.reclaim" ||
			fail "$policy, $cluster pages: not all reclaimed"
	done
	stolen=$(($(pages_stolen) - stolen))
	echo "anon, classic, flush=$policy, 20 requests of $cluster pages: got $stolen"
	[[ $policy != stock ]] || want=$stolen
	((stolen <= want * 5 / 4)) || fail "that is more than a quarter more than with stock"
done
set_policy stock
kill "$holder"
check_stats
