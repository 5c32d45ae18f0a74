# SPDX-License-Identifier: GPL-2.0
"""Policies that others offer, by what plugins/ in the module's debugfs says of them."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Plugin:
    """A policy of another module or a BPF program: what it does, and how often it did so."""

    about: str
    module: str
    index: int  # what trace events have in place of its name
    answers: int
    limited: int  # of these: beyond what the kernel takes
    ns: int  # of CPU time, in ticks

    @property
    def offered_by(self) -> str:
        """Return who offers it, in words."""
        return "a BPF program" if self.module == "vmscan_policy" else f"the module {self.module}"

    @property
    def done(self) -> str:
        """Return what it has done, in words."""
        limited = f"{self.limited:,} of them had to be limited"
        return f"{self.answers:,} answers, {limited}; {self.ns / 1e6:,.0f} ms of CPU time"


def plugins(root: Path) -> dict[tuple[str, str], Plugin]:
    """Return those of the module's debugfs directory, by the names of point and policy."""
    found = {}
    for path in sorted(root.glob("plugins/*.*")):
        point, _, name = path.name.partition(".")
        told = dict(line.split(" ", 1) for line in path.read_text().splitlines())
        numbers = (int(told[key]) for key in ("index", "answers", "limited", "ns"))
        found[point, name] = Plugin(told["about"], told["module"], *numbers)
    return found
