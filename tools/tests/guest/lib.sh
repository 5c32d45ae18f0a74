# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034 # the scripts that source this use the variables
# What the guest tests share: settings of the module, memcgs, swap, a load.
# A test says what is wrong by fail; all that it prints goes to "# " lines.
. "$(dirname "${BASH_SOURCE[0]}")/clock.sh"

POLICY=/sys/kernel/debug/vmscan_policy
LRU_GEN=/sys/kernel/mm/lru_gen/enabled
THP=/sys/kernel/mm/transparent_hugepage
CGROUPS=/sys/fs/cgroup
BIN=${VMP_TEST_BIN:-}
WORK=${VMP_TEST_WORK:-/run}
FS=$WORK/fs
slow_disk=${VMP_DISK:-/dev/vda}
# For a test to make.
instance=/sys/kernel/tracing/instances/vmp-test

# The kernel's own reclaim loop, and the policies of the two points for it: scan, aging.
scan_settings=("stock continue" "budget stop" "budget continue")

# skip REASON: the test needs what is not there.
skip() {
	echo "not there: $*"
	exit 4
}

# has POINT: does this kernel have the point?
has() { [[ -d $POLICY/$1 ]]; }

# has_trait NAME: does stock of this kernel do that by itself?
has_trait() { grep -qx "$1" "$POLICY/traits"; }

# The trait that a point is absent with, and must be.
declare -A instead=([writeback]=feedback [unmap]=unmap [young]=young)

# need_point POINT...: skip the test where stock does that by itself.
need_point() {
	local point

	for point in "$@"; do
		! has "$point" || continue
		has_trait "${instead[$point]}" || fail "there is no $point, and the kernel has no trait for that"
		skip "the point $point: stock of this kernel does by itself what that is for"
	done
}

# Where stock is the loop of 7.2, that of 6.12 can be had, and stock ages as it is told.
if has_trait budget; then
	scan_settings+=("stock stop" "v6.12 continue")
fi

# The kinds of large folio that unmap=batch can be for: else stock does it in batches.
unmap_kinds=(anon lazyfree file)
! has_trait discard || unmap_kinds=(anon)

# full: are all settings wanted?
full() { [[ ${VMP_FULL:-} ]]; }

export VMP_MEMCG=$CGROUPS/vmp-test

# The status that the test ends with, once it is cleaning up.
ended=

# In a clean-up the rest is done, too.
fail() {
	echo "$*"
	[[ $ended ]] || exit 1
	return 1
}

# last_said: the module's last line in the kernel's log, where the kernel writes at any time, too.
last_said() { dmesg | grep -F "vmscan_policy: " | tail -n 1; }

# log_says TEXT: has the kernel's log that? All of it is read, see log_since().
log_says() { [[ $(dmesg) == *"$1"* ]]; }

# has_module NAME: is it loaded? No pipe from lsmod, which fails if grep has seen enough before its end.
has_module() { grep -q "^$1 " /proc/modules; }

# clean_up_begins: what fails from here on is told, and fails the test, but keeps nothing else
# from being done. First in all that is done on EXIT.
clean_up_begins() {
	local status=$?

	[[ ! $ended ]] || return 0
	ended=$status
	trap - EXIT
	set +eu -o errtrace
	trap 'echo "clean-up: status $? at ${BASH_SOURCE[0]##*/}:$LINENO" >&2; ended=1' ERR
}

# read_file VARIABLE FILE: it gets the text.
read_file() { IFS='' read -rd '' "$1" <"$2" || true; }

# wait_until COMMAND...: until it succeeds; the limit is for what would never happen. While a
# command that sets work, to what shows that things go on, has that change, it isn't given up.
wait_until() {
	local clock end work='' worked=''

	read_clock
	end=$((clock + 180))
	until "$@"; do
		read_clock
		[[ $work == "$worked" ]] || end=$((clock + 180))
		worked=$work
		((clock < end)) || return 1
		pause 0.01
	done
}

# scaled N [LEAST]: N at VMP_SCALE percent, LEAST (1) at least.
scaled() {
	local n=$(($1 * ${VMP_SCALE:-100} / 100)) least=${2:-1}

	echo $((n > least ? n : least))
}

# chosen FILE: what is in brackets in it.
chosen() {
	local text

	text=$(<"$1")
	text=${text#*[}
	echo "${text%%]*}"
}

# lists TEXT: the file of flush's policies says so. must_list TEXT: it does, or will soon.
lists() { [[ $(<"$POLICY/flush/policy") == "$1" ]]; }
must_list() { wait_until lists "$1" || fail "flush/policy reads $(<"$POLICY/flush/policy"), not $1"; }

set_policy() { echo "$1" >"$POLICY/flush/policy"; }
set_max_folios() { echo "$1" >"$POLICY/flush/max_folios"; }
set_span() { echo "$1" >"$POLICY/flush/span"; }
set_scan_batch() { echo "$1" >"$POLICY/scan/batch"; }
set_scan_floor() { echo "$1" >"$POLICY/scan/floor"; }

# set_scan SCAN AGING
set_scan() {
	echo "$2" >"$POLICY/aging/policy"
	echo "$1" >"$POLICY/scan/policy"
}

# write FILE TEXT: where the point exists.
write() { ! has "${1%%/*}" || echo "$2" >"$POLICY/$1"; }

# set_throttle WRITEBACK THROTTLE
set_throttle() {
	write writeback/policy "$1"
	write throttle/policy "$2"
}

set_dirty_gen() { write writeback/dirty_gen "$1"; }

# set_rmap unmap|young POLICY [MAX_PTES]
set_rmap() {
	write "$1/max_ptes" "${3:-512}"
	write "$1/policy" "$2"
}

# set_kinds none|KIND...: the folios that unmap=batch is for.
set_kinds() {
	local IFS=,

	write unmap/kinds "$*"
}

# Any of the settings, with any limit.
set_rmap_random() {
	local names=(stock batch) point
	local first=$((RANDOM % ${#unmap_kinds[@]})) kinds

	kinds=("${unmap_kinds[@]:first:1 + RANDOM % 3}")
	((RANDOM % 4)) || kinds=(none)
	set_kinds "${kinds[@]}"
	for point in unmap young; do
		set_rmap "$point" "${names[RANDOM % 2]}" $(((RANDOM % 512 >> RANDOM % 9) + 1))
	done
}

# Any of the settings.
set_throttle_random() {
	local writebacks=(stock feedback) throttles=(stock memcg all)
	local gens=(youngest second-youngest)

	set_dirty_gen "${gens[RANDOM % 2]}"
	set_throttle "${writebacks[RANDOM % 2]}" "${throttles[RANDOM % 3]}"
}

# Any of the settings, with any limit.
set_scan_random() {
	local scan aging

	read -r scan aging <<<"${scan_settings[RANDOM % ${#scan_settings[@]}]}"
	set_scan_floor $((RANDOM % 4097 >> RANDOM % 13))
	set_scan_batch $(((RANDOM % 4096 >> RANDOM % 12) + 1))
	set_scan "$scan" "$aging"
}

# set_lru mglru|classic
set_lru() {
	case $1 in
	mglru) echo y ;;
	classic) echo n ;;
	esac >"$LRU_GEN"
}

# read_stats ARRAY [POINT]: the associative array gets the point's stats, flush's if
# none is named, by name.
read_stats() { read_pairs_of "$1" "$POLICY/${2:-flush}/stats"; }

# counter POINT NAME: one of the point's stats.
counter() {
	local -A stats=()

	read_stats stats "$1"
	echo "${stats[$2]}"
}

# above POINT NAME COUNT: has the counter grown beyond that? While it grows it is waited for.
above() {
	local -A stats=()

	read_stats stats "$1"
	work=${stats[$2]}
	((stats[$2] > $3))
}

# count_written: sets written to how many pages reclaim has written out so far.
count_written() {
	local text

	read_file text /proc/vmstat
	text=${text#*nr_vmscan_write }
	written=${text%%$'\n'*}
}

# written_beyond PAGES: has that grown beyond so many? While it grows it is waited for.
written_beyond() {
	count_written
	work=$written
	((written > $1))
}

# read_pairs ARRAY: lines of a name and a value.
read_pairs() {
	local -n array_ref=$1
	local name value

	while read -r name value; do
		array_ref[$name]=$value
	done
}

# read_pairs_of ARRAY FILE: of a file of the kernel's. At once: line by line, the shell would seek
# back and read on in text that has changed.
read_pairs_of() {
	local text

	read_file text "$2"
	read_pairs "$1" <<<"${text%$'\n'}"
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

# Who waits for a flush is kept, written out, or kept by the kernel for reasons of its own;
# a batch is flushed for once, and is no larger than it may be.
check_stats() {
	local -A stats=()

	read_stats stats
	((stats[bounce_mapped] + stats[bounce_gone] <= stats[deferred])) ||
		fail "more has come of deferred folios than there were:" "${stats[@]@A}"
	((stats[flushes] <= stats[batches] && stats[calls] <= stats[batches] &&
		stats[batches] <= stats[deferred])) ||
		fail "calls, batches, flushes don't fit:" "${stats[@]@A}"
}

# Each pass has ended once. That holds when those under way at a switch to stock have ended.
check_scan_stats() {
	local -A passes
	local ends sizes

	wait_until passes_add_up ||
		fail "$ends ends, $sizes sizes of ${passes[passes]} passes:" "${passes[@]@A}"
}

# For check_scan_stats: sets its passes, ends and sizes.
passes_add_up() {
	local name

	passes=()
	ends=0
	sizes=0
	read_stats passes scan
	for name in "${!passes[@]}"; do
		case $name in
		end_*) ends=$((ends + passes[$name])) ;;
		pass_scanned_*) sizes=$((sizes + passes[$name])) ;;
		esac
	done
	((ends == passes[passes] && sizes == passes[passes]))
}

# No sleep was longer than the kernel's time-outs, of 100 ms, 20 ms and a tick, which
# is 10 ms at most.
check_throttle_stats() {
	local -A stats=()

	read_stats stats throttle
	((stats[writeback_longest_us] <= 100000 && stats[isolated_longest_us] <= 20000 &&
		stats[noprogress_longest_us] <= 10000 && stats[congested_longest_us] <= 10000)) ||
		fail "a task slept for too long:" "${stats[@]@A}"
}

# large_set ANONYMOUS SHMEM: whether memory of either kind comes in folios of 64 KiB.
large_set() {
	echo "$1" >"$THP/hugepages-64kB/enabled"
	echo "$2" >"$THP/hugepages-64kB/shmem_enabled"
}

# xfs_new: a file system at $FS that has large folios.
xfs_new() {
	local disk

	truncate -s 512M "$WORK/image"
	disk=$(losetup --find --show "$WORK/image")
	mkfs.xfs -q "$disk"
	mkdir "$FS"
	mount "$disk" "$FS"
	# It goes when it is unmounted.
	losetup --detach "$disk"
	rm "$WORK/image"
}

# throttled: how often a task has slept because of a disk.
throttled() {
	local -A stats=()

	read_stats stats throttle
	echo $((stats[writeback] + stats[congested]))
}

dir_gone() { [[ ! -d $dir ]]; }

# settings_remove: memory cgroups have none of their own any more. Those of a cgroup that was
# removed may go by themselves meanwhile.
settings_remove() {
	local dir

	for dir in "$POLICY"/cgroups/[0-9]*; do
		[[ -d $dir ]] || continue
		{ echo "${dir##*/}" >"$POLICY/cgroups/remove"; } 2>/dev/null || wait_until dir_gone ||
			fail "the settings ${dir##*/} can't be removed"
	done
}

# id_of DIR: the id of a cgroup.
id_of() { stat -c %i "$1"; }

# memcg_new [LIMIT]: an empty memcg at $VMP_MEMCG.
memcg_new() {
	echo +memory >"$CGROUPS/cgroup.subtree_control"
	mkdir "$VMP_MEMCG"
	echo "${1:-max}" >"$VMP_MEMCG/memory.max"
}

# Ends what still runs in the memcg, too.
memcg_remove() {
	[[ -d $VMP_MEMCG ]] || return 0
	echo 1 >"$VMP_MEMCG/cgroup.kill"
	# Program text that others have mapped too would keep the memcg around.
	echo 1G 2>/dev/null >"$VMP_MEMCG/memory.reclaim" || true
	wait_until memcg_gone || fail "the memcg can't be removed: $(<"$VMP_MEMCG/cgroup.procs")"
}

memcg_gone() { find "$VMP_MEMCG" -depth -type d -exec rmdir {} + 2>/dev/null; }

# Pages that reclaim has taken on the machine, but for kswapd, which anything may wake. That is exact:
# a memcg's count can lack what is small.
pages_stolen() {
	# Adds up the CPUs' counts.
	echo 1 >/proc/sys/vm/stat_refresh
	awk '/^pgsteal_(anon|file) / { n += $2 } $1 == "pgsteal_kswapd" { n -= $2 } END { print n }' /proc/vmstat
}

# gens_of MEMCG: what the kernel calls it there, then a line for each of its generations on the first
# node, from the oldest: number, age, anonymous pages, file pages.
gens_of() {
	awk -v "path=${1#"$CGROUPS"}" '
		$1 == "memcg" && (here = $3 == path) { print $2 }
		$1 == "node" { first = $2 == 0 }
		here && first && $1 ~ /^[0-9]/' /sys/kernel/debug/lru_gen
}

# age_memcg N: makes so many generations in the memcg on the first node.
age_memcg() {
	local i gens

	for ((i = 0; i < $1; i++)); do
		mapfile -t gens < <(gens_of "$VMP_MEMCG")
		read -r "gens[1]" _ <<<"${gens[-1]}"
		echo "+ ${gens[0]} 0 ${gens[1]}" >/sys/kernel/debug/lru_gen
	done
}

# in_memcg COMMAND...
in_memcg() {
	(
		echo "$BASHPID" >"$VMP_MEMCG/cgroup.procs"
		exec "$@"
	)
}

# fill_memcgs N MIB: so much anonymous memory and of files in N memcgs together. The memory has not
# been used since, and files were read twice: inactive files would be all that is taken.
fill_memcgs() {
	local i

	echo +memory >"$VMP_MEMCG/cgroup.subtree_control"
	for ((i = 0; i < $1; i++)); do
		mkdir "$VMP_MEMCG/$i"
		truncate -s $(($2 * 1024 / $1))K "$FS/$i"
	done
	exec {said}< <(exec python3 -c "import mmap, signal
kept = []
for i in range($1):
    with open(f'$VMP_MEMCG/{i}/cgroup.procs', 'w') as file:
        file.write('0')
    memory = mmap.mmap(-1, ($2 << 20) // $1, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.write(b'x' * len(memory))
    kept.append(memory)
    for _ in range(2):
        with open(f'$FS/{i}', 'rb', 0) as file:
            while file.read(1 << 16):
                pass
with open('/proc/self/clear_refs', 'w') as file:
    file.write('1')
print('has it', flush=True)
signal.pause()")
	read -ru "$said" _ || fail "the memory can't be taken"
}

swap_new() {
	echo 1G >/sys/block/zram0/disksize
	mkswap /dev/zram0 >/dev/null
	swapon /dev/zram0
}

# swapoff goes on until nothing uses an entry: with one that is never freed, for ever.
swap_remove() {
	local pid

	if grep -q '^/dev/zram0 ' /proc/swaps; then
		swapoff /dev/zram0 &
		pid=$!
		wait_until swap_gone $pid || {
			kill $pid
			fail "swap counts stay behind"
		}
		wait $pid
	fi
	wait_until zram_reset || fail "zram0 is in use"
}

swap_gone() {
	read_file work /proc/swaps
	gone "$1"
}

# udev looks into a device that has changed, and has it open meanwhile.
zram_reset() { { echo 1 >/sys/block/zram0/reset; } 2>/dev/null; }

# zram_remove N: a device that the test has added.
zram_remove() { wait_until zram_gone "$1" || fail "zram$1 is in use"; }

zram_gone() { { echo "$1" >/sys/class/zram-control/hot_remove; } 2>/dev/null; }

# fs_new: an empty file system at $FS. Its sparse files fill the page cache
# without a disk: what is read are holes.
fs_new() {
	# The kernel zeroes the tables of inodes later, and memory of a RAM disk is not given back.
	mkfs.ext4 -q -F -O ^has_journal -N 1024 /dev/ram0
	mkdir "$FS"
	mount /dev/ram0 "$FS"
}

fs_remove() {
	[[ -d $FS ]] || return 0
	wait_until unmounted || fail "$FS is in use"
	rmdir "$FS"
}

# A loop device of one of its files goes when udev, too, has closed it.
unmounted() { ! mountpoint -q "$FS" || umount "$FS" 2>/dev/null; }

# need_disk: skip the test in a guest without a disk.
need_disk() { [[ -b $slow_disk ]] || skip "an empty disk"; }

# Nobody but dmsetup makes its file, which was missing once.
slow_there() {
	dmsetup mknodes vmp-slow
	[[ -b /dev/mapper/vmp-slow ]]
}

# slow_new DEVICE|SIZE [xfs]: a file system at $FS on that disk, which can be slow, or on one of
# that size that is made of memory. ext4, without a journal, which would be as slow, or XFS.
slow_new() {
	slow_disk=$1
	if [[ ! -b $slow_disk ]]; then
		truncate -s "$1" "$WORK/image"
		slow_disk=$(losetup --find --show "$WORK/image")
	fi
	dmsetup create vmp-slow --noudevsync --table "$(slow_table 0)"
	wait_until slow_there || fail "the slow disk has no file in /dev"
	if [[ ${2:-} ]]; then
		mkfs.xfs -q -f -K /dev/mapper/vmp-slow
	else
		mkfs.ext4 -q -F -O ^has_journal -E lazy_itable_init=0,nodiscard /dev/mapper/vmp-slow
	fi
	mkdir "$FS"
	mount -o noatime /dev/mapper/vmp-slow "$FS"
}

# Let nearly all memory get dirty: what slows writers down is reclaim then.
raise_dirty_limits() { set_dirty_limits 90 80; }

# set_dirty_limits PERCENT BACKGROUND_PERCENT
set_dirty_limits() {
	echo "$1" >/proc/sys/vm/dirty_ratio
	echo "$2" >/proc/sys/vm/dirty_background_ratio
}

# slow_table MS: writes take that long.
slow_table() {
	echo "0 $(blockdev --getsz "$slow_disk") delay $slow_disk 0 0 $slow_disk 0 $1"
}

# slow_load TABLE: what the disk does from now on.
slow_load() {
	dmsetup suspend --nolockfs --noudevsync vmp-slow
	dmsetup load vmp-slow --table "$1"
	dmsetup resume --noudevsync vmp-slow
}

slow_remove() {
	[[ -b /dev/mapper/vmp-slow ]] || return 0
	slow_load "$(slow_table 0)"
	fs_remove
	dmsetup remove --noudevsync --retry vmp-slow
	rm -f /dev/mapper/vmp-slow
	wipefs --quiet --all "$slow_disk"
	[[ $slow_disk == /dev/loop* ]] || return 0
	losetup --detach "$slow_disk"
	rm "$WORK/image"
	# Its workers hold the memcgs that they wrote for, for a minute.
	wait_until loop_removed || fail "$slow_disk is in use"
}

# LOOP_CTL_REMOVE, which is refused while udev looks into it.
loop_removed() {
	python3 -c "import fcntl; fcntl.ioctl(open('/dev/loop-control'), 0x4C81, ${slow_disk#/dev/loop})" 2>/dev/null
}

# load_start: a workload that swaps all the time, and has begun to.
load_start() {
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
	wait_until load_swaps || fail "the load doesn't swap"
}

load_swaps() {
	load_check
	(($(<"$VMP_MEMCG/memory.swap.current") >= 16 << 20))
}

load_check() {
	! gone "$load_pid" || fail "the load has ended: $(<"$WORK/load")"
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

# Take away what the test has made, whatever it did. Its settings are put back after it.
clean_up() {
	clean_up_begins
	has_module vmscan_policy || insmod "$VMP_MODULE_DIR/vmscan_policy.ko"
	[[ ! -d $instance ]] || rmdir "$instance"
	settings_remove
	memcg_remove
	swap_remove
	slow_remove
	fs_remove
	exit "$ended"
}

# need_fault_module VARIABLE: skip the test without the faulty module that it names.
need_fault_module() {
	fault_dir=${!1:-}
	[[ $fault_dir ]] || skip "a faulty module, whose directory $1 names"
}

load_fault_module() {
	rmmod vmscan_policy
	insmod "$fault_dir/vmscan_policy.ko"
}

# clean_up loads the right one again.
fault_clean_up() {
	clean_up_begins
	if has_module vmscan_policy; then
		set_policy stock
		set_scan stock continue
		set_throttle stock stock
		rmmod vmscan_policy
	fi
	clean_up
}
