#!/bin/bash
# 32 memcgs with equal working sets compete under root reclaim: how equal their
# shares of the memory are must not depend on the reclaim loop.
# Jain's index of the shares x: (sum of x)^2 / (n * sum of x^2), 1 if all are equal.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
((${VMP_SCALE:-100} >= 100)) || {
	echo "a kernel with sanitizers is too slow for so many processes that compete"
	exit 4
}
hog_pids=()
# This script and the programs that it runs: without protection they would wait for
# their text again and again.
self=$CGROUPS/vmp-test-script
fairness_clean_up() {
	local status=$?

	((${#hog_pids[@]} == 0)) || kill "${hog_pids[@]}"
	echo $$ >"$CGROUPS/cgroup.procs"
	# Text that others have mapped would keep it around, see memcg_remove().
	echo 1G 2>/dev/null >"$self/memory.reclaim" || true
	rmdir "$self"
	clean_up "$status"
}
echo +memory >"$CGROUPS/cgroup.subtree_control"
mkdir "$self"
trap fairness_clean_up EXIT
echo 64M >"$self/memory.min"
echo $$ >"$self/cgroup.procs"

memcgs=32
# MiB: twice what there is.
workset=8
left=128
# Stock against itself differed by 0.001 in one run.
tolerance=0.03
settle=$(scaled 3)
samples=$(scaled 6)

root_stolen() { awk '/^pgsteal_(kswapd|direct) / { n += $2 } END { print n }' /proc/vmstat; }

available() { awk '$1 == "MemAvailable:" { print int($2 / 1024) }' /proc/meminfo; }

# leave MIB: take all other memory.
leave() {
	local said text

	exec {said}< <(exec "$BIN/hog" "$1")
	hog_pids+=($!)
	read -ru "$said" text || fail "the memory can't be taken"
	echo "hog $text"
}

# How much is left when reclaim begins depends on what ran before: take more until
# it does.
press() {
	local before try

	for ((try = 0; try < 10; try++)); do
		before=$(root_stolen)
		pause 2
		(($(root_stolen) < before + 100)) || return 0
		leave $(($(available) - 16))
	done
	fail "the memcgs don't compete"
}

# One number per sample.
sample_shares() {
	local i

	for ((i = 0; i < samples; i++)); do
		pause 0.5
		awk '{ sum += $1; squares += $1 * $1; n++ }
			END { printf "%.4f\n", sum * sum / (n * squares) }' \
			"$VMP_MEMCG"/[0-9]*/memory.current
	done
}

check_alive() {
	local i

	for ((i = 0; i < memcgs; i++)); do
		grep -q '^oom_kill 0$' "$VMP_MEMCG/$i/memory.events" || fail "$1: a process was OOM-killed"
		[[ $(<"$VMP_MEMCG/$i/cgroup.procs") ]] || fail "$1: a process has ended"
	done
}

memcg_new
echo +memory >"$VMP_MEMCG/cgroup.subtree_control"
swap_new
fs_new
leave "$left"
for ((i = 0; i < memcgs; i++)); do
	mkdir "$VMP_MEMCG/$i"
	(
		echo "$BASHPID" >"$VMP_MEMCG/$i/cgroup.procs"
		exec "$BIN/workset" "$FS/$i" "$workset"
	) &
	# The shell is not to tell how it ends.
	disown
done
press
# Stock is measured again last, for its own spread.
stock=
for setting in "${scan_settings[@]}" "stock continue"; do
	read -r scan aging <<<"$setting"
	set_scan "$scan" "$aging"
	pause "$settle"
	before=$(root_stolen)
	mapfile -t shares < <(sample_shares)
	stolen=$(($(root_stolen) - before))
	check_alive "$setting"
	read -r index lowest < <(printf '%s\n' "${shares[@]}" | awk '
		{ sum += $1 }
		NR == 1 || $1 < lowest { lowest = $1 }
		END { printf "%.4f %.4f\n", sum / NR, lowest }')
	echo "$setting: Jain's index $index on average, $lowest at the lowest; $stolen pages stolen"
	((stolen > 0)) || fail "$setting: the memcgs don't compete"
	[[ $stock ]] || stock=$index
	awk "BEGIN { exit !($index >= $stock - $tolerance) }" ||
		fail "$setting: less fair than stock by more than $tolerance"
done
