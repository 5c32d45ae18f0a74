#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Everything at once, at random: see tools/vmp/torture. VMP_TORTURE has its options.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
tools=$(realpath "$(dirname "$0")/../..")

# flakey NAME DEVICE UP DOWN: writes to it fail while it is down, which is DOWN of UP + DOWN seconds.
flakey() {
	dmsetup create "$1" --noudevsync --table \
		"0 $(blockdev --getsz "$2") flakey $2 0 $3 $4 1 error_writes" 2>/dev/null || return 1
	dmsetup mknodes "$1"
}

flakey_remove() {
	[[ -b /dev/mapper/$1 ]] || return 0
	dmsetup remove --noudevsync --retry "$1"
	rm -f "/dev/mapper/$1"
}

torture_clean_up() {
	clean_up_begins
	local online

	for online in /sys/devices/system/cpu/cpu[1-9]*/online; do
		[[ ! -e $online ]] || echo 1 >"$online"
	done
	echo y >"$LRU_GEN"
	rm -f /sys/fs/bpf/torture/*
	if has_module half; then
		settings_remove
		echo stock >"$POLICY/profile"
		rmmod half
	fi
	! grep -q "^/dev/dm-" /proc/swaps || swapoff /dev/mapper/vmp-swap
	flakey_remove vmp-swap
	flakey_remove vmp-bad
	has_module vmscan_policy || insmod "$module"
	rm -f "$module"
	if [[ $bad_disk ]]; then
		losetup --detach "$bad_disk"
		rm "$WORK/bad"
	fi
	if [[ $second ]]; then
		zram_remove "$second"
	fi
	clean_up
}

# Another build may come in the place of that one while it is loaded again and again.
module=$WORK/vmscan_policy.ko
cp "$VMP_MODULE_DIR/vmscan_policy.ko" "$module"
second=
bad_disk=
words=()
trap torture_clean_up EXIT
memcg_new
echo +memory >"$VMP_MEMCG/cgroup.subtree_control"
mkdir "$VMP_MEMCG"/{checked,tight}
# Nobody waits there, as with memory.high; without swap, some are killed.
echo 24M >"$VMP_MEMCG/tight/memory.max"
swap_new
xfs_new
second=$(</sys/class/zram-control/hot_add)
echo 256M >"/sys/block/zram$second/disksize"
mkswap "/dev/zram$second" >/dev/null
truncate -s 64M "$WORK/bad"
bad_disk=$(losetup --find --show "$WORK/bad")
! flakey vmp-swap "/dev/zram$second" 2 1 || words+=(--faulty-swap /dev/mapper/vmp-swap)
! flakey vmp-bad "$bad_disk" 1 1 || words+=(--faulty-disk /dev/mapper/vmp-bad)
[[ ! ${VMP_SAMPLES:-} ]] || words+=(--plugin "$VMP_SAMPLES/half/half.ko")
if [[ ${VMP_BPF:-} ]]; then
	mountpoint -q /sys/fs/bpf || mount -t bpf bpf /sys/fs/bpf
	mkdir -p /sys/fs/bpf/torture
	words+=(--bpf "$VMP_BPF")
fi
# shellcheck disable=SC2086 # they are words
python3 "$tools/vmp/torture/inside.py" --policy "$POLICY" --module "$module" \
	--programs "$BIN" --top "$VMP_MEMCG" --files "$FS" --work "$WORK" --swap /dev/zram0 \
	"${words[@]}" ${VMP_TORTURE:-} || fail "torture has ended with status $?"
