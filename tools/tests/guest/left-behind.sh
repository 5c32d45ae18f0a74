#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A module that goes and leaves its set in force, under a load that reclaims: the kernel takes the
# set back, says so, and another module can publish its own. What the set was in is leaked, as kmemleak
# would tell on the debug kernel.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_fault_module VMP_FAULT_LEFT_BEHIND
trap fault_clean_up EXIT

said="vmscan_policy: vmscan_policy goes without taking its policies back"

load_start
load_fault_module
set_policy batch
set_scan budget continue
set_throttle feedback all
wait_until above flush deferred 0 || fail "no folio is deferred"
dmesg -C
rmmod vmscan_policy
log_says "$said" || fail "nobody has taken the set back: $(dmesg)"
insmod "$VMP_MODULE_DIR/vmscan_policy.ko"
set_policy batch
wait_until above flush deferred 0 || fail "no folio is deferred"
load_end
