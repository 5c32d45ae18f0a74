#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Each memory cgroup is reclaimed by its own settings, or those of the nearest one above it that
# has some, whoever's limit it is: what is decided is traced with them and counted for them, and
# where they are stock nothing is decided.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
trap clean_up EXIT

dirs=$POLICY/cgroups
names=(max/below stock none)
# Of each there has to be so much.
enough=$(scaled 200 20)

# start NAME: what swaps and reads files in $VMP_MEMCG/NAME all the time.
start() {
	(
		echo "$BASHPID" >"$VMP_MEMCG/$1/cgroup.procs"
		exec stress-ng --vm 1 --vm-bytes 40M --vm-keep --vm-method rand-set --temp-path "$WORK" \
			--timeout 1h -q
	) &
	(
		echo "$BASHPID" >"$VMP_MEMCG/$1/cgroup.procs"
		exec sh -c "while cat '$FS/data' >/dev/null; do :; done"
	) &
}

# events: lines of event, cgroup, settings, policy of what was traced; sleeps are told of the
# sleeper, and switches of none. Stock's own batches are no decision.
events() {
	local own='^$'

	! has_trait discard || own='^\(unmap\|young\)_folio .* stock$'
	sed -nE 's/.* ([a-z_]+): policy=(.*) set=[0-9]+ cgroup=([0-9]+) nid=-?[0-9]+ settings=([0-9]+) .*/\1 \3 \4 \2/p' \
		"$instance/trace" | grep -v -e '^throttle_' -e '^policy_switch' -e '^bypass' -e "$own" || true
}

# decided DIR: sets count to what is counted there, at all points but throttle: these are sleeps.
decided() {
	count=$(cat "$1"/[!t]*/stats |
		awk '!/^observed_/ { n += $2 } END { print n + 0 }')
}

# nothing_since N DIR: is there as little counted as N?
nothing_since() {
	decided "$2"
	((count == $1)) || fail "$2 has counted $count, not $1: $(grep -v ' 0$' "$2"/*/stats)"
}

# stolen_of NAME: has the kernel taken enough from it since $before[NAME]?
stolen_of() {
	count=$(awk '$1 == "pgsteal" { print $2 }' "$VMP_MEMCG/$1/memory.stat")
	work=$count
	((count > ${before[$1]} + 10 * enough))
}

# traced NAME SETTINGS: all that was decided about it was by these.
traced() {
	local id seen

	id=$(id_of "$VMP_MEMCG/$1")
	seen=$(awk -v id="$id" -v want="$2" '
		$2 == id && $3 != want { print "wrong:", $0; exit }
		$2 == id && $4 ~ /^(stock|stop)$/ && $1 !~ /^aging/ { print "stock:", $0; exit }
		$2 == id { n++ }
		END { print n + 0 }' "$WORK/events")
	[[ $seen == [0-9]* ]] || fail "$1: $seen"
	echo "$1: $seen decisions were traced, by the settings $2"
}

# untraced NAME: nothing was decided about it.
untraced() {
	! grep -m 1 "^[a-z_]* $(id_of "$VMP_MEMCG/$1") " "$WORK/events" || fail "$1 was decided about"
}

# enough_about NAME...: trace until enough is taken from each; is enough decided about these now?
enough_about() {
	local name

	declare -gA before=()
	for name in "${names[@]}"; do
		before[$name]=$(awk '$1 == "pgsteal" { print $2 }' "$VMP_MEMCG/$name/memory.stat")
	done
	echo 1 >"$instance/tracing_on"
	# From above, too: their own settings hold there.
	echo 8M >"$VMP_MEMCG/memory.reclaim" || true
	for name in "${names[@]}"; do
		wait_until stolen_of "$name" || fail "$name is not reclaimed"
	done
	echo 0 >"$instance/tracing_on"
	events >"$WORK/events"
	for name in "$@"; do
		work=$(grep -c "^[a-z_]* $(id_of "$VMP_MEMCG/$name") " "$WORK/events" || true)
		((work >= enough)) || return
	done
}

# watch NAME...: trace what is decided until there is enough of it about these. Clean pages of files
# are taken without a decision, and how many of the pages are such is chance.
watch() {
	: >"$instance/trace"
	wait_until enough_about "$@" || fail "little is decided about one of $*: $work"
}

memcg_new
echo +memory >"$VMP_MEMCG/cgroup.subtree_control"
mkdir "$VMP_MEMCG"/{max,stock,none}
echo +memory >"$VMP_MEMCG/max/cgroup.subtree_control"
mkdir "$VMP_MEMCG/max/below"
for name in "${names[@]}"; do
	echo 24M >"$VMP_MEMCG/$name/memory.max"
done
swap_new
fs_new
truncate -s 48M "$FS/data"
mkdir "$instance"
echo 16384 >"$instance/buffer_size_kb"
# Before there is a load: some of these set probes, which emulated CPUs may trip over.
echo 0 >"$instance/tracing_on"
echo 1 >"$instance/events/vmscan_policy/enable"
max=$(id_of "$VMP_MEMCG/max")
stock=$(id_of "$VMP_MEMCG/stock")
# Stock kills some of these, too: no reason to go over to stock.
echo off >"$POLICY/guard/state"
printf '%s\n' "$max" >"$dirs/add"
printf '%s\n' "$stock" >"$dirs/add"
echo max >"$dirs/$max/profile"
echo 8 >"$dirs/$max/flush/max_folios"
for name in "${names[@]}"; do
	start "$name"
done
decided "$POLICY" # by tests before this one
machine=$count
lrus=(mglru)
! full || lrus+=(classic)
for lru in "${lrus[@]}"; do
	set_lru "$lru"
	# one with settings, in a machine that is stock
	watch max/below
	traced max/below "$max"
	untraced stock
	untraced none
	nothing_since "$machine" "$POLICY"
	nothing_since 0 "$dirs/$stock"
	largest=$(sed -n 's/^largest_batch //p' "$dirs/$max/flush/stats")
	((largest > 1 && largest <= 8)) || fail "$lru: the largest group has $largest folios"
done
decided "$dirs/$max"
((count > enough)) || fail "little is counted for the settings: $count"

# one that is stock, in a machine that is not
set_lru mglru
echo max >"$POLICY/profile"
echo "$max" >"$dirs/remove"
watch max/below none
traced max/below 0
traced none 0
untraced stock
nothing_since 0 "$dirs/$stock"
decided "$POLICY"
((count > machine + enough)) || fail "little is counted for the machine: $count, and $machine before"
rm "$WORK/events"
