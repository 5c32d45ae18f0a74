#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# lostwrite.sh anon|shmem: no write is lost, whatever the policy and the LRU.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
trap clean_up EXIT

memcg_new 16M
swap_new
# Without the flush a write is lost within less: a mutant.
seconds=2.5
sizes=(64 512)
! full || sizes=(stock 1 31 64 512 4096)
for lru in mglru classic; do
	set_lru "$lru"
	for max_folios in "${sizes[@]}"; do
		set_policy stock
		if [[ $max_folios != stock ]]; then
			set_max_folios "$max_folios"
			set_policy batch
		fi
		# shellcheck disable=SC2034 # filled by name
		declare -A before=() after=()
		read_stats before
		result=$(in_memcg "$BIN/lostwrite" "$1" "$seconds" 2>&1) ||
			fail "$lru, $max_folios: $result"
		set_policy stock
		read_stats after
		echo "$lru, $max_folios: $result;$(stats_delta before after)"
		[[ $max_folios == stock ]] || ((after[flushes] > before[flushes])) ||
			fail "$lru, $max_folios: nothing was flushed"
		check_stats
	done
done
