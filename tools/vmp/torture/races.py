# SPDX-License-Identifier: GPL-2.0
"""What a kernel with KCSAN says of data races: how often which functions raced."""

import re
from collections import Counter

from vmp.torture.place import DEBUG, write

SWITCH = DEBUG / "kcsan"
TITLE = re.compile(r"BUG: KCSAN: .* in (.*)")
# Of the module or the hooks; one that is inlined goes by the name of the function around it.
OURS = re.compile(r"\[vmscan_policy\]|\bvmscan_")


class Races:
    """Those that the kernel has reported."""

    def __init__(self) -> None:
        self.there = SWITCH.exists()
        self.counts: Counter[str] = Counter()

    def begin(self) -> None:
        """Have them reported."""
        if self.there:
            write(SWITCH, "on")

    def note(self, lines: list[str]) -> None:
        """Count those in some of the kernel's log."""
        self.counts.update(title[1] for title in map(TITLE.match, lines) if title)

    def ours(self) -> list[str]:
        """Return the names of functions of ours that raced."""
        return [names for names in self.counts if OURS.search(names)]

    def said(self) -> str:
        """Return how often which functions raced."""
        counts = ", ".join(f"{names} {count}" for names, count in self.counts.most_common())
        return f"{self.counts.total()} reports of data races" + (f": {counts}" if counts else "")
