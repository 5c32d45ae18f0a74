# SPDX-License-Identifier: GPL-2.0
"""Measuring how long tasks are held up by reclaim, with the trace events at its begin and end."""

import re

from vmp.common import Failure, find_tracefs

INSTANCE = "vmscan-policy-ab"
KINDS = ("direct", "memcg")
BUFFER_KB = 4096  # per CPU: about 80,000 events in a slice
# "  stress-ng-vm-1234    [001] .....   123.456789: mm_vmscan_memcg_reclaim_begin: order=0 ..."
EVENT = re.compile(r"-(\d+)\s+\[\d+\]\s+\S+\s+(\d+)\.(\d{6}): mm_vmscan_(\w+)_reclaim_(begin|end):")
LOST = re.compile(r"^(?:overrun|dropped events): (\d+)$", re.MULTILINE)


def durations(text: str) -> list[int]:
    """Return the microseconds from each begin to its end, from the text of a trace.

    They belong together when the task and the kind of reclaim are the same. What began before
    the trace or ends after it is left out.
    """
    begun: dict[tuple[str, str], int] = {}
    found = []
    for pid, seconds, fraction, kind, edge in EVENT.findall(text):
        time = int(seconds) * 1_000_000 + int(fraction)
        if edge == "begin":
            begun[pid, kind] = time
        elif (pid, kind) in begun:
            found.append(time - begun.pop((pid, kind)))
    return found


def lost_events(stats: str) -> int:
    """Return the number of events that a CPU's `stats` file says were lost."""
    return sum(map(int, LOST.findall(stats)))


class Stalls:
    """Records stalls in a trace instance of its own, which exists while the context is open."""

    def __init__(self) -> None:
        self.path = find_tracefs() / "instances" / INSTANCE

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
        except OSError:
            self.path.rmdir()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.path.rmdir()

    def start(self) -> None:
        """Record from now on."""
        self.write("tracing_on", "1")

    def stop(self) -> None:
        """Record no more."""
        self.write("tracing_on", "0")

    def take(self) -> tuple[list[int], int]:
        """Return the stalls recorded, in microseconds, and how many events were lost; forget both.

        Only to be used when stopped.
        """
        found = durations((self.path / "trace").read_text(errors="replace"))
        stats = self.path.glob("per_cpu/cpu*/stats")
        lost = sum(lost_events(path.read_text()) for path in stats)
        self.write("trace", "0")
        return found, lost
