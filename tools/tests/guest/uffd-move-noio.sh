#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# As uffd-move, with no policy in force: reclaim that can't write out unmaps what is in the swap
# cache, and unlocks it before the TLB is flushed. The module of this test build holds it up then.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_fault_module VMP_FAULT_MIRROR
# Who wrote to a page before, and still does, brings it back there.
[[ $(uname -m) == x86_64 ]] || skip "stale TLB entries, which the emulator of arm64 does not have"

noio_clean_up() {
	clean_up_begins
	swapoff "$loop" 2>&- || true
	losetup -d "$loop"
	rm "$WORK/swap"
	fault_clean_up
}

memcg_new
# A device that takes its time, unlike zram: what was paged out stays in the swap cache.
truncate -s 64M "$WORK/swap"
chmod 600 "$WORK/swap"
loop=$(losetup -f --show "$WORK/swap")
trap noio_clean_up EXIT
mkswap -f "$loop" &>/dev/null
swapon -p 10 "$loop"
# The multi-gen LRU passes over what is dirty.
set_lru classic
load_fault_module
in_memcg "$BIN/uffd-move" 180 10 noio || fail "failed with status $?"
