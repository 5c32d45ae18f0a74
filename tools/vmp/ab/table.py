# SPDX-License-Identifier: GPL-2.0
"""Printing a comparison as a table in the form that mailing lists use."""

import math
import re
from textwrap import fill
from typing import Any

from vmp.ab.compare import MODULE_COUNTERS, PRIMARY, by_chance, marked
from vmp.ab.significance import SIGNIFICANT

COLUMNS = ("Before", "After", "Delta", "Percent", "95 % interval", "Sig")
WIDTHS = (11, 11, 11, 9, 17, 4)
LABEL = 36
WIDTH = LABEL + sum(WIDTHS)
TURNOVERS = 3  # so many a slice should last
# Settings whose effect does not depend on what is in memory.
AT_ONCE = {"flush", "unmap", "young", "trace", "(nothing)"}


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


def signed(percent: float) -> str:
    """Format a change in percent: whole, or with one decimal where it is small."""
    return f"{percent:+.0f}%" if abs(percent) >= 9.95 else f"{percent:+z.1f}%"


def interval(entry: dict[str, Any]) -> str:
    """Format the interval of a row's difference in percent; '-' without one."""
    low, high = entry["low_percent"], entry["high_percent"]
    if low is None or high is None:
        return "-"
    low = max(low, -100) if entry["before"] > 0 <= entry["after"] else low  # more can't be gone
    return f"{signed(low)} to {signed(high)}"


def mark(entry: dict[str, Any]) -> str:
    """Return one sign for a corrected p below 0.05, two for one below 0.01."""
    p, sign = entry["p_corrected"], "*" if entry["primary"] else "+"
    if p is None or p >= SIGNIFICANT:
        return ""
    return 2 * sign if p < 0.01 else sign


def line(label: str, cells: tuple[str, ...]) -> str:
    """Format one line of the table; a label that is too long for it gets one of its own."""
    if len(label) > LABEL:
        return f"{label}\n{line('', cells)}"
    return (
        label.ljust(LABEL) + "".join(c.rjust(w) for c, w in zip(cells, WIDTHS, strict=True))
    ).rstrip()


def row(entry: dict[str, Any]) -> str:
    """Format one row as compare.summarize() returns it."""
    cells = (
        number(entry["before"]),
        number(entry["after"]),
        number(entry["delta"]),
        percent(entry["percent"]),
        interval(entry),
        mark(entry),
    )
    return line("  " + entry["label"], cells)


def footnote(report: dict[str, Any]) -> str:
    """Explain the last two columns."""
    pairs = len(report["slices"]) // 2
    count = len(report["summary"][PRIMARY])
    least = 2 ** (1 - pairs)  # p where all pairs agree
    few = "\nThese are too few for an interval: it takes twelve slices." if pairs < 6 else ""
    if not few and count * least >= SIGNIFICANT:
        few = (
            f"\nThese are too few pairs for {count} primary figures: take more slices, or name one."
        )
    return (
        "95 % interval: of B's ratio to A in neighbouring slices, in percent; where a slice has "
        "nothing,\nof the difference in percent of A's typical slice. Before and After are of all "
        "slices together.\n"
        f"Sig: * p < 0.05, ** p < 0.01 in an exact two-sided Wilcoxon signed-rank test over the "
        f"{pairs}\npairs of neighbouring slices of A and B, corrected for the number of primary "
        "figures (Holm).\n"
        "+, ++: the same of any other row, corrected for the number of all these. Totals and the\n"
        f"module's counters are not tested.{few}"
    )


def lost_note(slices: list[dict[str, Any]]) -> str:
    """Say how many trace events of all slices were lost; '' if none were."""
    lost = sum(piece.get("events_lost", 0) for piece in slices)
    return (
        f"{lost} trace events were lost: stalls are missing, take shorter slices." if lost else ""
    )


def chance_note(report: dict[str, Any]) -> str:
    """Say what a run of the same setting twice has marked; '' of another run."""
    if not report["settings"].get("aa"):
        return ""
    tested = [row for rows in report["summary"].values() for row in rows
              if row["p_corrected"] is not None]  # fmt: skip
    found = marked(tested)
    primary = sum(row["primary"] for row in found)
    raw = sum(row["p"] < SIGNIFICANT for row in tested)
    names = ": " + ", ".join(row["key"] for row in found) if found else ""
    return fill(
        f"A and B were the same setting: {len(found)} of {len(tested)} tested figures are marked "
        f"by chance, {primary} of them primary{names}. Uncorrected it would be {raw}."
        + runs_note(report),
        WIDTH,
    )


def runs_note(report: dict[str, Any]) -> str:
    """Say in how many of several runs of the same setting twice a primary figure is marked."""
    runs = int(report["settings"]["aa"])
    if runs == 1:
        return ""
    wrong = [keys for keys in by_chance(report) if keys]
    names = ": " + "; ".join(", ".join(keys) for keys in wrong) if wrong else ""
    return (
        f" Cut into {runs} runs of {len(report['slices']) // runs} slices, {len(wrong)} have a "
        f"primary figure marked{names}."
    )


def turnover(report: dict[str, Any]) -> list[str]:
    """Say how long reclaim takes to replace all of the cgroup's memory, and if slices are short."""
    found, what = report.get("turnover_seconds") or {}, report["settings"]
    if not all(found.get(side) for side in "AB"):
        return []
    said = "Reclaim took as many pages as the cgroup holds in {A:.3g} s with A, {B:.3g} s with B."
    said = said.format(**found)
    words = re.split(r"[,=]", f"{what['a']},{what['b']}")[::2]
    lasting = {word.partition(".")[0] for word in words} - AT_ONCE
    least = TURNOVERS * max(found.values())
    if lasting and what["slice_seconds"] < least:
        said += (
            f" The slices are shorter than {TURNOVERS} times that, so each side works with what "
            f"the other one left in memory: take --seconds {math.ceil(least)} or more."
        )
    return [said]


def lacks(report: dict[str, Any]) -> list[str]:
    """Return a sentence on each counter that the kernel lacks; older reports have none."""
    found: list[str] = report.get("lacks", [])
    return found


def limit(what: dict[str, Any]) -> str:
    """Return the limit of the workload's cgroup, of a report's settings."""
    size = what["memory_bytes"]
    return f"in {size / (1 << 20):g} MiB" if size else "without a limit"


def heading(report: dict[str, Any]) -> str:
    """Return the lines above the table: what was compared, and where."""
    where, what = report["environment"], report["settings"]
    abi, settle = where["abi"], what.get("settle_seconds")
    settled = f", each after {settle:g} s" if settle else ""
    return "\n".join(
        (
            f"Before = A: {what['a']}   After = B: {what['b']}   both: {what['both']}",
            f"Linux {where['kernel']}, {where['lru']} LRU, {where['cpus']} CPUs, "
            f"vmscan_policy {abi.get('module', '?')} (abi {abi.get('abi', '?')})",
            f"{what['title']}, {limit(what)}, "
            f"{len(report['slices'])} slices of {what['slice_seconds']:g} s in one run{settled}",
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
    notes = [footnote(report), lost_note(report["slices"]), chance_note(report)]
    notes += [fill(said, WIDTH) for said in (*turnover(report), *lacks(report))]
    return "\n".join([*lines, "", *filter(None, notes)])
