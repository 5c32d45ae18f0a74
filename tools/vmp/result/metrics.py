# SPDX-License-Identifier: GPL-2.0
"""The rows of a result: which figures there are, by section, and how each is made of counters."""

import math
import os
import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from vmp.control.counters import is_gauge, is_level

# What one slice has: counters.delta(), and with recorded stalls stall_us, a list of durations in
# microseconds, stall_count, stall_total_us, and stall_passes where the module counted passes.
Values = dict[str, Any]

PRIMARY = "primary figures"
PER_STOLEN = "per 1,000 stolen pages (anon + file)"
PER_OPERATION = "per 1,000 operations"
TOTALS = "totals"
MODULE_COUNTERS = "the module's counters"
# What a row's label needs when it stands apart from its section.
PRIMARY_LABELS = {PER_STOLEN: "{} / 1,000 stolen", PER_OPERATION: "{} / 1,000 operations"}
STOLEN = ("vmstat.pgsteal_anon", "vmstat.pgsteal_file")
PAGE = os.sysconf("SC_PAGE_SIZE")


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
        below: float = sum(piece[name] for piece in slices for name in self.per)
        return total / below if below else None


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


def per_stolen(key: str, label: str, *parts: str, scale: float = 1000.0) -> Metric:
    """Return the metric `parts` per 1,000 stolen pages, anon and file."""
    return Metric(f"{key}_per_1000", label, parts, STOLEN, scale)


def per_operation(rows: Iterable[Metric | StallTime]) -> list[Metric]:
    """Return the rows that are per stolen page as rows per operation."""
    return [
        replace(row, key=f"{row.key.removesuffix('_per_1000')}_per_operation", per=("progress",))
        for row in rows
        if isinstance(row, Metric) and row.per == STOLEN and row.parts != ("progress",)
    ]


def by_number(name: str) -> list[int | str]:
    """Return a key that sorts names with numbers in them by these."""
    parts = re.split(r"(\d+)", name)
    return [int(part) if part.isdigit() else part for part in parts]


def stall_rows() -> list[Metric | StallTime]:
    """Return the rows for a run whose stalls were recorded."""
    return [
        StallTime("stall_p50_ms", "p50, ms", 50),
        StallTime("stall_p99_ms", "p99, ms", 99),
        StallTime("stall_longest_ms", "longest, ms", 100),
        per_stolen("stalls", "stalls / 1,000 stolen pages", "stall_count"),
        per_stolen("total_wait_ms", "total, ms / 1,000 stolen pages", "stall_total_us", scale=1.0),
        Metric(
            "total_wait_ms_per_operation",
            "total, ms / operation",
            ("stall_total_us",),
            ("progress",),
            1e-3,
        ),
        Metric("passes_per_wait", "passes / stall", ("stall_passes",), ("stall_count",)),
    ]


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
    remote = ("vmstat.nr_tlb_remote_flush",)
    read = ("vmstat.pgpgin",)
    flush = "stats.flush."
    found: dict[str, list[Metric | StallTime]] = {
        PER_STOLEN: [
            Metric(
                "remote_flushes_per_1000_anon",
                "remote TLB flushes / anon only",
                remote,
                ("vmstat.pgsteal_anon",),
                1000,
            ),
            per_stolen("remote_flushes", "remote TLB flushes", *remote),
            per_stolen(
                "reclaim_flushes", "reclaim's own remote flushes", f"{flush}observed_remote_flushes"
            ),
            per_stolen("reclaim_ipis", "interrupts by these", f"{flush}observed_interrupts"),
            per_stolen("tlb_shootdowns", "TLB shootdowns", "irq.TLB"),
            per_stolen("call_ipis", "function-call IPIs", "irq.CAL"),
            per_stolen("dirty_flushes", "dirty TLB flushes", f"{flush}observed_dirty_flushes"),
            per_stolen("pageouts", "pageouts", "vmstat.nr_vmscan_write"),
            per_stolen("pgscan_anon", "pgscan anon", "vmstat.pgscan_anon"),
            per_stolen("pgscan_file", "pgscan file", "vmstat.pgscan_file"),
            per_stolen("pgrefill", "pgrefill", "vmstat.pgrefill"),
            per_stolen("pswpin", "pswpin", "vmstat.pswpin"),
            per_stolen("pswpout", "pswpout", "vmstat.pswpout"),
            per_stolen("refault_anon", "refaults anon", "vmstat.workingset_refault_anon"),
            per_stolen("refault_file", "refaults file", "vmstat.workingset_refault_file"),
            per_stolen("read_kib", "KiB read from disks", *read),
            per_stolen("system_ms", "system time, ms", "cpu.system_usec", scale=1.0),
            per_stolen("operations", "operations", "progress"),
            per_stolen("deferring_calls", "deferring calls", f"{flush}calls"),
            per_stolen("oom_kills", "OOM kills", "vmstat.oom_kill"),
        ],
        PER_OPERATION: [],
        "instructions and functions": function_rows(names),
        "ratios and rates": [
            Metric(
                "dirty_flushes_per_pageout",
                "dirty TLB flushes / pageout",
                (f"{flush}observed_dirty_flushes",),
                ("vmstat.nr_vmscan_write",),
            ),
            Metric(
                "flushes_per_call",
                "flushes / deferring call",
                (f"{flush}flushes",),
                (f"{flush}calls",),
            ),
            Metric(
                "either_flushes_per_call",
                "all flushes / deferring call",
                (f"{flush}observed_dirty_flushes", f"{flush}observed_clean_flushes"),
                (f"{flush}calls",),
            ),
            Metric(
                "deferred_per_call",
                "deferred folios / deferring call",
                (f"{flush}deferred",),
                (f"{flush}calls",),
            ),
            Metric(
                "scanned_per_stolen",
                "memcg's pages scanned / stolen",
                ("memcg.pgscan",),
                ("memcg.pgsteal",),
            ),
            Metric(
                "scanned_refilled_per_stolen",
                "memcg's scanned+refilled / stolen",
                ("memcg.pgscan", "memcg.pgrefill"),
                ("memcg.pgsteal",),
            ),
            Metric(
                "dirty_pages", "memcg's dirty file pages", ("memcg.file_dirty",), scale=1 / PAGE
            ),
            Metric("stolen_per_second", "pages stolen / s", STOLEN, ("seconds",)),
            Metric("read_kib_per_second", "KiB read from disks / s", read, ("seconds",)),
            Metric("operations_per_second", "operations / s", ("progress",), ("seconds",)),
            Metric("ms_per_operation", "ms / operation", ("seconds",), ("progress",), 1000),
        ],
        "reclaim stalls (direct and memcg)": stall_rows() if "stall_us" in names else [],
        TOTALS: [
            Metric("remote_flushes", "remote TLB flushes", remote),
            Metric("tlb_shootdowns", "TLB shootdowns", ("irq.TLB",)),
            Metric("call_ipis", "function-call IPIs", ("irq.CAL",)),
            Metric("pageouts", "pageouts (nr_vmscan_write)", ("vmstat.nr_vmscan_write",)),
            *(
                Metric(name, name.replace("_", " "), (f"vmstat.{name}",))
                for name in "pgscan_anon pgscan_file pgsteal_anon pgsteal_file".split()
            ),
            Metric("memcg_pgscan", "pgscan of the memcg", ("memcg.pgscan",)),
            Metric("memcg_pgsteal", "pgsteal of the memcg", ("memcg.pgsteal",)),
            Metric("pswpin", "pswpin", ("vmstat.pswpin",)),
            Metric("pswpout", "pswpout", ("vmstat.pswpout",)),
            Metric("refault_anon", "refaults anon", ("vmstat.workingset_refault_anon",)),
            Metric("refault_file", "refaults file", ("vmstat.workingset_refault_file",)),
            Metric("read_kib", "KiB read from disks", read),
            Metric("system_s", "system time, s", ("cpu.system_usec",), scale=1e-6),
            Metric("user_s", "user time, s", ("cpu.user_usec",), scale=1e-6),
            Metric("oom_kill", "OOM kills", ("vmstat.oom_kill",)),
            Metric("operations", "operations", ("progress",)),
            Metric("seconds", "seconds", ("seconds",)),
        ],
        MODULE_COUNTERS: [Metric(name, name.removeprefix("stats."), (name,)) for name in module],
    }
    if "progress" in names:
        found[PER_OPERATION] += per_operation(found[PER_STOLEN])
    return found
