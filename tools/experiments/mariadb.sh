#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# mariadb.sh AB...: run ab on a MariaDB of its own under sysbench's oltp_read_only. $ROWS in each of
# $TABLES tables, a buffer pool of $POOL, $THREADS clients.
set -euo pipefail
. "$(dirname "$0")/service.sh"

user=nobody

# server COMMAND...: it gets the options of this server.
server()
{
	exec setpriv --reuid="$user" --regid=nogroup --clear-groups mariadbd --no-defaults \
		--datadir="$DATA/db" --socket="$DATA/socket" --pid-file="$DATA/pid" --skip-networking \
		--innodb-buffer-pool-size="$POOL" --skip-log-bin "$@"
}

ask()
{
	mariadb --no-defaults --socket="$DATA/socket" --user=root "$@"
}

bench()
{
	local connection=(--db-driver=mysql --mysql-socket="$DATA/socket" --mysql-user=root --mysql-db=sbtest)
	stdbuf -oL sysbench oltp_read_only "${connection[@]}" --tables="$TABLES" --table-size="$ROWS" \
		--threads="$THREADS" --rand-type=pareto "$@"
}

serve()
{
	(server --innodb-buffer-pool-load-at-startup=0) &
	wait_for ask -e 'SELECT 1'
	bench --time=0 --report-interval=1 run | count_rate
}

prepare()
{
	data_new $user
	mkdir "$DATA/db"
	chown $user: "$DATA/db"
	mariadb-install-db --no-defaults --datadir="$DATA/db" --user=$user --skip-test-db \
		--auth-root-authentication-method=normal >/dev/null
	(server --innodb-flush-log-at-trx-commit=0) &
	wait_for ask -e 'SELECT 1'
	ask -e 'CREATE DATABASE sbtest'
	bench prepare >/dev/null
	ask -e 'SHUTDOWN'
	wait
}

prepare_and_serve "$@"
