#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What UFFDIO_MOVE has moved is not written to through a TLB entry of where it was.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
trap clean_up EXIT

memcg_new 64M
swap_new
# Without its flush, UFFDIO_MOVE was caught by one in ten.
moves=60
! full || moves=500
# The first page of all waits for as long as it takes to unmap the rest.
set_max_folios 512
set_policy batch
before=$(counter flush deferred)
in_memcg "$BIN/uffd-move" $((3 * moves)) "$moves" || fail "failed with status $?"
above flush deferred "$before" || fail "nothing was deferred"
