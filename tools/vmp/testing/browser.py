# SPDX-License-Identifier: GPL-2.0
"""Looking at a page in a real browser, without a window: chromium."""

import html
import json
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from vmp.common import Failure

TIMEOUT = 120  # seconds: the machine may be busy
SCHEMES = {"dark": "0", "light": "1"}  # chromium's numbers
# The page goes into a frame as wide as wanted, since a window has a least width.
FRAME = """<!DOCTYPE html><meta charset="utf-8"><body style="margin:0">
<iframe id="frame" style="border:0;width:{width}px;height:{height}px" srcdoc="{page}"></iframe>
<script>
addEventListener("load", () => {{
  const page = document.getElementById("frame").contentDocument;
  const texts = [...page.querySelectorAll("svg text")];
  const heights = texts.map(text => text.getBoundingClientRect().height);
  const result = {{
    width: page.documentElement.scrollWidth,
    background: page.defaultView.getComputedStyle(page.body).backgroundColor,
    plots: page.querySelectorAll("svg[role=img]").length,
    smallest_text: heights.length ? Math.min(...heights) : null,
  }};
  const place = document.body.appendChild(document.createElement("pre"));
  place.id = "result";
  place.textContent = JSON.stringify(result);
}});
</script>"""


@dataclass(frozen=True)
class View:
    """What a page looked like: sizes in CSS pixels, the background, what the console said.

    `width` is more than the frame's if the page can be scrolled sideways.
    """

    width: int
    background: str
    plots: int
    smallest_text: float | None
    console: list[str]


def look(page: str, width: int, scheme: str, picture: Path | None = None) -> View:
    """Show a page `width` pixels wide, light or dark, and return what it looked like.

    Saves a picture of it if that is wanted; raises Failure when chromium is missing or fails.
    """
    with tempfile.TemporaryDirectory() as name:
        frame = Path(name) / "frame.html"
        height = 12000 if picture else 800
        frame.write_text(FRAME.format(width=width, height=height, page=html.escape(page)))
        command = [
            "chromium",
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-extensions",
            "--hide-scrollbars",
            "--enable-logging=stderr",
            f"--user-data-dir={name}/profile",
            f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}",
            f"--window-size={max(width, 500)},{height}",
            f"--screenshot={picture}" if picture else "--dump-dom",
            frame.as_uri(),
        ]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT
            )
        except FileNotFoundError:
            raise Failure("chromium is not installed: run tools/setup") from None
        except subprocess.TimeoutExpired:
            raise Failure(f"chromium did not show the page within {TIMEOUT} s") from None
    console = re.findall(r"CONSOLE.*", done.stderr)
    found = re.search(r'<pre id="result">(.*?)</pre>', done.stdout)
    if picture:
        return View(0, "", 0, None, console)
    if not found:
        raise Failure(f"chromium showed no page: {done.stderr[-200:].strip()}")
    return View(**json.loads(html.unescape(found[1])), console=console)
