#!/bin/bash
# A switch that gets no memory fails with ENOMEM and leaves the policy as it was.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
[[ -e /proc/self/fail-nth && -d /sys/kernel/debug/failslab ]] || {
	echo "the kernel injects no faults"
	exit 4
}
trap clean_up EXIT

# try_switch N: switch to batch while the Nth allocation fails.
try_switch() {
	python3 - "$POLICY/flush/policy" "$1" <<'PYTHON'
import errno, os, sys
policy = os.open(sys.argv[1], os.O_WRONLY)
nth = os.open("/proc/thread-self/fail-nth", os.O_RDWR)
os.write(nth, sys.argv[2].encode())
try:
    os.write(policy, b"batch")
    print("done")
except OSError as error:
    print(errno.errorcode[error.errno])
finally:
    os.write(nth, b"0")
PYTHON
}

echo N >/sys/kernel/debug/failslab/ignore-gfp-wait
echo 0 >/sys/kernel/debug/failslab/verbose
failures=0
for nth in 1 2 3 4 5 6; do
	set_policy stock
	result=$(try_switch "$nth")
	policy=$(<"$POLICY/flush/policy")
	echo "allocation $nth fails: $result, $policy"
	case $result in
	ENOMEM)
		failures=$((failures + 1))
		[[ $policy == "[stock] batch" ]] || fail "a switch that failed has taken effect"
		;;
	done) [[ $policy == "stock [batch]" ]] || fail "a switch that is done has no effect" ;;
	*) fail "not ENOMEM" ;;
	esac
done
echo Y >/sys/kernel/debug/failslab/ignore-gfp-wait
# The text that is written and the set that is published are allocated.
((failures >= 2)) || fail "$failures allocations failed, not two"
