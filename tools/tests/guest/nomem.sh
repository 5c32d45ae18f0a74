#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A switch that gets no memory fails with ENOMEM and leaves the policy as it was.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
[[ -e /proc/self/fail-nth && -d /sys/kernel/debug/failslab ]] ||
	skip "CONFIG_FAULT_INJECTION and CONFIG_FAILSLAB"
trap clean_up EXIT

# Switches to batch while the Nth allocation fails, N from 1 to 6; a line each: N, what came
# of it, the policies afterwards. One process, which takes long to start in a guest.
switches() {
	python3 - "$POLICY/flush/policy" <<'PYTHON'
import errno, os, sys
nth = os.open("/proc/thread-self/fail-nth", os.O_RDWR)
def switch(name, number=0):
    policy = os.open(sys.argv[1], os.O_WRONLY)
    os.write(nth, b"%d" % number)
    try:
        os.write(policy, name)
        return "done"
    except OSError as error:
        return errno.errorcode[error.errno]
    finally:
        os.write(nth, b"0")
        os.close(policy)
for number in range(1, 7):
    switch(b"stock")
    print(number, switch(b"batch", number), open(sys.argv[1]).read().strip())
PYTHON
}

echo N >/sys/kernel/debug/failslab/ignore-gfp-wait
echo 0 >/sys/kernel/debug/failslab/verbose
failures=0
lines=0
while read -r nth result policy; do
	echo "allocation $nth fails: $result, $policy"
	lines=$((lines + 1))
	case $result in
	ENOMEM)
		failures=$((failures + 1))
		[[ $policy == "[stock] batch" ]] || fail "a switch that failed has taken effect"
		;;
	done) [[ $policy == "stock [batch]" ]] || fail "a switch that is done has no effect" ;;
	*) fail "not ENOMEM" ;;
	esac
done < <(switches)
echo Y >/sys/kernel/debug/failslab/ignore-gfp-wait
((lines == 6)) || fail "$lines of 6 switches were tried"
# The text that is written and the set that is published are allocated.
((failures >= 2)) || fail "$failures allocations failed, not two"
