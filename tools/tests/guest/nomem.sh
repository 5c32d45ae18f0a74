#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What gets no memory fails with ENOMEM and leaves all as it was: a switch, and settings for a cgroup.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
[[ -e /proc/self/fail-nth && -d /sys/kernel/debug/failslab ]] ||
	skip "CONFIG_FAULT_INJECTION and CONFIG_FAILSLAB"
trap clean_up EXIT

# Gives a cgroup settings while the Nth allocation fails, for ever later ones until none fails; a line
# each: N, what came of it, how many files there are afterwards.
additions() {
	python3 - "$POLICY/cgroups" "$(stat -c %i "$VMP_MEMCG")" <<'PYTHON'
import errno, os, sys
cgroups, name = sys.argv[1:]
nth = os.open("/proc/thread-self/fail-nth", os.O_RDWR)
def write(to, number=0):
    file = os.open(f"{cgroups}/{to}", os.O_WRONLY)
    os.write(nth, b"%d" % number)
    try:
        os.write(file, name.encode())
        return "done"
    except OSError as error:
        return errno.errorcode[error.errno]
    finally:
        left = int(os.pread(nth, 16, 0).strip(b"\0\n") or 0)
        os.write(nth, b"0")
        os.close(file)
        globals()["hit"] = number and not left
number = 1
while True:
    result = write("add", number)
    print(number, result, sum(len(files) for _, _, files in os.walk(f"{cgroups}/{name}")))
    if not hit:
        break
    if result == "done":
        write("remove")
    number += 1 + number // 8
PYTHON
}

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

memcg_new
echo N >/sys/kernel/debug/failslab/ignore-gfp-wait
failures=0
last=
declare -A added=()
while read -r nth result files; do
	last=$nth
	case $result in
	ENOMEM)
		failures=$((failures + 1))
		((files == 0)) || fail "allocation $nth fails, and $files files are there"
		;;
	done) added[$files]=$nth ;;
	*) fail "settings for a cgroup, allocation $nth fails: $result" ;;
	esac
done < <(additions)
echo Y >/sys/kernel/debug/failslab/ignore-gfp-wait
echo "settings for a cgroup: $failures failed of the tries up to allocation $last, else ${!added[*]} files"
((failures >= 10)) || fail "$failures allocations failed, not ten"
((${#added[@]} == 1 && ${!added[*]} > 20)) || fail "settings have ${!added[*]} files"
