#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A reclaimer of a memory cgroup that takes no page even at the last priority waits before it fails,
# by a policy, each time that the kernel tries before it kills. Not without swap space, and not for
# who writes to memory.reclaim.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_point throttle
trap clean_up EXIT

# waited COMMAND...: sets waits to how often reclaimers have slept meanwhile, and status.
waited() {
	local before

	before=$(throttled)
	status=0
	"$@" || status=$?
	waits=$(($(throttled) - before))
}

use_up() { in_memcg tail /dev/zero >/dev/null 2>&1; }

# The last 16 MiB of what it reads, until that ends.
hold() { in_memcg tail -c 16M >/dev/null; }

holds() { (($(<"$VMP_MEMCG/memory.current") > 16 << 20)); }

reclaim() { echo 8M >"$VMP_MEMCG/memory.reclaim"; } 2>/dev/null

# use_up_by POLICY: have a process killed, with that policy of throttle.
use_up_by() {
	set_throttle stock "$1"
	waited use_up
	echo "$lru, throttle=$1, $swap: status $status, reclaimers slept $waits times"
	((status == 137)) || fail "it is not killed"
}

# Processes are killed on purpose.
echo off >"$POLICY/guard/state"
memcg_new 32M
echo 0 >"$VMP_MEMCG/memory.swap.max"
for lru in mglru classic; do
	set_lru "$lru"
	swap="no swap"
	use_up_by memcg
	((!waits)) || fail "it waits for what can't come"
	swap_new
	swap="swap, but not for the cgroup"
	use_up_by stock
	((!waits)) || fail "stock waits"
	use_up_by memcg
	# The multi-gen LRU takes pages of the process's program now and then.
	[[ $lru == mglru ]] || ((waits >= 8)) || fail "it is killed before the statistics can be new"
	hold < <(head -c 20M /dev/zero && exec sleep 1h) &
	holder=$!
	wait_until holds || fail "the memory is not taken"
	waited reclaim
	echo "$lru, memory.reclaim: status $status, reclaimers slept $waits times"
	((status)) || fail "8 MiB were reclaimed"
	((!waits)) || fail "it waits"
	echo 1 >"$VMP_MEMCG/cgroup.kill"
	wait "$holder" || true
	swap_remove
done
