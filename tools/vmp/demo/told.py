# SPDX-License-Identifier: GPL-2.0
"""What the demo tells of its run: a line for each slice, and the verdict."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from vmp.common import Failure
from vmp.form import interval, number, percent
from vmp.result.file import slice_of
from vmp.result.metrics import PER_STOLEN, known
from vmp.result.model import Result, Row, Settings, Slice, stolen
from vmp.result.table import ended_note

FLUSHES, INTERRUPTS, STOLEN = (
    "reclaim_flushes_per_1000",
    "reclaim_ipis_per_1000",
    "stolen_per_second",
)
LABELS = {
    FLUSHES: "reclaim's own remote TLB flushes / 1,000 pages",
    INTERRUPTS: "interrupts of other CPUs by these / 1,000 pages",
    STOLEN: "pages stolen / s, by the emulator's clock",
}
COUNTED = {row.key: row for row in known()[PER_STOLEN] if row.key in (FLUSHES, INTERRUPTS)}
COLUMNS = ("slice", "policy", "own flushes / 1,000 pages", "interrupts / 1,000 pages",
           "pages stolen")  # fmt: skip
FEW = 2  # slices, for a comparison
TOLD = "{:>5}  {:<12} {:>25} {:>24} {:>12}"


def read_slice(line: str) -> Result:
    """Return what a line has: a run of a single slice; raises Failure for one that is cut off."""
    try:
        document: dict[str, Any] = json.loads(line)
        return Result(
            Settings(**document["settings"]),
            document["environment"],
            (slice_of(document["slices"][0]),),
            tuple(document["lacks"]),
        )
    except (KeyError, TypeError, ValueError):
        raise Failure(f"the guest was cut off: {line[:40].strip()}") from None


def joined(parts: Sequence[Result], ended: str = "") -> Result:
    """Return the run that so many slices are of; `ended` says why there are no more."""
    return replace(parts[-1], slices=tuple(part.slices[0] for part in parts), ended=ended)


def cells(number_of: int, piece: Slice, what: Settings) -> tuple[str, ...]:
    """Return what a slice has counted, as text."""
    values = piece.values()
    figures = [number(metric.value([values])) for metric in COUNTED.values()]
    policy = what.a if piece.side == "A" else what.b
    return (str(number_of), policy, *figures, f"{stolen(values):,.0f}")


def heading() -> str:
    """Return the heading of the live lines."""
    return TOLD.format(*COLUMNS)


def live(number_of: int, part: Result) -> str:
    """Return the line that is shown of a slice."""
    return TOLD.format(*cells(number_of, part.slices[0], part.settings))


def change(label: str, row: Row) -> str:
    """Return a figure of both sides, and the change."""
    sure = f"95 %: {interval(row.ends)}" if row.ends else row.no_interval()
    figures = f"{number(row.before):>6} to {number(row.after):>6}"
    return f"{label:<47} {figures} {percent(row.percent):>8} ({sure})"


def conclusion(result: Result) -> str:
    """Say in a sentence whether the policy did what it is for."""
    rows = [result.row(FLUSHES), result.row(INTERRUPTS)]
    if all(row.sign() < 0 for row in rows):
        gone = -(rows[1].percent or 0)
        return f"{result.settings.b} saves {gone:.0f} of 100 interrupts by reclaim."
    if any(row.sign() > 0 for row in rows):
        return f"{result.settings.b} is worse here."
    if any(row.undecidable() for row in rows):
        pairs = min(row.pairs for row in rows)
        return f"{pairs} pairs in which both sides reclaimed are too few to be sure."
    return "no difference was detected."


def verdict(result: Result) -> list[str]:
    """Return the five lines at the end, and a sixth about a run that was not complete."""
    what, where = result.settings, result.environment
    return [
        f"{what.b} beside {what.a}, {result.pairs} pairs, threads {what.place()}, Linux "
        f"{where['kernel']}, {where['cpus']} CPUs",
        *(change(label, result.row(key)) for key, label in LABELS.items()),
        f"Verdict: {conclusion(result)}",
        *([ended_note(result)] if result.ended else []),
    ]
