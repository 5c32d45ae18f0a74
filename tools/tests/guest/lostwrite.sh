#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# lostwrite.sh anon|large: no write is lost, whatever the policy and the LRU; large: in
# folios of 64 KiB, which are unmapped at once.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
trap clean_up EXIT

memcg_new 16M
swap_new
# What stock does here, too, on a machine that has other work: it kills though all could be swapped
# out, and direct reclaims take seconds. Who can't be killed tries again, and reads what it wrote.
echo -1000 >/proc/self/oom_score_adj
echo 0 >"$POLICY/guard/wait"
# Without the flush a write is lost within less: a mutant. On a machine that has other work, too,
# it takes more tries to come to as many batches.
seconds=2.5
batches=200
sizes=(64 512)
if [[ $1 == large ]]; then
	large_set always never
	# A memcg at its limit reclaims for them, or it would get small ones.
	echo always >"$THP/defrag"
	set_rmap unmap batch 512
	set_rmap young batch 512
fi
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
		! has unmap || entries=$(counter unmap ptes)
		read_stats after
		until ((after[batches] >= before[batches] + batches)); do
			had=${after[batches]}
			result=$(in_memcg "$BIN/lostwrite" "$seconds" 2>&1) ||
				fail "$lru, $max_folios: $result"
			read_stats after
			[[ $max_folios != stock ]] || break
			((after[batches] > had)) || fail \
				"$lru, $max_folios: too few batches to lose a write in:$(stats_delta before after)"
		done
		set_policy stock
		read_stats after
		echo "$lru, $max_folios: $result;$(stats_delta before after)"
		[[ $max_folios == stock ]] || ((after[flushes] > before[flushes])) ||
			fail "$lru, $max_folios: nothing was flushed"
		check_stats
		[[ $1 != large || $max_folios == stock ]] || ! has unmap ||
			(($(counter unmap ptes) > entries)) ||
			fail "$lru, $max_folios: no entries were handled at once"
	done
done
