#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# postgres-twins.sh AB...: run ab on two PostgreSQL servers with equal data, on the blank disks $BLANK, as in
# A,B, while dirty pages may stay for long. The workload of twin N is
# `DATA=/var/tmp/vmscan-policy-twins/N postgres.sh serve`, and may count in N.progress there.
set -euo pipefail
here=$(dirname "$0")
. "$here/service.sh"

base=/var/tmp/vmscan-policy-twins

remove()
{
	local n
	for n in 1 2; do
		! mountpoint -q $base/$n || umount $base/$n
	done
	rm -rf --one-file-system $base
	wipefs --quiet --all "${disks[@]}"
}

IFS=, read -ra disks <<<"$BLANK"
for DISK in "${disks[@]}"; do
	need_blank
done
trap remove EXIT
for n in 1 2; do
	mkdir -p $base/$n
	mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "${disks[n - 1]}"
	mount "${disks[n - 1]}" $base/$n
	chown postgres: $base/$n
	chmod 700 $base/$n
done
DATA=$base/1 "$here/postgres.sh" fill
cp -a $base/1/db $base/2/
for DATA in $base/1 $base/2; do
	data_cold
done
"$here/dirty-limits.sh" "$@"
