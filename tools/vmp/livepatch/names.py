# SPDX-License-Identifier: GPL-2.0
"""What the livepatch's files are called, for those who have it built and those who load it."""

from pathlib import Path

from vmp.common import CACHE

BUILT = CACHE / "livepatch"
NAME = "vmscan_policy_hooks"  # of the livepatch
MODULE = "vmscan_policy"
NOTES = Path("/sys/kernel/notes")  # has the running kernel's build id
