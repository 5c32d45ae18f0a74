#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The module is loaded and removed, with a policy in force at each point, while a load
# reclaims.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
trap clean_up EXIT

took=()
load_start
rounds=$(scaled 25 4)
for ((i = 1; i <= rounds; i++)); do
	began=${EPOCHREALTIME/./}
	rmmod vmscan_policy
	[[ ! -e $POLICY ]] || fail "the module has left its files behind"
	insmod "$VMP_MODULE_DIR/vmscan_policy.ko"
	set_policy batch
	set_scan budget continue
	set_throttle feedback all
	# Every other time it may go before it has begun.
	((i % 2)) || wait_until above flush deferred 0 || fail "no folio is deferred"
	pause 0.0$((RANDOM % 10))
	load_check
	took[i]=$(((${EPOCHREALTIME/./} - began) / 1000))
done
echo "$rounds rounds, in ms: ${took[*]}"
load_end
