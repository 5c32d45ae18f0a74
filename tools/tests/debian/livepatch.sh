#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# On a stock kernel: the hooks come as a livepatch and go again under load, and leave nothing.
set -euo pipefail
cd vmscan-policy
export XDG_CACHE_HOME=$PWD/../cache
# shellcheck source=load.sh
. tools/tests/debian/load.sh
rounds=$(<../rounds)

# Of the functions that change.
text() { tools/tests/debian/text.py "$XDG_CACHE_HOME"/vmscan-policy/livepatch/*/about.json; }
tainted() { cat /proc/sys/kernel/tainted; }
kernel_memory() { awk '/^(Slab|Percpu|VmallocUsed):/ { n += $2 } END { print n }' /proc/meminfo; }

# measure_with POLICY: sets rate.
measure_with() {
	tools/vmscanctl set flush="$1"
	sleep 1
	measure "flush=$1"
}

[[ $(tools/livepatch status) == *"hooks     not in force"* ]]
! tools/livepatch unload 2>/dev/null || fail "nothing was unloaded"
before=$(text)
load_start
for ((round = 1; round <= rounds; round++)); do
	tools/livepatch load --freeze load
	[[ $(tools/livepatch status) == *"hooks     loaded"*"module    loaded"* ]]
	! tools/livepatch load 2>/dev/null || fail "the hooks were loaded twice"
	[[ $(text) != "$before" ]] || fail "no function has changed"
	if ((round == 1)); then
		measure_with stock
		stock=$rate
		measure_with batch
		((rate * 5 <= stock)) || fail "that is not 80 % less than $stock"
		# A policy can be a BPF program there, too.
		mountpoint -q /sys/fs/bpf || mount -t bpf bpf /sys/fs/bpf
		tools/vmscanctl load ../half.bpf.o
		measure_with bpf-half
		((rate * 5 <= stock)) || fail "that is not 80 % less than $stock"
		tools/vmscanctl unload flush=bpf-half
		[[ $(tools/vmscanctl list) != *bpf-half* ]] || fail "the program has not gone"
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
check_log
