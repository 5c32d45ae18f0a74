# SPDX-License-Identifier: GPL-2.0
"""The page of a report: what is said about each plot, and what is left out."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from vmp.common import read_data
from vmp.form import number
from vmp.report import plots
from vmp.report.aggregate import PERCENTILES, THROTTLED, Picture, figures, stall_figures
from vmp.report.contents import Contents
from vmp.report.labels import (
    comparison_rows,
    figure_rows,
    groups_sentence,
    lost_sentence,
    settings_rows,
)
from vmp.report.verdict import scale
from vmp.result.file import test
from vmp.result.model import Result
from vmp.result.table import COLUMNS, cells, footnote, heading, shown

TITLE = "What the reclaim policies did"
TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def breakable(text: str) -> Markup:
    """Escape a text, and let its lists of settings go on in the next line behind a comma."""
    return Markup(re.sub(r",(?=[a-z])", ",<wbr>", escape(text)))


TEMPLATES.filters["breakable"] = breakable


class Table(NamedTuple):
    """A table: a row of one cell heads a group; `notes` are sentences above it."""

    caption: str
    columns: Sequence[str]
    rows: list[list[str]]
    notes: Sequence[str] = ()


class Drawn(NamedTuple):
    """A plot of the page: what one sees, its SVG, and the tables that belong to it."""

    heading: str
    text: str
    image: str
    tables: Sequence[Table] = ()


@dataclass(frozen=True)
class Plot:
    """A plot that a recording may have: who draws it, its table, why it may be missing."""

    heading: str
    text: str
    draw: Callable[[Picture], str | None]
    missing: str
    table: Callable[[Picture], Table] | None = None


def stall_table(picture: Picture) -> Table:
    """Return the percentiles of the stalls by group, and of those that belong to none."""
    groups = {
        label: [time for span in spans for time in span.stalls]
        for label, spans in picture.groups().items()
    }
    groups["across a switch or the edge of a slice"] = picture.across
    rows = []
    for label, times in groups.items():
        found = stall_figures(times)
        if times:
            ranks = [number(found[f"stall_{name}_ms"]) for name in PERCENTILES]
            rows.append([label, number(len(times)), *ranks])
    columns = ["", "stalls", *PERCENTILES]
    return Table("Reclaim stalls, milliseconds (nearest rank)", columns, rows)


def throttle_table(picture: Picture) -> Table:
    """Return sleeps and seconds slept by reason, for each group and in all."""
    rows: list[list[str]] = []
    for label, spans in (picture.groups() | {"whole recording": picture.spans}).items():
        found = figures(spans)
        reasons = [name.removesuffix("_us") for name in found if THROTTLED.fullmatch(name)]
        sums = [(name.partition(".")[2], found[name], found[f"{name}_us"]) for name in reasons]
        if len(sums) > 1:
            sums.append(("all", sum(count for _, count, _ in sums), sum(us for *_, us in sums)))
        if sums:
            rows.append([label])
            rows += [[reason, number(count), number(us / 1e6)] for reason, count, us in sums]
    return Table("Sleeps of reclaimers, by reason", ["", "sleeps", "seconds in all"], rows)


TABLES = {"stalls": stall_table, "throttling": throttle_table}
PLOTS = [
    Plot(draw=getattr(plots, name), table=TABLES.get(name), **words)
    for name, words in read_data(plots.__file__).items()
]


def environment(contents: Contents) -> list[tuple[str, str]]:
    """Return what the figures depend on, as far as it is known."""
    found = []
    picture = contents.picture
    if picture:
        begin, end = picture.bounds()
        found.append(
            (
                "Recording",
                f"{contents.source}: {(end - begin) / 1e6:.1f} s, "
                f"{picture.seen.total() - picture.seen['lost']:,} events",
            )
        )
        known = [f"Linux {contents.kernel}"] if contents.kernel else []
        known += [f"{contents.cpus} CPUs"] if contents.cpus else []
        if known:
            found.append(("Recorded on", ", ".join(known)))
        groups = list(picture.groups())
        if len(groups) > 1:
            named = [(plots.key(label, number), label) for number, label in enumerate(groups)]
            found += [(short, label.removeprefix(f"{short}: ")) for short, label in named]
    for name, report in contents.reports:
        found.append((f"A/B run, {name}", "; ".join(heading(report).splitlines()[1:])))
    return found


def ab_run(name: str, result: Result) -> dict[str, Any]:
    """Return what the page says of an A/B run: its sides, and the table that tools/ab prints."""
    rows: list[list[str]] = []
    for title, found in shown(result).items():
        rows += [[title], *([row.label, *cells(row), p_text(row.p_corrected)] for row in found)]
    what = result.settings
    notes = (f"The test behind Sig and p: {test(result)}.", footnote(result))
    return {
        "name": name,
        "sides": (("Before: A", what.a), ("After: B", what.b), ("Both", what.both)),
        "table": Table(f"All figures of {name}", ["", *COLUMNS, "corrected p"], rows, notes),
    }


def p_text(p: float | None) -> str:
    """Format a p; '-' for a figure that was not tested."""
    return "-" if p is None else f"{p:.2g}"


def recording_tables(picture: Picture, contents: Contents) -> list[Table]:
    """Return the tables of the sums, whole and by group, and beside the module's and ab's own."""
    groups = picture.groups()
    columns = [picture.whole()]
    names = ["", "whole recording"]
    if picture.runs or len(groups) > 1:
        columns += [figures(spans) for spans in groups.values()]
        names += list(groups)
    note = (
        "Sums of the recorded events. What has the name of one of the module's counters counts "
        "the same; an event that was not recorded counts as 0."
    )
    tables = [Table("Sums of the recording", names, figure_rows(columns), [note])]
    if settings := settings_rows(picture):
        tables.append(Table("By the settings that held", settings[0], settings[1:]))
    if contents.module:
        heads = ["", "recording", "module", "difference"]
        rows = comparison_rows(contents.module)
        tables.append(Table("Beside the module's own counts, in all", heads, rows))
    note = (
        "The difference is by how much the recording has more. What begins in a slice and ends "
        "outside may be in one of them only."
    )
    for run, sides in contents.compared.items():
        name = contents.reports[contents.matched[run]][0]
        heads = ["", "recording", "ab", "difference"]
        tables += [
            Table(f"Beside {name}: slices of {side}", heads, comparison_rows(rows), [note])
            for side, rows in sides.items()
        ]
    return tables


def drawn(contents: Contents) -> tuple[list[Drawn], list[str]]:
    """Return the plots, and a line for each that is left out."""
    found, left_out = [], []
    picture = contents.picture
    for plot in PLOTS:
        image = plot.draw(picture) if picture else None
        if picture and image:
            tables = [plot.table(picture)] if plot.table else []
            found.append(Drawn(plot.heading, plot.text, image, tables))
        else:
            why = plot.missing if picture else "no recording was given"
            left_out.append(f"{plot.heading}: {why}")
    text = (
        "Pages that came back after reclaim had taken them, for each 1,000 stolen ones, in each "
        "slice of the A/B run. Fewer are better: each one was taken too early."
    )
    top = plots.most_refaults([result for _, result in contents.reports])
    for index, (name, result) in enumerate(contents.reports):
        image = plots.refaults(result, f"refaults{index}", top)
        if image:
            found.append(Drawn(f"Refaults, {name}", text, image))
        else:
            left_out.append(f"Refaults, {name}: it counted none")
    if not contents.reports:
        left_out.append("Refaults and A/B table: no JSON of tools/ab was given")
    return found, left_out


def missing(contents: Contents) -> list[str]:
    """Return a line for each comparison that can't be made."""
    found = []
    if not contents.picture:
        found.append("Figures of the recording: no recording was given")
    elif contents.reports:
        belonging = set(contents.matched.values())
        found += [
            f"Figures of the recording beside those of {name}: the recording has no run with the "
            "same settings and slices"
            for index, (name, _) in enumerate(contents.reports)
            if index not in belonging
        ]
    elif contents.picture.runs:
        found.append("Figures of the recording beside ab's: its JSON was not given")
    return found


def render(contents: Contents) -> tuple[str, list[str]]:
    """Return the page, and a line for each section that is left out of it."""
    picture = contents.picture
    found, left_out = drawn(contents)
    left_out += missing(contents)
    text = TEMPLATES.get_template("page.html.j2").render(
        title=contents.verdicts[0].name if len(contents.verdicts) == 1 else TITLE,
        verdicts=contents.verdicts,
        scale=scale(contents.verdicts),
        environment=environment(contents),
        lost=lost_sentence(picture) if picture else "",
        groups=groups_sentence(picture) if picture else "",
        plots=found,
        runs=[ab_run(name, report) for name, report in contents.reports],
        figures=recording_tables(picture, contents) if picture else [],
        left_out=left_out,
    )
    return text, left_out
