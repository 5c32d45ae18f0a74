#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What happens to large folios while reclaim is about to unmap them or to check them in batches,
# and what another MMU has accessed. The module of this test build has such an MMU, which can
# hold reclaim up; see mirror.h.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_point unmap young
need_fault_module VMP_FAULT_MIRROR
tracing=/sys/kernel/tracing

meanwhile_clean_up() {
	clean_up_begins
	[[ ! -d $tracing/events/kprobes ]] || echo 0 >"$tracing/events/kprobes/enable"
	echo >"$tracing/kprobe_events"
	echo >"$tracing/trace"
	fault_clean_up
}
trap meanwhile_clean_up EXIT

# try CASE: go on where it fails, to see what else does.
try() {
	local got

	got=$(in_memcg "$BIN/large" "$1" "$FS/file" 1 2>&1) || {
		echo "$policy, $lru, $1: $got"
		failed=y
	}
}

memcg_new
swap_new
large_set always always
load_fault_module
# A livepatch has another function of that name, which is the one that runs.
livepatch=$(awk '$3 == "folio_referenced" && $4 { print substr($4, 2, length($4) - 2) ":" }' /proc/kallsyms)
mlock=__x64_sys_mlock
[[ $(uname -m) == x86_64 ]] || mlock=__arm64_sys_mlock
cat >"$tracing/kprobe_events" <<-END
	p:vmp_mlock $mlock
	r:vmp_referenced ${livepatch}folio_referenced flags=+0(\$arg4):x64
END
failed=
# VM_LOCKED: see include/linux/mm.h.
locked=0x2000
for policy in stock batch; do
	set_rmap unmap "$policy"
	set_rmap young "$policy"
	for lru in mglru classic; do
		set_lru "$lru"
		try mlocked-meanwhile
		try protected-meanwhile
	done
	# The multi-gen LRU, without walks over page tables, which ask the MMU, too.
	lru=mglru
	echo 1 >"$LRU_GEN"
	asked=$(counter young folios)
	try accessed-elsewhere
	[[ $policy == stock ]] || above young folios "$asked" || fail "nobody asked if folios are young"
	# The check that goes on when mlock() begins is the first to end after that.
	echo >"$tracing/trace"
	echo 1 >"$tracing/events/kprobes/enable"
	try checked-meanwhile
	echo 0 >"$tracing/events/kprobes/enable"
	flags=$(awk '
		/vmp_mlock:/ { begun = 1 }
		begun && sub(/.* vmp_referenced: .* flags=/, "") { print; exit }
	' "$tracing/trace")
	echo "$policy: the check has reported $flags"
	[[ $flags ]] || fail "$policy: no check has ended"
	(((flags & locked) == 0)) || fail "$policy: a check reports VM_LOCKED, which it has not looked at"
done
[[ ! $failed ]] || fail "see above"
