#!/bin/bash
# The module is loaded and removed, with a policy in force at each point, while a load
# reclaims.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
trap clean_up EXIT

load_start
rounds=$(scaled 12 5)
busy=0
for ((i = 1; i <= rounds; i++)); do
	rmmod vmscan_policy
	insmod "$VMP_MODULE_DIR/vmscan_policy.ko"
	set_policy batch
	set_scan budget async
	set_throttle feedback all
	pause 0.0$((RANDOM % 10))
	read -r _ deferred <"$STATS"
	((deferred == 0)) || busy=$((busy + 1))
	load_check
done
echo "$rounds rounds, folios were deferred in $busy"
((busy)) || fail "no folio was deferred"
load_end
