#!/bin/bash
# workload.sh NAME: tools/ab's workload, with each reclaim loop, needs no OOM kill.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
trap clean_up EXIT
ab=$(dirname "$0")/../../ab
seconds=$(scaled 4)
[[ -b /dev/vda ]] || {
	echo "there is no disk"
	exit 4
}

# compare A B: a slice of each, twice.
compare() {
	"$ab" --workload "$1" --a "$2" --b "$3" --slices 4 --seconds "$seconds" --warmup 1 \
		--json "$WORK/report" >"$WORK/table" 2>"$WORK/said" || fail "$2, $3: $(<"$WORK/said")"
	python3 - "$WORK/report" <<'PYTHON' || fail "$2, $3: see above"
import json, sys
report = json.load(open(sys.argv[1]))
shown = "scanned_per_stolen refault_file_per_1000 read_kib_per_second ms_per_operation oom_kill"
rows = {row["key"]: row for section in report["summary"].values() for row in section}
for key in shown.split():
    row = rows[key]
    print(f"{rows[key]['label']}: {row['before']:.4g}, {row['after']:.4g}")
for side in ("before", "after"):
    assert rows["oom_kill"][side] == 0, "an OOM kill"
    assert rows["operations"][side] > 0, "no operation"
    assert rows["memcg_pgsteal"][side] > 0, "no reclaim"
PYTHON
}

for settings in "scan=stock scan=budget,aging=stop" "scan=budget,aging=continue scan=budget,aging=async"; do
	read -r a b <<<"$settings"
	echo "$1: $a, $b:"
	compare "$1" "$a" "$b"
done
