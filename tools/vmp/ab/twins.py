# SPDX-License-Identifier: GPL-2.0
"""Two copies of a workload at the same time, each in a cgroup with settings of its own.

One has A and the other B for a period, then they may exchange. What lasts in memory can differ
between them, and all that happens to the machine happens to both.
"""

import argparse
import os
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vmp.ab.cgroup import Memcg
from vmp.ab.workloads import TWIN
from vmp.common import Usage
from vmp.control.counters import Counters, delta, is_gauge, of_cgroup
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


def twins_order(slices: int, seed: int, runs: int) -> str:
    """Return the sides of so many slices in each of the `runs`: of a period two, by place.

    In two periods each cgroup has both sides; a coin says which one begins.
    """
    coin = random.Random(seed)
    return "".join(coin.choice(("ABBA", "BAAB")) for _ in range(slices * runs // len("ABBA")))


@dataclass
class Twin:
    """One of two cgroups, what each side sets there, and what it counts."""

    place: int
    memcg: Memcg
    control: Control
    sides: dict[str, list[Assignment]]
    counters: Counters

    def look(self) -> dict[str, float]:
        """Return what the cgroup counts by itself; raise Failure if its workload has ended."""
        self.memcg.require_alive()
        return {f"memcg.{name}": n for name, n in of_cgroup(self.memcg.path)["memcg"].items()}


def turned_over(looks: Sequence[dict[str, float]]) -> float:
    """Return how often reclaim has taken what a cgroup holds, from its first look to its last."""
    first, last = looks[0], looks[-1]
    return (last["memcg.pgsteal"] - first["memcg.pgsteal"]) * PAGE / last["memcg.current"]


def wait(twins: Sequence[Twin], turnovers: float, most: float) -> list[dict[str, float]]:
    """Wait until reclaim has taken so often what each cgroup holds, or for `most` seconds.

    Returns for each the means of its gauges meanwhile: of two looks, how much was dirty would be
    left to chance. Raises Failure when a copy of the workload has ended.
    """
    looks = [[twin.look()] for twin in twins]
    end = time.monotonic() + most
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(POLL, left))
        for twin, seen in zip(twins, looks, strict=True):
            seen.append(twin.look())
        if all(turned_over(seen) >= turnovers for seen in looks):
            break
    return [
        {name: statistics.fmean(look[name] for look in seen) for name in filter(is_gauge, seen[0])}
        for seen in looks
    ]


def begin(
    twins: Sequence[Twin],
    sides: str,
    put: Callable[[Control, list[Assignment]], None] = Control.write,
) -> None:
    """Put the sides in force, in the order of the cgroups, with nothing dirty in either.

    How much is dirty goes up and down with each flush, at its own pace in each cgroup, and what
    refaults goes with it.
    """
    for twin, side in zip(twins, sides, strict=True):
        put(twin.control, twin.sides[side])
    os.sync()


def measure(twins: Sequence[Twin], sides: str, turnovers: float, most: float) -> list[Slice]:
    """Return what both cgroups have counted in one period, in the order of the cgroups."""
    before = [twin.counters.snapshot() for twin in twins]
    gauges = wait(twins, turnovers, most)
    after = [twin.counters.snapshot() for twin in twins]
    counted = [delta(*edges) for edges in zip(before, after, strict=True)]
    return [
        Slice(side, counts | means, place=twin.place)
        for twin, side, counts, means in zip(twins, sides, counted, gauges, strict=True)
    ]
