#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What another machine needs to build a livepatch for this kernel.
set -euo pipefail
vmscan-policy/tools/livepatch describe result
