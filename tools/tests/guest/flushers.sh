#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# writeback=feedback of one memory cgroup has its own dirty pages written, not those of others.
# With stock they are, too; that is shown beside it.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_point writeback
need_disk

# Else cgroups of other tests would have writeback of their own, too.
flushers_clean_up() {
	clean_up_begins
	memcg_remove
	echo -io >"$CGROUPS/cgroup.subtree_control"
	clean_up
}
trap flushers_clean_up EXIT

dirs=$POLICY/cgroups

# dirty_of NAME: sets pages to what the cgroup has dirty or under writeback.
dirty_of() {
	local text

	# adds up the CPUs' counts
	read_file text "$VMP_MEMCG/$1/cpu.stat"
	pages=$(awk '/^file_(dirty|writeback) / { n += $2 } END { print n / 4096 }' "$VMP_MEMCG/$1/memory.stat")
}

# writes NAME MIB: makes so much dirty in the cgroup, where the kernel may kill it for that.
writes() {
	(
		echo "$BASHPID" >"$VMP_MEMCG/$1/cgroup.procs"
		exec dd if=/dev/zero of="$FS/$1" bs=64K count=$(($2 * 16)) conv=notrunc status=none
	)
}

# woken: has the policy woken flushers often, since $before?
woken() {
	writes busy 96 || true
	above writeback flusher_wakeups $((before + 20))
}

# try NAME: the busy one is reclaimed while the idle one has dirty pages; sets left to the percentage
# of these that still are.
try() {
	local had

	sync
	writes idle 24
	dirty_of idle
	had=$pages
	((had > 4000)) || fail "only $had pages are dirty"
	wait_until "$1" || fail "nothing is woken"
	dirty_of idle
	left=$((100 * pages / had))
}

stock_reclaims() {
	writes busy 96 || true
	(($(awk '$1 == "pgsteal" { print $2 }' "$VMP_MEMCG/busy/memory.stat") > stolen + 5000))
}

# A disk made of memory would be charged to who writes.
slow_new "$slow_disk"
raise_dirty_limits
# Nothing is written because of its age.
echo 0 >/proc/sys/vm/dirty_writeback_centisecs
echo +io >"$CGROUPS/cgroup.subtree_control"
memcg_new
echo "+memory +io" >"$VMP_MEMCG/cgroup.subtree_control"
mkdir "$VMP_MEMCG"/{busy,idle}
echo 32M >"$VMP_MEMCG/busy/memory.max"
busy=$(id_of "$VMP_MEMCG/busy")
echo "$busy" >"$dirs/add"
echo feedback >"$dirs/$busy/writeback/policy"
POLICY=$dirs/$busy
before=$(counter writeback flusher_wakeups)
try woken
echo "feedback of one: woken $(($(counter writeback flusher_wakeups) - before)) times, $left % of the other's dirty pages are left"
own=$left
POLICY=${dirs%/*}
settings_remove
stolen=$(awk '$1 == "pgsteal" { print $2 }' "$VMP_MEMCG/busy/memory.stat")
try stock_reclaims
echo "stock: $left % of the other's dirty pages are left"
((own >= 90)) || fail "the other's dirty pages are written"
