#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# dirty-postgres.sh AB...: postgres.sh, while dirty pages may stay for long.
set -euo pipefail
here=$(dirname "$0")
exec "$here/dirty-limits.sh" "$here/postgres.sh" "$@"
