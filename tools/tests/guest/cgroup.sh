#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# tools/ab --cgroup: what runs there is measured and goes on, with the limit that it has.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
trap clean_up EXIT
ab=$(realpath "$(dirname "$0")/../..")/ab

((${VMP_SCALE:-100} >= 50)) || skip "the plain kernel, which is enough for what is all in user space"

# measured OPTIONS...: of the load; a service that does ten operations each time it is asked.
measured() {
	echo 1 >"$WORK/done"
	"$ab" --cgroup "$VMP_MEMCG" --progress-command "n=\$((\$(cat $WORK/done) + 10)); echo \$n >$WORK/done; echo \$n" \
		--slices 4 --primary "" --seconds 1 --warmup 1 --settle 0.5 --json "$WORK/report" "$@"
}

# refused TEXT OPTIONS...: one sentence with that text, and nothing is measured.
refused() {
	local status=0 text=$1

	shift
	said=$("$ab" --slices 2 --primary "" --seconds 1 --warmup 0 --json "$WORK/refused" "$@" 2>&1 >/dev/null) || status=$?
	((status)) || fail "$* was not refused"
	[[ $said == *"$text"* && $said != *Traceback* ]] || fail "$*: $said"
	[[ ! -e $WORK/refused ]] || fail "$* was measured"
}

state() { grep -H . "$POLICY"/*/policy "$VMP_MEMCG"/{memory.max,memory.swap.max,cgroup.freeze}; }

# ab has the module probe the kernel, which patches it: QEMU's emulation does not always survive
# that under load. So it is done before and undone after.
echo 1 >"$POLICY/flush/observe"
load_start
before=$(state)
measured --a profile=stock --b profile=recommended >"$WORK/table" || fail "the status is $?"
cat "$WORK/table"
# Each of the load's processes may be in a call at a switch, which ends as it began.
python3 - "$WORK/report" "$(wc -l <"$VMP_MEMCG/cgroup.procs")" <<'PYTHON'
import json, sys
report = json.load(open(sys.argv[1]))
assert report["settings"]["memory_bytes"] == 32 << 20, report["settings"]
rows = {row["key"]: row for section in report["summary"].values() for row in section}
done = [rows["operations"][side] for side in ("before", "after")]
assert done == [20, 20], f"{done} operations are not what the command tells"
for piece in report["slices"]:
    calls = piece["counters"]["stats.flush.calls"]
    assert calls > 0 if piece["side"] == "B" else calls <= int(sys.argv[2]), (
        f"{calls} calls deferred, side {piece['side']}")
assert all(report["turnover_seconds"].values()), report["turnover_seconds"]
PYTHON
measured --aa >"$WORK/table"
grep -q "A and B were the same setting" "$WORK/table" || fail "nothing is said of chance"
refused "is no memory cgroup" --cgroup "$CGROUPS"
refused "is no memory cgroup" --cgroup nonesuch
refused "leave it or --cgroup out" --cgroup "$VMP_MEMCG" --memory 1G
refused "exits with 3 and says: 1 oh" --cgroup "$VMP_MEMCG" --progress-command "echo 1 oh; exit 3"
mkdir "$VMP_MEMCG.empty"
refused "no task is in" --cgroup "$VMP_MEMCG.empty"
rmdir "$VMP_MEMCG.empty"
[[ $(state) == "$before" ]] || fail "the state is $(state), was $before"
rm "$WORK"/{report,table,done}
load_end
memcg_remove
echo 0 >"$POLICY/flush/observe"
