# SPDX-License-Identifier: GPL-2.0
"""Results of tests, one line each as they come, and the count and the minutes at the end."""

import json
import os
import resource
import threading
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vmp.common import OUT, REPO, Failure, write_whole
from vmp.form import to_go

LAST = OUT / "test-minutes.json"  # of each group, when it was last run


def stolen() -> float:
    """Return how long CPUs of this machine had work while its host ran others, in seconds."""
    with open("/proc/stat", encoding="ascii") as stat:
        return int(stat.readline().split()[8]) / os.sysconf("SC_CLK_TCK")


def read_kept(path: Path) -> dict[str, Any]:
    """Return what a file keeps of earlier runs: nothing where there is none, or it is not whole."""
    try:
        found = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def reason(error: Exception) -> str:
    """Return why a test failed; of what is no Failure, a fault of the tests, also the place."""
    if isinstance(error, Failure):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(REPO)]
    return f"{type(error).__name__} at {ours[-1].filename}:{ours[-1].lineno}: {error}"


@dataclass
class Counts:
    """How many tests of a group there were, by what became of them."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0


class Report:
    """Counts tests and prints a line for each, also into a log; for any number of threads."""

    def __init__(self, log: Path, lanes: Iterable[Sequence[str]] = ()) -> None:
        """Begin; the groups of a lane run one after the other, beside those of the others."""
        self.lanes = list(lanes)
        self.last: dict[str, float] = read_kept(LAST)
        self.begun: dict[str, float] = {}
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
        """Run the block as one test that an exception fails."""
        start = time.monotonic()
        why = None
        try:
            yield
        except Exception as error:
            why = reason(error)
        self.add(name, why, time.monotonic() - start)

    @contextmanager
    def group(self, name: str) -> Iterator[None]:
        """Run the block as a group of tests, whose minutes are kept; an exception fails it."""
        start = time.monotonic()
        self.running.counts = Counts()
        with self.lock:
            self.begun[name] = start
            if self.lanes:
                self.note(f"group {name} begins: {self.progress()}")
        try:
            yield
        except Exception as error:
            self.add(f"{name}: preparing its tests", reason(error))
        with self.lock:
            self.minutes[name] = (time.monotonic() - start) / 60
            self.counts[name] = self.count()
            self.last[name] = self.minutes[name]
            told = f"; {self.progress()}" if self.lanes else ""
            self.note(f"group {name}: {self.minutes[name]:.1f} min{told}")

    def every(self) -> list[str]:
        """Return the groups of all lanes."""
        return [name for lane in self.lanes for name in lane]

    def progress(self) -> str:
        """Return how many groups have ended, and how long the others take, by their last run."""
        every = self.every()
        told = f"{len(self.minutes)} of {len(every)} groups done"
        if not all(name in self.last for name in every):
            return told
        left = [
            sum(
                60 * self.last[name] - self.since(name) for name in lane if name not in self.minutes
            )
            for lane in self.lanes
        ]
        return f"{told}, {to_go(max(0, *left))}"

    def since(self, name: str) -> float:
        """Return how long a group has been running, in seconds."""
        return time.monotonic() - self.begun[name] if name in self.begun else 0

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
        missing = [name for name in self.every() if name not in self.minutes]
        self.say(*(f"# not run to its end: {name}" for name in missing))
        self.say(*(f"# failed: {name}" for name in self.failed))
        self.say(f"{self.passed} passed, {len(self.failed)} failed")
        if self.lanes:
            write_whole(LAST, json.dumps(self.last))
        return 1 if self.failed or missing or not self.passed else 0
