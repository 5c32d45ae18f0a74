#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A trial of settings leaves nothing behind, however it ends: by the module's clock, when who began
# it is killed, is interrupted or closes the file, when the guard trips, when its cgroup goes.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
command=

# What runs in the background is not to hold a trial, or up the end.
trial_clean_up() {
	clean_up_begins
	[[ ! $command ]] || gone "$command" || kill -KILL "$command"
	clean_up
}
trap trial_clean_up EXIT

export LC_ALL=C
ctl=$(realpath "$(dirname "$0")/../../vmscanctl")
dirs=$POLICY/cgroups
takes="trial takes a number from 0 to 604800"

folios_are() { [[ $(<"$POLICY/flush/max_folios") == "$1" ]]; }
has_dir() { [[ -d $dirs/$id ]]; }
has_none() { [[ ! -d $dirs/$id ]]; }
tries() { has_dir && [[ $(chosen "$dirs/$id/flush/policy") == batch ]]; }
is_over() { [[ $(<"$1/trial") == 0 ]]; }

# steals: sets said and during, to what the command says and how many pages are stolen meanwhile.
steals() {
	said=$("$ctl" trial --for 2 --around 1 --interval 1 flush=batch flush.max_folios=9) ||
		fail "the command ends with status $?: $said"
	during=$(awk '/^pages stolen a second/ { print $6 }' <<<"$said")
	[[ $during == [1-9]* ]]
}

# refuse TEXT ERROR SAID [DIR]
refuse() {
	local error

	error=$({ printf '%s' "$1" >"${4:-$POLICY}/trial"; } 2>&1) && fail "trial takes '$1'"
	[[ $error == *": $2" ]] || fail "trial, '$1': $error"
	[[ $(last_said) == *"vmscan_policy: $3" ]] || fail "the log says: $(last_said)"
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

# The module's own clock, which a further write sets anew; what is set later stays.
exec {held}<>"$POLICY/trial"
echo 600 >&"$held"
set_max_folios 7
echo 1 >&"$held"
wait_until folios_are 64 || fail "the time is over, and flush/max_folios is 7"
is_over "$POLICY" || fail "the time is over, and it runs"
set_max_folios 8
exec {held}>&-
folios_are 8 || fail "what was set after the trial is gone"
set_max_folios 64

# The command: to its end, while pages are reclaimed; in seconds of a busy machine, none may be.
load_start
wait_until steals || fail "no pages are stolen: $said"
load_end
folios_are 64 || fail "the command has left flush/max_folios at $(<"$POLICY/flush/max_folios")"
[[ $said == *"before      during       after"* && $said == *"The guard did not trip."* ]] ||
	fail "the command says: $said"

# Who holds it is killed; of a cgroup that has had no settings of its own.
echo 24M >"$VMP_MEMCG/memory.max"
id=$(id_of "$VMP_MEMCG")
echo "$id" >"$dirs/add"
(
	exec {held}<>"$dirs/$id/trial"
	echo "600 remove" >&"$held"
	echo batch >"$dirs/$id/flush/policy"
	pause 100000
) &
command=$!
wait_until tries || fail "nothing is tried"
kill -KILL "$command"
wait "$command" 2>/dev/null || true
wait_until has_none || fail "KILL leaves settings: $(grep -H . "$dirs/$id"/*/policy)"

# The command is interrupted.
"$ctl" --cgroup /vmp-test trial --for 10m --around 0 flush=batch >"$WORK/said" 2>&1 &
command=$!
wait_until tries || fail "nothing is tried: $(<"$WORK/said")"
kill -INT "$command"
status=0
wait "$command" || status=$?
((status == 130)) || fail "INT ends it with $status: $(<"$WORK/said")"
wait_until has_none || fail "INT leaves settings: $(grep -H . "$dirs/$id"/*/policy)"
[[ $(<"$WORK/said") == *"SIGINT came"*"The guard did not trip."* ]] || fail "it says: $(<"$WORK/said")"

# A trip ends it; that is known until it is cleared.
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
[[ $(chosen "$dirs/$id/guard/state") == tripped ]] || fail "the trip is forgotten"
refuse 10 "Device or resource busy" "trial: guard/state is tripped: write 1 to guard/clear first" \
	"$dirs/$id"
echo 1 >"$dirs/$id/guard/clear"

# Its settings go in the middle, and the file is closed then.
exec {held}<>"$dirs/$id/trial"
echo 600 >&"$held"
echo "$id" >"$dirs/remove"
exec {held}>&-
has_none || fail "the settings come back"
