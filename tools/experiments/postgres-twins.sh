#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# postgres-twins.sh AB...: run ab on two PostgreSQL servers with equal data, on the blank disks $BLANK, as in
# A,B, while dirty pages may stay for long. Twin N counts in /var/tmp/vmscan-policy-twins/N.progress.
set -euo pipefail
here=$(dirname "$0")
. "$here/service.sh"

base=/var/tmp/vmscan-policy-twins

# twin N: choose its data, its disk and where it counts.
twin()
{
	export DATA=$base/$1 PROGRESS=$base/$1.progress
	DISK=${disks[$1 - 1]}
}

remove()
{
	local n
	for n in 1 2; do
		twin $n
		data_remove
	done
	rmdir $base
}

case $1 in
serve)
	DATA=$base/$2 PROGRESS=$base/$2.progress exec "$here/postgres.sh" serve
	;;
*)
	IFS=, read -ra disks <<<"$BLANK"
	for DISK in "${disks[@]}"; do
		need_blank
	done
	mkdir $base
	trap remove EXIT
	for n in 1 2; do
		twin $n
		mkdir "$DATA"
		data_make postgres
	done
	twin 1
	"$here/postgres.sh" fill
	cp -a $base/1/db $base/2/
	for DATA in $base/1 $base/2; do
		data_cold
	done
	"$here/dirty-limits.sh" "$@" -- "$0" serve "{twin}"
	;;
esac
