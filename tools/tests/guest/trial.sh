#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A trial of settings leaves nothing behind, however it ends: by the module's clock, when who began
# it is killed, is interrupted or closes the file, when the guard trips, when its cgroup goes.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
trap clean_up EXIT

export LC_ALL=C
ctl=$(realpath "$(dirname "$0")/../../vmscanctl")
dirs=$POLICY/cgroups
takes="trial takes a number from 0 to 604800"

folios_are() { [[ $(<"$POLICY/flush/max_folios") == "$1" ]]; }
has_dir() { [[ -d $dirs/$id ]]; }
has_none() { [[ ! -d $dirs/$id ]]; }
tries() { has_dir && [[ $(chosen "$dirs/$id/flush/policy") == batch ]]; }
is_over() { [[ $(<"$1/trial") == 0 ]]; }

# refuse TEXT ERROR SAID
refuse() {
	local error

	error=$({ printf '%s' "$1" >"$POLICY/trial"; } 2>&1) && fail "trial takes '$1'"
	[[ $error == *": $2" ]] || fail "trial, '$1': $error"
	[[ $(dmesg | tail -n 1) == *"vmscan_policy: $3" ]] || fail "the log says: $(dmesg | tail -n 1)"
}

refuse soon "Invalid argument" "$takes"
refuse 604801 "Numerical result out of range" "$takes"
refuse "10 remove" "Invalid argument" "$takes"
is_over "$POLICY" || fail "a trial runs at first"

# Who closes the file ends it.
exec {held}<>"$POLICY/trial"
echo 600 >&"$held"
is_over "$POLICY" && fail "no trial runs"
refuse 10 "Device or resource busy" "trial: another one runs"
set_max_folios 7
set_policy batch
! rmmod vmscan_policy 2>/dev/null || fail "the module goes in the middle of a trial"
exec {held}>&-
folios_are 64 || fail "closed, and flush/max_folios is $(<"$POLICY/flush/max_folios")"
[[ $(chosen "$POLICY/flush/policy") == stock ]] || fail "closed, and the policy stays"
is_over "$POLICY" || fail "closed, and it runs"

# The module's own clock; what is set later stays.
exec {held}<>"$POLICY/trial"
echo 1 >&"$held"
set_max_folios 7
wait_until folios_are 64 || fail "the time is over, and flush/max_folios is 7"
is_over "$POLICY" || fail "the time is over, and it runs"
set_max_folios 8
exec {held}>&-
folios_are 8 || fail "what was set after the trial is gone"
set_max_folios 64

# The command: to its end.
said=$("$ctl" trial --for 2 --around 1 --interval 1 flush=batch flush.max_folios=9) ||
	fail "the command ends with status $?: $said"
folios_are 64 || fail "the command has left flush/max_folios at $(<"$POLICY/flush/max_folios")"
[[ $said == *"before      during       after"* && $said == *"The guard did not trip."* ]] ||
	fail "the command says: $said"
# Wrong settings change nothing.
status=0
said=$("$ctl" trial --for 10 --around 0 flush=bach 2>&1) || status=$?
((status == 1)) || fail "the command takes flush=bach: $said"
is_over "$POLICY" || fail "a trial is left"

# Killed, and interrupted; of a cgroup that has had no settings of its own.
memcg_new 24M
id=$(id_of "$VMP_MEMCG")
for signal in KILL INT; do
	setsid env python3 -c "import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
os.execvp(sys.argv[1], sys.argv[1:])" \
		"$ctl" --cgroup /vmp-test trial --for 10m --around 0 flush=batch >"$WORK/said" 2>&1 &
	command=$!
	wait_until tries || fail "nothing is tried: $(<"$WORK/said")"
	pkill "-$signal" -f "vmscanctl --cgroup /vmp-test trial"
	status=0
	wait "$command" || status=$?
	wait_until has_none || fail "$signal leaves settings: $(grep -H . "$dirs/$id"/*/policy)"
	[[ $signal == KILL ]] || ((status == 130)) || fail "INT ends it with $status: $(<"$WORK/said")"
done
[[ $(<"$WORK/said") == *"SIGINT came"*"The guard did not trip."* ]] || fail "it says: $(<"$WORK/said")"

# A trip ends it; that is known until it is cleared.
swap_new
echo 8M >"$VMP_MEMCG/memory.swap.max"
"$ctl" --cgroup /vmp-test trial --for 10m --around 0 flush=batch flush.max_folios=9 >"$WORK/said" 2>&1 &
command=$!
wait_until tries || fail "nothing is tried: $(<"$WORK/said")"
in_memcg tail /dev/zero >/dev/null 2>&1 || true
status=0
wait "$command" || status=$?
((status == 1)) || fail "a trip ends it with $status: $(<"$WORK/said")"
[[ $(<"$WORK/said") == *"the guard tripped"*"The guard tripped: cause=oom "* ]] ||
	fail "after a trip it says: $(<"$WORK/said")"
[[ $(<"$dirs/$id/flush/max_folios") == 64 && $(chosen "$dirs/$id/flush/policy") == stock ]] ||
	fail "after a trip the trial's settings stay"
said=$("$ctl" --cgroup /vmp-test status)
[[ $said == *"armed [tripped] off"*"the guard has tripped: cause=oom "* ]] || fail "status says: $said"
status=0
said=$("$ctl" --cgroup /vmp-test trial --for 10 --around 0 flush=batch 2>&1) || status=$?
((status == 1)) || fail "a trial begins after a trip: $said"
said=$("$ctl" --cgroup /vmp-test clear)
[[ $said == "cleared: cause=oom "* ]] || fail "clear says: $said"
[[ $(chosen "$dirs/$id/guard/state") == armed ]] || fail "cleared, and not armed"

# Its settings go in the middle, and the file is closed then.
exec {held}<>"$dirs/$id/trial"
echo 600 >&"$held"
echo "$id" >"$dirs/remove"
exec {held}>&-
has_none || fail "the settings come back"
