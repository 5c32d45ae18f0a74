#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A task whose reclaim must not wait for I/O passes over what it can't swap about as fast as
# under the kernel's own loop: it gets clean pages where there are some, and ends where not. The guard
# does not take a pass for stuck that may not have the memory that is there.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
trap clean_up EXIT

# Sets work to how often folios were looked at, and to the task's page faults. It is too much when
# the trace is full, which has room for many times what stock does.
has_ended() {
	local cpu text name value fields=()

	! gone "$task" || return 0
	work=
	for cpu in "$instance"/per_cpu/cpu*/stats; do
		read_file text "$cpu"
		while read -r name value; do
			[[ $name != entries: ]] || work+="$value "
			[[ $name != overrun: || $value == 0 ]] || fail "$scan $aging: reclaim goes on and on"
		done <<<"$text"
	done
	{ read -ra fields <"/proc/$task/stat"; } 2>/dev/null || true
	work+=${fields[9]:-}
	return 1
}
kills() { awk '$1 == "oom_kill" { print $2 }' "$VMP_MEMCG/memory.events"; }

# try FILE|-: sets status, killed, and looked to the folios that isolation has looked at.
try() {
	local before

	before=$(kills)
	echo >"$instance/trace"
	in_memcg "$BIN/noio" 40 "$1" &
	task=$!
	wait_until has_ended || fail "$scan $aging: the task hangs: $(<"/proc/$task/stack")"
	status=0
	wait "$task" || status=$?
	killed=$(($(kills) - before))
	looked=$(awk -F'nr_scanned=' 'NF > 1 { sum += $2 } END { print sum + 0 }' "$instance/trace")
	grep -q 'entries-in-buffer/entries-written: \([0-9]*\)/\1 ' "$instance/trace" || fail "events were lost"
	echo "$scan $aging, $1: status $status, $killed OOM kills, $looked folios looked at"
	[[ $setting != "${scan_settings[0]}" ]] || stock=$looked
	((looked <= 2 * stock)) || fail "that is more than twice what stock looks at"
}

swap_new
fs_new
truncate -s 128M "$FS/data"
memcg_new 64M
mkdir "$instance"
echo 8192 >"$instance/buffer_size_kb"
echo 1 >"$instance/events/vmscan/mm_vmscan_lru_isolate/enable"
full || scan_settings=("stock continue" "budget continue")
# Each task that finds only anonymous pages ends with a kill, which is no policy's fault, and may be slow:
# what is left is the pass at priority 0, which trips at once.
own=$POLICY/cgroups/$(id_of "$VMP_MEMCG")
id_of "$VMP_MEMCG" >"$POLICY/cgroups/add"
echo 0 >"$own/guard/window"
echo 3600000 >"$own/guard/stall"
for kind in file anon; do
	for setting in "${scan_settings[@]}"; do
		read -r scan aging <<<"$setting"
		POLICY=$own set_scan "$scan" "$aging"
		case $kind in
		file)
			try "$FS/data"
			((status == 0 && killed == 0)) || fail "there were clean pages to reclaim"
			;;
		anon)
			try -
			((status == 137 && killed == 1)) || fail "there was nothing to reclaim"
			;;
		esac
	done
done
reason=$(<"$own/guard/reason")
[[ $reason == none ]] || fail "the guard holds it against the policies: $reason"
