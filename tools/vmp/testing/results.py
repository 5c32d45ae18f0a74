# SPDX-License-Identifier: GPL-2.0
"""Results of tests, one line each as they come, and the count and the minutes at the end."""

import os
import resource
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from vmp.common import Failure


def stolen() -> float:
    """Return how long CPUs of this machine had work while its host ran others, in seconds."""
    with open("/proc/stat", encoding="ascii") as stat:
        return int(stat.readline().split()[8]) / os.sysconf("SC_CLK_TCK")


@dataclass
class Counts:
    """How many tests of a group there were, by what became of them."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0


class Report:
    """Counts tests and prints a line for each, also into a log; for any number of threads."""

    def __init__(self, log: Path) -> None:
        self.passed = 0
        self.failed: list[str] = []
        self.skipped: list[str] = []
        self.minutes: dict[str, float] = {}
        self.counts: dict[str, Counts] = {}  # of each group that has ended
        self.running = threading.local()
        self.start = time.monotonic()
        self.stolen = stolen()
        self.lock = threading.RLock()
        log.parent.mkdir(exist_ok=True)
        self.log = log.open("w", buffering=1)

    def say(self, *lines: str) -> None:
        """Print lines that stay together."""
        with self.lock:
            for line in lines:
                print(line, flush=True)
                print(line, file=self.log)

    def add(self, name: str, reason: str | None, seconds: float | None = None) -> None:
        """Note one test; `reason` tells why it failed, None that it passed."""
        took = "" if seconds is None else f" ({seconds:.0f} s)"
        with self.lock:
            if reason is None:
                self.passed += 1
                self.count().passed += 1
                self.say(f"ok - {name}{took}")
            else:
                self.failed.append(name)
                self.count().failed += 1
                reasons = [f"#   {line}" for line in reason.splitlines()]
                self.say(f"not ok - {name}{took}", *reasons)

    def skip(self, name: str, reason: str) -> None:
        """Note one test that has nothing to test here, and why."""
        with self.lock:
            self.skipped.append(f"{name}: {reason}")
            self.count().skipped += 1
            self.note(f"skipped: {self.skipped[-1]}")

    def count(self) -> "Counts":
        """Return the counts of the group that this thread runs."""
        if not hasattr(self.running, "counts"):
            self.running.counts = Counts()
        counts: Counts = self.running.counts
        return counts

    @contextmanager
    def check(self, name: str) -> Iterator[None]:
        """Run the block as one test that a Failure fails."""
        start = time.monotonic()
        reason = None
        try:
            yield
        except Failure as failure:
            reason = str(failure)
        self.add(name, reason, time.monotonic() - start)

    @contextmanager
    def group(self, name: str) -> Iterator[None]:
        """Run the block as a group of tests, whose minutes are kept; a Failure fails it."""
        start = time.monotonic()
        self.running.counts = Counts()
        try:
            yield
        except Failure as failure:
            self.add(f"{name}: what its tests need", str(failure))
        with self.lock:
            self.minutes[name] = (time.monotonic() - start) / 60
            self.counts[name] = self.count()
            self.note(f"group {name}: {self.minutes[name]:.1f} min")

    def note(self, text: str) -> None:
        """Print something worth knowing about the tests around it."""
        self.say(f"# {text}")

    def finish(self) -> int:
        """Print the closing lines and return the exit status."""
        groups = ", ".join(f"{name} {minutes:.1f}" for name, minutes in self.minutes.items())
        total = (time.monotonic() - self.start) / 60
        self.note(f"minutes: {groups}; {total:.1f} in all, as some ran beside others")
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.note(
            f"CPU minutes: {(used.ru_utime + used.ru_stime) / 60:.1f}, and "
            f"{(stolen() - self.stolen) / 60:.1f} that the machine's host gave to others"
        )
        self.say(*(f"# skipped: {name}" for name in self.skipped))
        self.say(*(f"# failed: {name}" for name in self.failed))
        self.say(f"{self.passed} passed, {len(self.failed)} failed")
        return 1 if self.failed or not self.passed else 0
