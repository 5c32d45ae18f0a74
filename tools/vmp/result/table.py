# SPDX-License-Identifier: GPL-2.0
"""Printing a comparison as a table in the form that mailing lists use."""

import math
import re
from statistics import fmean
from textwrap import fill

from vmp.form import interval, number, percent
from vmp.result.metrics import CGROUP, MODULE_COUNTERS
from vmp.result.model import Result, Row
from vmp.result.significance import SIGNIFICANT

COLUMNS = ("Before", "After", "Delta", "Percent", "95 % interval", "Sig")
WIDTHS = (12, 12, 11, 9, 17, 4)
LABEL = 35
WIDTH = LABEL + sum(WIDTHS)
TURNOVERS = 3  # so many a slice should last
# Settings whose effect does not depend on what is in memory.
AT_ONCE = {"flush", "unmap", "young", "trace", "(nothing)"}


def mark(row: Row) -> str:
    """Return a sign for a primary figure that changed: two for a corrected p below 0.01."""
    if not row.marked():
        return ""
    return "**" if row.p_corrected is not None and row.p_corrected < SIGNIFICANT / 5 else "*"


def line(label: str, cells: tuple[str, ...]) -> str:
    """Format one line of the table; a label that is too long for it gets one of its own."""
    if len(label) > LABEL:
        return f"{label}\n{line('', cells)}"
    return (
        label.ljust(LABEL) + "".join(c.rjust(w) for c, w in zip(cells, WIDTHS, strict=True))
    ).rstrip()


def cells(row: Row) -> tuple[str, ...]:
    """Return a row's columns as text."""
    return (
        number(row.before),
        number(row.after),
        number(row.delta),
        percent(row.percent),
        interval(row.ends if row.before else None, None),  # in percent of nothing it is none
        mark(row),
    )


def is_shown(result: Result, title: str, row: Row) -> bool:
    """Tell if a row of a section is worth a line.

    Twins have none of what is counted for the whole machine, and old files none of the cgroup's.
    """
    if title == MODULE_COUNTERS:
        return bool(row.before or row.after)
    return not (result.settings.twins or title == CGROUP) or (row.before, row.after) != (None, None)


def shown(result: Result) -> dict[str, list[Row]]:
    """Return the rows of a table by section: of the module's counters those that counted."""
    found = {
        title: [row for row in rows if is_shown(result, title, row)]
        for title, rows in result.rows.items()
    }
    return {title: rows for title, rows in found.items() if rows}


def footnote(result: Result) -> str:
    """Explain the last two columns, and which changes could have been seen where none was."""
    few, twins = result.undecidable(), result.settings.twins
    pairs, counted = ("slices of the same time", "periods") if twins else (
        "neighbouring slices", "pairs of neighbouring slices of A and B")  # fmt: skip
    test = "a two-sided t test" if twins else "an exact two-sided Wilcoxon signed-rank test"
    said = [
        f"95 % interval: of B's ratio to A in {pairs}, in percent, half a count added to each. "
        "Before and After are of all slices together.",
        f"Sig, of the primary figures alone: * p < 0.05, ** p < 0.01 in {test} over the "
        f"{result.pairs} {counted}, corrected for their number (Holm). The other rows were not "
        "asked for before the run: they have an interval, no verdict.",
        few,
    ]
    said += [f"{row.label}: {seen}" for row in result.primary if (seen := unseen(row))]
    return "\n".join(fill(each, WIDTH) for each in said if each)


def unseen(row: Row) -> str:
    """Say of a figure without a difference which one could have been seen; '' of another."""
    if row.sign() or row.undecidable():
        return ""
    if not row.visible:
        return "no difference: A and B are too often equal to say which one would have been seen."
    fall, rise = row.visible
    return (
        f"no difference; one of {percent(fall, None)} or {percent(rise, None)} would have been "
        "seen in four runs of five."
    )


def lost_note(result: Result) -> str:
    """Say how many trace events of all slices were lost; '' if none were."""
    lost = sum(piece.events_lost for piece in result.slices)
    return (
        f"{lost} trace events were lost: stalls are missing, take shorter slices." if lost else ""
    )


def ended_note(result: Result) -> str:
    """Say that not all slices are there, and why; '' of a complete run."""
    if not result.ended:
        return ""
    return f"INCOMPLETE: the run ended after {len(result.slices)} slices: {result.ended}."


def void_note(result: Result) -> str:
    """Say how many slices are void; '' if none is."""
    void = sum(piece.void for piece in result.slices)
    if not void:
        return ""
    slices = "slice is" if void == 1 else "slices are"
    return (
        f"{void} void {slices} left out, with the neighbour of each: the guard tripped, "
        "or a counter fell."
    )


def chance_note(result: Result) -> str:
    """Say what a run of the same setting twice has marked; '' of another run."""
    runs = result.settings.aa
    if not runs:
        return ""
    found = [row.key for row in result.primary if row.marked()]
    names = ": " + ", ".join(found) if found else ""
    said = (
        f"A and B were the same setting: {len(found)} of {len(result.primary)} primary figures "
        f"are marked by chance{names}."
    )
    if runs > 1 and (every := result.by_chance()):
        wrong = [keys for keys in every if keys]
        names = ": " + "; ".join(", ".join(keys) for keys in wrong) if wrong else ""
        said += (
            f" Cut into {len(every)} runs of {result.each_run()} slices, {len(wrong)} have a "
            f"primary figure marked{names}."
        )
    return fill(said, WIDTH)


def turnover(result: Result) -> list[str]:
    """Say how long reclaim takes to replace all of the cgroup's memory, and if slices are short."""
    a, b = result.turnover().values()
    if not (a and b):
        return []
    what, seconds = result.settings, result.settings.slice_seconds
    said = f"Reclaim took as many pages as the cgroup holds in {a:.3g} s with A, {b:.3g} s with B."
    if what.twins:
        seconds = fmean(piece.counters.get("seconds", 0) for piece in result.whole)
        said += f" A period is {seconds / a:.3g} times that with A, {seconds / b:.3g} times with B."
    words = re.split(r"[,=]", f"{what.a},{what.b}")[::2]
    lasting = {word.partition(".")[0] for word in words} - AT_ONCE
    least = TURNOVERS * max(a, b)
    if lasting and seconds < least:
        kind = "Periods" if what.twins else "The slices"
        said += (
            f" {kind} are shorter than {TURNOVERS} times that, so each side works with what the "
            f"other one left in memory: take --seconds {math.ceil(least)} or more."
        )
    return [said]


def pieces(result: Result) -> str:
    """Say how many slices there are, or periods of twins, and how long each is."""
    what = result.settings
    if not what.twins:
        return f"{len(result.slices)} slices of {what.slice_seconds:g} s"
    turnovers = f"{what.turnovers:g} turnover{'' if what.turnovers == 1 else 's'}"
    return f"{result.pairs} periods of {turnovers}, {what.slice_seconds:g} s at most"


def extent(result: Result) -> str:
    """Say how much was measured, and where."""
    what = result.settings
    settled = f", each after {what.settle_seconds:g} s" if what.settle_seconds else ""
    if not what.twins:
        return f"{pieces(result)} in one run{settled}"
    return f"in two cgroups at the same time, {pieces(result)}{settled}"


def heading(result: Result) -> str:
    """Return the lines above the table: what was compared, and where."""
    where, what = result.environment, result.settings
    abi = where.get("abi", {})
    return "\n".join(
        (
            f"Before = A: {what.a}   After = B: {what.b}   both: {what.both}",
            f"Linux {where['kernel']}, {where['lru']} LRU, {where['cpus']} CPUs, "
            f"vmscan_policy {abi.get('module', '?')} (abi {abi.get('abi', '?')})",
            f"{what.title}, {what.place()}, {extent(result)}",
        )
    )


def row_line(row: Row) -> str:
    """Return the line of a row."""
    return line("  " + row.label, cells(row))


def render(result: Result) -> str:
    """Return the whole text of a result: heading, table and footnote."""
    lines = [heading(result), "", line("", COLUMNS)]
    for title, rows in shown(result).items():
        lines += [title, *map(row_line, rows)]
    notes = [ended_note(result), void_note(result), footnote(result), lost_note(result),
             chance_note(result)]  # fmt: skip
    notes += [fill(said, WIDTH) for said in (*turnover(result), *result.lacks)]
    return "\n".join([*lines, "", *filter(None, notes)])
