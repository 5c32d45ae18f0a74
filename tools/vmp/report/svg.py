# SPDX-License-Identifier: GPL-2.0
"""Drawing with matplotlib into SVG that goes into a page: its colours are the page's.

Text stays text, and the same figures give the same bytes on the same kind of processor.
"""

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.typing import RcKeyType

# Drawn in a colour that stands for a variable of the page's style sheet.
INK, MUTED, GRID, SHADE, PAPER = "#0a0a01", "#0a0a02", "#0a0a03", "#0a0a04", "#0a0a05"
SERIES = tuple(f"#0b0b{number:02x}" for number in range(1, 7))
VARIABLES = {INK: "ink", MUTED: "muted", GRID: "grid", SHADE: "shade", PAPER: "paper"} | {
    color: f"series{number}" for number, color in enumerate(SERIES, 1)
}
# What tells lines apart without colours: one for each of SERIES.
MARKERS = ("o", "^", "s", "D", "v", "P")
DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)), (0, (3, 1)), (0, (8, 3)))
WIDTH, HEIGHT = 400, 255  # units of the SVG, without a legend; it is scaled to its place
LEGEND_LINE = 18  # units
LINK = "{http://www.w3.org/1999/xlink}href"
SHEET = Path(__file__).with_name("page.css")
SCHEME = re.compile(r"^(?::root|@media \(prefers).*?^}\n", re.DOTALL | re.MULTILINE)
STYLE: dict[RcKeyType, Any] = {
    "axes.edgecolor": MUTED,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 12,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 12,
    "figure.facecolor": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 12,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "legend.fontsize": 12,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "svg.fonttype": "none",
    "text.color": INK,
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
}


def style(index: int) -> dict[str, Any]:
    """Return how the line `index` looks: colour, marker and dashes, all different for six."""
    index %= len(SERIES)
    hollow = {"markerfacecolor": PAPER} if index % 2 else {}
    return {
        "color": SERIES[index],
        "marker": MARKERS[index],
        "linestyle": DASHES[index],
        **hollow,
    }


def embed(text: str, name: str, title: str) -> str:
    """Return the SVG as an element of a page, with ids that begin with `name`."""
    svg = ElementTree.fromstring(text)
    svg.attrib = {
        "viewBox": svg.attrib["viewBox"],
        "role": "img",
        "aria-labelledby": f"{name}-title",
    }
    for element in svg.iter():
        element.tag = element.tag.rpartition("}")[2]  # HTML has no namespaces
        own = element.attrib
        if "id" in own:
            own["id"] = f"{name}-{own['id']}"
        if LINK in own:
            own["href"] = own.pop(LINK)
        for reference in ("href", "clip-path"):
            if reference in own:
                own[reference] = own[reference].replace("#", f"#{name}-")
        if "style" in own:
            for color, variable in VARIABLES.items():
                own["style"] = own["style"].replace(color, f"var(--{variable})")
    heading = ElementTree.Element("title", id=f"{name}-title")
    heading.text = title
    svg.insert(0, heading)
    return ElementTree.tostring(svg, encoding="unicode")


def draw(name: str, title: str, paint: Callable[[Axes], None], height: int = HEIGHT) -> str:
    """Return the plot that `paint` makes of an empty one, as an SVG element.

    `name` is unique within the page, `title` what the plot is called for those who can't see it.
    """
    with matplotlib.rc_context(STYLE | {"svg.hashsalt": name}):
        figure = Figure(figsize=(WIDTH / 72, height / 72), dpi=72, layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.add_subplot()
        paint(axes)
        handles, labels = axes.get_legend_handles_labels()
        lines = "\n".join(labels).count("\n") + 1 if labels else 0
        figure.set_figheight((height + lines * LEGEND_LINE) / 72)
        if handles:
            figure.legend(handles, labels, loc="outside upper left", handlelength=3)
        buffer = io.StringIO()
        metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(buffer, format="svg", metadata=metadata)
    return embed(buffer.getvalue(), name, title)


def alone(drawn: str, maker: str) -> str:
    """Return what was drawn as a file of its own, with a report's colours; it names its maker."""
    colors = "".join(SCHEME.findall(SHEET.read_text()))
    style = f"<style>\n{colors}svg {{ background: var(--paper); }}\n</style>"
    head, end, rest = drawn.partition(">")
    made = f"<!-- SPDX-License-Identifier: GPL-2.0 -->\n<!-- Made by: {maker} -->"
    return f'{made}\n{head} xmlns="http://www.w3.org/2000/svg"{end}{style}{rest}\n'
