#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# memory-disk.sh AB...: run ab, with a disk of $DISK, 512 MiB, that is memory if its workload is one of
# those on files. While a load waits for another disk, a clock that counts instructions leaps ahead.
set -euo pipefail

case " $* " in
*" large-file"*) ;;
*) exec "$@" ;;
esac

control=/sys/class/zram-control
[ -e $control ] || modprobe zram
id=$(<$control/hot_add)
trap 'echo "$id" >$control/hot_remove' EXIT
echo "${DISK:-512M}" >"/sys/block/zram$id/disksize"
"$@" --disk "/dev/zram$id"
