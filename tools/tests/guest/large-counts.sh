#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What the kernel does once for a large folio instead of once for each of its pages.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_point unmap
tracing=/sys/kernel/tracing
[[ -e $tracing/function_profile_enabled ]] || skip "CONFIG_FUNCTION_PROFILER"
looks=$tracing/events/kprobes/vmp_look_around

counts_clean_up() {
	clean_up_begins
	echo 0 >"$tracing/function_profile_enabled"
	echo >"$tracing/set_ftrace_filter"
	[[ ! -d $looks ]] || echo 0 >"$looks/enable"
	echo >"$tracing/kprobe_events"
	echo >"$tracing/trace"
	clean_up
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

# stock_counts CASE: is there to count what is counted? When a task of another process has the
# second CPU at that moment, the TLB is flushed at once.
stock_counts() {
	count "$1" stock
	((calls[page_vma_mapped_walk] >= pages * folios &&
		${calls[set_tlb_ubc_flush_pending]:-0} == pages * folios &&
		(!has_blocks || ${calls[$unfold]:-0} >= folios)))
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
names=(page_vma_mapped_walk 'set_tlb_ubc_flush_pending*' 'deferred_split_folio*')
kinds=(dirty)
if has_trait discard; then
	names+=(folio_dup_swap)
else
	names+=(swap_duplicate swap_duplicate_nr)
	kinds+=(lazyfree file-clean)
fi
# On arm64 the entries of a folio are a block, and stock breaks it up, which takes a barrier.
unfold=__contpte_try_unfold
has_blocks=$(grep -cx "$unfold" "$tracing/available_filter_functions" || true)
((!has_blocks)) || names+=("$unfold")
for name in "${names[@]}"; do
	echo "$name" >>"$tracing/set_ftrace_filter"
done
declare -A calls=()
for kind in "${kinds[@]}"; do
	wait_until stock_counts "$kind" || fail "$kind: stock is not what it is taken for"
	count "$kind" batch
	expect page_vma_mapped_walk 1
	expect set_tlb_ubc_flush_pending 1
	expect folio_dup_swap 1
	expect swap_duplicate 0
	expect swap_duplicate_nr 1
	expect deferred_split_folio 0
	expect "$unfold" 0
done
has young || exit 0
# At the limit, reclaim asks before whether they are young. It looks around each young page; only
# large folios count: struct page_vma_mapped_walk has the number of pages after the first.
set_lru mglru
# shellcheck disable=SC2016 # an argument of the function
echo 'p:vmp_look_around lru_gen_look_around pages=+8($arg1):u64' >"$tracing/kprobe_events"
echo "pages == $pages" >"$looks/filter"
echo 1 >"$looks/enable"
# look POLICY: sets looked to how often that is done, and the rest to what young counts.
look() {
	asked=$(counter young folios)
	steps=$(counter young batches)
	entries=$(counter young ptes)
	echo >"$tracing/trace"
	count aged "$1"
	looked=$(grep -c vmp_look_around: "$tracing/trace" || true)
	asked=$(($(counter young folios) - asked))
	steps=$(($(counter young batches) - steps))
	entries=$(($(counter young ptes) - entries))
	echo "$1: $looked looks around, $steps steps over $entries entries, asked $asked times"
}
look stock
((looked >= pages * folios)) || fail "stock is not what it is taken for"
look batch
((asked >= folios)) || fail "nobody asked whether the folios are young"
((steps == asked && looked <= asked)) || fail "more than one for each folio"
((entries == steps * pages)) || fail "a step is not over all entries of a folio"
