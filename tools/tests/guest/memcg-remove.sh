#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# memcgs are removed while they are reclaimed and aged, by themselves and from
# above, with each reclaim loop. The runner sees if they stay around.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
trap clean_up EXIT

rounds=$(scaled 50)
! full || rounds=$(scaled 250)
settings=("${scan_settings[0]}" "budget continue")
! full || settings=("${scan_settings[@]}")
memcg_new
echo +memory >"$VMP_MEMCG/cgroup.subtree_control"
swap_new
fs_new
for setting in "${settings[@]}"; do
	read -r scan aging <<<"$setting"
	set_scan "$scan" "$aging"
	text=$("$BIN/memcg-remove" "$rounds" "$FS") || fail "$setting: failed with status $?"
	echo "$setting: $text"
	[[ ! $text =~ " in 0 "|" aged 0 " ]] || fail "$setting: a removal met no reclaim, or nothing was aged"
done
echo "$(awk '$1 == "nr_dying_descendants" { print $2 }' "$CGROUPS/cgroup.stat") memcgs are dying"
