# SPDX-License-Identifier: GPL-2.0
"""Measuring how long tasks are held up by reclaim, with the trace events at its begin and end.

Events are recorded from the first slice to the last, and between them, so a wait that crosses the
edges of slices is known whole. Each slice gets what it holds of the time of all waits, those that
cover it included: a long wait counts in each slice for as long as it lasts there, and the sum over
slices misses nothing. For percentiles a wait counts once, with its whole length, in the slice in
which it ends: it is as likely to end in a slice as any other, however long it is. Dropping waits
that cross an edge, or cutting them for percentiles, makes long ones rare or short.
"""

import os
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from vmp.common import Failure, find_tracefs

INSTANCE = "vmscan-policy-ab"
KINDS = ("direct", "memcg")
BUFFER_KB = 4096  # per CPU: about 80,000 events in a slice
# "  stress-ng-vm-1234    [001] .....   123.456789: mm_vmscan_memcg_reclaim_begin: order=0 ..."
EVENT = re.compile(r"-(\d+)\s+\[\d+\]\s+\S+\s+(\d+)\.(\d{6}): mm_vmscan_(\w+)_reclaim_(begin|end):")
LOST = re.compile(r"^(?:overrun|dropped events): (\d+)$", re.MULTILINE)


Begun = dict[tuple[str, str], int]  # when a wait began, in microseconds, by task and kind


class Wait(NamedTuple):
    """A wait of a task, or what is known of it: when it began and ended, in microseconds."""

    begin: int
    end: int

    def within(self, begin: int, end: int) -> int:
        """Return how long it was between two times."""
        return max(0, min(self.end, end) - max(self.begin, begin))


def waits(text: str, begun: Begun) -> list[Wait]:
    """Return the waits that ended, from the text of a trace; `begun` keeps those that did not.

    Begin and end belong together when the task and the kind of reclaim are the same. A wait that
    began before all traces is left out.
    """
    found = []
    for pid, seconds, fraction, kind, edge in EVENT.findall(text):
        time = int(seconds) * 1_000_000 + int(fraction)
        if edge == "begin":
            begun[pid, kind] = time
        elif (pid, kind) in begun:
            found.append(Wait(begun.pop((pid, kind)), time))
    return found


def of_slice(
    ended: list[Wait], begun: Iterable[int], begin: int, end: int
) -> tuple[list[int], int]:
    """Return the lengths of the waits that end in a slice, and the time of all waits within it.

    `ended` are those that are over, and `begun` when the others began; all in microseconds.
    """
    lengths = [wait.end - wait.begin for wait in ended if begin < wait.end <= end]
    lasting = [Wait(start, end) for start in begun]
    return lengths, sum(wait.within(begin, end) for wait in (*ended, *lasting))


def lost_events(stats: str) -> int:
    """Return the number of events that a CPU's `stats` file says were lost."""
    return sum(map(int, LOST.findall(stats)))


class Stalls:
    """Records stalls in a trace instance of its own, which exists while the context is open."""

    def __init__(self) -> None:
        self.path = find_tracefs() / "instances" / INSTANCE
        self.begun: Begun = {}
        self.lost = 0
        self.pipe = -1
        self.begin = self.end = 0  # of the slice, in microseconds of the clock of the events

    def write(self, name: str, value: str) -> None:
        """Write to a file of the instance."""
        (self.path / name).write_text(value)

    def __enter__(self) -> "Stalls":
        try:
            self.path.mkdir()
        except FileExistsError:
            raise Failure(
                f"{self.path} is there already: another ab is running, or one was killed and "
                "left it, then rmdir it"
            ) from None
        try:
            self.write("tracing_on", "0")
            self.write("trace_clock", "mono")  # the same on all CPUs
            self.write("buffer_size_kb", str(BUFFER_KB))
            for kind in KINDS:
                for edge in ("begin", "end"):
                    self.write(f"events/vmscan/mm_vmscan_{kind}_reclaim_{edge}/enable", "1")
            self.pipe = os.open(self.path / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
            self.write("tracing_on", "1")
        except BaseException:  # a signal, too
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self.pipe >= 0:
            os.close(self.pipe)
        self.path.rmdir()

    def drain(self) -> tuple[list[Wait], int]:
        """Return the waits that ended since the last time, and how many events were lost."""
        parts = []
        with suppress(BlockingIOError):  # there are no more
            while part := os.read(self.pipe, 1 << 16):
                parts.append(part)
        found = waits(b"".join(parts).decode(errors="replace"), self.begun)
        stats = self.path.glob("per_cpu/cpu*/stats")
        before, self.lost = self.lost, sum(lost_events(path.read_text()) for path in stats)
        if self.lost > before:
            self.begun.clear()  # the ends of some are lost
        return found, self.lost - before

    def start(self) -> None:
        """Begin a slice."""
        self.drain()
        self.begin = time.monotonic_ns() // 1000

    def stop(self) -> None:
        """End the slice."""
        self.end = time.monotonic_ns() // 1000

    def take(self) -> tuple[list[int], int, int]:
        """Return what a slice had that has ended: see of_slice(), and how many events were lost."""
        ended, lost = self.drain()
        return *of_slice(ended, self.begun.values(), self.begin, self.end), lost
