# SPDX-License-Identifier: GPL-2.0
"""The demo's page: the verdict, a picture of all slices, and their figures. It needs no library."""

import math
from html import escape

from vmp.common import REPO
from vmp.demo.told import COLUMNS, COUNTED, FLUSHES, LABELS, cells, verdict
from vmp.result.model import Result

STYLE = REPO / "tools" / "vmp" / "report" / "page.css"
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 720, 300, 60, 30, 40  # units of the SVG
LEAST = 1.0  # flushes per 1,000 pages: the foot of the picture, whose scale is logarithmic
COLORS = {"A": "var(--series2)", "B": "var(--series1)"}
PAGE = """<!DOCTYPE html>
<!-- SPDX-License-Identifier: GPL-2.0 -->
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width"><style>
{style}svg text {{ fill: var(--ink); font-size: 13px; }}</style></head><body>
<h1>{title}</h1>
<div class="scroll"><pre>{verdict}</pre></div>
<figure>{picture}</figure>
<p class="note">The workload was started once, and ran on while the policy was switched. The scale
is logarithmic. An emulator shows how often something happens, not how fast a machine is.</p>
<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>
</body></html>
"""


def height(value: float, most: float) -> float:
    """Return where in the picture a figure is."""
    part = math.log(max(value, LEAST) / LEAST) / math.log(most / LEAST)
    return HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)


def picture(result: Result) -> str:
    """Return an SVG of reclaim's own flushes, with a dot for each slice."""
    values = [COUNTED[FLUSHES].value([piece.values()]) or 0 for piece in result.slices]
    decades = math.ceil(math.log10(max(*values, 10 * LEAST)))
    width = (WIDTH - LEFT) / len(values)
    drawn = [f'<text x="0" y="14">{LABELS[FLUSHES]}</text>']
    for decade in range(decades + 1):
        y = height(10**decade, 10**decades)
        drawn.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH}" stroke="var(--grid)"/>')
        drawn.append(
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{10**decade:,}</text>'
        )
    for number, (piece, value) in enumerate(zip(result.slices, values, strict=True)):
        x, y = LEFT + number * width, height(value, 10**decades)
        color = COLORS[piece.side]
        drawn.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
                     f'height="{HEIGHT - BOTTOM - y:.1f}" fill="{color}" opacity="0.25"/>'
                     f'<path d="M{x:.1f} {y:.1f}h{width:.1f}" stroke="{color}" stroke-width="3"/>'
                     f'<text x="{x + width / 2:.1f}" y="{HEIGHT - BOTTOM + 16}" '
                     f'text-anchor="middle">{number + 1}</text>')  # fmt: skip
    for side, policy, x in (("A", result.settings.a, LEFT), ("B", result.settings.b, LEFT + 140)):
        drawn.append(f'<rect x="{x}" y="{HEIGHT - 12}" width="12" height="12" '
                     f'fill="{COLORS[side]}"/>'
                     f'<text x="{x + 18}" y="{HEIGHT - 1}">{escape(policy)}</text>')  # fmt: skip
    title = f"<title>{LABELS[FLUSHES]}, slice by slice</title>"
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{title}{"".join(drawn)}</svg>'


def page(result: Result) -> str:
    """Return the page."""
    rows = []
    for number, piece in enumerate(result.slices, 1):
        first, *rest = cells(number, piece, result.settings)
        told = "".join(f"<td>{escape(cell)}</td>" for cell in rest)
        rows.append(f'<tr><th scope="row">{first}</th>{told}</tr>')
    return PAGE.format(
        title=f"{escape(result.settings.b)} beside {escape(result.settings.a)}",
        style=STYLE.read_text(),
        verdict=escape("\n".join(verdict(result))),
        picture=picture(result),
        heads="".join(f'<th scope="col">{column}</th>' for column in COLUMNS),
        rows="".join(rows),
    )
