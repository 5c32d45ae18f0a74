# SPDX-License-Identifier: GPL-2.0
"""How often functions of the kernel are called and what that takes, from ftrace's profiler."""

import os
import re
from contextlib import suppress

from vmp.common import ICOUNT, Failure, find_tracefs

# "  try_to_unmap     1234    5678.901 us     4.602 us     0.123 us"
ROW = re.compile(r"^\s*(\w+)\s+(\d+)\s+(\d+(?:\.\d+)?) us\s", re.MULTILINE)
NO_FILTER = "all functions enabled"
SHOWN = 30  # letters of a name that trace_stat has


def parse_functions(text: str) -> list[tuple[str, ...]]:
    """Return groups of functions, from text such as `f,g+h`: a group's figures are added up.

    Raises Failure for another form.
    """
    if not text:
        return []
    groups = [tuple(name.strip() for name in group.split("+")) for group in text.split(",")]
    for group in groups:
        if not all(re.fullmatch(r"\w+", name) for name in group):
            raise Failure(f"'{text}' names no functions: write NAME,NAME or NAME+NAME for a sum")
    return groups


def parse_profile(text: str) -> dict[str, tuple[int, float]]:
    """Return how often each function was called and the microseconds in it, from trace_stat."""
    return {name: (int(calls), float(us)) for name, calls, us in ROW.findall(text)}


class Functions:
    """ftrace's function profiler, for some functions, while the context is open.

    What a function calls counts as its own, and so does tracing that, if it is named, too; what
    it sleeps does not.
    """

    def __init__(self, groups: list[tuple[str, ...]]) -> None:
        """Name the groups of functions; change nothing."""
        self.groups = groups
        self.path = find_tracefs()
        self.unit = "instructions" if os.environ.get(ICOUNT) else "us"

    def write(self, name: str, value: str) -> None:
        """Write to a file of tracefs."""
        (self.path / name).write_text(value)

    def filter(self) -> str:
        """Return which functions are traced."""
        return (self.path / "set_ftrace_filter").read_text()

    def __enter__(self) -> "Functions":
        if not (self.path / "function_profile_enabled").exists():
            raise Failure("--functions needs a kernel with CONFIG_FUNCTION_PROFILER")
        if NO_FILTER not in self.filter():
            raise Failure("--functions needs set_ftrace_filter, and somebody uses it: empty it")
        names = {name for group in self.groups for name in group}
        self.sleep_time = (self.path / "options/sleep-time").read_text()
        try:
            for name in sorted(names):
                with suppress(OSError), (self.path / "set_ftrace_filter").open("a") as chosen:
                    chosen.write(name)
            missing = names - set(re.findall(r"^(\w+)", self.filter(), re.MULTILINE))
            if missing:
                raise Failure(
                    f"this kernel can't trace {', '.join(sorted(missing))}: inlined, static and "
                    "renamed, or a misprint; available_filter_functions has all"
                )
            self.write("options/sleep-time", "0")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.write("function_profile_enabled", "0")
        self.write("options/sleep-time", self.sleep_time)
        self.write("set_ftrace_filter", "")

    def start(self) -> None:
        """Count from now on, from 0."""
        self.write("function_profile_enabled", "1")

    def stop(self) -> dict[str, float]:
        """Return what was counted: `function.GROUP.calls` and `function.GROUP.us`.

        Where the clocks count instructions, these are `function.GROUP.instructions`.
        """
        self.write("function_profile_enabled", "0")
        found = [parse_profile(p.read_text()) for p in self.path.glob("trace_stat/function*")]
        counts: dict[str, float] = {}
        for group in self.groups:
            names = [name[:SHOWN] for name in group]
            rows = [cpu[name] for cpu in found for name in names if name in cpu]
            key = f"function.{'+'.join(group)}"
            us = sum(row[1] for row in rows)
            counts[f"{key}.calls"] = sum(row[0] for row in rows)
            counts[f"{key}.{self.unit}"] = us * (1000 if self.unit == "instructions" else 1)
        return counts
