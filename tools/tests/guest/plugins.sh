#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A policy of another module stands in the list of its point and decides where it is chosen. Neither
# module can go meanwhile, and when its own goes, so does the name. VMP_SAMPLES has the modules of
# tools/samples.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
half=$VMP_SAMPLES/half/half.ko
told=$POLICY/plugins/flush.half

plugins_clean_up() {
	clean_up_begins
	settings_remove
	echo stock >"$POLICY/profile"
	! has_module half || rmmod half
	! has_module pressure || rmmod pressure
	has_module vmscan_policy || insmod "$VMP_MODULE_DIR/vmscan_policy.ko"
	clean_up
}
trap plugins_clean_up EXIT

# lists_now TEXT: as must_list, but at once.
lists_now() { lists "$1" || fail "flush/policy reads $(<"$POLICY/flush/policy"), not $1"; }

# counted NAME: of the policy.
counted() { awk -v name="$1" '$1 == name { print $2 }' "$told"; }
answers() { (($(counted answers) > before + 20)); }
some_answer() { (($(counted answers))); }

# busy MODULE: it can't go.
busy() {
	local error

	error=$(rmmod "$1" 2>&1) && fail "$1 goes"
	[[ $error == *"in use"* ]] || fail "rmmod $1: $error"
}

export LC_ALL=C
rmmod vmscan_policy
! insmod "$half" 2>/dev/null || fail "half needs no vmscan_policy"
insmod "$VMP_MODULE_DIR/vmscan_policy.ko"
lists_now "[stock] batch"
insmod "$half"
lists_now "[stock] batch half"
grep -qx "about Flushes once for 32 dirty folios." "$told" || fail "half says: $(<"$told")"
grep -qx "module half" "$told" || fail "half says: $(<"$told")"
busy vmscan_policy

load_start
before=0
set_policy half
lists_now "stock batch [half]"
wait_until answers || fail "nobody asks half: $(<"$told")"
defers() { above flush deferred "$deferred"; }
deferred=$(counter flush deferred)
wait_until defers || fail "half defers nothing"
[[ $(counted limited) == 0 ]] || fail "answers were limited: $(<"$told")"
(($(counter flush largest_batch) <= 32)) || fail "a group has $(counter flush largest_batch) folios"
busy half

# Of a cgroup alone: it goes on when the machine has stock.
id=$(id_of "$VMP_MEMCG")
echo "$id" >"$POLICY/cgroups/add"
[[ $(chosen "$POLICY/cgroups/$id/flush/policy") == half ]] || fail "a new cgroup has not what held for it"
set_policy stock
before=$(counted answers)
wait_until answers || fail "the cgroup doesn't ask half"
busy half
echo "$id" >"$POLICY/cgroups/remove"

# It comes and goes while its point is asked.
for ((i = 0; i < 20; i++)); do
	rmmod half
	lists_now "[stock] batch"
	[[ ! -e $told ]] || fail "its file stays"
	insmod "$half"
	set_policy half
	((i % 2)) || wait_until some_answer || fail "nobody asks half"
	set_policy stock
	load_check
done
rmmod half
lists_now "[stock] batch"

# Groups grow from 16 folios, as far as they may.
insmod "$VMP_SAMPLES/pressure/pressure.ko" most=48
set_policy pressure
grows() { above flush largest_batch 32; }
wait_until grows || fail "groups of pressure have at most $(counter flush largest_batch) folios"
(($(counter flush largest_batch) <= 48)) || fail "a group has $(counter flush largest_batch) folios"
set_policy stock
rmmod pressure
load_end
lists_now "[stock] batch"
