#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The same without a memcg: a machine with little memory left, a slow disk, high limits
# for dirty pages, and a process beside it that only wants anonymous memory. Then, with
# a lower limit, processes that only read: kswapd always has clean folios to take, and must
# not sleep.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_disk
hog=
root_clean_up() {
	clean_up_begins
	rm -f "$WORK/reading"
	writer_end
	[[ ! $hog ]] || kill "$hog"
	spare 0
	clean_up
}
writer_end() {
	[[ -e $WORK/writing ]] || return 0
	rm "$WORK/writing"
	pkill -INT -x dd || true
	wait "$writer" || true
}
trap root_clean_up EXIT

# spare SCORE: set oom_score_adj for this shell and those that wait for it.
spare() {
	local pid=$$

	while ((pid > 1)); do
		echo "$1" >"/proc/$pid/oom_score_adj"
		pid=$(awk '{ sub(/.*\) /, ""); print $2 }' "/proc/$pid/stat")
	done
}

# victim COMMAND...: the OOM killer takes it before all others.
victim() {
	(
		echo 1000 >"/proc/$BASHPID/oom_score_adj"
		exec "$@"
	)
}

seconds=15
scans=(budget)
if full; then
	seconds=20
	scans=(stock budget stock)
fi
kswapd=$(pgrep -x kswapd0)

# Of the machine, and kswapd's CPU time in ms.
counters() {
	cat /proc/vmstat
	awk '{ sub(/.*\) /, ""); print "cpu", ($12 + $13) * 10 }' "/proc/$kswapd/stat"
}

# In place, so that no block has to be found for what is written.
write_on() {
	while [[ -e $WORK/writing ]]; do
		victim dd if=/dev/zero of="$FS/data" bs=1M count=400 conv=notrunc status=none || true
	done
}

writer_start() {
	: >"$WORK/writing"
	write_on &
	writer=$!
	pause 0.5
}

# Holes: nothing is read from the disk.
read_on() {
	while [[ -e $WORK/reading ]]; do
		cat "$FS/holes" >/dev/null
	done
}

# Over all runs with a throttle policy: kills, pages scanned and stolen.
declare -A kills=([stock]=0 [all]=0) scanned=([stock]=0 [all]=0) stolen=([stock]=0 [all]=0)

# run SCAN WRITEBACK THROTTLE
run() {
	local -A a=() b=()
	local said

	set_scan "$1" continue
	set_throttle "$2" "$3"
	sync
	read_pairs a < <(counters)
	writer_start
	said=$(victim "$BIN/stalls" anon 64 "$seconds" 2>&1) || true
	writer_end
	read_pairs b < <(counters)
	: $((kills[$3] += b[oom_kill] - a[oom_kill]))
	: $((scanned[$3] += b[pgscan_kswapd] + b[pgscan_direct] - a[pgscan_kswapd] - a[pgscan_direct]))
	: $((stolen[$3] += b[pgsteal_kswapd] + b[pgsteal_direct] - a[pgsteal_kswapd] - a[pgsteal_direct]))
	echo "scan=$1 writeback=$2 throttle=$3: $((b[oom_kill] - a[oom_kill])) OOM kills," \
		"direct reclaim scanned $((b[pgscan_direct] - a[pgscan_direct])), stole" \
		"$((b[pgsteal_direct] - a[pgsteal_direct])) pages; kswapd scanned" \
		"$((b[pgscan_kswapd] - a[pgscan_kswapd])), stole" \
		"$((b[pgsteal_kswapd] - a[pgsteal_kswapd])), took $((b[cpu] - a[cpu])) ms;" \
		"anonymous memory: ${said:-killed}"
}

spare -1000
slow_new "$slow_disk"
dd if=/dev/zero of="$FS/data" bs=1M count=400 conv=fsync status=none
slow_load "$(slow_table 8000)"
raise_dirty_limits
exec {said}< <(exec "$BIN/hog" 160)
hog=$!
read -ru "$said" text || fail "the memory can't be taken"
echo "hog $text"
for scan in "${scans[@]}"; do
	# With stock the OOM killer may take a part of the tests, too: only when asked for.
	[[ ! ${VMP_TEST_STOCK:-} ]] || run "$scan" stock stock
	run "$scan" feedback all
done
((kills[all] == 0)) || fail "a process was OOM-killed with throttle=all"
if [[ ${VMP_TEST_STOCK:-} ]]; then
	((kills[stock])) || fail "stock was to kill a process"
	# Scanned per stolen page, without dividing by what may be 0.
	((scanned[all] * stolen[stock] < scanned[stock] * stolen[all])) ||
		fail "throttle=all scans more per stolen page than stock"
fi

declare -A before=() after=()
kswapd_takes() {
	read_pairs after < <(counters)
	((after[pgsteal_kswapd] > before[pgsteal_kswapd]))
}
truncate -s 400M "$FS/holes"
set_throttle feedback all
# The writer can't make all dirty, so what is read stays for kswapd to take.
set_dirty_limits 40 10
readers=()
: >"$WORK/reading"
for ((i = 0; i < 3; i++)); do
	read_on &
	readers+=($!)
done
pause 2
writer_start
pause 3
read_pairs before < <(counters)
read_stats before throttle
pause "$seconds"
# A busy machine may not have read enough by then.
wait_until kswapd_takes || fail "kswapd took nothing"
read_stats after throttle
rm "$WORK/reading"
wait "${readers[@]}"
writer_end
echo "beside readers: kswapd stole $((after[pgsteal_kswapd] - before[pgsteal_kswapd])) pages of" \
	"$((after[pgscan_kswapd] - before[pgscan_kswapd])) scanned, set" \
	"$((after[mark_writeback] - before[mark_writeback])) marks, slept" \
	"$((after[kswapd] - before[kswapd])) times"
((after[kswapd] == before[kswapd])) || fail "kswapd slept although there were clean folios to take"
check_throttle_stats
