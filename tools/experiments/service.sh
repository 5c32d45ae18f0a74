# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# What the scripts of services share. They are called as SCRIPT AB...: prepare the data, run ab with
# `SCRIPT serve` as its workload, and clean up. $DISK is a blank disk for the data; without one,
# they are in /var/tmp.

PROGRESS=${PROGRESS:-/run/bench-progress} # what ab is told, too
DATA=${DATA:-}

# need_blank: fail unless $DISK is a disk with nothing on it.
need_blank()
{
	if [ ! -b "$DISK" ] || [ -n "$(wipefs --no-act --noheadings "$DISK")" ]; then
		echo "$DISK is no blank disk: name another, or run \`wipefs --all $DISK\`" >&2
		exit 1
	fi
}

# data_new USER: sets $DATA, a directory of that user's.
data_new()
{
	[ -z "${DISK:-}" ] || need_blank
	trap data_remove EXIT
	export DATA
	DATA=$(mktemp -d /var/tmp/vmscan-policy-bench.XXXXXX)
	data_make "$1"
}

# data_make USER: $DATA, which is there, becomes that user's, with a new file system if there is a $DISK.
data_make()
{
	if [ -n "${DISK:-}" ]; then
		mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "$DISK"
		mount "$DISK" "$DATA"
	fi
	chown "$1:" "$DATA"
	chmod 700 "$DATA"
}

data_remove()
{
	rm -f "$PROGRESS"
	[ -d "$DATA" ] || return 0
	if [ -n "${DISK:-}" ]; then
		! mountpoint -q "$DATA" || umount "$DATA"
		wipefs --quiet --all "$DISK"
	else
		rm -r "$DATA"
	fi
	[ ! -d "$DATA" ] || rmdir "$DATA"
}

# data_cold: have it read anew. What the preparation has left in the page cache is charged to no
# cgroup's limit.
data_cold()
{
	sync -f "$DATA"
	find "$DATA" -type f -exec dd if={} iflag=nocache count=0 status=none \;
}

# wait_for COMMAND...: until it succeeds; an emulated service takes its time.
wait_for()
{
	local end=$((SECONDS + 120))

	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || {
			echo "$1 does not succeed within 120 s" >&2
			exit 1
		}
		sleep 0.5
	done
}

# count_rate: add up the rates that a load tells each second. The progress file has a line for each:
# one that is written anew is empty for long where memory is short.
count_rate()
{
	local line sum=0 # of tenths

	while read -r line; do
		echo "$line"
		[[ $line =~ tps:\ ([0-9]+)\.([0-9]) || $line =~ ([0-9]+)\.([0-9])\ tps ]] || continue
		sum=$((sum + BASH_REMATCH[1] * 10 + BASH_REMATCH[2]))
		echo "$((sum / 10)).$((sum % 10))" >>"$PROGRESS"
	done
}

# prepare_and_serve AB... or serve: the whole of a service's script, which has these two functions.
prepare_and_serve()
{
	case $1 in
	serve) serve ;;
	*)
		prepare
		"$@" -- "$0" serve
		;;
	esac
}
