# SPDX-License-Identifier: GPL-2.0
"""How long this machine could not run, as its own host ran others: a guest stands still then."""

import os
import threading
import time
from collections import deque
from types import TracebackType

STEP = 1.0  # seconds between two looks
WINDOW = 120.0  # seconds; a guest's kernel reports a CPU that has done nothing for so long
TOO_LONG = WINDOW / 2  # what of it makes such a report worthless


def stolen() -> float:
    """Return how long CPUs of this machine had work while its host ran others, in seconds."""
    with open("/proc/stat", encoding="ascii") as stat:
        return int(stat.readline().split()[8]) / os.sysconf("SC_CLK_TCK")


class Losses:
    """Time lost, and the most of it in any WINDOW; all in seconds."""

    def __init__(self) -> None:
        self.recent: deque[tuple[float, float]] = deque()
        self.worst = 0.0

    def add(self, now: float, passed: float, stolen_each: float) -> None:
        """Note a look at `now`, `passed` after the one before; `stolen_each` from each CPU."""
        self.recent.append((now, max(passed - STEP, stolen_each, 0.0)))
        while self.recent[0][0] < now - WINDOW:
            self.recent.popleft()
        self.worst = max(self.worst, sum(lost for _, lost in self.recent))

    @property
    def too_long(self) -> bool:
        """Tell if a guest may have reported a stall for want of a CPU."""
        return self.worst >= TOO_LONG


class Watch:
    """Notes what is lost while the `with` block runs."""

    def __init__(self) -> None:
        self.losses = Losses()
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)

    def __enter__(self) -> Losses:
        self.thread.start()
        return self.losses

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.ended.set()
        self.thread.join()

    def look(self) -> None:
        """Look, until the block has ended."""
        cpus = os.cpu_count() or 1
        last, before = time.monotonic(), stolen()
        while not self.ended.wait(STEP):
            now, total = time.monotonic(), stolen()
            self.losses.add(now, now - last, (total - before) / cpus)
            last, before = now, total
