#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# tools/ab --twins: two copies of a load run at the same time, each by the settings of its side, which
# they exchange. Whatever ends it, all is gone then, and the machine's settings are what they were.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
ab=$(realpath "$(dirname "$0")/../..")/ab
control=/sys/class/zram-control
disks=()

twins_clean_up() {
	clean_up_begins
	for disk in "${disks[@]}"; do
		zram_remove "${disk#/dev/zram}"
	done
	clean_up
}
trap twins_clean_up EXIT

# twins OPTIONS...: of a store in 10 MiB whose file is twice as large. None of its operations changes a
# document: half of its pages may be dirty otherwise, and stock of 6.12 then OOM-kills it now and then.
twins() {
	"$ab" --twins --memory 10M --disk "${disks[0]},${disks[1]}" --slices 4 --seconds 60 --warmup 0 --primary '' \
		--json "$WORK/report" "$@" -- "{programs}/docstore" --directory "{directory}" \
		--progress "{progress}" --size "${size:-20M}" --cache 2M --update-every 1000000 >"$WORK/table" 2>"$WORK/said"
}

# What a run makes, and the settings that are the machine's.
left() {
	find "$CGROUPS" /run -maxdepth 1 -name 'vmscan-policy-ab.*'
	find "$POLICY/cgroups" -mindepth 1 -type d
	grep vmscan-policy-ab /proc/mounts || true
	wipefs --no-act --noheadings "${disks[@]}"
	pidof docstore || true
	grep -H . "$POLICY"/*/policy
}

# is_left AFTER: nothing more than at first.
is_left() {
	local now

	now=$(left)
	echo "$1: until second $SECONDS"
	[[ $now == "$before" ]] || fail "after $1 there is $now, and was $before"
}

# report COMMAND: of Python, on the report.
report() { python3 -c "import json; report = json.load(open('$WORK/report')); $1"; }

has_period() { grep -q '"place": 2' "$WORK/report" 2>/dev/null; }

[[ -e $control ]] || skip "zram"
for _ in 1 2; do
	id=$(<$control/hot_add)
	disks+=("/dev/zram$id")
	echo 40M >"/sys/block/zram$id/disksize"
done
before=$(left)

twins --a scan=stock --b scan=budget --turnovers 1 || fail "the status is $?: $(<"$WORK/said")"
cat "$WORK/table"
is_left "a run"
python3 - "$WORK/report" <<'PYTHON'
import json, sys
report = json.load(open(sys.argv[1]))
assert report["complete"], report["ended"]
slices = report["slices"]
assert [piece["place"] for piece in slices] == [1, 2] * 2
for place in (1, 2):
    sides = [piece["side"] for piece in slices if piece["place"] == place]
    assert sorted(sides) == ["A", "B"], f"{place} has {sides}"
for first, second in zip(slices[::2], slices[1::2]):
    assert first["side"] != second["side"], "both have one side"
for piece in slices:
    counts = piece["counters"]
    print(piece["side"], piece["place"], {key: counts[key] for key in (
        "seconds", "progress", "memcg.pgsteal", "memcg.current", "stats.scan.passes")})
    assert counts["progress"] > 0, "nothing is done"
    assert counts["seconds"] >= 60 or counts["memcg.pgsteal"] * 4096 >= counts["memcg.current"]
    assert (counts["stats.scan.passes"] > 0) == (piece["side"] == "B"), "the settings are not its side's"
    assert not [key for key in counts if key.startswith(("vmstat.", "irq."))]
PYTHON

# ended HOW COMMAND STATUS SAID: a run that the command ends leaves what it has measured, no more.
ended() {
	local status=0

	rm "$WORK/report"
	twins --a profile=stock --b profile=max --turnovers 1 --slices 40 &
	job=$!
	wait_until has_period || fail "nothing is measured: $(<"$WORK/said")"
	$2
	wait "$job" || status=$?
	((status == $3)) || fail "after $1 the status is $status: $(<"$WORK/said")"
	grep -q "$4" "$WORK/table" || fail "after $1 it says $(<"$WORK/said")"
	report 'assert not report["complete"] and len(report["slices"]) % 2 == 0' || fail "$1: the file"
	is_left "$1"
}

one_is_killed() { kill -KILL "$(pidof -s docstore)"; }

# ab is the child of the function's subshell.
interrupt() { kill -INT "$(pgrep -P "$job")"; }

ended "SIGINT" interrupt 130 "INCOMPLETE.*SIGINT"
ended "the death of a copy" one_is_killed 1 "INCOMPLETE.*ended with status -9"

status=0
# The own cache alone is 2 MiB, and can't be swapped out.
twins --memory 1M --turnovers 1 || status=$?
((status == 1)) || fail "after an OOM kill the status is $status"
grep -q "an OOM kill in its memory cgroup of 1 MiB" "$WORK/said" || fail "after an OOM kill it says $(<"$WORK/said")"
is_left "an OOM kill"

status=0
# In memory enough: nobody is killed before.
size=64M twins --memory 100M --turnovers 1 || status=$?
((status == 1)) || fail "with a full disk the status is $status"
grep -q "No space left on device" "$WORK/said" || fail "with a full disk it says $(<"$WORK/said")"
is_left "a full disk"

# A setting that is refused leaves nothing, whichever cgroup had settings by then.
status=0
twins --b flush.max_folios=0 --turnovers 1 || status=$?
((status == 1)) || fail "a setting that can't be: the status is $status"
is_left "a setting that can't be"
rm "$WORK"/{report,table,said}
