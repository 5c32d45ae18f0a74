#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# BPF programs that are wrong are refused, and a loader that dies leaves nothing behind. VMP_BPF has
# the programs, and bpftool.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
[[ -e /sys/kernel/btf/vmscan_policy ]] || skip "BTF of the module"
PATH=$VMP_BPF:$PATH
wrong=/sys/fs/bpf/vmp-wrong
export VMP_BPF wrong

wrong_clean_up() {
	clean_up_begins
	rm -rf "$wrong"
	clean_up
}
trap wrong_clean_up EXIT

mountpoint -q /sys/fs/bpf || mount -t bpf bpf /sys/fs/bpf
must_list "[stock] batch"

# Whoever loads one dies, sooner or later; nothing holds what it has attached.
loaded() { bpftool struct_ops register "$VMP_BPF/half.bpf.o" >/dev/null 2>&1; }
began=${EPOCHREALTIME/./}
{ loaded || true; } 2>/dev/null
took=$(((${EPOCHREALTIME/./} - began) / 1000))
echo "a program loads in $took ms"
export -f loaded
for ((i = 1; i <= 12; i++)); do
	life=$((took * i / 10))
	life=$((life / 1000)).$(printf %03d $((life % 1000)))
	{ timeout --signal KILL "$life" bash -c loaded || true; } 2>/dev/null
	wait_until lists "[stock] batch" || fail "a loader that died leaves $(<"$POLICY/flush/policy")"
done

# try FILE: load one that is wrong; what is taken has a link.
try() {
	local name=${1##*/}

	mkdir "$wrong/${name%%.*}"
	bpftool struct_ops register "$1" "$wrong/${name%%.*}" >/dev/null 2>&1 || true
}
export -f try
mkdir "$wrong"
try "$VMP_BPF/wrong/right.bpf.o" 2>/dev/null
must_list "[stock] batch wrong"
rm -r "$wrong/right"
must_list "[stock] batch"
# Without the right one, whose name they have: nobody else would be taken beside it.
mapfile -t programs < <(find "$VMP_BPF/wrong" -name '*.bpf.o' ! -name right.bpf.o)
((${#programs[@]} > 100)) || fail "only ${#programs[@]} programs"
printf '%s\n' "${programs[@]}" | xargs -P "$(nproc)" -I{} bash -c 'try {}' 2>/dev/null
taken=$(cd "$wrong" && find . -type f)
[[ ! $taken ]] || fail "these are taken: $taken"
echo "${#programs[@]} wrong programs are refused"
rm -r "$wrong"
must_list "[stock] batch"
