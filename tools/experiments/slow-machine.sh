#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# slow-machine.sh AB...: slow-disk.sh, while nearly all memory may be dirty, on a machine that has but
# $LEFT MiB of it: a file in tmpfs takes the rest, and there is no swap.
set -euo pipefail
here=$(dirname "$0")

if [ -n "$(swapon --noheadings)" ]; then
	echo "there is swap, where the memory that is taken would go: run \`swapoff -a\` first" >&2
	exit 1
fi
available=$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo)
if [ "$available" -le "$LEFT" ]; then
	echo "$available MiB of memory are available: it takes more than the $LEFT MiB to be left" >&2
	exit 1
fi
taken=$(mktemp -d /run/vmscan-policy-taken.XXXXXX)
trap 'umount "$taken"; rmdir "$taken"' EXIT
mount -t tmpfs -o size=100% tmpfs "$taken"
dd if=/dev/zero of="$taken/file" bs=1M count=$((available - LEFT)) status=none
"$here/dirty-limits.sh" "$here/slow-disk.sh" "$@"
