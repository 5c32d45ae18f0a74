#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# guard.sh CAUSE [VARIABLE]: a policy that does harm is taken out of the path of its cgroup, and of
# no other; the load goes on, on stock, and the reason tells why. With the faulty module that
# VARIABLE names, but for "oom": tasks are killed there, and "classic": the load that has most kills.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cause=$1
[[ ! ${2:-} ]] || need_fault_module "$2"
other=$CGROUPS/vmp-other

guard_clean_up() {
	clean_up_begins
	[[ ! -e $POLICY/bypass ]] || echo 0 >"$POLICY/bypass"
	[[ ! -d $other ]] || rmdir "$other"
	[[ ! -d $instance ]] || echo 0 >"$instance/events/enable"
	fault_clean_up
}
trap guard_clean_up EXIT

state() { chosen "$own/guard/state"; }
tripped() { [[ $(state) == tripped ]]; }
armed() { [[ $(chosen "$1/guard/state") == armed ]]; }
machine_is_armed() { armed "$POLICY" || fail "the machine's guard has tripped: $(<"$POLICY/guard/reason")"; }
is_stock() { [[ $(chosen "$own/profile") == stock ]]; }

# of_own POINT NAME: what the cgroup's settings have counted.
of_own() { awk -v "name=$2" '$1 == name { print $2 }' "$own/$1/stats"; }

# watch_events: the trace events of trips, from now on.
watch_events() {
	mkdir "$instance"
	echo 1 >"$instance/events/vmscan_policy/guard_tripped/enable"
}

# soon COMMAND...: as wait_until, but for as long as anything here needs. While the load goes on that is
# half a minute and 20,000 pages scanned.
soon() {
	local since=$SECONDS pages

	pages=$(scanned)
	wait_until done_or_overdue "$@" && "$@"
}
done_or_overdue() { "$@" || ((SECONDS - since > 30 && $(scanned) - pages > 20000)); }
scanned() { awk '$1 == "pgscan" { print $2 }' "$VMP_MEMCG/memory.stat"; }

trips=0 # so far

# has_tripped WORDS: it has, and says so; in the log and in the trace once each time.
has_tripped() {
	local reason said

	soon tripped || fail "the guard does not trip: $(grep -H . "$own"/guard/* 2>/dev/null)"
	trips=$((trips + 1))
	# The reason, the log and the trace come after the state; the policies go when these have come.
	soon is_stock || fail "the policies stay: $(chosen "$own/profile")"
	reason=$(<"$own/guard/reason")
	echo "$reason"
	[[ $reason == "cause=${1%% *} "*" settings=$id: "* ]] || fail "the reason is: $reason"
	[[ $reason == *${1#* }* ]] || fail "the reason does not say '${1#* }': $reason"
	# Of earlier trips it may tell no more, if there were many OOM kills since.
	said=$(dmesg | grep -cF "vmscan_policy: guard tripped, stock from now on: $reason" || true)
	((said == 1)) || fail "the log tells $said times of it"
	said=$(grep -c "guard_tripped: .*settings=$id cause=${1%% *} " "$instance/trace" || true)
	((said == trips)) || fail "the trace tells of $said trips, not of $trips: $(<"$instance/trace")"
	# nobody else's
	machine_is_armed
	armed "$others" || fail "the other cgroup's guard has tripped: $(<"$others/guard/reason")"
	[[ $(chosen "$POLICY/flush/policy") == batch && $(chosen "$others/flush/policy") == batch ]] ||
		fail "others' settings have changed"
}

# is_kept: policies are refused until it is cleared, and the rest is not.
is_kept() {
	local error

	error=$({ echo batch >"$own/flush/policy"; } 2>&1) && fail "a policy is taken after a trip"
	[[ $error == *": Device or resource busy" ]] || fail "a policy is refused with: $error"
	[[ $(last_said) == *"guard/state is tripped: write 1 to guard/clear, then set policies" ]] ||
		fail "the log says: $(last_said)"
	echo 31 >"$own/flush/max_folios"
	echo stock >"$own/profile"
	tripped || fail "the guard is $(state) without having been cleared"
	[[ $(<"$own/guard/reason") != none ]] || fail "the reason is gone"
	echo 1 >"$own/guard/clear"
	[[ $(state) == armed && $(<"$own/guard/reason") == none ]] ||
		fail "cleared, it is $(state), and says $(<"$own/guard/reason")"
}

# goes_on: the load swaps, and no policy decides anything.
goes_on() {
	local deferred passes pages

	deferred=$(of_own flush deferred)
	passes=$(of_own scan passes)
	count_written
	pages=$((written + 2000))
	wait_until writes_beyond || fail "the load does not go on"
	# What was under way ends as it began.
	(($(of_own flush deferred) - deferred <= 4096 && $(of_own scan passes) - passes <= 64)) ||
		fail "a policy goes on: $deferred, $(of_own flush deferred); $passes, $(of_own scan passes)"
}

writes_beyond() {
	[[ ! ${load_pid:-} ]] || load_check
	written_beyond "$pages"
}

# follows: has stock had to follow again and again since?
follows() { (($(counter scan stock_followed) > followed + 20)); }

has_sleepers() { (($(wc -l <"$VMP_MEMCG/cgroup.procs") == 30)); }
is_empty() { [[ ! $(<"$VMP_MEMCG/cgroup.procs") ]]; }

# kill_one: a task that needs more memory than there is.
kill_one() { in_memcg tail /dev/zero >/dev/null 2>&1 || true; }

# kill_until_tripped: sets killed to how many it took. Stock has none, in ten times what each takes,
# however busy the machine is then.
kill_until_tripped() {
	local began

	for ((killed = 1; killed <= 50; killed++)); do
		echo batch >"$own/flush/policy"
		began=$SECONDS
		kill_one
		took=$((SECONDS - began + 1))
		! tripped || return 0
		echo stock >"$own/flush/policy"
		pause $((10 * took))
	done
	fail "50 kills don't trip the guard"
}

export LC_ALL=C
[[ ! ${2:-} ]] || load_fault_module
dmesg -C
watch_events
mkdir "$other"
if [[ $cause == oom ]]; then
	memcg_new 24M
	swap_new
	echo 8M >"$VMP_MEMCG/memory.swap.max"
elif [[ $cause == classic ]]; then
	set_lru classic
	memcg_new 64M
	swap_new
else
	load_start
fi
id=$(id_of "$VMP_MEMCG")
own=$POLICY/cgroups/$id
others=$POLICY/cgroups/$(id_of "$other")
id_of "$other" >"$POLICY/cgroups/add"
echo batch >"$others/flush/policy"
# Not before the load has settings of its own: it would be the machine's guard that trips.
echo "$id" >"$POLICY/cgroups/add"
echo batch >"$POLICY/flush/policy"
case $cause in
clamps)
	echo batch >"$own/flush/policy"
	has_tripped "clamps point=flush policies=flush=batch "
	grep -q ": 1[78] answers had to be limited in 60 s, more than 16; the last was 0x1001$" "$own/guard/reason" ||
		fail "not at the first answer beyond the limit"
	goes_on
	is_kept
	echo batch >"$own/flush/policy"
	has_tripped "clamps point=flush policies=flush=batch "
	echo 1 >"$own/guard/clear"
	echo off >"$own/guard/state"
	echo batch >"$own/flush/policy"
	goes_off=$(of_own flush batches)
	grows() { (($(of_own flush batches) > goes_off + 100)); }
	wait_until grows || fail "the policy does nothing"
	[[ $(state) == off ]] || fail "a guard that is off is $(state)"
	;;
callback)
	echo 20 >"$own/guard/callback"
	echo batch >"$own/flush/policy"
	has_tripped "callback point=flush policies=flush=batch "
	goes_on
	is_kept
	;;
stall)
	# A cgroup without settings of its own is reclaimed in vain: that says nothing of the machine.
	echo "$id" >"$POLICY/cgroups/remove"
	echo 1000 >"$POLICY/guard/stall"
	followed=$(counter scan stock_followed)
	echo budget >"$POLICY/scan/policy"
	wait_until follows || fail "no pass is in vain"
	pause 3
	machine_is_armed
	followed=$(counter scan stock_followed)
	wait_until follows || fail "passes don't go on"
	echo stock >"$POLICY/scan/policy"
	machine_is_armed
	echo "$id" >"$POLICY/cgroups/add"
	echo stock >"$own/profile"
	echo 2000 >"$own/guard/stall"
	echo budget >"$own/scan/policy"
	has_tripped "stall point=scan policies=scan=budget "
	goes_on
	is_kept
	;;
wait)
	echo 50 >"$own/guard/wait"
	echo memcg >"$own/throttle/policy"
	has_tripped "wait point=any policies=throttle=memcg "
	goes_on
	is_kept
	;;
oom)
	# Where nothing is known of before, the first one is one too many.
	kill_until_tripped
	((killed == 1)) || fail "$killed kills until it trips, and nothing is known of before"
	has_tripped "oom : an OOM kill: 1 in "
	is_kept
	# Known is a time without one in which there could have been ten.
	echo 5 >"$own/guard/window"
	pause $((10 * took))
	kill_until_tripped
	((killed > 1)) || fail "one kill is no chance"
	has_tripped "oom : an OOM kill: $killed in "
	is_kept
	# Stock kills as often. As many tripped it when it was not known to.
	began=$SECONDS
	for _ in {1..20}; do
		kill_one
	done
	each=$(((SECONDS - began) / 20))
	echo batch >"$own/flush/policy"
	for _ in 1 2 3; do
		# Not more often, where the machine was busy before.
		end=$((SECONDS + each))
		kill_one
		while ((SECONDS < end)); do pause 0.1; done
	done
	! tripped || fail "it trips for kills like those before: $(<"$own/guard/reason")"
	# A whole cgroup that goes is one kill.
	echo 1 >"$VMP_MEMCG/memory.oom.group"
	for _ in {1..30}; do
		in_memcg sleep 1h &
	done
	wait_until has_sleepers || fail "the cgroup has $(wc -l <"$VMP_MEMCG/cgroup.procs") processes"
	kill_one
	wait_until is_empty || fail "the cgroup has $(<"$VMP_MEMCG/cgroup.procs") left"
	echo 0 >"$VMP_MEMCG/memory.oom.group"
	! tripped || fail "it trips for a cgroup's kill: $(<"$own/guard/reason")"
	echo 1 >"$own/guard/strict"
	# What is killed while all policies are bypassed is stock's.
	echo 1 >"$POLICY/bypass"
	kill_one
	echo 0 >"$POLICY/bypass"
	! tripped || fail "it trips while policies are bypassed: $(<"$own/guard/reason")"
	kill_one
	has_tripped "oom : an OOM kill: "
	;;
classic)
	echo 1 >"$own/guard/strict"
	echo batch >"$own/flush/policy"
	for _ in {1..20}; do
		in_memcg stress-ng --vm 4 --vm-bytes 192M --vm-keep --timeout 60 --temp-path "$WORK" -q || true
		! tripped || break
	done
	grep -q '^oom_kill [1-9]' "$VMP_MEMCG/memory.events" || skip "a kill: there was none"
	has_tripped "oom : an OOM kill: 1 in "
	;;
esac
[[ ! ${load_pid:-} ]] || load_end
