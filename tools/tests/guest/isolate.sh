#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What a call of the classic LRU isolates: as many anonymous pages as flush/isolate says, and its
# share of the scan alone with stock, of files, and where memory.low protects. What a call takes
# beyond its share counts for the shares of the calls after it.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
trap clean_up EXIT

child=$VMP_MEMCG/child
held=$VMP_MEMCG/held
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

# reclaim MEMCG SIZE SWAPPINESS. What is old or scarce it judges by statistics, which may be seconds
# old until somebody reads them. By a process without children: the end of one would interrupt it.
reclaim() {
	cat "$1/memory.stat" >/dev/null
	(echo "$2 swappiness=$3" >"$1/memory.reclaim")
}

# try WHAT LRU SWAPPINESS: reclaim from above; sets least and most.
try() {
	echo >"$instance/trace"
	reclaim "$VMP_MEMCG" 1M "$3" || fail "$1: not all reclaimed"
	read -r least most <<<"$(asked "$2")"
	echo "$1: calls for $least to $most pages"
	((most)) || fail "$1: nothing was isolated"
}

# is_share WHAT LRU SWAPPINESS
is_share() {
	try "$@"
	((most <= share)) || fail "$1: that is more than its share"
}

# files_are_share WHAT: with files there for that time alone. While there are thousands of their
# pages that nobody uses, reclaim leaves anonymous memory alone.
files_are_share() {
	truncate -s 16M "$FS/data"
	(
		echo "$BASHPID" >"$child/cgroup.procs"
		exec cat "$FS/data" >/dev/null
	)
	is_share "$1" inactive_file 0
	truncate -s 0 "$FS/data"
}

# in_vain: reclaim from what nobody can reclaim; sets pages, those that passes of the whole list
# isolated on average.
in_vain() {
	local error

	echo >"$instance/trace"
	! error=$(reclaim "$held" 64M 200 2>&1) || fail "held pages were reclaimed"
	[[ $error == *"Resource temporarily unavailable" ]] || fail "$error"
	pages=$(awk '
		!match($0, /priority=[0-9]+/) { next }
		{ priority = substr($0, RSTART + 9, RLENGTH - 9) }
		priority == 0 && match($0, /nr_scanned=[0-9]+/) {
			pages += substr($0, RSTART + 11, RLENGTH - 11)
			passes += !whole
		}
		{ whole = priority == 0 }
		END { print int(pages / (passes ? passes : 1)) }' "$instance/trace")
	((pages)) || fail "nothing was isolated"
}

memcg_new
echo +memory >"$VMP_MEMCG/cgroup.subtree_control"
mkdir "$child" "$held"
swap_new
fs_new
set_lru classic
mkdir "$instance"
echo 1 >"$event/enable"
echo 1 >"$instance/events/vmscan/mm_vmscan_lru_shrink_inactive/enable"
exec {said}< <(
	echo "$BASHPID" >"$child/cgroup.procs"
	exec python3 -c "import os, signal
memory = bytearray(os.urandom(32 << 20))
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
	files_are_share "flush/isolate=$pages, files"
done
set_isolate 0
is_share "flush/isolate=0" inactive_anon 200
set_isolate 128
echo 64M >"$child/memory.low"
is_share "flush/isolate=128, protected" inactive_anon 200
echo 0 >"$child/memory.low"
try "flush/isolate=128, not protected any more" inactive_anon 200
((least == 128)) || fail "that is not what was set"

# The memory is in a pipe, whose references let nobody reclaim it.
exec {said}< <(
	echo "$BASHPID" >"$held/cgroup.procs"
	exec python3 -c "import ctypes, fcntl, mmap, os, signal
size = 8 << 20
memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory.write(os.urandom(size))
out, into = os.pipe()
fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, size)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
words = (ctypes.c_size_t * 2)(address, size)
if ctypes.CDLL(None).vmsplice(into, words, ctypes.c_ulong(1), 0) != size:
    raise SystemExit('the pipe does not take the memory')
print('has it', flush=True)
signal.pause()"
)
read -ru "$said" _ || fail "the memory can't be held"
set_isolate 0
# What else the process has goes first.
in_vain
in_vain
alone=$pages
set_isolate 128
in_vain
echo "in vain: passes isolate $alone pages, with flush/isolate=128 $pages"
((pages < 2 * alone)) || fail "what goes beyond a share is not taken from the next"
