#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Large folios come out of reclaim in the same state, whether their page-table entries are
# handled one by one or in batches of any size.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_point unmap
modinfo test_hmm &>/dev/null || skip "CONFIG_TEST_HMM"
modprobe test_hmm || fail "test_hmm doesn't load"
[[ -e /sys/kernel/debug/gup_test ]] || skip "CONFIG_GUP_TEST"
trap clean_up EXIT

# run_large CASE: sets unmapped and checked to how many entries of it are handled in batches.
run_large() {
	unmapped=$(counter unmap ptes)
	checked=$(young_ptes)
	in_memcg "$BIN/large" "$1" "$FS/file" 1 >/dev/null || fail "$1 fails"
	unmapped=$(($(counter unmap ptes) - unmapped))
	checked=$(($(young_ptes) - checked))
}

young_ptes() {
	! has young || counter young ptes
}

# stocks CASE: are all of its entries unmapped by stock? So are pages that leave a marker behind.
stocks() {
	case $1 in
	shmem-uffd) ;;
	lazyfree* | file* | shmem) has_trait discard ;;
	*) return 1 ;;
	esac
}

# An LRU and a number of CPUs; entries at once.
settings=("mglru 2" "classic 1")
sizes=(3 512)
if ((${VMP_SCALE:-100} < 100)); then
	settings=("mglru 2")
	sizes=(3)
fi
if full; then
	settings=({mglru,classic}" "{1,2})
	sizes=(2 3 8 16 512)
fi

memcg_new
swap_new
xfs_new
large_set always always
for setting in "${settings[@]}"; do
	read -r lru cpus <<<"$setting"
	set_lru "$lru"
	for name in $("$BIN/large"); do
		what="$lru, $name, $cpus CPUs"
		set_rmap unmap stock
		set_rmap young stock
		want=$(in_memcg "$BIN/large" "$name" "$FS/file" "$cpus" 2>&1) ||
			fail "$what, stock: $want"
		for size in "${sizes[@]}"; do
			set_rmap unmap batch "$size"
			set_rmap young batch "$size"
			before=$(counter unmap ptes)
			got=$(in_memcg "$BIN/large" "$name" "$FS/file" "$cpus" 2>&1) ||
				fail "$what, batches of $size: $got"
			[[ $got == "$want" ]] || fail "$what, batches of $size: got $got instead of $want"
			entries=$(($(counter unmap ptes) - before))
			((entries)) || stocks "$name" || fail "$what, batches of $size: nothing in a batch"
		done
		echo "$what: $entries entries in batches, $want"
	done
done

# Each of the two points and each kind of folio alone: once is enough.
((${VMP_SCALE:-100} == 100)) || exit 0
set_lru mglru
set_rmap unmap batch
set_rmap young stock
run_large forked
((unmapped && !checked)) || fail "unmap alone: $unmapped entries unmapped, $checked checked at once"
declare -A cases=([lazyfree]=lazyfree [anon]=dirty [file]=file-clean)
for only in none "${unmap_kinds[@]}"; do
	set_kinds "$only"
	for kind in "${!cases[@]}"; do
		run_large "${cases[$kind]}"
		[[ $kind == "$only" ]] || ((!unmapped)) ||
			fail "kinds $only: $unmapped entries of $kind at once"
		[[ $kind != "$only" ]] || ((unmapped)) || fail "kinds $only: none at once"
	done
done
set_kinds "${unmap_kinds[@]}"
set_rmap unmap stock
if has young; then
	set_rmap young batch
	run_large forked
	((!unmapped && checked)) ||
		fail "young alone: $unmapped entries unmapped, $checked checked at once"
fi

# A device that takes its time, unlike zram: what was paged out stays in the swap cache.
set_rmap young stock
truncate -s 64M "$WORK/swap"
chmod 600 "$WORK/swap"
loop=$(losetup -f --show "$WORK/swap")
trap 'clean_up_begins; timeout 60 swapoff "$loop" 2>&- || true; losetup -d "$loop"; rm "$WORK/swap"
	clean_up' EXIT
# Nobody tries to unmap it while the device still writes it, or once it has left the swap cache.
told() {
	got=$(in_memcg "$BIN/large" pinned-again "$FS/file" 1 2>&1) || fail "$policy: $got"
	[[ $got == *"reclaimed: 16P"*S* ]] ||
		fail "$policy: $got instead of a pinned folio in memory and others in swap"
	[[ $policy == stock ]] || above unmap kept "$kept"
}
for policy in stock "batch 3" "batch 512"; do
	# shellcheck disable=SC2086 # two words
	set_rmap unmap $policy
	mkswap -f "$loop" &>/dev/null
	swapon -p 10 "$loop"
	kept=$(counter unmap kept)
	wait_until told || fail "$policy: nothing is told to stay mapped"
	# It goes on until nothing uses an entry.
	swapoff "$loop" &
	wait_until gone $! || fail "$policy: swap counts stay behind"
	wait $! || fail "$policy: swapoff fails"
done
