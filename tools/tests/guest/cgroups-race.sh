#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Memory cgroups come and go, are reclaimed, limited and aged, and get and lose settings at random.
# Each decision is by the settings of its cgroup. The runner sees if anything of them stays.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
trap clean_up EXIT

seconds=60
cgroups=$(scaled 200)
if full; then
	seconds=600
	cgroups=1000
fi

memcg_new
echo +memory >"$VMP_MEMCG/cgroup.subtree_control"
swap_new
fs_new
# A limit of 256 KiB may end in an OOM kill with any policy.
echo off >"$POLICY/guard/state"
mkdir "$instance"
echo 4096 >"$instance/buffer_size_kb"
enough() { ((own > 20 && own < decided)); }
# A slow guest may do too little in a round for a cgroup with settings to be reclaimed from.
for round in 1 2 3; do
	echo 1 >"$instance/events/vmscan_policy/enable"
	python3 "$(dirname "$0")/cgroups-race.py" \
		"$seconds" "$cgroups" "$VMP_MEMCG" "$POLICY/cgroups" "$FS" "$round" ||
		fail "a worker has failed"
	echo 0 >"$instance/events/vmscan_policy/enable"
	# They are siblings: what has settings has its own. Sleeps are told of the sleeper.
	read -r decided own < <(sed -nE \
		's/.* [a-z_]+: policy=.* set=[0-9]+ cgroup=([0-9]+) nid=[0-9]+ settings=([0-9]+) .*/\1 \2/p' \
		"$instance/trace" | awk '$2 && $1 != $2 { print "wrong:", $0; exit } { n++; own += $2 > 0 }
			END { print n + 0, own + 0 }')
	[[ $decided != wrong: ]] || fail "a decision about the cgroup and settings $own"
	echo "$decided decisions are left in the trace, $own of them by a cgroup's own settings"
	! enough || break
done
enough || fail "that is too few"
echo stock >"$POLICY/profile"
settings_remove
find "$VMP_MEMCG" -depth -mindepth 1 -type d -exec rmdir {} +
echo "$(awk '$1 == "nr_dying_descendants" { print $2 }' "$CGROUPS/cgroup.stat") memcgs are dying"
