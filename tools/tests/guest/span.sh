#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Groups that wait from call to call: of the classic LRU, whose calls have few folios each, more
# share a flush than without, and all that comes of them is counted where it was taken from. They
# are gone over when reclaim ends, also when what let them wait is switched off meanwhile.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
trap clean_up EXIT

# folios_a_group SPAN: sets size to that, in tenths, while thousands wait for a flush.
folios_a_group() {
	local -A before=() after=()

	set_span "$1"
	read_stats before
	wait_until above flush deferred $((before[deferred] + 4000)) || fail "no folio is deferred"
	read_stats after
	size=$((10 * (after[deferred] - before[deferred]) / (after[batches] - before[batches])))
	echo "span $1: $((size / 10)).$((size % 10)) folios a group"
}

# agree BEGUN: the memory cgroup counts what the machine does since then, from which nothing else is
# reclaimed. Sets stolen to that.
agree() {
	local status=0 counted

	stolen=$(($(pages_stolen) - $1))
	# What is small is added up later.
	wait_until alike || status=$?
	echo "$counted pages stolen by the memory cgroup's count, $stolen by the machine's"
	((status == 0)) || fail "the counts differ"
}

alike() {
	counted=$(awk '$1 == "pgsteal" { n += $2 } $1 == "pgsteal_kswapd" { n -= $2 } END { print n }' \
		"$VMP_MEMCG/memory.stat")
	((counted == stolen))
}

# With the classic LRU some of the load is killed now and then, with stock, too: no reason to go
# over to stock.
echo off >"$POLICY/guard/state"
begun=$(pages_stolen)
load_start
for lru in mglru classic; do
	set_lru "$lru"
	set_policy batch
	folios_a_group 0
	alone=$size
	folios_a_group 1
	for ((i = 0; i < 20; i++)); do
		set_span $((i % 2))
		((i % 5)) || set_policy stock
		((i % 5)) || set_policy batch
		pause 0.02
	done
done
((size >= 2 * alone)) || fail "calls of the classic LRU don't share a flush"
check_stats

# It rests while it is looked at.
echo 1 >"$VMP_MEMCG/cgroup.freeze"
wait_until grep -q '^frozen 1$' "$VMP_MEMCG/cgroup.events" || fail "the load does not rest"
agree "$begun"
echo 0 >"$VMP_MEMCG/cgroup.freeze"
# Those that were not killed tell of wrong data.
load_check
echo max >"$VMP_MEMCG/memory.max"
kill -INT "$load_pid"
wait "$load_pid" || true
# Newer stress-ng ends with a line of how many have failed: none.
! grep -iE 'fail|mismatch|corrupt' "$WORK/load" | grep -v 'failed: 0$' ||
	fail "the load has found wrong data"
rm "$WORK/load"

# A reclaim of a few pages ends with some that wait, where files are mostly what it finds. They are
# gone over then.
memcg_remove
memcg_new
fs_new
fill_memcgs 1 48
begun=$(pages_stolen)
for ((i = 0; i < 200; i++)); do
	echo "128K swappiness=20" >"$VMP_MEMCG/0/memory.reclaim" || fail "not all reclaimed"
done
agree "$begun"
((stolen >= 6400)) || fail "nothing is stolen"
check_stats
