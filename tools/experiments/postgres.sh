#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# postgres.sh AB...: run ab on a PostgreSQL of its own under pgbench, $READS of ten transactions only
# read. Data of $SCALE times 15 MiB, shared buffers of $BUFFERS, $THREADS clients.
# postgres.sh fill: make the data in $DATA, for one that runs `postgres.sh serve` by itself.
set -euo pipefail
. "$(dirname "$0")/service.sh"

programs=(/usr/lib/postgresql/*/bin)
PATH=${programs[-1]}:$PATH

# as_user COMMAND...
as_user()
{
	setpriv --reuid=postgres --regid=postgres --clear-groups "$@"
}

# Nothing is to be written before reclaim meets it, or waits for the disk.
settings=(-c "shared_buffers=$BUFFERS" -c listen_addresses= -c "unix_socket_directories=$DATA"
	-c autovacuum=off -c synchronous_commit=off -c full_page_writes=off -c fsync=off
	-c checkpoint_timeout=1d -c max_wal_size=64GB -c bgwriter_lru_maxpages=0
	-c backend_flush_after=0 -c jit=off)

ready() { as_user pg_isready -q -h "$DATA"; }

serve()
{
	as_user postgres -D "$DATA/db" "${settings[@]}" &
	wait_for ready
	# The page cache would take minutes to fill until reclaim begins.
	cat "$DATA"/db/base/*/* >/dev/null
	as_user pgbench -h "$DATA" --no-vacuum --client="$THREADS" --jobs=2 --time=1000000 --progress=1 \
		--protocol=prepared --builtin="select-only@$READS" \
		--builtin="simple-update@$((10 - READS))" postgres 2>&1 | count_rate
}

fill()
{
	settings+=(-c "unix_socket_directories=$DATA")
	as_user initdb -D "$DATA/db" --auth=trust --no-sync --locale=C >/dev/null
	as_user pg_ctl -D "$DATA/db" -s -w -t 120 -o "${settings[*]}" start
	as_user pgbench -h "$DATA" -q -i -I dtGp --scale="$SCALE" postgres 2>/dev/null
	as_user pg_ctl -D "$DATA/db" -s -w -t 300 stop
}

prepare()
{
	data_new postgres
	fill
	data_cold
}

case $1 in
fill) fill ;;
*) prepare_and_serve "$@" ;;
esac
