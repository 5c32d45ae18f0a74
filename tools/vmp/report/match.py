# SPDX-License-Identifier: GPL-2.0
"""What tools/ab saved as JSON, and its counters beside the figures of a recording."""

import json
from pathlib import Path
from typing import Any, TypeGuard

from vmp.ab.compare import STOLEN, difference, summarize, with_stalls
from vmp.ab.table import heading, lacks
from vmp.common import Failure
from vmp.report.aggregate import WALKERS, Picture, Span, figures

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
    *(f"aging.{name}" for name in "sync async failed stale".split()),
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


def complete(report: Any) -> TypeGuard[dict[str, Any]]:
    """Tell if a report has all that is read of it."""
    try:
        heading(report)
        sides = [piece["side"] for piece in report["slices"]]
        return (
            report["format"] == 1
            and isinstance(report["test"], str)
            and all(isinstance(key, str) for key in report["settings"].get("primary", []))
            and sides.count("A") == sides.count("B") == len(sides) / 2 > 0
            and len({"stalls" in piece for piece in report["slices"]}) == 1
            and all(isinstance(sentence, str) for sentence in lacks(report))
            and all(piece["counters"]["seconds"] for piece in report["slices"])
            and all(
                isinstance(value, int | float)
                for piece in report["slices"]
                for value in (*piece["counters"].values(), *piece.get("stalls", ()))
            )
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return False


def load(path: Path) -> dict[str, Any]:
    """Return the report that `tools/ab --json` saved; raises Failure for another file."""
    try:
        report = json.loads(path.read_text())
    except ValueError:
        report = None
    if not complete(report):
        raise Failure(f"{path} is neither a trace.dat of trace-cmd nor JSON of `tools/ab --json`")
    pieces = [(piece["side"], with_stalls(piece)) for piece in report["slices"]]
    # One of an older ab was judged in another way.
    return report | {"summary": summarize(pieces, report["settings"].get("primary", []))}


def belongs(report: dict[str, Any], picture: Picture, run: int) -> bool:
    """Tell if a report is of that run of the recording: the same settings, the same slices."""
    marked = {span.number: span.side for span in picture.slices(run)}
    expected = dict(enumerate((piece["side"] for piece in report["slices"]), 1))
    named = picture.runs[run]
    same = all(report["settings"][key] == named[key] for key in ("a", "b") if key in named)
    return bool(marked) and same and marked.items() <= expected.items()


def deviation(report: dict[str, Any], picture: Picture, run: int) -> float:
    """Return by how much the slices of report and run differ in length, in seconds in all."""
    seconds: list[float] = [piece["counters"]["seconds"] for piece in report["slices"]]
    return sum(
        abs(seconds[span.number - 1] - (span.end - span.begin) / 1e6)
        for span in picture.slices(run)
    )


def pair(picture: Picture, reports: list[dict[str, Any]]) -> dict[int, int]:
    """Return for each run of the recording the index of its report, where there is one."""
    found: dict[int, int] = {}
    for run in range(len(picture.runs)):
        fitting = [
            index
            for index, report in enumerate(reports)
            if index not in found.values() and belongs(report, picture, run)
        ]
        if fitting:
            found[run] = min(fitting, key=lambda index: deviation(reports[index], picture, run))
    return found


def counted(name: str, pieces: list[dict[str, Any]]) -> float | None:
    """Return ab's figure over its slices for a figure of a recording, None where ab has none."""
    parts = COUNTERS.get(name, (f"stats.{name}",))
    counters: list[dict[str, float]] = [piece["counters"] for piece in pieces]
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


def beside(picture: Picture, spans: list[Span], report: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the figures that a recording and ab both have, over `spans`, slices that both have.

    Only what one of them has counted.
    """
    pieces = [report["slices"][number - 1] for number in sorted({span.number for span in spans})]
    traced = figures(spans)
    rows = []
    for name in comparable(picture):
        ab, trace = counted(name, pieces), traced.get(name, 0)
        if ab is None or not (ab or trace):
            continue
        rows.append(row(name, trace, ab))
    return rows
