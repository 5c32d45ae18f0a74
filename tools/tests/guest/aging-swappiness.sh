#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A generation is made with the swappiness of who reclaims: with 0, anonymous memory stays on the
# list that it is on, however many there are. Else it would be moved to a younger one each time.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
trap clean_up EXIT

# MiB.
anon=$(scaled 60)
file=$(scaled 100 24)

# look: sets newest, and list to the one of the four that has most of the anonymous memory.
look() {
	read -r newest list < <(gens_of "$VMP_MEMCG" | awk '
		NF > 1 && $3 > most { most = $3; list = $1 % 4 }
		END { print $1, list }')
}

# In that many generations each list has been the oldest twice.
has_aged() {
	in_memcg cat "$FS/data" >/dev/null
	# To the last cold one, and some are in use.
	{ echo "${file}M swappiness=0" >"$VMP_MEMCG/memory.reclaim"; } 2>/dev/null || true
	look
	((newest >= first + 8))
}

memcg_new
swap_new
fs_new
truncate -s "${file}M" "$FS/data"
exec {said}< <(in_memcg "$BIN/hold" "$anon")
read -ru "$said" _ || fail "the memory can't be taken"
set_scan budget continue
look
first=$newest
before=$list
wait_until has_aged || fail "only $((newest - first)) generations were made"
echo "$((newest - first)) generations, list $before and $list"
((list == before)) || fail "anonymous memory has moved"
