#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What the kernel does once for a large folio instead of once for each of its pages.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
tracing=/sys/kernel/tracing

counts_clean_up() {
	local status=$?

	echo 0 >"$tracing/function_profile_enabled"
	echo >"$tracing/set_ftrace_filter"
	clean_up "$status"
}
trap counts_clean_up EXIT

# As in large.c.
folios=4
pages=16

# count CASE POLICY: sets calls, by name, to how often each function was called in it.
count() {
	local name hits

	set_rmap unmap "$2" 512
	set_rmap young "$2" 512
	echo 1 >"$tracing/function_profile_enabled"
	in_memcg "$BIN/large" "$1" "$FS/file" 2 >/dev/null
	echo 0 >"$tracing/function_profile_enabled"
	calls=()
	while read -r name hits _; do
		[[ ! $hits =~ ^[0-9]+$ ]] || calls[${name%%.*}]=$((${calls[${name%%.*}]:-0} + hits))
	done < <(cat "$tracing"/trace_stat/function*)
	echo "$1, $2: ${calls[*]@K}"
}

# expect NAME COUNT: no more than so many for each folio.
expect() {
	((${calls[$1]:-0} <= $2 * folios)) ||
		fail "$1 was called ${calls[$1]} times for $folios folios, $2 expected for each"
}

memcg_new
swap_new
xfs_new
large_set always always
# A compiler may have given the name of a static function a suffix.
for name in page_vma_mapped_walk 'set_tlb_ubc_flush_pending*' swap_duplicate swap_duplicate_nr \
	'deferred_split_folio*' lru_gen_look_around; do
	echo "$name" >>"$tracing/set_ftrace_filter"
done
declare -A calls=()
for kind in dirty lazyfree file-clean; do
	# What is counted is there to count.
	count "$kind" stock
	((calls[page_vma_mapped_walk] >= pages * folios &&
		calls[set_tlb_ubc_flush_pending] == pages * folios)) ||
		fail "$kind: stock is not what it is taken for"
	count "$kind" batch
	expect page_vma_mapped_walk 1
	expect set_tlb_ubc_flush_pending 1
	expect swap_duplicate 0
	expect swap_duplicate_nr 1
	expect deferred_split_folio 0
done
# By the limit: reclaim asks whether they are young before. Single pages are reclaimed, too.
set_lru mglru
count aged stock
stock=${calls[lru_gen_look_around]:-0}
asked=$(counter young folios)
steps=$(counter young batches)
count aged batch
asked=$(($(counter young folios) - asked))
steps=$(($(counter young batches) - steps))
((asked >= folios)) || fail "nobody asked whether the folios are young"
((steps == asked)) || fail "$steps steps of walks over $asked folios"
saved=$((stock - ${calls[lru_gen_look_around]:-0}))
((saved >= (pages - 1) * folios)) || fail "no more than $saved calls of lru_gen_look_around saved"
