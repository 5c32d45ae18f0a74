#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Draw README's picture from the figures in README's table: tools/pictures/figures.svg.

A test compares these figures with the stored results, and the picture with the table.
"""

import os
import re
import sys
from dataclasses import dataclass

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

from matplotlib.axes import Axes
from vmp.common import REPO
from vmp.report.svg import INK, MUTED, SERIES, alone, draw

README = REPO / "README.md"
PICTURE = REPO / "tools" / "pictures" / "figures.svg"
TITLE = "What each policy leaves of what stock has, in percent, with the 95 % interval"
ROW = re.compile(
    r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) % \| ([^|]+) to ([^|]+) % \|"
    r" \[[^]]+\]\(docs/results/",
    re.MULTILINE,
)
SMALL = 8  # points: the picture is shown at twice its size
HEIGHT = 175  # units of the SVG, which is 400 wide
WIDEST = 160  # percent


@dataclass(frozen=True)
class Row:
    """A row of README's table: the change and its interval are in percent of `before`."""

    policy: str
    what: str
    before: str
    after: str
    change: float
    low: float
    high: float


def table(readme: str) -> list[Row]:
    """Return the rows of README's table of figures."""
    return [
        Row(*(cell.replace("`", "") for cell in cells[:4]), *map(float, cells[4:]))
        for cells in ROW.findall(readme)
    ]


def paint(axes: Axes, rows: list[Row]) -> None:
    """Draw a bar for each row: what is left, of 100 before."""
    for place, row in enumerate(rows):
        axes.plot([100, 100], [place - 0.2, place + 0.3], color=MUTED, linewidth=1)
        axes.barh(place, 100 + row.change, height=0.28, color=SERIES[0])
        axes.plot([100 + row.low, 100 + row.high], [place, place], color=INK, linewidth=1.4)
        axes.plot([100 + row.low, 100 + row.high], [place, place], "|", color=INK, markersize=7)
        axes.annotate(f"{row.policy}: {row.what}", (0, place - 0.32), fontsize=SMALL)
        figures = f"{row.before} → {row.after}"
        axes.annotate(figures, (WIDEST, place - 0.32), fontsize=SMALL, ha="right")
    axes.set_xlim(0, WIDEST)
    axes.set_ylim(len(rows) - 0.6, -0.8)
    axes.set_yticks([])
    axes.set_xticks([0, 50, 100])
    axes.set_xticklabels(["0 %", "50 %", "stock: 100 %"], fontsize=SMALL)
    axes.spines["left"].set_visible(False)
    axes.grid(visible=False)


def picture(readme: str) -> str:
    """Return the picture of README's table, as a file of its own with the colours of a report."""
    rows = table(readme)
    drawn = draw("figures", TITLE, lambda axes: paint(axes, rows), HEIGHT)
    return alone(drawn, "tools/pictures/figures.py")


if __name__ == "__main__":
    PICTURE.write_text(picture(README.read_text()))
