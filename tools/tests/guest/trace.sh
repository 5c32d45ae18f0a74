#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The trace events: their formats, which are an interface; that each end has its beginning;
# and that they add up to what the module counts, both as tools/report reads them.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
trap clean_up EXIT

need_disk
TRACING=/sys/kernel/tracing

# formats: the fields of each event, in their order.
formats() {
	local event

	for event in "$TRACING"/events/vmscan_policy/*/format; do
		event=${event%/format}
		echo "${event##*/}:$(sed -n '/common_/d; s/^\tfield:\([^;]*\);.*/ \1,/p' "$event/format" | tr -d '\n')"
	done
}

expected_formats() {
	local where=" u32 policy, u32 set, u64 cgroup, s32 nid, u64 settings,"
	local walk="$where u32 kind, u32 pages, u32 ptes, u32 batches, u32 left, u32 kept,"

	cat <<-END
		aging_begin:$where u64 id, u64 before,
		aging_end:$where u64 id, u64 before, u64 after,
		bypass:$where u32 on, s32 pid,
		flush_batch_begin:$where u64 id, u32 folios, u32 pages,
		flush_batch_end:$where u64 id, u32 folios, u32 pages, u32 mapped, u32 gone, u32 flushed,
		guard_tripped:$where u32 cause, u32 point, u64 figure, u64 limit, s32 pid,
		policy_switch:$where u32 point, u32 from, u32 to, s32 pid,
		scan_begin:$where u64 id, u64 budget, s32 priority,
		scan_end:$where u64 id, u64 budget, u64 scanned, u64 reclaimed, s32 priority, u32 reason,
		throttle_begin:$where u64 id, u32 reason,
		throttle_end:$where u64 id, u32 reason, u32 us,
		unmap_folio:$walk
		writeback_feedback:$where u32 taken, u32 dirty, u32 unqueued, u32 congested, u32 writeback, u32 immediate, u32 woken, u32 waited,
		young_folio:$walk
	END
}

# The names that a switch is traced with are those of debugfs.
check_names() {
	local point name from names seen want

	for point in flush scan aging writeback throttle unmap young; do
		has "$point" || continue
		from=$(chosen "$POLICY/$point/policy")
		names=$(tr -d '[]' <"$POLICY/$point/policy")
		for name in $names $from; do
			[[ $name != "$from" ]] || continue
			want+=" $point:$from:$name:$name"
			echo "$name" >"$POLICY/$point/policy"
			from=$name
		done
	done
	seen=$(sed -n 's/.* policy_switch: policy=\(.*\) set=.* point=\(.*\) from=\(.*\) to=\(.*\) pid=.*/ \2:\3:\4:\1/p' "$instance/trace" | tr -d '\n')
	[[ $seen == "$want" ]] || fail "switches of$want were traced as$seen"
}

check_bypass() {
	echo 1 >"$POLICY/bypass"
	echo 0 >"$POLICY/bypass"
	[[ $(grep -o ' on=[01] ' "$instance/trace" | tr -d '\n') == " on=1  on=0 " ]] ||
		fail "the bypass was traced as $(grep bypass "$instance/trace")"
}

# counted: of all points, as POINT.NAME VALUE.
counted() {
	local point

	for point in flush scan aging writeback throttle unmap young; do
		! has "$point" || sed "s/^/$point./" "$POLICY/$point/stats"
	done
}

# What the load gives for certain, and how much of it is enough.
declare -A busy=([flush.batches]=100 [scan.passes]=100 [writeback.batches]=100 [aging.sync]=5)
has writeback || unset "busy[writeback.batches]"
is_busy() {
	read_pairs after < <(counted)
	for missing in "${!busy[@]}"; do
		work=${after[$missing]}
		((after[$missing] >= before[$missing] + busy[$missing])) || return 1
	done
}

# What a folio in a group is kept for, too: a thread that maps it again.
mapped_again() {
	in_memcg "$BIN/swapcache" 1 >/dev/null || fail "swapcache fails"
	above flush bounce_mapped "${before[flush.bounce_mapped]}"
}

throttle_ends() {
	(($(throttled) > ${before[throttle.writeback]} + ${before[throttle.congested]}))
}

diff <(expected_formats) <(formats) || fail "the formats of the events have changed"
mkdir "$instance"
echo 1 >"$instance/events/vmscan_policy/enable"
check_names
check_bypass

# Nothing of ours runs before this, nor after everything is stock again.
echo 16384 >"$instance/buffer_size_kb"
echo >"$instance/trace"
declare -A before=() after=() events=()
counted >"$WORK/counted-before"
read_pairs before <"$WORK/counted-before"
# Before the load: what is under way at a switch ends with another set.
set_policy batch
set_scan budget continue
set_throttle feedback all
load_start
wait_until is_busy || fail "no $missing is counted"
load_end
memcg_remove
memcg_new 64M
wait_until mapped_again || fail "no folio is mapped again"
memcg_remove
memcg_new
large_set always never
set_rmap unmap batch
set_rmap young batch
# Some are swapped out, some stay mapped, some are mlocked, and some looked at before.
names=(dirty lazyfree-dirty locked aged)
wanted=(flush.batches scan.passes writeback.batches aging.sync unmap.folios unmap.left young.folios)
# What is left to stock: single entries there, and here those whose swap count is full.
if has_trait discard; then
	names+=(forked)
else
	names+=(sharers)
	wanted+=(unmap.kept)
fi
for name in "${names[@]}"; do
	in_memcg "$BIN/large" "$name" "$FS/file" 1 >/dev/null || fail "$name fails"
done
memcg_remove
set_rmap unmap stock
set_rmap young stock
slow_new "$slow_disk"
memcg_new 16M
# All that is written waits for the disk, for longer than any kernel takes to scan it.
set_dirty_limits 100 99
slow_load "$(slow_table 20000)"
in_memcg dd if=/dev/zero of="$FS/data" bs=1M count=48 status=none &
wait_until throttle_ends || fail "nobody is throttled"
slow_load "$(slow_table 0)"
wait $! || fail "the writer failed"
memcg_remove
set_policy stock
set_scan stock continue
set_throttle stock stock
counted >"$WORK/counted-after"
echo 0 >"$instance/tracing_on"

! grep -Hv '^\(overrun\|commit overrun\|dropped events\): 0$' "$instance"/per_cpu/cpu*/stats |
	grep 'overrun\|dropped' || fail "events were lost"
# Nothing can be written beside the modules that it loads: -B.
figures=$(python3 -B "$(dirname "$0")/traced.py" "$instance/trace" \
	"$WORK/counted-before" "$WORK/counted-after" 2>&1) || fail "$figures"
read_pairs events <<<"$figures"
echo "traced: ${figures//$'\n'/, }"
for name in "${wanted[@]}"; do
	has "${name%.*}" || continue
	((${events[$name]:-0})) || fail "no $name was traced"
done
# What stock goes over in batches by itself, probes tell of.
if has_trait discard; then
	for what in "unmap_folio: policy=stock .* kind=lazyfree .* batches=[1-9]" "young_folio: policy=stock"; do
		grep -q "$what" "$instance/trace" || fail "no $what was traced"
	done
fi
((${events[throttle.writeback]:-0} + ${events[throttle.congested]:-0})) || fail "no sleep was traced"

# Unloading with the events on ends the probe, too.
rmmod vmscan_policy
! grep reclaim_throttle /sys/kernel/debug/kprobes/list || fail "the probe is still there"
