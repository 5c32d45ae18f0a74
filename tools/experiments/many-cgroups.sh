#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# many-cgroups.sh AB...: run ab, on a disk of its own that is memory. Its workload is
# `many-cgroups.sh N FILL`: FILL at a file of 64 MiB, beside N memory cgroups with nothing in them, of
# which all, 1,000 at most, have settings of their own, and four more at a limit of 8 MiB in which
# FILL works at files, too. What it makes is there again for the next run, and goes in the end.
set -euo pipefail

base=/run/vmscan-policy-cgroups # where the disk is mounted
cgroups=/sys/fs/cgroup
many=$cgroups/vmscan-policy-many
policies=/sys/kernel/debug/vmscan_policy/cgroups
active=4
with_settings=1000

# empty: end what runs in the cgroups.
empty()
{
	[ ! -d $many ] || echo 1 >$many/cgroup.kill
}

remove()
{
	local tries

	empty # which takes time
	for ((tries = 0; tries < 300; tries++)); do
		mountpoint -q $base || break
		umount $base 2>/dev/null || sleep 0.1
	done
	rmdir $base
	echo "${disk#/dev/zram}" >/sys/class/zram-control/hot_remove
	[ ! -d $many ] || find $many -depth -type d -exec rmdir {} +
}

# reader NAME FILL...: a cgroup in which that works at a file of its own.
reader()
{
	local dir=$many/$1

	shift
	[ -d "$dir" ] || mkdir "$dir"
	echo 8M >"$dir/memory.max"
	(
		echo $BASHPID >"$dir/cgroup.procs"
		exec "$@"
	) &
}

# fill N FILL...: the workload. Making a cgroup takes memory, which is not to be that of the workload's own.
fill()
{
	local n=$1 own i id

	shift
	own=$cgroups$(sed -n s/^0:://p /proc/self/cgroup)
	echo $$ >$cgroups/cgroup.procs
	empty
	mkdir -p $many
	echo +memory >$many/cgroup.subtree_control
	seq -f "$many/idle-%.0f" "$n" | xargs mkdir -p
	seq -f "$many/idle-%.0f" "$((n < with_settings ? n : with_settings))" | xargs stat -c %i | while read -r id; do
		[ -d $policies/"$id" ] || echo "$id" >$policies/add
	done
	for ((i = 0; i < active; i++)); do
		reader "active-$i" "$@" --file $base/active-$i --size 16
	done
	echo $$ >"$own/cgroup.procs"
	exec "$@" --file $base/file --size 64 --progress "$PROGRESS"
}

if [[ $1 =~ ^[0-9]+$ ]]; then
	fill "$@"
fi
[ -e /sys/class/zram-control ] || modprobe zram
mkdir $base
disk=/dev/zram$(</sys/class/zram-control/hot_add)
trap remove EXIT
echo 512M >"/sys/block/${disk#/dev/}/disksize"
mkfs.xfs -q "$disk"
mount "$disk" $base
"$@"
