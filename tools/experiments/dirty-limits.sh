#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# dirty-limits.sh COMMAND...: run it while dirty pages may stay for long, as reclaim is to meet them:
# EXPIRE hundredths of a second, up to BACKGROUND and RATIO percent of memory.
set -euo pipefail

vm=/proc/sys/vm
names=(dirty_expire_centisecs dirty_background_ratio dirty_ratio)
declare -A before

restore()
{
	local name
	for name in "${names[@]}"; do
		echo "${before[$name]}" >"$vm/$name"
	done
}

for name in "${names[@]}"; do
	before[$name]=$(<"$vm/$name")
done
trap restore EXIT
echo "$EXPIRE" >$vm/dirty_expire_centisecs
echo "$RATIO" >$vm/dirty_ratio
echo "$BACKGROUND" >$vm/dirty_background_ratio
"$@"
