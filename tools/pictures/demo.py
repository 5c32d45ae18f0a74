#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Draw the last screen of a recorded `make demo` for README: tools/pictures/demo.svg.

`tools/test demo` records. Given such a recording, keep it as tools/pictures/demo.cast, without what
apt says before the demo begins.
"""

import json
import os
import re
import sys
from html import escape
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

from vmp.common import REPO
from vmp.testing.terminal import events, said

CAST, PICTURE = (REPO / "tools" / "pictures" / name for name in ("demo.cast", "demo.svg"))
BEGIN = "demo: 1 of"  # what the demo says first
ROWS = 33
WIDTH, LINE, EDGE = 8.43, 19, 12  # units of a character, a line, and around all
STYLE = """text { font: 14px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  white-space: pre; fill: #d8d8d8; }
.stock { fill: #e69f00; } .batch { fill: #56b4e9; } .verdict { fill: #fff; font-weight: bold; }"""
CLASSES = {"  flush=stock  ": "stock", "  flush=batch  ": "batch", "Verdict:": "verdict"}


def kept(cast: Path) -> str:
    """Return a recording from where the demo begins."""
    head = cast.read_text().splitlines()[0]
    every = events(cast)
    first = next(n for n, (_, text) in enumerate(every) if BEGIN in text)
    start = every[first][0]
    lines = [json.dumps([round(at - start, 2), "o", text]) for at, text in every[first:]]
    return "\n".join([head, *lines, ""])


def picture(cast: Path) -> str:
    """Return the last screen of a recording as an SVG."""
    head = json.loads(cast.read_text().splitlines()[0])
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said(cast)).rstrip().splitlines()
    width = head["width"]
    rows = [line[at : at + width] for line in lines for at in range(0, max(len(line), 1), width)]
    rows = rows[-ROWS:]
    wide, high = round(width * WIDTH + 2 * EDGE), len(rows) * LINE + 2 * EDGE
    drawn = []
    for number, row in enumerate(rows, 1):
        name = next((name for part, name in CLASSES.items() if part in row), "")
        kind = f' class="{name}"' if name else ""
        y = EDGE + number * LINE - 5
        drawn.append(f'<text x="{EDGE}" y="{y}"{kind} xml:space="preserve">{escape(row)}</text>\n')
    return (
        "<!-- SPDX-License-Identifier: GPL-2.0 -->\n<!-- Made by: tools/pictures/demo.py -->\n"
        f'<svg viewBox="0 0 {wide} {high}" xmlns="http://www.w3.org/2000/svg" role="img">\n'
        f"<title>The last lines of make demo</title><style>{STYLE}</style>\n"
        f'<rect width="{wide}" height="{high}" rx="8" fill="#1a1a1a"/>\n{"".join(drawn)}</svg>\n'
    )


if __name__ == "__main__":
    if sys.argv[1:]:
        CAST.write_text(kept(Path(sys.argv[1])))
    PICTURE.write_text(picture(CAST))
