# SPDX-License-Identifier: GPL-2.0
"""Printing a comparison as a table in the form that mailing lists use."""

from textwrap import fill
from typing import Any

from vmp.ab.compare import MODULE_COUNTERS

COLUMNS = ("Before", "After", "Delta", "Percent", "Spread A", "Spread B", "Sig")
WIDTHS = (11, 11, 11, 9, 9, 9, 4)
LABEL = 36


def number(value: float | None) -> str:
    """Format a figure: whole from 1,000 on, or to three decimals at most; '-' for None."""
    if value is None:
        return "-"
    if value == int(value) or abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 100 else f"{value:.3f}"


def percent(value: float | None, form: str = "+.1f") -> str:
    """Format a percentage; '-' for None."""
    return "-" if value is None else f"{value:{form}}%"


def stars(p: float | None) -> str:
    """Mark a p below 0.05 with one star, below 0.01 with two."""
    if p is None or p >= 0.05:
        return ""
    return "**" if p < 0.01 else "*"


def line(label: str, cells: tuple[str, ...]) -> str:
    """Format one line of the table; a label that is too long for it gets one of its own."""
    if len(label) > LABEL:
        return f"{label}\n{line('', cells)}"
    return (
        label.ljust(LABEL) + "".join(c.rjust(w) for c, w in zip(cells, WIDTHS, strict=True))
    ).rstrip()


def row(entry: dict[str, Any]) -> str:
    """Format one row as compare.summarize() returns it."""
    spreads = [None if entry[k] is None else 100 * entry[k] for k in ("spread_a", "spread_b")]
    cells = (
        number(entry["before"]),
        number(entry["after"]),
        number(entry["delta"]),
        percent(entry["percent"]),
        *(percent(spread, ".1f") for spread in spreads),
        stars(entry["p"]),
    )
    return line("  " + entry["label"], cells)


def footnote(pairs: int) -> str:
    """Explain the last three columns for that many pairs of slices."""
    few = ", too few for a mark: it takes twelve slices" if pairs < 6 else ""
    return (
        "Spread: half the range over the slices, in percent of their mean (the workload's phases "
        "are in it).\n"
        "Sig: * p < 0.05, ** p < 0.01 in an exact two-sided Wilcoxon signed-rank test over the\n"
        f"{pairs} pairs of neighbouring slices of A and B{few}."
    )


def lost_note(slices: list[dict[str, Any]]) -> str:
    """Say how many trace events of all slices were lost; '' if none were."""
    lost = sum(piece.get("events_lost", 0) for piece in slices)
    return (
        f"{lost} trace events were lost: stalls are missing, take shorter slices." if lost else ""
    )


def lacks(report: dict[str, Any]) -> list[str]:
    """Return a sentence on each counter that the kernel lacks; older reports have none."""
    found: list[str] = report.get("lacks", [])
    return found


def heading(report: dict[str, Any]) -> str:
    """Return the lines above the table: what was compared, and where."""
    where, what = report["environment"], report["settings"]
    abi = where["abi"]
    return "\n".join(
        (
            f"Before = A: {what['a']}   After = B: {what['b']}   both: {what['both']}",
            f"Linux {where['kernel']}, {where['lru']} LRU, {where['cpus']} CPUs, "
            f"vmscan_policy {abi.get('module', '?')} (abi {abi.get('abi', '?')})",
            f"{what['title']}, in {what['memory_bytes'] / (1 << 20):g} MiB, "
            f"{len(report['slices'])} slices of {what['slice_seconds']:g} s in one run",
        )
    )


def render(report: dict[str, Any]) -> str:
    """Return the whole text of a report: heading, table and footnote."""
    lines = [heading(report), "", line("", COLUMNS)]
    for title, rows in report["summary"].items():
        if title == MODULE_COUNTERS:  # most of them are of other policies
            rows = [entry for entry in rows if entry["before"] or entry["after"]]
        if rows:
            lines += [title, *map(row, rows)]
    notes = [footnote(len(report["slices"]) // 2), lost_note(report["slices"])]
    notes += [fill(sentence, LABEL + sum(WIDTHS)) for sentence in lacks(report)]
    return "\n".join([*lines, "", *filter(None, notes)])
