#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# tools/record: what it records, that all is as before in the end, after a signal too, and
# that it leaves alone what others trace meanwhile.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

TRACING=/sys/kernel/tracing
# By its name, which is all that tells it from vmscanctl.
record=$(realpath "$(dirname "$0")/../..")/record
file=$WORK/trace.dat
running=
others=$TRACING/events/vmscan/mm_vmscan_lru_isolate

record_clean_up() {
	clean_up_begins
	[[ ! $running ]] || kill "$running" 2>/dev/null || true
	echo 0 >"$others/enable"
	clean_up
}
trap record_clean_up EXIT

((${VMP_SCALE:-100} >= 50)) || skip "the plain kernel, which is enough for what is all in user space"

state() {
	grep -H . "$POLICY"/flush/{policy,max_folios} "$TRACING"/{tracing_on,trace_clock,current_tracer}
	cat "$TRACING/set_event"
	ls -A "$WORK" "$TRACING/instances"
}

# recorded TEXT: how many events have it.
recorded() { grep -c -- "$1" <<<"$report" || true; }

# check_file: the file is complete and all else is as before.
check_file() {
	report=$(trace-cmd report "$file")
	rm "$file"
	[[ $(state) == "$before" ]] || fail "the state is $(state), was $before"
}

echo 1 >"$others/enable"
before=$(state)
flushes=()
[[ $(uname -m) != x86_64 ]] || flushes=(tlb_flush:)
# Probes can't be set under a load of emulated CPUs.
options=()
! has_trait discard || options=(--folios none)
load_start
echo >"$TRACING/trace"
status=0
said=$("$record" -o "$file" "${options[@]}" --ab flush=stock,batch --ab flush.max_folios=31,64 --every 1s -- \
	sh -c "echo from the command >$TRACING/instances/vmscan-policy-record/trace_marker; sleep $(scaled 8); exit 7" 2>&1) || status=$?
load_end
memcg_remove
echo "$said"
((status == 7)) || fail "the status is $status, the command's is 7"
[[ $said =~ ^"record: "([0-9]+)" events in $file"$ ]] || fail "not that alone was said"
expected=${BASH_REMATCH[1]}
check_file
events=$(recorded '^vmscan-policy-record: .*\[[0-9]*\]')
((events == expected)) || fail "$expected events were told, $events are in the file"
(($(recorded mm_vmscan_lru_isolate:) == 0)) || fail "what others trace was recorded, too"
grep -q mm_vmscan_lru_isolate: "$TRACING/trace" || fail "what others trace is gone"
for name in "policy_switch: .*point=flush from=stock to=batch" "flush_batch_end: .*policy=batch" \
	mm_vmscan_memcg_reclaim_begin: mm_vmscan_lru_shrink_inactive: \
	"${flushes[@]}" "print: .*from the command"; do
	(($(recorded "$name"))) || fail "no $name was recorded"
done

# Large folios of some kinds only; the events are those of a point that some kernels lack.
if has unmap; then
	memcg_new
	xfs_new
	large_set always always
	set_rmap unmap batch
	before=$(state)
	for kinds in file lazyfree,anon none; do
		"$record" -o "$file" --folios "$kinds" -- sh -c "echo \$\$ >$VMP_MEMCG/cgroup.procs
			for name in lazyfree dirty file-clean; do
				$BIN/large \$name $FS/file 1 || exit
			done" >/dev/null || fail "the recording of $kinds fails"
		check_file
		for kind in "${unmap_kinds[@]}"; do
			events=$(recorded "unmap_folio: .*kind=$kind ")
			echo "--folios $kinds: $events events of $kind"
			[[ ,$kinds, != *,$kind,* ]] || ((events)) || fail "no folio of $kind was recorded"
			[[ ,$kinds, == *,$kind,* ]] || ((!events)) || fail "folios of $kind were recorded"
		done
	done
fi

"$record" -o "$file" --ab flush=stock,batch -- sh -c "echo \$\$ >$WORK/pid; exec sleep 1000" &
running=$!
while [[ ! -s $WORK/pid ]]; do
	kill -0 "$running" || fail "record has ended"
	pause 0.2
done
pid=$(<"$WORK/pid")
rm "$WORK/pid"
kill -INT "$running"
status=0
wait "$running" || status=$?
((status == 130)) || fail "the status after SIGINT is $status"
! kill -0 "$pid" 2>/dev/null || fail "the command is still there"
check_file
