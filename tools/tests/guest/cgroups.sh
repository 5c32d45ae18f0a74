#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Settings of memory cgroups: their directories come and go, have the files that the machine has,
# begin with what held before, and refuse all else without effect.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
trap clean_up EXIT

export LC_ALL=C
dirs=$POLICY/cgroups

# files_of DIR: the names of its files, but for those that are the machine's alone, and path.
files_of() {
	(cd "$1" && find . -type f -not -path "./cgroups/*" -not -path ./abi -not -path ./traits \
		-not -path ./bypass -not -path ./flush/observe -not -path ./path | sort)
}

# settings_of DIR: its files that can be written, with what they say.
settings_of() { (cd "$1" && files_of . | xargs ls -l | awk '/^-rw/ { print $NF }' | xargs grep -H .); }

listed() { find "$dirs" -mindepth 1 -maxdepth 1 -type d -printf '%f\n' | sort; }

# refuse FILE TEXT ERROR SAID: the last line of the log says why.
refuse() {
	local before after error

	before=$(listed)
	error=$({ printf '%s' "$2" >"$dirs/$1"; } 2>&1) && fail "cgroups/$1 takes '$2'"
	[[ $error == *": $3" ]] || fail "cgroups/$1, '$2': not '$3' but: $error"
	[[ $(last_said) == *"vmscan_policy: $4" ]] || fail "the log says: $(last_said)"
	after=$(listed)
	[[ $before == "$after" ]] || fail "cgroups/$1, '$2' is refused and changes: $after"
}

no_directory() { [[ ! -d $dirs/$1 ]]; }

memcg_new
echo +memory >"$VMP_MEMCG/cgroup.subtree_control"
mkdir -p "$VMP_MEMCG/child/bare"
id=$(id_of "$VMP_MEMCG")
child=$(id_of "$VMP_MEMCG/child")
takes="takes the id of a cgroup: the inode number of its directory"
[[ ! $(listed) ]] || fail "there are settings of cgroups at first: $(listed)"
[[ $(stat -c %a "$dirs/add" "$dirs/remove" | xargs) == "200 200" ]] || fail "the modes are wrong"
refuse add $'\n' "Invalid argument" "cgroups/add $takes"
refuse add -1 "Invalid argument" "cgroups/add $takes"
refuse add "$id $child" "Invalid argument" "cgroups/add $takes"
refuse add 0x10 "Invalid argument" "cgroups/add $takes"
refuse add 99999999999999999999999 "Numerical result out of range" "cgroups/add $takes"
pause 6
refuse add 0 "No such file or directory" "cgroups/add 0: no such cgroup of version 2"
refuse add 18446744073709551615 "No such file or directory" \
	"cgroups/add 18446744073709551615: no such cgroup of version 2"
refuse add "$(id_of "$CGROUPS")" "Invalid argument" \
	"cgroups/add $(id_of "$CGROUPS"): the root cgroup's settings are the machine's"
bare=$(id_of "$VMP_MEMCG/child/bare")
refuse add "$bare" "Operation not supported" \
	"cgroups/add $bare: it has no memory controller: put +memory in its parent's subtree_control"
refuse remove "$id" "No such file or directory" "cgroups/remove $id: it has no settings"
refuse remove all "Invalid argument" "cgroups/remove $takes"

# It begins with what the machine has, and its child with what it has; neither follows a change.
echo max >"$POLICY/profile"
set_max_folios 31
before=$(settings_of "$POLICY")
echo "$id" >"$dirs/add"
[[ $(files_of "$dirs/$id") == "$(files_of "$POLICY")" ]] || fail "its files are not the machine's"
[[ $(settings_of "$dirs/$id") == "$before" ]] || fail "it does not begin with what held"
[[ $(<"$dirs/$id/path") == /vmp-test ]] || fail "its path is $(<"$dirs/$id/path")"
if cat "$dirs/$id"/*/stats | grep -v ' 0$'; then
	fail "it has counted something"
fi
pause 6
refuse add "$id" "File exists" "cgroups/add $id: it has settings already"
echo stock >"$POLICY/profile"
set_max_folios 64
[[ $(settings_of "$dirs/$id") == "$before" ]] || fail "a change of the machine's reaches it"
echo 7 >"$dirs/$id/flush/max_folios"
[[ $(<"$POLICY/flush/max_folios") == 64 ]] || fail "a change of its reaches the machine's"
echo "$child" >"$dirs/add"
[[ $(settings_of "$dirs/$child") == "$(settings_of "$dirs/$id")" ]] ||
	fail "the child does not begin with what held"
echo stock >"$dirs/$child/profile"
[[ $(chosen "$dirs/$id/profile") == max ]] || fail "a change of the child's reaches its parent"
error=$({ echo 0 >"$dirs/$child/flush/max_folios"; } 2>&1) && fail "the child's file takes 0"
[[ $error == *": Numerical result out of range" ]] || fail "the child's file says: $error"
echo budget >"$dirs/$child/scan/policy"
[[ $(<"$dirs/$child/aging/in_effect") == yes ]] || fail "aging is not in effect with the child's budget"

# Who asks from a cgroup namespace has not all cgroups; those that it lacks are not gone for that.
before=$(listed)
(
	echo "$BASHPID" >"$VMP_MEMCG/child/cgroup.procs"
	exec unshare --cgroup sh -c "! echo 1 >$dirs/remove"
) || fail "cgroups/remove takes 1"
[[ $(listed) == "$before" ]] || fail "a cgroup namespace leaves of the settings: $(listed)"

# What holds for none any more goes: removed, taken the controller away, or named.
rmdir "$VMP_MEMCG/child/bare" "$VMP_MEMCG/child"
! cat "$dirs/$child/path" 2>/dev/null || fail "a removed cgroup has a path"
wait_until no_directory "$child" || fail "the settings of a removed cgroup stay"
mkdir "$VMP_MEMCG/child"
child=$(id_of "$VMP_MEMCG/child")
echo "$child" >"$dirs/add"
echo -memory >"$VMP_MEMCG/cgroup.subtree_control"
echo +memory >"$VMP_MEMCG/cgroup.subtree_control"
set_span 0
wait_until no_directory "$child" || fail "the settings stay with another controller"
set_span 1
echo "$child" >"$dirs/add"

# Files are in use while they go, and their writers end.
for _ in {1..20}; do
	(while echo batch 2>/dev/null >"$dirs/$child/flush/policy"; do :; done) &
	writer=$!
	(while cat "$dirs/$child"/*/stats >/dev/null 2>&1; do :; done) &
	reader=$!
	pause 0.05
	echo "$child" >"$dirs/remove"
	wait_until gone "$writer" || fail "who writes to a file that goes does not end"
	wait_until gone "$reader" || fail "who reads a file that goes does not end"
	echo "$child" >"$dirs/add"
done

if full; then
	mkdir "$VMP_MEMCG"/many-{1..1022}
	for dir in "$VMP_MEMCG"/many-*; do
		id_of "$dir" >"$dirs/add"
	done
	mkdir "$VMP_MEMCG/over"
	over=$(id_of "$VMP_MEMCG/over")
	refuse add "$over" "No space left on device" \
		"cgroups/add $over: 1024 cgroups have settings, which is the limit"
	rmdir "$VMP_MEMCG"/many-*
	echo "$over" >"$dirs/add"
	[[ $(listed | wc -l) == 3 ]] || fail "$(listed | wc -l) cgroups have settings"
fi

# The module takes what is left with it.
rmmod vmscan_policy
insmod "$VMP_MODULE_DIR/vmscan_policy.ko"
[[ ! $(listed) ]] || fail "there are settings of cgroups after the module has come again: $(listed)"
