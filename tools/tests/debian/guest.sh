#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The guest tests on a stock kernel, with the hooks as a livepatch.
set -euo pipefail
export XDG_CACHE_HOME=$PWD/cache VMP_TEST_BIN=$PWD/programs VMP_DISK=/dev/vdd
VMP_MODULE_DIR=$(dirname cache/vmscan-policy/livepatch/*/about.json)
VMP_MODULE_DIR=$(realpath "$VMP_MODULE_DIR")
export VMP_MODULE_DIR
# Faulty builds of the module: faults/NAME has the one that VMP_FAULT_NAME is to name.
for fault in faults/*/vmscan_policy.ko; do
	[[ -e $fault ]] || continue
	name=$(basename "$(dirname "$fault")")
	name=${name^^}
	export "VMP_FAULT_${name//-/_}=$(realpath "$(dirname "$fault")")"
done
# What starts by itself now and then is no part of a test.
systemctl stop '*.timer'
# As in our own guest: Debian has always, so that memory comes in folios of 2 MiB.
echo madvise >/sys/kernel/mm/transparent_hugepage/enabled
# systemd mounts it with memory_recursiveprot, where a memcg without memory.low has low events,
# too: a failure for test_memcg_low of 6.12. mount keeps that option if only one name is given.
mount -o remount,nosuid,nodev,noexec,relatime,nsdelegate cgroup2 /sys/fs/cgroup
# Of its size and number as the tests want it.
modprobe brd rd_nr=1
modprobe loop
modprobe zram
vmscan-policy/tools/livepatch load
# shellcheck disable=SC2046 # words
vmscan-policy/tools/tests/guest/run $(<tests)
