# SPDX-License-Identifier: GPL-2.0
"""What handling the page-table entries of a large folio at once saves, in instructions."""

from dataclasses import dataclass
from typing import Any

from vmp.demo.verdicts import figure, find

UNMAP = "try_to_unmap+vmscan_unmap"  # the branch leads to the second, which may call the first
LIMIT = "try_to_free_mem_cgroup_pages"
# While all wait for a disk, clocks that count instructions leap ahead, by minutes if it is busy.
MEMORY_DISK = "tools/experiments/memory-disk.sh"


def compared(workload: str, points: str, functions: str, seconds: float, options: str = "") -> str:
    """Return the command that compares the points' policies by instructions."""
    stock, batch = (
        ",".join(f"{p}={policy}" for p in points.split()) for policy in ("stock", "batch")
    )
    disk = f"{MEMORY_DISK} " if "file" in workload else ""
    return (
        f"{disk}tools/ab --workload {workload} {options} --slices 6 --seconds {seconds} "
        f"--warmup 0.1 --a {stock} --b {batch} --functions {functions}"
    )


POINTS = {"unmap", "young"}
COMMANDS = {
    "large-lazyfree": compared("large-lazyfree", "unmap", f"{UNMAP},reclaim_pages", 0.1),
    "large-anon": compared("large-anon", "unmap", f"{UNMAP},reclaim_pages", 0.1, "--zram 512M"),
    "large-file": compared("large-file", "unmap", f"{UNMAP},reclaim_pages", 0.3),
    "large-young": compared("large-file-limit", "young", f"folio_referenced,{LIMIT}", 0.4),
    "large-both": compared("large-file-limit", "unmap young", LIMIT, 0.4),
}


@dataclass(frozen=True)
class Goal:
    """A figure of a run: that with batch is to be at most so much of that with stock."""

    run: str
    what: str
    key: str
    at_most: float


GOALS = tuple(
    Goal(run, what, f"function.{functions}.instructions_{per}", at_most)
    for run, what, functions, per, at_most in (
        ("large-lazyfree", "MADV_FREE, unmap", UNMAP, "per_1000", 0.25),
        ("large-lazyfree", "MADV_FREE, whole MADV_PAGEOUT", "reclaim_pages", "per_1000", 0.40),
        ("large-file", "file, unmap", UNMAP, "per_1000", 0.25),
        ("large-anon", "swapped, unmap", UNMAP, "per_1000", 0.30),
        ("large-anon", "swapped, whole MADV_PAGEOUT", "reclaim_pages", "per_1000", 0.90),
        ("large-young", "file, folio_referenced() a call", "folio_referenced", "per_call", 0.70),
        ("large-young", "file, reclaim at a limit, young", LIMIT, "per_1000", 0.95),
        ("large-both", "file, reclaim at a limit, both", LIMIT, "per_1000", 0.65),
    )
)
WIDTH = 36


def table(reports: dict[str, dict[str, Any]]) -> tuple[list[bool], str]:
    """Return which goals held, and the table; a missing figure is a miss."""
    held = []
    lines = ["large folios, of 64 KiB: instructions per 1,000 pages, or for a call"]
    lines.append(
        "".ljust(WIDTH) + "".join(f"{head:>11}" for head in ("stock", "batch", "ratio", "goal"))
    )
    for goal in GOALS:
        row = find(reports[goal.run], goal.key)
        before, after = row["before"], row["after"]
        ratio = after / before if before and after is not None else None
        held.append(ratio is not None and ratio <= goal.at_most)
        lines.append(
            f"  {goal.what}".ljust(WIDTH)
            + f"{figure(before, '.0f'):>11}{figure(after, '.0f'):>11}{figure(ratio, '.3f'):>11}"
            + f"{goal.at_most:>11.2f}  {'held' if held[-1] else 'MISSED'}"
        )
    lines.append("  Counted on one CPU: cache misses and interrupts to others are not in it.")
    return held, "\n".join(lines)
