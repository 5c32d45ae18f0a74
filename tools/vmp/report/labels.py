# SPDX-License-Identifier: GPL-2.0
"""How the figures of a recording are called, and what is said about them as text."""

from typing import Any

from vmp.common import read_data
from vmp.form import number, percent
from vmp.report.aggregate import MACHINE, Picture

TABLES = read_data(__file__)
LABELS: dict[str, str] = TABLES["recording"]
# The rows of ab's table that answer what a reader asks, by their keys: of each, less is better.
QUESTIONS: dict[str, dict[str, str]] = TABLES["questions"]
# What was decided by whose settings.
SETTINGS: dict[str, str] = TABLES["settings"]
PREFIXES = {
    "scan.end_": "passes ended by: {}",
}


def label(name: str) -> str:
    """Return what a figure is called."""
    if name in LABELS:
        return LABELS[name]
    for prefix, form in PREFIXES.items():
        if name.startswith(prefix):
            return form.format(name.removeprefix(prefix).replace("_", " "))
    if name.startswith("throttle."):
        reason = name.removeprefix("throttle.")
        longest = reason.endswith("_us")
        return f"throttled, {reason.removesuffix('_us')}" + (", us in all" if longest else "")
    return name


def rank(name: str) -> tuple[int, str]:
    """Return a key that sorts figures as they are listed: those of a point together."""
    point = name.partition(".")[0]
    order = list(LABELS)
    if name in LABELS:
        return order.index(name), name
    found = [index for index, known in enumerate(order) if known.startswith(f"{point}.")]
    return (found[-1] if found else order.index("stalls") - 1), f"{point}.~{name}"


def figure_rows(columns: list[dict[str, float]]) -> list[list[str]]:
    """Return a row for each figure that a column has: its label and its value in each column."""
    names = sorted({name for column in columns for name in column}, key=rank)
    return [
        [label(name), *(number(column.get(name, 0 if countable(name) else None))
                        for column in columns)]
        for name in names
    ]  # fmt: skip


def countable(name: str) -> bool:
    """Tell a count, which is 0 where nothing was counted, from what does not exist then."""
    return not (name.startswith("stall_") or name.endswith("_per_1000"))


def comparison_rows(rows: list[dict[str, Any]]) -> list[list[str]]:
    """Return rows of match.row() as text."""
    return [
        [
            label(row["figure"]),
            number(row["trace"]),
            number(row["counted"]),
            percent(row["percent"], 2) if row["trace"] != row["counted"] else "equal",
        ]
        for row in rows
    ]


def lost_sentence(picture: Picture) -> str:
    """Say what the recording lacks; '' if nothing."""
    lost, gaps = picture.count("lost_events"), picture.count("gaps_of_unknown_size")
    if not (lost or gaps):
        return ""
    parts = [f"{lost:,} events were lost"] if lost else []
    parts += [f"{gaps:,} gaps of unknown size are in the recording"] if gaps else []
    return (
        f"{' and '.join(parts)}: all figures of the recording are too low by what these would "
        "have added; record with larger buffers (trace-cmd record -b)."
    )


def groups_sentence(picture: Picture) -> str:
    """Say that some sets of policies are not shown; '' if all are."""
    every, shown = len(picture.all_groups()), len(picture.groups())
    if every == shown:
        return ""
    return f"Of the {every} sets of policies those {shown} are shown that were in force longest."


def settings_rows(picture: Picture) -> list[list[str]]:
    """Return a head, and a row for each settings that held; nothing if these are the machine's."""
    if not picture.settings.keys() - {MACHINE}:
        return []
    rows = [["settings of", *SETTINGS.values(), "switched to"]]
    for whose, counts in sorted(picture.settings.items(), key=lambda item: int(item[0])):
        name = picture.paths.get(whose, f"cgroup {whose}") if whose != MACHINE else "the machine"
        switched = ", ".join(dict.fromkeys(picture.own_switches[whose])) or "-"
        rows.append([name, *(number(counts[count]) for count in SETTINGS), switched])
    return rows
