#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Each aging that has begun ends, in the trace and the counters, although the policy is switched
# meanwhile, and where the pass ends with it. The module of this test build ages whenever it is
# asked after a batch, and takes its time before.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_fault_module VMP_FAULT_AGES
trap fault_clean_up EXIT

# traced EDGE: how many were traced.
traced() { awk -v event="aging_$1:" '$5 == event { n++ } END { print n + 0 }' "$instance/trace"; }

# Nearly all the time that a policy ages it is about to say so again.
ages() { (($(counter aging failed) > failed)); }

load_start
load_fault_module
# That the policy takes so long is on purpose.
echo off >"$POLICY/guard/state"
mkdir "$instance"
echo 8192 >"$instance/buffer_size_kb"
echo 1 >"$instance/events/vmscan_policy/aging_begin/enable"
echo 1 >"$instance/events/vmscan_policy/aging_end/enable"
rounds=10
! full || rounds=50
for ((i = 0; i < rounds; i++)); do
	failed=$(counter aging failed)
	set_scan budget continue
	wait_until ages || fail "nothing ages"
	set_scan stock continue
done
load_end
# Who was in reclaim has gone.
begins=$(traced begin)
ends=$(traced end)
((begins == ends)) || fail "$begins agings have begun, $ends have ended"
declare -A stats=()
read_stats stats aging
((stats[sync] + stats[failed] == ends)) ||
	fail "$ends agings have ended, ${stats[sync]} were counted, and ${stats[failed]} failed"
! grep -q ' aging_end: .* id=0 ' "$instance/trace" || fail "an aging has ended that had not begun"
echo "$ends agings, ${stats[failed]} of them failed"
