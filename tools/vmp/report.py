"""Results of tests, one line each as they come, and the count at the end."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from vmp.common import Failure


class Report:
    """Counts tests and prints a line for each."""

    def __init__(self) -> None:
        self.passed = 0
        self.failed: list[str] = []

    def add(self, name: str, reason: str | None, seconds: float | None = None) -> None:
        """Note one test; `reason` tells why it failed, None that it passed."""
        took = "" if seconds is None else f" ({seconds:.0f} s)"
        if reason is None:
            self.passed += 1
            print(f"ok - {name}{took}", flush=True)
        else:
            self.failed.append(name)
            print(f"not ok - {name}{took}", flush=True)
            for line in reason.splitlines():
                print(f"#   {line}", flush=True)

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

    def note(self, text: str) -> None:
        """Print something worth knowing about the tests around it."""
        print(f"# {text}", flush=True)

    def finish(self) -> int:
        """Print the closing lines and return the exit status."""
        for name in self.failed:
            print(f"# failed: {name}")
        print(f"{self.passed} passed, {len(self.failed)} failed", flush=True)
        return 1 if self.failed or not self.passed else 0
