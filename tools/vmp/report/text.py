# SPDX-License-Identifier: GPL-2.0
"""What a report says in the terminal, and its figures as JSON."""

import json
from textwrap import fill
from typing import Any

from vmp.report import aggregate, labels
from vmp.report.contents import Contents
from vmp.report.trace import LOST
from vmp.result.file import FORMAT
from vmp.result.model import Result
from vmp.result.table import COLUMNS, footnote, heading, line, row_line

LABEL, COLUMN, WIDTH = 44, 14, 100  # characters


def figures_json(contents: Contents, left_out: list[str]) -> str:
    """Return all that was computed from the recording, as JSON."""
    shown = contents.picture
    found: dict[str, Any] = {"format": FORMAT, "kind": "recording", "left_out": left_out}
    found |= {"recording": None, "groups": {}, "settings": {}, "runs": []}
    if shown:
        begin, end = shown.bounds()
        found["recording"] = {
            "seconds": (end - begin) / 1e6,
            "events": shown.seen.total() - shown.seen[LOST],
            "lost_events": shown.count("lost_events"),
            "gaps_of_unknown_size": shown.count("gaps_of_unknown_size"),
            "whole": shown.whole(),
            "compared": contents.module,
        }
        found["groups"] = {
            label: aggregate.figures(spans) for label, spans in shown.all_groups().items()
        }
        found["settings"] = {
            whose: {"path": shown.paths.get(whose), **counts}
            for whose, counts in shown.settings.items()
        }
        for index, settings in enumerate(shown.runs):
            matched = contents.matched.get(index)
            found["runs"].append(
                {
                    "settings": settings,
                    "slices": [
                        {"number": span.number, "side": span.side, **aggregate.figures([span])}
                        for span in shown.slices(index)
                    ],
                    "ab": None if matched is None else contents.files[matched],
                    "compared": contents.compared.get(index, {}),
                }
            )
    return json.dumps(found, indent=1) + "\n"


def columns(cells: list[str]) -> str:
    """Format a line of the terminal's table."""
    return (cells[0].ljust(LABEL) + "".join(cell.rjust(COLUMN) for cell in cells[1:])).rstrip()


def recording_lines(shown: aggregate.Picture, contents: Contents) -> list[str]:
    """Return the figures of the recording as text: whole, and by group or beside ab's."""
    groups = shown.groups()
    lines = [f"{number}: {label}" for number, label in enumerate(groups, 1)]
    sums = [shown.whole(), *(aggregate.figures(spans) for spans in groups.values())]
    heads = ["figures of the recording", "whole", *map(str, range(1, len(groups) + 1))]
    lines += [columns(heads), *map(columns, labels.figure_rows(sums))]
    note = labels.groups_sentence(shown)
    lines += [note] if note else []
    if settings := labels.settings_rows(shown):
        lines += ["", *(columns(row[:-1]) + f"  {row[-1]}" for row in settings)]
    if contents.module:
        lines += ["", columns(["whole recording", "recording", "module", "difference"])]
        lines += map(columns, labels.comparison_rows(contents.module))
    for run, sides in contents.compared.items():
        for side, rows in sides.items():
            name = contents.reports[contents.matched[run]][0]
            lines.append("")
            lines.append(columns([f"slices of {side}, {name}", "recording", "ab", "difference"]))
            lines += map(columns, labels.comparison_rows(rows))
    return lines


def table_lines(result: Result) -> list[str]:
    """Return the primary figures as in an A/B table."""
    head = line("primary figures", COLUMNS) if result.primary else "no figure was asked for"
    return [heading(result), head, *map(row_line, result.primary), footnote(result)]


def render(contents: Contents, left_out: list[str]) -> str:
    """Return what the terminal is told."""
    blocks = [
        [f"{verdict.name}:", *(fill(said, WIDTH, break_on_hyphens=False)
                               for said in verdict.sentences)]
        for verdict in contents.verdicts
    ]  # fmt: skip
    if contents.picture:
        begin, end = contents.picture.bounds()
        first = [f"{contents.source}: {(end - begin) / 1e6:.1f} s of Linux {contents.kernel}"]
        lost = labels.lost_sentence(contents.picture)
        blocks.append(first + ([f"EVENTS ARE MISSING: {lost}"] if lost else []))
        blocks.append(recording_lines(contents.picture, contents))
    blocks += [table_lines(report) for _, report in contents.reports]
    if left_out:
        blocks.append(["left out:", *(f"  {what}" for what in left_out)])
    return "\n\n".join("\n".join(block) for block in blocks)
