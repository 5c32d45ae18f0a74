#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# 32 memcgs with equal working sets compete under root reclaim: how equal their
# shares of the memory are must not depend on the reclaim loop.
# Jain's index of the shares x: (sum of x)^2 / (n * sum of x^2), 1 if all are equal.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
((${VMP_SCALE:-100} >= 100)) ||
	skip "a kernel without sanitizers, that is fast enough for so many processes that compete"
hog_pids=()
# This script and the programs that it runs: without protection they would wait for
# their text again and again.
self=$CGROUPS/vmp-test-script
fairness_clean_up() {
	clean_up_begins
	((${#hog_pids[@]} == 0)) || kill "${hog_pids[@]}"
	echo $$ >"$CGROUPS/cgroup.procs"
	# Text that others have mapped would keep it around, see memcg_remove(); what stays is
	# the runner's to reclaim.
	echo 0 >"$self/memory.min"
	echo 1G 2>/dev/null >"$self/memory.reclaim" || true
	wait_until self_removed || fail "its own memcg can't be removed"
	clean_up
}
# Who was killed takes a moment to go.
self_removed() { rmdir "$self" 2>/dev/null; }
echo +memory >"$CGROUPS/cgroup.subtree_control"
mkdir "$self"
trap fairness_clean_up EXIT
echo 64M >"$self/memory.min"
echo $$ >"$self/cgroup.procs"

memcgs=32
# MiB: twice what there is.
workset=8
left=128
# One loop differed by up to 0.004 between runs; one that left one in eight memcgs alone
# was 0.044 below stock.
tolerance=0.02
rounds=2
! full || rounds=3
settings=("${scan_settings[0]}" "budget continue")
! full || settings=("${scan_settings[@]}")
# Pages stolen, each of which has a new owner: half of the memory.
settle=16384
# So many, each after that number of pages stolen.
samples=6
sample=2048

# root_stolen: sets stolen.
root_stolen() {
	local text name line

	read_file text /proc/vmstat
	stolen=0
	for name in kswapd direct; do
		line=$'\n'"pgsteal_$name ([0-9]+)"
		[[ $text =~ $line ]]
		stolen=$((stolen + BASH_REMATCH[1]))
	done
}

available() { awk '$1 == "MemAvailable:" { print int($2 / 1024) }' /proc/meminfo; }

# leave MIB: take all other memory.
leave() {
	local said text

	exec {said}< <(exec "$BIN/hog" "$1")
	hog_pids+=($!)
	read -ru "$said" text || fail "the memory can't be taken"
	echo "hog $text"
}

# turn_over PAGES: wait until so many were stolen.
turn_over() {
	root_stolen
	wait_until has_stolen $((stolen + $1)) || fail "the memcgs don't compete"
}

has_stolen() {
	pause 0.1
	root_stolen
	work=$stolen
	((stolen >= $1))
}

# has_stolen_or_faulted STOLEN FAULTED: so many pages by then.
has_stolen_or_faulted() {
	local -A stats=()

	! has_stolen "$1" || return 0
	read_pairs_of stats "$VMP_MEMCG/memory.stat"
	work=${stats[pgfault]}
	((work >= $2))
}

# How much is left when reclaim begins depends on what ran before. Have them fault in most of
# what they use, and take more until reclaim begins.
press() {
	local enough faulted try mib

	root_stolen
	enough=$((stolen + 100))
	faulted=$((memcgs * workset * 256 * 3 / 4))
	for ((try = 0; try < 10; try++)); do
		# They may have all, and not need any more.
		wait_until has_stolen_or_faulted "$enough" "$faulted" || true
		((stolen < enough)) || return 0
		# 16 MiB more, and not so much that nothing is left.
		mib=$(available)
		leave $((mib > 32 ? mib - 16 : (mib + 1) / 2))
		root_stolen
		enough=$((stolen + 100))
		faulted=$((faulted + 2000))
	done
	fail "the memcgs don't compete"
}

# One line per sample: what each memcg has.
sample_memory() {
	local i

	for ((i = 0; i < samples; i++)); do
		turn_over "$sample"
		memory[$1]+=$(cat "$VMP_MEMCG"/[0-9]*/memory.current | paste -s)$'\n'
	done
}

# fairness: of such samples, the index of what each has on average, and the lowest of one
# sample, which is as low for all loops now and then.
fairness() {
	awk '
		function index_of(x, i, sum, squares) {
			for (i in x) {
				sum += x[i]
				squares += x[i] * x[i]
			}
			return sum * sum / (NF * squares)
		}
		{
			for (i = 1; i <= NF; i++) {
				now[i] = $i
				total[i] += $i
			}
			index_now = index_of(now)
			if (NR == 1 || index_now < lowest)
				lowest = index_now
		}
		END { printf "%.4f %.4f\n", index_of(total), lowest }'
}

check_alive() {
	local killed

	killed=$(grep -L '^oom_kill 0$' "$VMP_MEMCG"/[0-9]*/memory.events) || true
	[[ ! $killed ]] || fail "$1: a process was OOM-killed: $killed"
	(($(cat "$VMP_MEMCG"/[0-9]*/cgroup.procs | wc -l) == memcgs)) ||
		fail "$1: a process has ended"
}

# This script goes first, so that a window is not much longer than it says.
renice -n -20 $$ >/dev/null
# Its loads run when nobody else does. A reclaim of theirs takes seconds on a busy machine, with stock,
# too: no reason to go over to stock.
echo off >"$POLICY/guard/state"
memcg_new
echo +memory >"$VMP_MEMCG/cgroup.subtree_control"
swap_new
fs_new
leave "$left"
for ((i = 0; i < memcgs; i++)); do
	mkdir "$VMP_MEMCG/$i"
	(
		echo "$BASHPID" >"$VMP_MEMCG/$i/cgroup.procs"
		exec nice -n 39 "$BIN/workset" "$FS/$i" "$workset"
	) &
	# The shell is not to tell how it ends.
	disown
done
press
declare -A memory=()
for ((round = 0; round < rounds; round++)); do
	# In another order each time: what drifts meets all.
	for ((i = 0; i < ${#settings[@]}; i++)); do
		setting=${settings[(round + i) % ${#settings[@]}]}
		read -r scan aging <<<"$setting"
		set_scan "$scan" "$aging"
		turn_over "$settle"
		sample_memory "$setting"
		check_alive "$setting"
	done
done
stock=
for setting in "${settings[@]}"; do
	read -r index lowest < <(printf %s "${memory[$setting]}" | fairness)
	echo "$setting: Jain's index $index, of one moment $lowest at the lowest"
	[[ $stock ]] || stock=$index
	awk "BEGIN { exit !($index >= $stock - $tolerance) }" ||
		fail "$setting: less fair than stock by more than $tolerance"
done
