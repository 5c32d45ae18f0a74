#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Each debugfs file takes what is right, and refuses all else without effect.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
trap clean_up EXIT

points=(flush scan aging writeback throttle unmap young)
settings=(flush/{policy,max_folios,span,observe} scan/{policy,batch,floor} aging/{policy,in_effect}
	writeback/{policy,dirty_gen} throttle/policy unmap/{policy,kinds,max_ptes}
	young/{policy,max_ptes} bypass profile guard/{state,window,stall,wait,callback,clamps,strict}
	trial)
scans="stock budget"
! has_trait budget || scans+=" v6.12"

# only_existing ARRAY: of names that begin with a point's; a point has to be there without the
# trait that it is absent with.
only_existing() {
	local -n names_ref=$1
	local name point

	for name in "${names_ref[@]}"; do
		point=${name%%/*}
		if [[ ! ${instead[$point]:-} ]] || ! has_trait "${instead[$point]}"; then
			kept+=("$name")
		elif has "$point"; then
			fail "there is a point $point, which this kernel has no use for"
		fi
	done
}
kept=()
only_existing points
points=("${kept[@]}")
kept=()
only_existing settings
settings=("${kept[@]}")

# Sets state, without a process, which takes long to start in an emulated guest.
read_state() {
	local file text

	state=""
	for file in "${settings[@]}"; do
		read -r text <"$POLICY/$file"
		state+="$file:$text"$'\n'
	done
}

# accept FILE TEXT READS
accept() {
	local text

	echo "$2" >"$POLICY/$1" || fail "$1 doesn't take '$2'"
	read -r text <"$POLICY/$1"
	[[ $text == "$3" ]] || fail "$1 reads '$text' after '$2', not '$3'"
}

# refuse FILE TEXT ERROR MESSAGE: check_log looks for the message.
refuse() {
	local before error

	# For as long as the log takes no more.
	((refused++ % 8 != 7)) || pause 6
	read_state
	before=$state
	# Without the locale's own words, and of the write alone.
	error=$({ printf '%s' "$2" >"$POLICY/$1"; } 2>&1) && fail "$1 takes '$2'"
	[[ $error == *": $3" ]] || fail "$1, '$2': not '$3' but: $error"
	read_state
	[[ $before == "$state" ]] || fail "$1, '$2' is refused and changes: $state"
	expected[$4]=$((${expected[$4]:-0} + 1))
}

# The log has said what is allowed for each write that was refused. It takes ten lines in
# five seconds from one place in the code.
declare -A expected=()
refused=0
check_log() {
	local text n

	for text in "${!expected[@]}"; do
		n=$(dmesg | grep -cF "vmscan_policy: $text" || true)
		((n == ${expected[$text]})) ||
			fail "the log says '$text' $n times after ${expected[$text]} writes that were refused"
	done
}

export LC_ALL=C
invalid="Invalid argument"
range="Numerical result out of range"
dmesg -C || fail "dmesg doesn't work"

declare -A loaded=(
	[flush/policy]="[stock] batch"
	[flush/max_folios]=64
	[flush/span]=1
	[flush/observe]=0
	[scan/policy]="[stock]${scans#stock}"
	[scan/batch]=64
	[scan/floor]=32
	[aging/policy]="stop [continue]"
	[aging/in_effect]="no: scan/policy is stock"
	[writeback/policy]="[stock] feedback"
	[writeback/dirty_gen]="youngest [second-youngest]"
	[throttle/policy]="[stock] memcg all"
	[unmap/policy]="[stock] batch"
	[unmap/kinds]="[anon] [lazyfree] [file]"
	[unmap/max_ptes]=512
	[young/policy]="[stock] batch"
	[young/max_ptes]=512
	[bypass]=0
	[profile]="[stock] recommended max"
	[guard/state]="[armed] tripped off"
	[guard/window]=60
	[guard/stall]=10000
	[guard/wait]=5000
	[guard/callback]=100
	[guard/clamps]=16
	[guard/strict]=0
	[trial]=0
)
! has_trait budget || loaded[aging/in_effect]=yes
! has_trait discard || loaded[unmap/kinds]="none [anon]"
want=""
for file in "${settings[@]}"; do
	want+="$file:${loaded[$file]}"$'\n'
done
read_state
[[ $state == "$want" ]] || fail "not as after loading: $state"
[[ $(<"$POLICY/abi") == "abi 12
module "*"
kernel $(uname -r)" ]] || fail "abi reads $(<"$POLICY/abi")"

accept flush/policy batch "stock [batch]"
accept flush/policy stock "[stock] batch"
for number in 1 31 4096 64; do
	accept flush/max_folios "$number" "$number"
done
accept flush/span 0 0
accept flush/span 1 1
accept flush/observe 1 1
accept flush/observe 0 0
for name in budget stock ${scans#stock budget}; do
	accept scan/policy "$name" "${scans/"$name"/"[$name]"}"
done
accept scan/policy stock "${scans/stock/[stock]}"
for number in 1 4096 64; do
	accept scan/batch "$number" "$number"
done
for number in 0 1 4096 256; do
	accept scan/floor "$number" "$number"
done
accept aging/policy stop "[stop] continue"
accept aging/policy continue "stop [continue]"
if has writeback; then
	accept writeback/policy feedback "stock [feedback]"
	accept writeback/policy stock "[stock] feedback"
	accept writeback/dirty_gen youngest "[youngest] second-youngest"
	accept writeback/dirty_gen second-youngest "youngest [second-youngest]"
fi
accept throttle/policy memcg "stock [memcg] all"
accept throttle/policy all "stock memcg [all]"
accept throttle/policy stock "[stock] memcg all"
if has_trait discard; then
	accept unmap/kinds none "[none] anon"
	accept unmap/kinds anon "none [anon]"
elif has unmap; then
	accept unmap/kinds lazyfree,anon "[anon] [lazyfree] file"
	accept unmap/kinds none "anon lazyfree file"
	accept unmap/kinds file "anon lazyfree [file]"
	accept unmap/kinds file,lazyfree "anon [lazyfree] [file]"
	accept unmap/kinds lazyfree,anon,file "[anon] [lazyfree] [file]"
fi
for point in unmap young; do
	has "$point" || continue
	accept "$point/policy" batch "stock [batch]"
	accept "$point/policy" stock "[stock] batch"
	for number in 1 3 512; do
		accept "$point/max_ptes" "$number" "$number"
	done
done
accept bypass 1 1
accept bypass 0 0
accept guard/state off "armed tripped [off]"
accept guard/state armed "[armed] tripped off"
for number in 0 86400 60; do
	accept guard/window "$number" "$number"
done
accept guard/strict 1 1
accept guard/strict 0 0
echo 1 >"$POLICY/guard/clear" || fail "what has not tripped can't be cleared"
# It is over as soon as the file is closed.
accept trial 10 0

# accept_profile NAME READS ARRAY: by point.
accept_profile() {
	local -n policies_ref=$3
	local point

	accept profile "$1" "$2"
	for point in "${points[@]}"; do
		[[ $(chosen "$POLICY/$point/policy") == "${policies_ref[$point]:-stock}" ]] ||
			fail "the profile sets $point to $(<"$POLICY/$point/policy"), not ${policies_ref[$point]:-stock}"
	done
}

# shellcheck disable=SC2034 # used by name
declare -A max=([flush]=batch [scan]=budget [aging]=continue [writeback]=feedback [throttle]=all
	[unmap]=batch [young]=batch) stock=([aging]=continue)
# shellcheck disable=SC2034 # used by name
declare -A recommended=([flush]=batch [aging]=continue [throttle]=memcg [unmap]=batch
	[young]=batch)
accept_profile recommended "stock [recommended] max" recommended
accept_profile max "stock recommended [max]" max
accept_profile stock "[stock] recommended max" stock
accept flush/policy batch "stock [batch]"

policies="flush/policy takes one of: stock batch"
folios="flush/max_folios takes a number from 1 to 4096"
too_long="a write takes 64 characters at most"
refuse flush/policy nonsense "$invalid" "$policies"
refuse flush/policy "stock batch" "$invalid" "$policies"
refuse flush/policy $'\n' "$invalid" "$policies"
refuse flush/policy "$(printf 'x%.0s' {1..65})" "$invalid" "$too_long"
refuse profile batch "$invalid" "profile takes one of: stock recommended max"
refuse flush/max_folios 0 "$range" "$folios"
refuse flush/max_folios 4097 "$range" "$folios"
refuse flush/max_folios 99999999999 "$range" "$folios"
refuse flush/max_folios -1 "$invalid" "$folios"
refuse flush/max_folios many "$invalid" "$folios"
refuse flush/max_folios "31 64" "$invalid" "$folios"
refuse flush/max_folios "$(printf '0%.0s' {1..65})" "$invalid" "$too_long"
refuse scan/policy continue "$invalid" "scan/policy takes one of: $scans"
has_trait budget || refuse scan/policy v6.12 "$invalid" "scan/policy takes one of: $scans"
refuse scan/batch 0 "$range" "scan/batch takes a number from 1 to 4096"
floor="scan/floor takes a number from 0 to 4096"
refuse scan/floor 4097 "$range" "$floor"
refuse flush/observe 2 "$range" "flush/observe takes a number from 0 to 1"
refuse bypass 2 "$range" "bypass takes a number from 0 to 1"
refuse guard/clear 0 "$range" "guard/clear takes a number from 1 to 1"
refuse scan/floor small "$invalid" "$floor"
refuse aging/policy stock "$invalid" "aging/policy takes one of: stop continue"
if has writeback; then
	refuse writeback/policy on "$invalid" "writeback/policy takes one of: stock feedback"
	refuse writeback/dirty_gen oldest "$invalid" \
		"writeback/dirty_gen takes one of: youngest second-youngest"
fi
refuse throttle/policy root "$invalid" "throttle/policy takes one of: stock memcg all"
refuse flush/span 2 "$range" "flush/span takes a number from 0 to 1"
refuse bypass off "$invalid" "bypass takes a number from 0 to 1"
refuse guard/state tripped "$invalid" "guard/state takes one of: armed off"
refuse guard/strict 2 "$range" "guard/strict takes a number from 0 to 1"
refuse guard/stall 1m "$invalid" "guard/stall takes a number from 0 to 3600000"
takes="unmap/kinds takes none, or any of: anon,lazyfree,file"
! has_trait discard || takes=${takes%,lazyfree,file}
if has unmap; then
	for text in all $'\n' "file," " file" "file anon" none,file; do
		refuse unmap/kinds "$text" "$invalid" "$takes"
	done
fi
for point in unmap young; do
	has "$point" || continue
	refuse "$point/policy" on "$invalid" "$point/policy takes one of: stock batch"
	refuse "$point/max_ptes" 0 "$range" "$point/max_ptes takes a number from 1 to 512"
	refuse "$point/max_ptes" 513 "$range" "$point/max_ptes takes a number from 1 to 512"
	refuse "$point/max_ptes" all "$invalid" "$point/max_ptes takes a number from 1 to 512"
done
check_log

for file in abi traits "${points[@]/%//stats}" aging/in_effect; do
	[[ $(stat -c %a "$POLICY/$file") == 400 ]] || fail "$file has not the mode 0400"
	! (echo 1 >"$POLICY/$file") 2>/dev/null || fail "$file can be written"
done
grep -qvE '^[a-z_0-9]+ [0-9]+$' "$POLICY"/*/stats && fail "stats has a line that isn't 'name value'"
set_scan budget stop
[[ $(<"$POLICY/aging/in_effect") == yes ]] || fail "aging is not in effect with budget"
if has_trait budget; then
	set_scan v6.12 stop
	[[ $(<"$POLICY/aging/in_effect") == "no: scan/policy is v6.12" ]] ||
		fail "aging is in effect with v6.12: $(<"$POLICY/aging/in_effect")"
fi
set_scan stock continue

# A wrong line of a file is named, and the others are set. So are all lines of the example.
tools=$(realpath "$(dirname "$0")/../..")
conf=$WORK/vmscan-policy.conf
printf '%s\n' "flush=batch # why" flush=bach flush.max_folios=0 "" scan=budget >"$conf"
status=0
said=$("$tools/vmscanctl" apply "$conf" 2>&1) || status=$?
((status == 1)) || fail "apply ends with status $status after wrong lines"
[[ $said == "vmscanctl: $conf, line 2: flush cannot be 'bach': allowed are stock, batch
vmscanctl: $conf, line 3: flush.max_folios=0 was refused (vmscan_policy: $folios); nothing was changed
set: flush=batch, scan=budget" ]] || fail "apply says: $said"
[[ $(chosen "$POLICY/flush/policy") == batch && $(chosen "$POLICY/scan/policy") == budget ]] ||
	fail "apply has not set what is right"
[[ $(<"$POLICY/flush/max_folios") == 64 ]] || fail "apply has set what is wrong"
sed 's/^#\([a-z._]*=\)/\1/' "$tools/systemd/vmscan-policy.conf" >"$conf"
said=$("$tools/vmscanctl" apply "$conf" 2>&1) || fail "the example is not right: $said"
[[ $said == "set: profile=recommended, "* ]] || fail "the example sets nothing: $said"
echo stock >"$POLICY/profile"
set_policy batch

defers() { wait_until above flush deferred "$(counter flush deferred)"; }

# Folios are written, and none of them was deferred.
writes_only() {
	local deferred before

	deferred=$(counter flush deferred)
	count_written
	before=$written
	pause 2
	count_written
	((written > before && $(counter flush deferred) == deferred))
}

memcg_new 64M
swap_new
in_memcg "$BIN/madvise" 1000 anon &
defers || fail "batch defers nothing"
echo 1 >"$POLICY/bypass"
# What reclaims already ends as it began.
wait_until writes_only || fail "bypass doesn't keep folios from being deferred"
[[ $(<"$POLICY/flush/policy") == "stock [batch]" ]] || fail "bypass changes the policy"
echo 0 >"$POLICY/bypass"
defers || fail "after the bypass batch defers nothing"
set_policy stock
memcg_remove
check_stats
