#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Wrong input for each file of the module that can be written to: see tools/vmp/torture/fuzz.py.
# VMP_FUZZ has its options.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
tools=$(realpath "$(dirname "$0")/../..")
trap clean_up EXIT

memcg_new
id_of "$VMP_MEMCG" >"$POLICY/cgroups/add"
# shellcheck disable=SC2086 # they are words
python3 "$tools/vmp/torture/fuzz.py" --for 30s ${VMP_FUZZ:-} "$POLICY" || fail "the fuzzer has ended with status $?"
