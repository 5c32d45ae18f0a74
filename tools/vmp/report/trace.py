# SPDX-License-Identifier: GPL-2.0
"""Reading a recording of trace-cmd, event by event."""

import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from vmp.common import SETUP, Failure

MAGIC = b"\x17\x08Dtracing"
LOST = "lost"  # the name of what stands for a gap in the recording
# "  stress-ng-vm-312   [001]    12.345678: flush_batch_end:      policy=batch set=3 ..."
# Some versions print the interrupt flags before the time; before the task stands the instance.
EVENT = re.compile(r"-(\d+)\s+\[\d+\]\s+(?:\S+\s+)?(\d+)\.(\d{6})\d*:\s+(\w+):\s*(.*)")
GAP = re.compile(r"\[(?:LOST (\d+) EVENTS|(?:(\d+) )?EVENTS DROPPED)\]")
FIELD = re.compile(r"(\w+)=(\S+)")


class Event(NamedTuple):
    """One event: its time in microseconds, the task's pid, its name and the text behind that.

    A gap in the recording is an event LOST, whose text is the number of lost events, or '' where
    that is unknown, at the time of the event before it.
    """

    time: int
    pid: int
    name: str
    text: str


def fields(text: str) -> dict[str, str]:
    """Return the `name=value` words of an event's text."""
    return dict(FIELD.findall(text))


def events(lines: Iterable[str]) -> Iterator[Event]:
    """Return the events in the `lines` that `trace-cmd report` prints; others are skipped."""
    search = EVENT.search
    time = 0
    for line in lines:
        found = search(line)
        if found:
            pid, seconds, fraction, name, text = found.groups()
            time = int(seconds) * 1_000_000 + int(fraction)
            yield Event(time, int(pid), name, text)
        elif gap := GAP.search(line):
            yield Event(time, 0, LOST, gap[1] or gap[2] or "")


@contextmanager
def report_lines(path: Path) -> Iterator[Iterable[str]]:
    """Give the lines that `trace-cmd report` prints for the recording at `path`, as they come.

    Raises Failure when trace-cmd is missing, or at the end when it failed.
    """
    command = ["trace-cmd", "report", "-i", str(path.absolute())]
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        try:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                errors="replace",
                env=os.environ | {"LC_ALL": "C"},
            )
        except FileNotFoundError:
            raise Failure(f"trace-cmd is not installed: {SETUP}") from None
        assert child.stdout
        with child:
            try:
                yield child.stdout
            except BaseException:
                child.kill()
                raise
        if child.returncode:
            errors.seek(0)
            said = " ".join(errors.read().split())[-200:]
            raise Failure(
                f"trace-cmd cannot read {path}: {said or f'exit status {child.returncode}'}"
            )


def is_recording(path: Path) -> bool:
    """Tell if the file begins as trace-cmd's do."""
    with path.open("rb") as handle:
        return handle.read(len(MAGIC)) == MAGIC
