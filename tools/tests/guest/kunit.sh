#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# kunit.sh NAME FILTER: runs the KUnit cases of the module that the filter lets through. What
# they say goes to VMP_KUNIT_LOG-NAME.log, and the kernel's own parser judges it on the host:
# in an emulated guest Python takes a minute.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
kunit_clean_up() {
	clean_up_begins
	! has_module vmscan_policy_kunit || rmmod vmscan_policy_kunit
	clean_up
}
trap kunit_clean_up EXIT

modinfo kunit &>/dev/null || skip "CONFIG_KUNIT"
[[ ${VMP_KUNIT_LOG:-} ]] || fail "VMP_KUNIT_LOG has to name files"
modprobe kunit enable=1
# Without a newline, which it takes for a part of the filter.
printf %s "$2" >/sys/module/kunit/parameters/filter
echo "vmp: KUnit begins" >/dev/kmsg
insmod "$VMP_MODULE_DIR/vmscan_policy_kunit.ko"
# What an earlier run has said is before the last of these lines.
log_since "vmp: KUnit begins" >"$VMP_KUNIT_LOG-$1.log"
