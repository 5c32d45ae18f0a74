#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# oom-kills.sh AB...: run ab with `oom-kills.sh serve CELL` as its workload, and tell how long before
# each OOM kill another task flushed the statistics of the workload's cgroup, in ms.
#
# CELL is `plain`; `read`, where another process reads the cgroup's memory.stat ten times a second, which
# flushes them; `read-on-time`, where it goes before all that is no real-time task; or `one-cpu`, where all
# of the load runs on one CPU, and no policy makes it faster.
set -euo pipefail

trace=/sys/kernel/tracing/instances/vmscan-policy-kills
groups=/run/bench-cgroup # the cgroup's id, from the workload

serve()
{
	local own cpus=()
	own=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)

	stat -c %i "$own" >$groups
	case $1 in
	plain) ;;
	read)
		(
			echo 0 >/sys/fs/cgroup/cgroup.procs # its memory isn't the load's
			while cat "$own/memory.stat"; do sleep 0.1; done >/dev/null 2>&1
		) &
		;;
	read-on-time)
		(
			echo 0 >/sys/fs/cgroup/cgroup.procs
			chrt --fifo --pid 1 $BASHPID
			exec {tick}<> <(:) # nothing is ever written to it
			while [ -e "$own" ]; do
				read -r -d '' _ <"$own/memory.stat" || :
				read -r -t 0.1 -u "$tick" _ || :
			done
		) &
		;;
	one-cpu) cpus=(taskset --cpu-list 0) ;;
	*)
		echo "$1 is no cell: plain, read, read-on-time or one-cpu" >&2
		exit 1
		;;
	esac
	exec "${cpus[@]}" stress-ng --vm 4 --vm-bytes 256M --vm-keep
}

# kills TRACE ID: a line for each kill: the ms since another task flushed that cgroup's statistics, or
# those of all.
kills()
{
	# A flush of a cgroup takes the lock with no CPU, and again between CPUs. The killer flushes
	# right before, too, for its report.
	awk -v own="$2" '
		{ match($0, /[0-9]+\.[0-9]+: /); now = substr($0, RSTART, RLENGTH - 2) * 1000 }
		/cgroup_rstat_locked:/ && / cpu=-1 / && ($0 ~ " id=" own " " || / id=1 /) {
			if ($1 != by) { other = last; by = $1 }
			last = now
		}
		/mark_victim:/ { printf "%.0f\n", now - (by == $1 ? other : last) }' "$1"
}

case $1 in
serve) serve "$2" ;;
kills) kills "$2" "$3" ;;
*)
	mkdir $trace
	trap 'rmdir $trace; rm -f $groups' EXIT
	echo mono >$trace/trace_clock
	echo 16384 >$trace/buffer_size_kb
	echo 1 >$trace/events/cgroup/cgroup_rstat_locked/enable
	echo 1 >$trace/events/oom/mark_victim/enable
	"$@"
	echo "ms from the last flush of the statistics to each OOM kill: $(kills $trace/trace "$(<$groups)" | sort -n | xargs)" >&2
	;;
esac
