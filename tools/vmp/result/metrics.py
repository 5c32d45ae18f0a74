# SPDX-License-Identifier: GPL-2.0
"""The rows of a result: which figures there are, by section, and how each is made of counters."""

import math
import os
import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from vmp.common import read_data
from vmp.control.counters import is_gauge, is_level

# What one slice has: counters.delta(), and with recorded stalls stall_us, a list of durations in
# microseconds, stall_count, stall_total_us, and stall_passes where the module counted passes.
Values = dict[str, Any]

PRIMARY = "primary figures"
PER_STOLEN = "per 1,000 stolen pages (anon + file)"
PER_OPERATION = "per 1,000 operations"
RATES = "ratios and rates"
STALLS = "reclaim stalls (direct and memcg)"
CGROUP = "the memory cgroup's own"
TOTALS = "totals"
MODULE_COUNTERS = "the module's counters"
# What a row's label needs when it stands apart from its section.
PRIMARY_LABELS = {PER_STOLEN: "{} / 1,000 stolen", PER_OPERATION: "{} / 1,000 operations"}
STOLEN = ("vmstat.pgsteal_anon", "vmstat.pgsteal_file")
PAGE = os.sysconf("SC_PAGE_SIZE")
# All figures are compared by B's ratio to A, and a count may be 0. So half of one is added on both
# sides of a comparison, always: 14 kills and none are 14.5 and 0.5. Per something, it is half of
# one per what both sides have of that on average, so that two zeros are equal. What one is depends
# on the counter alone, never on what was counted; it is 1 where nothing is said here.
ONE = {
    "stall_total_us": 1000,
    "cpu.system_usec": 1000,
    "cpu.user_usec": 1000,
    "memcg.file_dirty": PAGE,
    "memcg.current": PAGE,
    "seconds": 1e-6,
}


def combination(name: str) -> Callable[[Iterable[float]], float]:
    """Return what makes one value of a counter's values in some slices."""
    if is_level(name):
        return max
    return statistics.fmean if is_gauge(name) else sum


@dataclass(frozen=True)
class Metric:
    """A row: `scale` times the sum of `parts`, per the sum of `per` where that is not empty.

    Of a mark (see is_level) the highest is taken instead of the sum over the slices, of a gauge
    (see is_gauge) the mean.
    """

    key: str
    label: str
    parts: tuple[str, ...]
    per: tuple[str, ...] = ()
    scale: float = 1.0

    def value(self, slices: list[Values]) -> float | None:
        """Return the value over all `slices`: None without the counters or with nothing below."""
        names = self.parts + self.per
        if not slices or any(name not in piece for piece in slices for name in names):
            return None
        combine = combination(self.parts[0])
        total: float = self.scale * combine(piece[name] for piece in slices for name in self.parts)
        if not self.per:
            return total
        below = self.below(slices)
        return total / below if below else None

    def below(self, slices: list[Values]) -> float:
        """Return what is divided by."""
        return float(sum(piece[name] for piece in slices for name in self.per))

    def half(self, a: list[Values], b: list[Values]) -> float:
        """Return half of one, as it is added on both sides; see ONE. Both have a value."""
        half = self.scale * ONE.get(self.parts[0], 1) / 2
        return 2 * half / (self.below(a) + self.below(b)) if self.per else half


def nearest_rank(ordered: Sequence[float], percent: float) -> float:
    """Return the smallest of the `ordered` values, one or more, that `percent` % do not exceed."""
    return ordered[max(0, math.ceil(percent * len(ordered) / 100) - 1)]


@dataclass(frozen=True)
class StallTime:
    """A row: a percentile of the stalls of all slices together, in milliseconds."""

    key: str
    label: str
    percent: float

    def value(self, slices: list[Values]) -> float | None:
        """Return the value over all `slices`; None without a stall."""
        pooled = sorted(time for piece in slices for time in piece["stall_us"])
        return nearest_rank(pooled, self.percent) / 1000 if pooled else None

    def half(self, _a: list[Values], _b: list[Values]) -> float:
        """Return what is added on both sides of a comparison: half a microsecond."""
        return 0.0005


def counters(text: str) -> tuple[str, ...]:
    """Return the counters of one side of a formula, as in "a + b"."""
    return STOLEN if text == "stolen" else tuple(filter(None, text.split(" + ")))


def metric(key: str, label: str, formula: str, scale: float | str = 1.0) -> Metric:
    """Return the row that a line of the file describes."""
    above, _, below = formula.partition(" / ")
    factor = 1 / PAGE if isinstance(scale, str) else scale
    return Metric(key, label, counters(above), counters(below), factor)


@cache
def known() -> dict[str, list[Metric]]:
    """Return the rows that any run may have, by section."""
    return {title: [metric(key, *line) for key, line in table.items()]
            for title, table in read_data(__file__).items()}  # fmt: skip


def per_operation(rows: Iterable[Metric]) -> list[Metric]:
    """Return the rows that are per stolen page as rows per operation."""
    return [
        replace(row, key=f"{row.key.removesuffix('_per_1000')}_per_operation", per=("progress",))
        for row in rows
        if row.per == STOLEN and row.parts != ("progress",)
    ]


STALL_TIMES = (
    StallTime("stall_p50_ms", "p50, ms", 50),
    StallTime("stall_p99_ms", "p99, ms", 99),
    StallTime("stall_longest_ms", "longest, ms", 100),
)


def by_number(name: str) -> list[int | str]:
    """Return a key that sorts names with numbers in them by these."""
    parts = re.split(r"(\d+)", name)
    return [int(part) if part.isdigit() else part for part in parts]


def function_rows(names: set[str]) -> list[Metric | StallTime]:
    """Return the rows for functions and instructions that were counted.

    Where the workload counts operations these are per operation, not per stolen page.
    """
    per, what = (("progress",), "operations") if "progress" in names else (STOLEN, "stolen pages")
    counted = sorted(name for name in names if name.startswith("function."))
    rows: list[Metric | StallTime] = []
    for name in ["instructions"] * ("instructions" in names) + counted:
        functions, _, unit = name.removeprefix("function.").rpartition(".")
        label = f"{functions or 'memcg'}, {unit}"
        rows.append(Metric(f"{name}_per_1000", f"{label} / 1,000 {what}", (name,), per, 1000))
        if functions and unit != "calls":
            calls = f"function.{functions}.calls"
            rows.append(Metric(f"{name}_per_call", f"{label} / call", (name,), (calls,)))
    return rows


def sections(names: set[str]) -> dict[str, list[Metric | StallTime]]:
    """Return the table's rows by section; `names` are the counters that the slices have."""
    module = sorted((name for name in names if name.startswith("stats.")), key=by_number)
    return {
        PER_STOLEN: [*known()[PER_STOLEN]],
        PER_OPERATION: [*per_operation(known()[PER_STOLEN])] if "progress" in names else [],
        "instructions and functions": function_rows(names),
        RATES: [*known()[RATES]],
        STALLS: [*STALL_TIMES, *known()[STALLS]] if "stall_us" in names else [],
        CGROUP: [*known()[CGROUP]],
        TOTALS: [*known()[TOTALS]],
        MODULE_COUNTERS: [Metric(name, name.removeprefix("stats."), (name,)) for name in module],
    }
