#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Reclaimers that wait for a disk which never answers hold up nobody who switches policies or
# unloads the module: no decision is under way over their I/O.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_disk

loop=
hung_clean_up() {
	clean_up_begins
	dmsetup resume --noudevsync vmp-slow 2>/dev/null || true
	memcg_remove
	if [[ $loop ]]; then
		! grep -q "^$loop " /proc/swaps || swapoff "$loop"
		losetup --detach "$loop"
	fi
	clean_up
}
trap hung_clean_up EXIT

# Swap behind a queue that a few folios fill, and past the page cache: who writes then waits in
# the block layer.
slow_new "$slow_disk"
dd if=/dev/zero of="$FS/swap" bs=1M count=256 status=none
loop=$(losetup --find --show --direct-io=on "$FS/swap")
echo 4 >"/sys/block/${loop#/dev/}/queue/nr_requests"
echo 2 >"/sys/block/${loop#/dev/}/queue/nomerges"
mkswap "$loop" >/dev/null
swapon "$loop"
memcg_new 32M

# in_io: does a process of the memcg wait for that in reclaim? For a request, or until fewer are
# written back.
in_io() {
	local pid pids

	read_file pids "$VMP_MEMCG/cgroup.procs"
	for pid in $pids; do
		[[ $(<"/proc/$pid/stack") != *@(blk_mq_get_tag|rq_qos_wait)*shrink_folio_list* ]] || return 0
	done
	return 1
}
stacks() {
	local pid pids

	read_file pids "$VMP_MEMCG/cgroup.procs"
	for pid in $pids; do
		echo "$pid:"
		cat "/proc/$pid/stack"
	done
}
switched() { [[ -e $WORK/switched ]]; }
switch_all() {
	set_policy stock
	set_scan stock continue
	set_throttle stock stock
	rmmod vmscan_policy
	: >"$WORK/switched"
}

# What waits here is no policy's fault.
echo off >"$POLICY/guard/state"
set_policy batch
set_scan budget continue
set_throttle feedback all
in_memcg stress-ng --vm 2 --vm-bytes 96M --vm-keep --vm-method write64 -q >/dev/null 2>&1 &
wait_until above flush deferred 0 || fail "nothing is deferred"
dmsetup suspend --nolockfs --noudevsync vmp-slow
# The load may all wait for pages from the disk. These only take new memory, and go on after an
# OOM kill.
for _ in 1 2 3 4; do
	in_memcg bash -c "while :; do tail /dev/zero; done" >/dev/null 2>&1 &
done
wait_until in_io || fail "nobody waits for the disk in reclaim: $(stacks)"
switch_all &
wait_until switched || fail "a switch or the removal of the module hangs: $(<"/proc/$!/stack")"
in_io || fail "nobody waits for the disk any more: $(stacks)"
echo "switched and unloaded while $(wc -l <"$VMP_MEMCG/cgroup.procs") processes waited for the disk"
