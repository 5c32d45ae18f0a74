#!/bin/bash
# workload.sh NAME: tools/ab's workload, with each reclaim loop, needs no OOM kill.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
trap clean_up EXIT
ab=$(dirname "$0")/../../ab
[[ -b /dev/vda ]] || {
	echo "there is no disk"
	exit 4
}

# judge: 1 if something is wrong, 2 if the slices were too short for anything to happen.
judge() {
	python3 - "$WORK/report" <<'PYTHON'
import json, sys
report = json.load(open(sys.argv[1]))
shown = "scanned_per_stolen refault_file_per_1000 read_kib_per_second ms_per_operation oom_kill"
rows = {row["key"]: row for section in report["summary"].values() for row in section}
sides = ("before", "after")
for key in shown.split():
    values = (rows[key][side] for side in sides)
    print(f"{rows[key]['label']}:", ", ".join("-" if v is None else f"{v:.4g}" for v in values))
if any(rows["oom_kill"][side] != 0 for side in sides):
    sys.exit("there was an OOM kill, or none is counted")
if not all(rows[key][side] for key in ("operations", "memcg_pgsteal") for side in sides):
    print("no operation, or no page stolen")
    sys.exit(2)
PYTHON
}

# compare WORKLOAD A B: a slice of each, twice. Longer ones if a busy host left it no CPU.
compare() {
	local seconds status

	for seconds in $(scaled 4) $(scaled 16 8) 60; do
		"$ab" --workload "$1" --a "$2" --b "$3" --slices 4 --seconds "$seconds" --warmup 1 \
			--json "$WORK/report" >"$WORK/table" 2>"$WORK/said" || fail "$2, $3: $(<"$WORK/said")"
		status=0
		judge || status=$?
		((status == 2)) || break
	done
	((status == 0)) || fail "$2, $3: see above"
}

for settings in "scan=stock scan=budget,aging=stop" "scan=budget,aging=continue scan=budget,aging=async"; do
	read -r a b <<<"$settings"
	echo "$1: $a, $b:"
	compare "$1" "$a" "$b"
done
