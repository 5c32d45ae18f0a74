#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# slow-disk.sh AB...: run ab while dd writes $MIB MiB, over and over, to a disk on which each write
# takes $DELAY ms; with $ANON, a process beside it takes and frees so much memory. What counts as an
# operation is a MiB of a dd that got done.
set -euo pipefail
. "$(dirname "$0")/service.sh"

name=vmscan-policy-bench

table() { echo "0 $(blockdev --getsz "$disk") delay $disk 0 0 $disk 0 $1"; }

slow()
{
	dmsetup suspend --nolockfs --noudevsync $name
	dmsetup load $name --table "$(table "$1")"
	dmsetup resume --noudevsync $name
}

remove()
{
	[ ! -b /dev/mapper/$name ] || slow 0
	! mountpoint -q "$DATA" || umount "$DATA"
	[ ! -b /dev/mapper/$name ] || dmsetup remove --noudevsync --retry $name
	rm -f /dev/mapper/$name "$PROGRESS"
	[ ! -d "$DATA" ] || rmdir "$DATA"
	wipefs --quiet --all "$disk"
}

# victim COMMAND...: the OOM killer is to take it, not the shell or ab.
victim() { choom -n 1000 -- "$@"; }

serve()
{
	local done=1

	echo "$done" >"$PROGRESS"
	[ -z "${ANON:-}" ] || while :; do
		victim stress-ng --quiet --oomable --vm 1 --vm-bytes "$ANON" --vm-ops 1000 || sleep 0.1
	done &
	while :; do
		# Beside another process in place: to truncate the file would give it memory.
		if victim dd if=/dev/zero of="$DATA/file" bs=1M count="$MIB" status=none \
			${ANON:+conv=notrunc}; then
			done=$((done + MIB))
			echo "$done" >>"$PROGRESS"
		fi
	done
}

case $1 in
serve) serve ;;
*)
	need_blank
	disk=$DISK
	export DATA
	DATA=$(mktemp -d /run/vmscan-policy-bench.XXXXXX)
	trap remove EXIT
	dmsetup create $name --noudevsync --table "$(table 0)"
	dmsetup mknodes $name
	# Without a journal, which would be as slow.
	mkfs.ext4 -q -F -O ^has_journal -E lazy_itable_init=0,nodiscard /dev/mapper/$name
	mount -o noatime /dev/mapper/$name "$DATA"
	slow "$DELAY"
	echo -1000 >/proc/self/oom_score_adj
	"$@" -- "$0" serve
	;;
esac
