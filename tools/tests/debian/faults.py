#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""faults.py DESCRIBED TARGET: build the faulty modules of guest tests for a livepatched kernel.

DESCRIBED is what `tools/livepatch describe` has written. Each module goes to a directory below
TARGET that has the fault's name.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from vmp.common import run_tool
from vmp.livepatch.build import build, build_policies
from vmp.livepatch.kernel import find_target
from vmp.testing.faults import NEEDED


def main() -> int:
    """Build all."""
    target = find_target(Path(sys.argv[1]))
    built = build(target)
    for fault in set(NEEDED.values()):
        build_policies(target, built, Path(sys.argv[2]) / fault.name, fault)
    return 0


run_tool("faults", main)
