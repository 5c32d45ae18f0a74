#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What a call of the classic LRU isolates: as many anonymous pages as flush/isolate says, and its
# share of the scan alone with stock, of files, and where memory.low protects.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
trap clean_up EXIT

child=$VMP_MEMCG/child
event=$instance/events/vmscan/mm_vmscan_lru_isolate
# SWAP_CLUSTER_MAX: the share of a call at most.
share=32

# asked LRU: the fewest and the most pages that a call was to isolate from it.
asked() {
	awk -v "lru=lru=$1" '
		$NF == lru {
			for (i = 1; i <= NF; i++)
				if (split($i, pair, "=") == 2 && pair[1] == "nr_requested")
					n = pair[2]
			if (!calls++ || n < least)
				least = n
			if (n > most)
				most = n
		}
		END { print least + 0, most + 0 }' "$instance/trace"
}

# try WHAT LRU SWAPPINESS: reclaim from above; sets least and most.
try() {
	echo >"$instance/trace"
	echo 1M swappiness="$3" >"$VMP_MEMCG/memory.reclaim" || fail "$1: not all reclaimed"
	# No process ends later: its signal would interrupt the next write.
	read -r least most <<<"$(asked "$2")"
	echo "$1: calls for $least to $most pages"
	((most)) || fail "$1: nothing was isolated"
}

# is_share WHAT LRU SWAPPINESS
is_share() {
	try "$@"
	((most <= share)) || fail "$1: that is more than its share"
}

memcg_new
echo +memory >"$VMP_MEMCG/cgroup.subtree_control"
mkdir "$child"
swap_new
fs_new
truncate -s 16M "$FS/data"
set_lru classic
mkdir "$instance"
echo 1 >"$event/enable"
exec {said}< <(
	echo "$BASHPID" >"$child/cgroup.procs"
	exec python3 -c "import os, signal
memory = bytearray(os.urandom(16 << 20))
open('$FS/data', 'rb').read()
print('has it', flush=True)
signal.pause()"
)
read -ru "$said" _ || fail "the memory can't be taken"

is_share stock inactive_anon 200
set_policy batch
for pages in 128 512; do
	set_isolate "$pages"
	try "flush/isolate=$pages" inactive_anon 200
	((least == pages && most == pages)) || fail "that is not what was set"
	is_share "flush/isolate=$pages, files" inactive_file 0
done
set_isolate 0
is_share "flush/isolate=0" inactive_anon 200
set_isolate 128
echo 64M >"$child/memory.low"
is_share "flush/isolate=128, protected" inactive_anon 200
echo 0 >"$child/memory.low"
try "flush/isolate=128, not protected any more" inactive_anon 200
((least == 128)) || fail "that is not what was set"
