# SPDX-License-Identifier: GPL-2.0
"""What tools/ab saved as JSON, and its counters beside the figures of a recording."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from vmp.report.aggregate import WALKERS, Picture, Span, figures
from vmp.result.metrics import STOLEN
from vmp.result.model import Result, Slice, difference

# Figures of a recording that have another name among ab's counters.
COUNTERS = {
    "stolen_pages": STOLEN,
    "remote_flushes": ("vmstat.nr_tlb_remote_flush",),
    "oom_kills": ("vmstat.oom_kill",),
}
REASONS = "writeback isolated noprogress congested".split()
# Figures that count what one of ab's counters does, most of them under the module's own name.
COMPARABLE = (
    *COUNTERS,
    *(f"flush.{name}" for name in "batches deferred flushes".split()),
    *(f"flush.bounce_{reason}" for reason in "mapped gone".split()),
    *(f"scan.{name}" for name in "passes budget scanned reclaimed".split()),
    *(f"scan.end_{reason}" for reason in "budget nothing below_min enough aged".split()),
    *(f"aging.{name}" for name in "sync failed".split()),
    *(f"writeback.{name}" for name in "batches taken dirty flusher_wakeups waits".split()),
    *(
        f"{point}.{name}"
        for point in WALKERS
        for name in "folios pages ptes batches left kept".split()
    ),
    *(f"throttle.{reason}{unit}" for reason in REASONS for unit in ("", "_us")),
)


def comparable(picture: Picture) -> list[str]:
    """Return the figures of a recording that can be compared: of large folios if it has all."""
    lacking = WALKERS if picture.lacks_folios else ()
    return [name for name in COMPARABLE if name.partition(".")[0] not in lacking]


def belongs(result: Result, picture: Picture, run: int) -> bool:
    """Tell if a result is of that run of the recording: the same settings, the same slices."""
    marked = {span.number: span.side for span in picture.slices(run)}
    expected = dict(enumerate((piece.side for piece in result.slices), 1))
    named = picture.runs[run]
    sides = {"a": result.settings.a, "b": result.settings.b}
    same = all(named.get(key, side) == side for key, side in sides.items())
    return bool(marked) and same and marked.items() <= expected.items()


def deviation(result: Result, picture: Picture, run: int) -> float:
    """Return by how much the slices of result and run differ in length, in seconds in all."""
    told = result.settings.slice_seconds
    seconds = [piece.counters.get("seconds", told) for piece in result.slices]
    return sum(
        abs(seconds[span.number - 1] - (span.end - span.begin) / 1e6)
        for span in picture.slices(run)
    )


def pair(picture: Picture, results: list[Result]) -> dict[int, int]:
    """Return for each run of the recording the index of its result, where there is one."""
    found: dict[int, int] = {}
    for run in range(len(picture.runs)):
        fitting = [
            index
            for index, result in enumerate(results)
            if index not in found.values() and belongs(result, picture, run)
        ]
        if fitting:
            found[run] = min(fitting, key=lambda index: deviation(results[index], picture, run))
    return found


def counted(name: str, pieces: Iterable[Slice]) -> float | None:
    """Return ab's figure over its slices for a figure of a recording, None where ab has none."""
    parts = COUNTERS.get(name, (f"stats.{name}",))
    counters = [piece.counters for piece in pieces]
    if any(part not in piece for piece in counters for part in parts):
        return None
    return sum(piece[part] for piece in counters for part in parts)


def row(figure: str, trace: float, other: float) -> dict[str, Any]:
    """Return a figure of a recording beside that of a counter.

    `percent` is by how much the recording's is more.
    """
    percent = difference(other, trace)[1]
    return {"figure": figure, "trace": trace, "counted": other, "percent": percent}


def beside_module(picture: Picture) -> list[dict[str, Any]]:
    """Return the figures of the whole recording beside the module's counters, if it has them.

    Only what one of them has counted.
    """
    if not picture.counted:
        return []
    traced, rows = picture.whole(), []
    for name in comparable(picture):
        parts = COUNTERS.get(name, (f"stats.{name}",))
        if not all(part.startswith("stats.") for part in parts):
            continue
        other = sum(picture.counted.get(part.removeprefix("stats."), 0) for part in parts)
        if other or traced.get(name, 0):
            rows.append(row(name, traced.get(name, 0), other))
    return rows


def beside(picture: Picture, spans: list[Span], result: Result) -> list[dict[str, Any]]:
    """Return the figures that a recording and ab both have, over `spans`, slices that both have.

    Only what one of them has counted. `edges` is what was recorded while ab read its counters: by
    so much the two may differ.
    """
    numbers = {span.number for span in spans}
    pieces = [result.slices[number - 1] for number in sorted(numbers)]
    edges = sum((picture.edges[spans[0].run, number] for number in numbers), Counter())
    traced = figures(spans)
    rows = []
    for name in comparable(picture):
        ab, trace = counted(name, pieces), traced.get(name, 0)
        if ab is None or not (ab or trace):
            continue
        rows.append(row(name, trace, ab) | {"edges": edges[name]})
    return rows
