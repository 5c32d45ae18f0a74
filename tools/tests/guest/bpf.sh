#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Policies that BPF programs are: they come, are chosen, decide and go, under load; slow ones trip
# the guard. VMP_BPF has the programs, and bpftool.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
[[ -e /sys/kernel/btf/vmscan_policy ]] || skip "BTF of the module"
PATH=$VMP_BPF:$PATH
vmscanctl=$(realpath "$(dirname "$0")/../..")/vmscanctl
# The load takes all that there is.
control() { nice -n -20 "$vmscanctl" "$@"; }

bpf_clean_up() {
	clean_up_begins
	rm -f /sys/fs/bpf/vmscan-policy/*
	has_module vmscan_policy || insmod "$VMP_MODULE_DIR/vmscan_policy.ko"
	settings_remove
	echo stock >"$POLICY/profile"
	echo 1 >"$POLICY/guard/clear"
	clean_up
}
trap bpf_clean_up EXIT

# counted POLICY NAME: of a policy of flush.
counted() { awk -v name="$2" '$1 == name { print $2 }' "$POLICY/plugins/flush.$1"; }
asked() { (($(counted "$1" answers) > $2)); }

mountpoint -q /sys/fs/bpf || mount -t bpf bpf /sys/fs/bpf
must_list "[stock] batch"
control load "$VMP_BPF/half.bpf.o"
must_list "[stock] batch bpf-half"
load_start
set_policy bpf-half
wait_until asked bpf-half 20 || fail "nobody asks it"
deferred=$(counter flush deferred)
defers() { above flush deferred "$deferred"; }
wait_until defers || fail "it defers nothing"
[[ $(counted bpf-half limited) == 0 ]] || fail "its answers were limited"

# It goes while it is in force.
for ((i = 0; i < 6; i++)); do
	control unload flush=bpf-half
	must_list "[stock] batch"
	control load "$VMP_BPF/half.bpf.o"
	set_policy bpf-half
	((i % 2)) || wait_until asked bpf-half 0 || fail "nobody asks it"
	load_check
done
control unload flush=bpf-half
must_list "[stock] batch"

# Of a cgroup alone.
control --cgroup "$VMP_MEMCG" load "$VMP_BPF/pressure.bpf.o"
id=$(id_of "$VMP_MEMCG")
[[ $(chosen "$POLICY/cgroups/$id/flush/policy") == bpf-pressure ]] || fail "the cgroup has it not"
wait_until asked bpf-pressure 20 || fail "the cgroup doesn't ask it"
control unload flush=bpf-pressure
[[ $(chosen "$POLICY/cgroups/$id/flush/policy") == stock ]] || fail "the cgroup is not stock"
settings_remove

# place ID: load a policy that is in force in that cgroup as long as it is attached.
place() {
	python3 - "$VMP_BPF/placed.bpf.o" "$WORK/placed.bpf.o" "$1" <<-'END'
		import pathlib, sys
		old, new = (number.to_bytes(8, "little") for number in (0x1122334455667788, int(sys.argv[3])))
		program = pathlib.Path(sys.argv[1]).read_bytes()
		pathlib.Path(sys.argv[2]).write_bytes(program.replace(old, new))
	END
	control load "$WORK/placed.bpf.o"
}
in_force() { [[ -e $POLICY/cgroups/$id && $(chosen "$POLICY/cgroups/$id/flush/policy") == "$1" ]]; }
place "$id"
wait_until in_force placed || fail "the cgroup that it names has it not"
wait_until asked placed 20 || fail "that cgroup doesn't ask it"
control unload flush=placed
# The next begins when all that this one brought is gone. There is no cgroup 1: that is no reason to
# refuse it, and the log says so.
place 1
must_list "[stock] batch placed"
wait_until log_says "placed can't be in force in cgroup 1" || fail "the log doesn't say that there is no cgroup 1"
[[ ! -e $POLICY/cgroups/$id ]] || fail "the cgroup's settings stay"
control unload flush=placed
# Settings that others gave the cgroup stay.
echo "$id" >"$POLICY/cgroups/add"
place "$id"
wait_until in_force placed || fail "a cgroup with settings has it not"
control unload flush=placed
wait_until in_force stock || fail "the cgroup is not stock"
settings_remove

# One that takes long, and one whose answers have to be limited.
for name in slow beyond; do
	control load "$VMP_BPF/$name.bpf.o"
	set_policy "$name"
	tripped() { [[ $(chosen "$POLICY/guard/state") == tripped ]]; }
	wait_until tripped || fail "$name does not trip the guard"
	cat "$POLICY/guard/reason"
	control unload "flush=$name"
	control clear
done
load_end

# Nothing holds the module.
rmmod vmscan_policy
insmod "$VMP_MODULE_DIR/vmscan_policy.ko"
