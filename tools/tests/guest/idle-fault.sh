#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# idle-fault.sh VARIABLE: a policy that gets next to nothing done must not end in an OOM kill,
# whatever it says: the kernel's own loop follows half-way to the highest priority.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_fault_module "$1"
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
declare -A stats=()
read_stats stats scan
echo "$stolen pages stolen; $(xargs <"$VMP_MEMCG/memory.events")"
# One in seven: at the seventh priority.
echo "the kernel's own loop followed ${stats[stock_followed]} of ${stats[passes]} passes"
((stats[stock_followed] * 20 >= stats[passes])) || fail "it is to follow more of them"
((stolen > 1000)) || fail "there was no reclaim"
grep -q '^oom_kill 0$' "$VMP_MEMCG/memory.events" || fail "a process was OOM-killed"
