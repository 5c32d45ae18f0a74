#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# workload.sh NAME: with each reclaim loop, tools/ab's workload needs no OOM kill and does its
# work with about the same reclaim; each side of the comparison has the loop that it asks for.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
trap clean_up EXIT
ab=$(dirname "$0")/../../ab
need_disk

# judge WORKLOAD A B: 1 if something is wrong, 2 if the slices were too short for anything to happen.
judge() {
	python3 - "$WORK/report" "$@" <<'PYTHON'
import json, sys
report = json.load(open(sys.argv[1]))
shown = "memcg_pgsteal scanned_per_stolen refault_file_per_1000 read_kib_per_second ms_per_operation oom_kill"
rows = {row["key"]: row for section in report["summary"].values() for row in section}
sides = ("before", "after")
for key in shown.split():
    values = (rows[key][side] for side in sides)
    print(f"{rows[key]['label']}:", ", ".join("-" if v is None else f"{v:.4g}" for v in values))
if any(rows["oom_kill"][side] != 0 for side in sides):
    sys.exit("there was an OOM kill, or none is counted")
# What is under way at a switch ends with the other side's loop.
FEW = 0.1
for side, settings in zip(sides, sys.argv[3:]):
    wanted = "scan=stock" not in settings
    here, there = (rows["stats.scan.passes"][name] for name in (side, *set(sides) - {side}))
    if here < FEW * there if wanted else here > FEW * max(there, 100):
        sys.exit(f"{here:.0f} passes in the slices of '{side}', {there:.0f} in the others")
    if wanted and not here:
        print(f"no pass is counted in the slices of '{side}'")
        sys.exit(2)
if not all(rows["operations"][side] and rows["memcg_pgsteal"][side] > 2000 for side in sides):
    print("no operation, or too few pages stolen")
    sys.exit(2)
# Far more than the loops have been seen to differ by.
before, after = (rows["scanned_per_stolen"][side] for side in sides)
if after > 3 * before:
    sys.exit(f"{after:.2f} pages are scanned per stolen page instead of {before:.2f}")
PYTHON
}

# compare WORKLOAD A B: a slice of each, twice. Longer ones if a busy host left it no CPU.
compare() {
	local seconds status

	for seconds in $(scaled 4) $(scaled 16 8) 60; do
		"$ab" --workload "$1" --disk "$slow_disk" --a "$2" --b "$3" --slices 4 --seconds "$seconds" --warmup 1 --primary "" \
			--json "$WORK/report" >"$WORK/table" 2>"$WORK/said" || fail "$2, $3: $(<"$WORK/said")"
		status=0
		judge "$1" "$2" "$3" || status=$?
		((status == 2)) || break
	done
	((status == 0)) || fail "$2, $3: see above"
}

comparisons=("scan=stock scan=budget,aging=continue")
! full || comparisons+=("scan=budget,aging=stop scan=budget,aging=continue")
! full || ! has_trait budget || comparisons+=("scan=stock scan=v6.12")
for settings in "${comparisons[@]}"; do
	read -r a b <<<"$settings"
	echo "$1: $a, $b:"
	compare "$1" "$a" "$b"
done
