#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Nothing to wait for: with all policies on, memory that is swapped and files in tmpfs
# see no throttling.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
shmem=/dev/shm/vmp-test
mib=$(scaled 48 16)
trap 'clean_up_begins; rm -f "$shmem"; clean_up' EXIT

set_throttle feedback all
before=$(throttled)
load_start
settings=("budget continue")
! full || settings=("${scan_settings[@]}")
for setting in "${settings[@]}"; do
	read -r scan aging <<<"$setting"
	set_scan "$scan" "$aging"
	in_memcg dd if=/dev/zero of="$shmem" bs=1M count="$mib" status=none
	in_memcg cat "$shmem" >/dev/null
	rm "$shmem"
	load_check
done
load_end
(($(throttled) == before)) || fail "throttled $(($(throttled) - before)) times"
# Else stock counts what batches meet, and tells nobody.
has writeback || exit 0
# shellcheck disable=SC2034 # filled by name
declare -A met=()
read_stats met writeback
echo "${met[batches]} batches, ${met[dirty]} pages dirty of ${met[taken]} taken"
((met[batches])) || fail "no batch was seen"
