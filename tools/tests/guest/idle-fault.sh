#!/bin/bash
# A policy that never scans anything must not end in an OOM kill: the kernel's own
# loop follows half-way to the highest priority.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_fault_module VMP_FAULT_IDLE
trap fault_clean_up EXIT

memcg_new 32M
swap_new
load_fault_module
set_scan budget continue
# Again while a busy host leaves it no CPU.
for ((try = 0, stolen = 0; try < 10 && stolen <= 1000; try++)); do
	in_memcg stress-ng --vm 1 --vm-bytes 48M --vm-keep --vm-method write64 --timeout 5 -q ||
		fail "the load failed: $(xargs <"$VMP_MEMCG/memory.events")"
	stolen=$(awk '$1 == "pgsteal" { print $2 }' "$VMP_MEMCG/memory.stat")
done
set_scan stock continue
echo "$stolen pages stolen; $(xargs <"$VMP_MEMCG/memory.events")"
((stolen > 1000)) || fail "there was no reclaim"
grep -q '^oom_kill 0$' "$VMP_MEMCG/memory.events" || fail "a process was OOM-killed"
