#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What gets no memory fails with ENOMEM and leaves all as it was: a switch, and settings for a cgroup.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
[[ -e /proc/self/fail-nth && -d /sys/kernel/debug/failslab ]] ||
	skip "CONFIG_FAULT_INJECTION and CONFIG_FAILSLAB"
trap clean_up EXIT

# attempt PATH TEXT NTH: writes while the NTH allocation fails; what came of it, and if one has failed.
# What follows it is one process, which takes long to start in a guest.
attempts='
import errno, os, sys
nth = os.open("/proc/thread-self/fail-nth", os.O_RDWR)
def write(file, text):
    try:
        os.write(file, text.encode())
    except OSError as error:
        return errno.errorcode[error.errno]
    return "done"
def attempt(path, text, number=0):
    file = os.open(path, os.O_WRONLY)
    os.write(nth, b"%d" % number)
    result = write(file, text)
    left = int(os.pread(nth, 16, 0).strip(b"\0\n") or 0)
    os.write(nth, b"0")
    os.close(file)
    return result, number and not left
'

# Gives a cgroup settings while the Nth allocation fails, for ever later ones until none fails; a line
# each: N, what came of it, how many files there are afterwards.
additions() {
	python3 -c "$attempts"'
cgroups, name = sys.argv[1:]
number, failed = 1, True
while failed:
    result, failed = attempt(f"{cgroups}/add", name, number)
    print(number, result, sum(len(files) for _, _, files in os.walk(f"{cgroups}/{name}")))
    if failed and result == "done":
        attempt(f"{cgroups}/remove", name)
    number += 1 + number // 16
' "$POLICY/cgroups" "$(stat -c %i "$VMP_MEMCG")"
}

# Switches to batch while the Nth allocation fails, N from 1 to 6; a line each: N, what came
# of it, the policies afterwards.
switches() {
	python3 -c "$attempts"'
policy = sys.argv[1]
for number in range(1, 7):
    attempt(policy, "stock")
    print(number, attempt(policy, "batch", number)[0], open(policy).read().strip())
' "$POLICY/flush/policy"
}

# Switches to batch while all allocations fail beyond so many bytes, since memory that kvmalloc()
# doesn't get in one way it asks for in another; a line each: how many bytes, and the same.
starved() {
	python3 -c "$attempts"'
policy, space = sys.argv[1:]
fails = os.open("/proc/thread-self/make-it-fail", os.O_WRONLY)
for size in (1 << shift for shift in range(4, 17)):
    attempt(policy, "stock")
    with open(space, "w") as file:
        file.write(str(size))
    file = os.open(policy, os.O_WRONLY)
    os.write(fails, b"1")
    result = write(file, "batch")
    os.write(fails, b"0")
    os.close(file)
    print(size, result, open(policy).read().strip())
' "$POLICY/flush/policy" $failslab/space
}

# judge_switches LINES SWITCHES: what fails has no effect; SWITCHES prints so many lines.
judge_switches() {
	local n result policy failures=0 lines=0

	while read -r n result policy; do
		echo "$2 $n: $result, $policy"
		lines=$((lines + 1))
		case $result in
		ENOMEM)
			failures=$((failures + 1))
			[[ $policy == "[stock] batch" ]] || fail "a switch that failed has taken effect"
			;;
		done) [[ $policy == "stock [batch]" ]] || fail "a switch that is done has no effect" ;;
		*) fail "not ENOMEM" ;;
		esac
	done < <("$2")
	((lines == $1)) || fail "$lines of $1 switches were tried"
	# The set that is published is allocated.
	((failures)) || fail "no allocation failed"
	((failures < lines)) || fail "nothing was ever done"
}

failslab=/sys/kernel/debug/failslab
echo 0 >$failslab/verbose
echo N >$failslab/ignore-gfp-wait
judge_switches 6 switches
echo 1 >$failslab/task-filter
echo -1 >$failslab/times
echo 100 >$failslab/probability
judge_switches 13 starved
echo 0 >$failslab/probability
echo Y >$failslab/ignore-gfp-wait

memcg_new
echo N >$failslab/ignore-gfp-wait
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
echo Y >$failslab/ignore-gfp-wait
echo "settings for a cgroup: $failures failed of the tries up to allocation $last, else ${!added[*]} files"
((failures >= 10)) || fail "$failures allocations failed, not ten"
((${#added[@]} == 1 && ${!added[*]} > 20)) || fail "settings have ${!added[*]} files"
