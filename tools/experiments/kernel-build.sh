#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# kernel-build.sh AB...: run ab while $JOBS at once compile $WHAT of a Linux source, over and over: that in
# $SOURCE, or the newest of those that tools/kernel has unpacked. An operation is an object.
set -euo pipefail
. "$(dirname "$0")/service.sh"

build() { make -C "$SOURCE" O="$DATA/objects" "$@"; }

serve()
{
	local objects=0 step targets

	read -ra targets <<<"$WHAT"
	while :; do
		while read -r step _; do
			[ "$step" = CC ] || continue
			objects=$((objects + 1))
			echo $objects >>"$PROGRESS"
		done < <(build -j"$JOBS" "${targets[@]}")
		find "$DATA/objects" -path "$DATA/objects/scripts" -prune -o -name '*.o' -delete
	done
}

prepare()
{
	local sources

	mapfile -t sources < <(printf '%s\n' ~/.cache/vmscan-policy/source/*/Makefile | sort -V)
	export SOURCE=${SOURCE:-$(dirname "${sources[-1]}")}
	[ -e "$SOURCE/Kconfig" ] || {
		echo "there is no Linux source in $SOURCE: name one with SOURCE, or run tools/kernel" >&2
		exit 1
	}
	data_new root
	mkdir "$DATA/objects"
	echo CONFIG_64BIT=y >"$DATA/config"
	KCONFIG_ALLCONFIG=$DATA/config build -s allnoconfig
	build -s -j"$(nproc)" prepare
}

prepare_and_serve "$@"
