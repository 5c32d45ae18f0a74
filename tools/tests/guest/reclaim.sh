#!/bin/bash
# With batch a memcg gives about what memory.reclaim asks for, and no less.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
trap clean_up EXIT

memcg_new
swap_new
mib=$((1 << 20))
# Memory without a process: pages of a file in shmem.
file=/dev/shm/vmp-test
trap 'status=$?; rm -f "$file"; clean_up "$status"' EXIT
in_memcg dd if=/dev/urandom of="$file" bs=1M count=64 status=none
for lru in mglru classic; do
	set_lru "$lru"
	for max_folios in stock 1 64 4096; do
		set_policy stock
		if [[ $max_folios != stock ]]; then
			set_max_folios "$max_folios"
			set_policy batch
		fi
		before=$(<"$VMP_MEMCG/memory.current")
		# It fails when it gets less, and some is charged late.
		echo $((6 * mib)) >"$VMP_MEMCG/memory.reclaim" || fail "$lru, $max_folios: not all reclaimed"
		got=$((before - $(<"$VMP_MEMCG/memory.current")))
		echo "$lru, $max_folios: asked for 6144 KiB, got $((got / 1024))"
		((got >= 5 * mib && got <= 9 * mib)) || fail "$lru, $max_folios: that is too far off"
	done
done
set_policy stock
check_stats
