#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What the classic LRU takes from anonymous memory, and what from files, does not depend on the
# flush policy: neither of one memcg, nor where reclaim from above takes a little of each of many.
# Reclaim of the whole machine says less, as it meets what others have.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
trap clean_up EXIT

# Percent of all that is taken.
slack=5
rounds=1
more=0
# MiB of either kind, in one memcg and in all of many.
one=16
many=50
memcgs=25
if full; then
	rounds=2
	one=200
	many=400
	memcgs=200
fi

# count_pages: sets anon and file to what the memcgs have.
count_pages() {
	local -A stats=()
	local text

	# Adds up the CPUs' counts.
	read_file text "$VMP_MEMCG/cpu.stat"
	read_pairs_of stats "$VMP_MEMCG/memory.stat"
	anon=$((stats[anon] / 4096))
	file=$((stats[file] / 4096))
}

# try POLICY SIZE SWAPPINESS: sets share to the percentage of anonymous pages.
try() {
	local before

	count_pages
	before=("$anon" "$file")
	set_policy "$1"
	echo "$2 swappiness=$3" >"$VMP_MEMCG/memory.reclaim" || fail "not all reclaimed"
	set_policy stock
	count_pages
	anon=$((before[0] - anon))
	file=$((before[1] - file))
	((anon + file > 0)) || fail "nothing is taken"
	share=$((100 * anon / (anon + file)))
	echo "$what, swappiness $3, flush=$1: $anon anonymous pages and $file of files, $share %"
}

# within LEAST MOST SHARE...: is no share beyond what stock's have been, by more than the slack?
within() {
	local share

	for share in "${@:3}"; do
		((share >= $1 - slack && share <= $2 + slack)) || return 1
	done
}

# compare MEMCGS MIB SIZE SWAPPINESS: with batch a share is not beyond what stock's have been. These
# differ, too, where each of many has a little taken: there, up to so many `more` rounds tell.
compare() {
	local what="of $1 memcgs" round policy least=100 most=0
	local batch=()

	for ((round = 1; round <= rounds + more; round++)); do
		for policy in stock batch; do
			memcg_new
			fill_memcgs "$1" "$2"
			try "$policy" "${@:3}"
			memcg_remove
			rm "$FS"/[0-9]*
			if [[ $policy == batch ]]; then
				batch+=("$share")
				continue
			fi
			((share >= least)) || least=$share
			((share <= most)) || most=$share
		done
		if ((round >= rounds)) && within "$least" "$most" "${batch[@]}"; then
			return
		fi
	done
	fail "the shares differ by more than $slack %"
}

swap_new
fs_new
set_lru classic
for swappiness in 4 60 200; do
	compare 1 "$one" "$((one / 2))M" "$swappiness"
done
more=4
compare "$memcgs" "$many" "$((many / 4))M" 60
