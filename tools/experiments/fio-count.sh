#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# fio-count.sh FILE SIZE KIB OPTION...: make the file, have fio work on it, and keep
# in $PROGRESS how many blocks of KIB its readers have read so far.
set -euo pipefail

file=$1 size=$2 kib=$3
shift 3
# A file that fio makes is not in the page cache, and reclaim would begin late.
dd if=/dev/zero of="$file" bs=1M count="${size%M}" conv=fsync status=none
said=$PROGRESS.fio # where ab removes it at the end, when it has killed all of this
: >"$said"
fio --name=global --filename="$file" --size="$size" --bs="${kib}k" --direct=0 --invalidate=0 \
	--time_based --runtime=30d --group_reporting --output-format=terse --terse-version=3 \
	--status-interval=200ms --output="$said" "$@" &
fio=$!
while kill -0 $fio 2>/dev/null; do
	# Of the groups, that of the readers; the sixth field is the KiB that they have read.
	tail -n 5 "$said" | awk -F';' -v kib="$kib" \
		'$1 == 3 && $6 > 0 && NF > 100 { n = $6 } END { if (n) printf "%.0f\n", n / kib }' \
		>"$PROGRESS.new"
	[ ! -s "$PROGRESS.new" ] || mv "$PROGRESS.new" "$PROGRESS"
	sleep 0.3
done
wait $fio
