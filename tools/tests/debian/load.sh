# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# A load that swaps, and what it costs.
memcg=/sys/fs/cgroup/load # of the load

fail() {
	echo "$*"
	exit 1
}

stolen() { awk '$1 == "pgsteal" { print $2 }' "$memcg/memory.stat"; }
shootdowns() { awk '$1 == "TLB:" { for (i = 2; $i ~ /^[0-9]+$/; i++) n += $i } END { print n }' /proc/interrupts; }

# measure WHAT: sets rate to shootdowns per 1,000 pages stolen, in 20 s.
measure() {
	local pages flushes

	pages=$(stolen) flushes=$(shootdowns)
	sleep 20
	pages=$(($(stolen) - pages)) flushes=$(($(shootdowns) - flushes))
	((pages > 100)) || fail "$1: only $pages pages were stolen"
	rate=$((flushes * 1000 / pages))
	echo "$1: $pages pages stolen, $flushes shootdowns, $rate per 1,000"
}

# Runs as the first job.
load_start() {
	modprobe zram
	echo 1G >/sys/block/zram0/disksize
	mkswap /dev/zram0 >/dev/null
	swapon /dev/zram0
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control
	mkdir "$memcg"
	echo 64M >"$memcg/memory.max"
	(
		echo "$BASHPID" >"$memcg/cgroup.procs"
		exec stress-ng --quiet --vm 4 --vm-keep --vm-method write64 --vm-bytes 256M
	) &
	sleep 5
}

# What a kernel says that has come to harm.
check_log() {
	! dmesg | grep -E 'WARNING|BUG|Oops|detected stall|blocked for more than' || fail "the kernel has complained"
}
