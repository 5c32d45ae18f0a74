#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# On a stock kernel: the hooks come as a livepatch and go again under load, and leave nothing.
set -euo pipefail
cd vmscan-policy
export XDG_CACHE_HOME=$PWD/../cache
memcg=/sys/fs/cgroup/load
rounds=10

fail() {
	echo "$*"
	exit 1
}

# Of the functions that change.
text() { tools/tests/debian/text.py "$XDG_CACHE_HOME"/vmscan-policy/livepatch/*/about.json; }
tainted() { cat /proc/sys/kernel/tainted; }
stolen() { awk '$1 == "pgsteal" { print $2 }' "$memcg/memory.stat"; }
shootdowns() { awk '$1 == "TLB:" { for (i = 2; $i ~ /^[0-9]+$/; i++) n += $i } END { print n }' /proc/interrupts; }
kernel_memory() { awk '/^(Slab|Percpu|VmallocUsed):/ { n += $2 } END { print n }' /proc/meminfo; }

# measure POLICY SECONDS: sets rate to shootdowns per 1,000 pages stolen.
measure() {
	local pages flushes

	tools/vmscanctl set flush="$1"
	sleep 1
	pages=$(stolen) flushes=$(shootdowns)
	sleep "$2"
	pages=$(($(stolen) - pages)) flushes=$(($(shootdowns) - flushes))
	((pages > 100)) || fail "flush=$1: only $pages pages were stolen"
	rate=$((flushes * 1000 / pages))
	echo "flush=$1: $pages pages stolen, $flushes shootdowns, $rate per 1,000"
}

[[ $(tools/livepatch status) == *"hooks     not in force"* ]]
! tools/livepatch unload 2>/dev/null || fail "nothing was unloaded"
modprobe zram
echo 1G >/sys/block/zram0/disksize
mkswap /dev/zram0 >/dev/null
swapon /dev/zram0
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
mkdir "$memcg"
echo 64M >"$memcg/memory.max"
before=$(text)
(
	echo "$BASHPID" >"$memcg/cgroup.procs"
	exec stress-ng --quiet --vm 4 --vm-keep --vm-method write64 --vm-bytes 256M
) &
sleep 3
for ((round = 1; round <= rounds; round++)); do
	tools/livepatch load --freeze load
	[[ $(tools/livepatch status) == *"hooks     loaded"*"module    loaded"* ]]
	! tools/livepatch load 2>/dev/null || fail "the hooks were loaded twice"
	[[ $(text) != "$before" ]] || fail "no function has changed"
	if ((round == 1)); then
		measure stock 20
		stock=$rate
		measure batch 20
		((rate * 5 <= stock)) || fail "that is not 80 % less than $stock"
	fi
	tools/vmscanctl profile max
	sleep 2
	# With policies in force, every other time.
	((round % 2)) || tools/vmscanctl profile stock
	tools/livepatch unload --freeze load
	[[ $(text) == "$before" ]] || fail "round $round: the kernel's text is not as before"
	((round > 1)) || used=$(kernel_memory)
	echo "round $round: $(kernel_memory) kB of kernel memory"
done
(($(kernel_memory) < used + 8192)) || fail "memory is not back"
kill %1
# Out of tree, unsigned and a livepatch: no more than that.
(($(tainted) & ~(1 << 12 | 1 << 13 | 1 << 15))) && fail "the kernel is tainted: $(tainted)"
! dmesg | grep -E 'WARNING|BUG|Oops|detected stall|blocked for more than' || fail "the kernel has complained"
