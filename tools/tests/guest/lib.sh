# shellcheck shell=bash disable=SC2034 # the scripts that source this use the variables
# What the guest tests share: settings of the module, memcgs, swap, a load.
# A test says what is wrong by fail; all that it prints goes to "# " lines.

POLICY=/sys/kernel/debug/vmscan_policy
STATS=$POLICY/flush/stats
LRU_GEN=/sys/kernel/mm/lru_gen/enabled
THP=/sys/kernel/mm/transparent_hugepage
CGROUPS=/sys/fs/cgroup
BIN=${VMP_TEST_BIN:-}
WORK=${VMP_TEST_WORK:-/run}

export VMP_MEMCG=$CGROUPS/vmp-test

fail() {
	echo "$*"
	exit 1
}

# pause SECONDS: without a process, which takes long to start on a busy machine.
pause() { read -rt "$1" <><(:) || true; }

# scaled N: N at VMP_SCALE percent, 1 at least.
scaled() {
	local n=$(($1 * ${VMP_SCALE:-100} / 100))

	echo $((n ? n : 1))
}

set_policy() { echo "$1" >"$POLICY/flush/policy"; }
set_max_folios() { echo "$1" >"$POLICY/flush/max_folios"; }

# set_lru mglru|classic
set_lru() {
	case $1 in
	mglru) echo y ;;
	classic) echo n ;;
	esac >"$LRU_GEN"
}

# read_stats ARRAY: the associative array gets flush/stats, by name.
# Through a pipe: the shell would seek back and read on in text that has changed.
read_stats() {
	local -n array_ref=$1
	local name value

	while read -r name value; do
		array_ref[$name]=$value
	done < <(cat "$STATS")
}

# stats_delta BEFORE AFTER: print what has grown.
stats_delta() {
	local -n before_ref=$1 after_ref=$2
	local name text=""

	for name in "${!after_ref[@]}"; do
		[[ $name != largest_batch ]] || continue
		((after_ref[$name] == before_ref[$name])) ||
			text+=" $name $((after_ref[$name] - before_ref[$name]))"
	done
	echo "${text:- nothing counted}"
}

# Each deferred folio has one outcome, and each dirty one of these is written or
# not. Holds whenever no reclaimer uses the batch: once stock is in force.
check_stats() {
	local -A stats=()
	local name outcomes=0 tried

	read_stats stats
	for name in "${!stats[@]}"; do
		case $name in
		recheck_* | bounce_*) outcomes=$((outcomes + stats[$name])) ;;
		esac
	done
	((outcomes == stats[deferred])) ||
		fail "$outcomes outcomes for ${stats[deferred]} deferred folios:" "${stats[@]@A}"
	tried=$((stats[pageouts] + stats[unwritten]))
	# A clean folio can get dirty before it is locked for good.
	((tried >= stats[recheck_dirty] && tried <= stats[recheck_dirty] + stats[recheck_clean])) ||
		fail "$tried folios written or not, ${stats[recheck_dirty]} were dirty:" "${stats[@]@A}"
	((stats[flushes] <= stats[batches] && stats[calls] <= stats[batches] &&
		stats[batches] <= stats[deferred])) ||
		fail "calls, batches, flushes don't fit:" "${stats[@]@A}"
}

# memcg_new [LIMIT]: an empty memcg at $VMP_MEMCG.
memcg_new() {
	echo +memory >"$CGROUPS/cgroup.subtree_control"
	mkdir "$VMP_MEMCG"
	echo "${1:-max}" >"$VMP_MEMCG/memory.max"
}

# Ends what still runs in the memcg, too.
memcg_remove() {
	local try

	[[ -d $VMP_MEMCG ]] || return 0
	echo 1 >"$VMP_MEMCG/cgroup.kill"
	# Program text that others have mapped too would keep the memcg around.
	echo 1G 2>/dev/null >"$VMP_MEMCG/memory.reclaim" || true
	for ((try = 0; try < 100; try++)); do
		! rmdir "$VMP_MEMCG" 2>/dev/null || return 0
		sleep 0.1
	done
	fail "the memcg can't be removed: $(<"$VMP_MEMCG/cgroup.procs")"
}

# in_memcg COMMAND...
in_memcg() {
	(
		echo "$BASHPID" >"$VMP_MEMCG/cgroup.procs"
		exec "$@"
	)
}

swap_new() {
	echo 1G >/sys/block/zram0/disksize
	mkswap /dev/zram0 >/dev/null
	swapon /dev/zram0
}

swap_remove() {
	if grep -q '^/dev/zram0 ' /proc/swaps; then
		swapoff /dev/zram0
	fi
	echo 1 >/sys/block/zram0/reset
}

# load_start: a workload that swaps all the time, and has begun to.
load_start() {
	local try

	memcg_new 32M
	swap_new
	# Writes, checks, and ends soon when told to, which not all methods do.
	# The job has to be stress-ng itself: a shell in between ignores SIGINT.
	(
		echo "$BASHPID" >"$VMP_MEMCG/cgroup.procs"
		exec stress-ng --vm 2 --vm-method rand-set --vm-bytes 96M --vm-keep --verify \
			--metrics --temp-path "$WORK" --timeout 1h
	) >"$WORK/load" 2>&1 &
	load_pid=$!
	for ((try = 0; try < 600; try++)); do
		(($(<"$VMP_MEMCG/memory.swap.current") < 16 << 20)) || return 0
		load_check
		sleep 0.1
	done
	fail "the load doesn't swap"
}

load_check() {
	[[ -d /proc/$load_pid ]] || fail "the load has ended: $(<"$WORK/load")"
}

# load_end: it did not find wrong data, and was not killed.
load_end() {
	local status=0

	load_check
	echo max >"$VMP_MEMCG/memory.max"
	kill -INT "$load_pid"
	wait "$load_pid" || status=$?
	((status == 0)) || fail "the load failed with status $status: $(<"$WORK/load")"
	grep -q '^oom_kill 0$' "$VMP_MEMCG/memory.events" || fail "a process of the load was killed"
	sed -n 's/.*\] vm  */load: bogo ops, real, user and system time: /p' "$WORK/load"
	# Its page in tmpfs is charged to the memcg, which can't go before it.
	rm "$WORK/load"
}

# clean_up [STATUS]: leave the guest as the test found it, whatever it did.
clean_up() {
	local status=${1:-$?}

	trap - EXIT
	lsmod | grep -q '^vmscan_policy ' || insmod "$VMP_MODULE_DIR/vmscan_policy.ko"
	memcg_remove
	swap_remove
	set_policy stock
	echo 0 >"$POLICY/bypass"
	set_max_folios 64
	set_lru mglru
	exit "$status"
}
