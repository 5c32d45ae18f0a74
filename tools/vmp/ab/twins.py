# SPDX-License-Identifier: GPL-2.0
"""Two copies of a workload at the same time, each in a cgroup with settings of its own.

One has A and the other B for a period, then they may exchange. What lasts in memory can differ
between them, and all that happens to the machine happens to both.
"""

import argparse
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass

from vmp.ab.cgroup import Memcg
from vmp.ab.workloads import TWIN
from vmp.common import Usage
from vmp.control.counters import Counters, delta
from vmp.control.debugfs import MACHINES, TRACE, Assignment, Control, parse_assignments
from vmp.result.metrics import PAGE
from vmp.result.model import Slice

PLACES = (1, 2)
POLL = 1.0  # seconds; each look at a memory.stat has the kernel flush what it counts there
NOT_OF_CGROUPS = {TRACE, *(name.replace("/", ".") for name in MACHINES)}
SETTLED = 1  # so often contents are replaced before a period counts, unless a time is given
OTHERS = {
    "cgroup": "it starts two copies of a workload",
    "functions": "these are counted for the whole machine",
    "stalls": "these are recorded for the whole machine",
}


def check_options(args: argparse.Namespace) -> None:
    """Raise Failure for what can't be said of twins."""
    for option, why in OTHERS.items():
        if getattr(args, option):
            raise Usage(f"--twins doesn't go with --{option}: {why}")
    for option in ("progress", "progress_command"):
        if TWIN not in (getattr(args, option) or TWIN):
            name = option.replace("_", "-")
            raise Usage(
                f"both twins would count by one --{name}: write {TWIN} in it and in the workload's "
                "command, which becomes 1 and 2"
            )
    for item in parse_assignments(list(filter(None, [args.a, args.b, *args.set]))):
        if item.name in NOT_OF_CGROUPS:
            raise Usage(f"{item.name} is a setting of the whole machine: --twins can't have two")
    if args.slices % 4:
        raise Usage("--twins takes --slices in fours: two periods, each with A and B")


@dataclass
class Twin:
    """One of two cgroups, what each side sets there, and what it counts."""

    place: int
    memcg: Memcg
    control: Control
    sides: dict[str, list[Assignment]]
    counters: Counters

    def held(self) -> int:
        """Return the pages that the cgroup holds."""
        return int((self.memcg.path / "memory.current").read_text()) // PAGE


def wait(twins: Sequence[Twin], turnovers: float, most: float) -> None:
    """Wait until reclaim has taken so often what each cgroup holds, or for `most` seconds.

    Raises Failure when a copy of the workload has ended.
    """
    begun = [twin.memcg.stolen() for twin in twins]
    end = time.monotonic() + most
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(POLL, left))
        for twin in twins:
            twin.memcg.require_alive()
        taken = (twin.memcg.stolen() - before for twin, before in zip(twins, begun, strict=True))
        if all(n >= turnovers * twin.held() for n, twin in zip(taken, twins, strict=True)):
            break


def begin(twins: Sequence[Twin], sides: str) -> None:
    """Put the sides in force, in the order of the cgroups, with nothing dirty in either.

    How much is dirty goes up and down with each flush, at its own pace in each cgroup, and what
    refaults goes with it.
    """
    for twin, side in zip(twins, sides, strict=True):
        twin.control.write(twin.sides[side])
    os.sync()


def measure(twins: Sequence[Twin], sides: str, turnovers: float, most: float) -> list[Slice]:
    """Return what both cgroups have counted in one period, in the order of the cgroups."""
    before = [twin.counters.snapshot() for twin in twins]
    wait(twins, turnovers, most)
    after = [twin.counters.snapshot() for twin in twins]
    counted = [delta(*edges) for edges in zip(before, after, strict=True)]
    return [
        Slice(side, counts, place=twin.place)
        for twin, side, counts in zip(twins, sides, counted, strict=True)
    ]
