# SPDX-License-Identifier: GPL-2.0
"""A command on a terminal of its own, recorded as asciinema does, format 2."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios
import time
from pathlib import Path

from vmp.common import Words

COLUMNS, ROWS = 110, 36
CTRL_C = b"\x03"


def record(command: Words, title: str, cast: Path, stop: str = "") -> int:
    """Run a command, write to `cast` what it prints and when, and return its exit status.

    Once a line fits the regular expression `stop`, Ctrl-C is typed, as somebody does.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    begin, seen = time.monotonic(), ""
    # Who runs in a shell's background ignores what Ctrl-C sends, and so would the command.
    shell: Words = ["env", "--default-signal=INT", "setsid", "--ctty", "--wait"]
    process = subprocess.Popen([*shell, *command], stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    head = {"version": 2, "width": COLUMNS, "height": ROWS, "title": title}
    with cast.open("w") as handle:
        handle.write(json.dumps(head) + "\n")
        while data := read(ours):
            text = data.decode(errors="replace")
            handle.write(json.dumps([round(time.monotonic() - begin, 2), "o", text]) + "\n")
            handle.flush()
            seen += text
            if stop and re.search(stop, seen, re.MULTILINE):
                os.write(ours, CTRL_C)
                stop = ""
    os.close(ours)
    return process.wait()


def read(terminal: int) -> bytes:
    """Return what a terminal has got; nothing once nobody writes to it any more."""
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # all have closed it
        return b""


def events(cast: Path) -> list[tuple[float, str]]:
    """Return what was printed and when, in seconds from the start."""
    lines = cast.read_text().splitlines()[1:]
    return [(at, text) for at, _, text in map(json.loads, lines)]


def said(cast: Path) -> str:
    """Return all that was printed."""
    return "".join(text for _, text in events(cast)).replace("\r", "")


def when(cast: Path, wanted: str) -> float:
    """Return after how many seconds a text was there that fits `wanted`; raises ValueError."""
    text = ""
    for at, more in events(cast):
        text += more.replace("\r", "")
        if re.search(wanted, text, re.MULTILINE):
            return at
    raise ValueError(f"nothing that fits '{wanted}' was printed: {cast}")
