#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A new user's first hour on a stock Debian: what README says, one command after the other.
set -euo pipefail
memcg=/sys/fs/cgroup/load
mapfile -t commands <commands

fail() {
	echo "$*"
	exit 1
}

shootdowns() { awk '$1 == "TLB:" { for (i = 2; $i ~ /^[0-9]+$/; i++) n += $i } END { print n }' /proc/interrupts; }
stolen() { awk '$1 == "pgsteal" { print $2 }' "$memcg/memory.stat"; }

# Shootdowns per 1,000 pages stolen, in 20 s.
rate() {
	local pages flushes

	pages=$(stolen) flushes=$(shootdowns)
	sleep 20
	pages=$(($(stolen) - pages)) flushes=$(($(shootdowns) - flushes))
	((pages > 100)) || fail "only $pages pages were stolen"
	echo $((flushes * 1000 / pages))
}

load() {
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

booted=$(</proc/sys/kernel/random/boot_id)
[[ ! -e /usr/bin/gcc && ! -d /usr/src/linux-headers-$(uname -r) ]] || fail "this is no stock installation"
git -C vmscan-policy init -q
git -C vmscan-policy add -A
git -C vmscan-policy -c user.name=x -c user.email=x commit -q -m x
begin=$SECONDS
git clone -q vmscan-policy clone
apt-get update -q
cd clone
[[ ${#commands[@]} -eq 3 ]] || fail "README has other commands than this knows: ${commands[*]}"
for command in "${commands[@]}"; do
	if [[ $command == *" set "* ]]; then
		load
		stock=$(rate)
	fi
	echo "# $command"
	started=$SECONDS
	bash -ec "$command"
	echo "took $((SECONDS - started)) s: $command"
	if [[ $command == *" set "* ]]; then
		echo "took $((SECONDS - begin)) s from git clone to this, 25 of them to measure"
		batch=$(rate)
		echo "$stock shootdowns per 1,000 pages stolen before, $batch after"
		((batch * 5 <= stock)) || fail "that is not 80 % less"
	fi
done
[[ ! -d /sys/module/vmscan_policy ]] || fail "the module is still there"
[[ $(</proc/sys/kernel/random/boot_id) == "$booted" ]] || fail "there was a reboot"
! dmesg | grep -E 'WARNING|BUG|Oops|detected stall|blocked for more than' || fail "the kernel has complained"
cd ..
clone/tools/livepatch describe result
kill %1
