#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Where a policy is told what batches met, folios under writeback that were met before are known by
# PG_reclaim. It is set on none of those that come after them.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_point writeback
need_disk
flag_clean_up() {
	clean_up_begins
	[[ ! -b /dev/mapper/vmp-slow ]] || slow_load "$(slow_table 0)"
	memcg_remove
	! grep -q "^$FS/swap " /proc/swaps || swapoff "$FS/swap"
	clean_up
}
trap flag_clean_up EXIT

slow_new "$slow_disk"
dd if=/dev/zero of="$FS/swap" bs=1M count=64 conv=fsync status=none
chmod 600 "$FS/swap"
mkswap "$FS/swap" >/dev/null
swapon "$FS/swap"
memcg_new
# An hour: until the disk gets fast again.
slow_load "$(slow_table 3600000)"
set_throttle feedback stock
in_memcg "$BIN/reclaim-flag" 4 32 &
wait_until gone $! || fail "it hangs: $(<"/proc/$!/stack")"
wait $! || fail "status $?"
