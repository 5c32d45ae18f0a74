# SPDX-License-Identifier: GPL-2.0
"""The arithmetic of an A/B run: the order of the slices, the metrics, spread and significance."""

import math
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, combinations_with_replacement
from typing import Any, NamedTuple

from vmp.control.counters import is_level

# What counters.delta() returns, and with recorded stalls stall_us, a list of their durations, and
# stall_count.
Slice = dict[str, Any]

MODULE_COUNTERS = "the module's counters"
STOLEN = ("vmstat.pgsteal_anon", "vmstat.pgsteal_file")
TAIL = 40  # one in so many at each end is left out of an interval: 95 % are inside


@dataclass(frozen=True)
class Metric:
    """A row: `scale` times the sum of `parts`, per the sum of `per` where that is not empty.

    Of a mark (see is_level) the highest is taken instead of the sum.
    """

    key: str
    label: str
    parts: tuple[str, ...]
    per: tuple[str, ...] = ()
    scale: float = 1.0

    def value(self, slices: list[Slice]) -> float | None:
        """Return the value over all `slices`: None without the counters or with nothing below."""
        names = self.parts + self.per
        if not slices or any(name not in piece for piece in slices for name in names):
            return None
        combine = max if is_level(self.parts[0]) else sum
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

    def value(self, slices: list[Slice]) -> float | None:
        """Return the value over all `slices`; None without a stall."""
        pooled = sorted(time for piece in slices for time in piece["stall_us"])
        return nearest_rank(pooled, self.percent) / 1000 if pooled else None


def with_stalls(piece: dict[str, Any]) -> Slice:
    """Return the counters of a slice as the report has it, with its stalls where it has some."""
    counters: Slice = piece["counters"]
    if "stalls" not in piece:
        return counters
    times = piece["stalls"]
    return counters | {"stall_us": times, "stall_count": len(times)}


def per_stolen(key: str, label: str, *parts: str, scale: float = 1000.0) -> Metric:
    """Return the metric `parts` per 1,000 stolen pages, anon and file."""
    return Metric(f"{key}_per_1000", label, parts, STOLEN, scale)


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
    return {
        "per 1,000 stolen pages (anon + file)": [
            Metric(
                "remote_flushes_per_1000_anon",
                "remote TLB flushes / anon only",
                remote,
                ("vmstat.pgsteal_anon",),
                1000,
            ),
            per_stolen("remote_flushes", "remote TLB flushes", *remote),
            per_stolen("tlb_shootdowns", "TLB shootdowns", "irq.TLB"),
            per_stolen("call_ipis", "function-call IPIs", "irq.CAL"),
            per_stolen("dirty_flushes", "dirty TLB flushes", f"{flush}observed_dirty_flushes"),
            per_stolen("pageouts", "pageouts", "vmstat.nr_vmscan_write"),
            per_stolen("pgscan_anon", "pgscan anon", "vmstat.pgscan_anon"),
            per_stolen("pgscan_file", "pgscan file", "vmstat.pgscan_file"),
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
            Metric("stolen_per_second", "pages stolen / s", STOLEN, ("seconds",)),
            Metric("read_kib_per_second", "KiB read from disks / s", read, ("seconds",)),
            Metric("operations_per_second", "operations / s", ("progress",), ("seconds",)),
            Metric("ms_per_operation", "ms / operation", ("seconds",), ("progress",), 1000),
        ],
        "reclaim stalls (direct and memcg)": stall_rows() if "stall_us" in names else [],
        "totals": [
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


def slice_order(count: int) -> str:
    """Return A, B, B, A repeated to `count` slices: a steady drift falls on both alike."""
    return ("ABBA" * count)[:count]


def known(values: list[float | None]) -> list[float]:
    """Return the values that are there."""
    return [value for value in values if value is not None]


def paired(a: list[float | None], b: list[float | None]) -> list[tuple[float, float]]:
    """Return the pairs of which both values are there."""
    return [(x, y) for x, y in zip(a, b, strict=True) if x is not None and y is not None]


def half_range(values: list[float]) -> float | None:
    """Return half the range of `values`, relative to their mean; None with mean 0."""
    mean = statistics.fmean(values) if values else 0
    return (max(values) - min(values)) / 2 / abs(mean) if mean else None


def rank_sums(ranks: Iterable[int]) -> Counter[int]:
    """Return for each sum of the positive ranks how many choices of signs have it."""
    ways = Counter({0: 1})
    for rank in ranks:
        raised = Counter({total + rank: n for total, n in ways.items()})
        ways += raised
    return ways


def signed_rank(differences: list[float]) -> float | None:
    """Return the two-sided p of the exact Wilcoxon signed-rank test; None with no difference.

    Zeros are left out, ties share their mean rank, and the distribution of the rank sum over
    every choice of signs is counted, not approximated.
    """
    sizes = sorted(abs(d) for d in differences if d)
    if not sizes:
        return None
    counts = Counter(sizes)
    twice_rank = {size: 2 * sizes.index(size) + n + 1 for size, n in counts.items()}  # whole
    ways = rank_sums(twice_rank[size] for size in sizes)
    twice_mean = sum(twice_rank[size] for size in sizes)
    seen = abs(2 * sum(twice_rank[d] for d in differences if d > 0) - twice_mean)
    extreme = sum(n for total, n in ways.items() if abs(2 * total - twice_mean) >= seen)
    return extreme / ways.total()


@cache
def cut(pairs: int) -> int:
    """Return the rank, from 1, of the Walsh average that ends an interval; 0 if there is none."""
    ways = rank_sums(range(1, pairs + 1))
    below = accumulate(ways[total] for total in sorted(ways))
    return sum(TAIL * n <= 1 << pairs for n in below)


class Effect(NamedTuple):
    """What B does to a metric, all in its unit: A's centre and B's, the shift, its interval.

    The shift is -a at least where nothing is below 0, however skewed A is: with its mean for `a`
    it could be less. `low` and `high` are None for fewer than six pairs, which have no interval of
    95 %.
    """

    a: float
    b: float
    shift: float
    low: float | None
    high: float | None

    def sign(self) -> int:
        """Return 1 for a rise and -1 for a fall, 0 where the interval does not tell."""
        if self.low is None or self.high is None:
            return 0
        return (self.low > 0) - (self.high < 0)


def walsh(values: Iterable[float]) -> list[float]:
    """Return the Walsh averages in their order: the means of all two values, each with itself too.

    Their median is the Hodges-Lehmann estimate of the values' centre.
    """
    return sorted((x + y) / 2 for x, y in combinations_with_replacement(values, 2))


def effect(pairs: list[tuple[float, float]]) -> Effect:
    """Return what B does, from the values of one or more neighbouring slices of A and of B.

    Centres and shift are Hodges-Lehmann estimates. The interval is the one that belongs to the
    signed-rank test, exact without ties and too wide rather than too narrow with them (Hollander
    and Wolfe, Nonparametric Statistical Methods, chapter 3).
    """
    averages = walsh(b - a for a, b in pairs)
    rank = cut(len(pairs))
    low, high = (averages[rank - 1], averages[-rank]) if rank else (None, None)
    a, b = (statistics.median(walsh(side)) for side in zip(*pairs, strict=True))
    return Effect(a, b, statistics.median(averages), low, high)


def difference(before: float | None, after: float | None) -> tuple[float | None, float | None]:
    """Return the change and the change in percent of `before`; None where undefined."""
    if before is None or after is None:
        return None, None
    return after - before, (100 * (after - before) / before if before else None)


def compare(metric: Metric | StallTime, a: list[Slice], b: list[Slice]) -> dict[str, float | None]:
    """Return one row: the values over A's and B's slices, their difference, spread and p.

    The n-th slices of A and of B are neighbours, and so in the same phase of the workload: the
    test compares them pair by pair.
    """
    before, after = metric.value(a), metric.value(b)
    change, percent = difference(before, after)
    each_a = [metric.value([piece]) for piece in a]
    each_b = [metric.value([piece]) for piece in b]
    return {
        "before": before,
        "after": after,
        "delta": change,
        "percent": percent,
        "spread_a": half_range(known(each_a)),
        "spread_b": half_range(known(each_b)),
        "p": signed_rank([y - x for x, y in paired(each_a, each_b)]),
    }


def summarize(slices: list[tuple[str, Slice]]) -> dict[str, list[dict[str, Any]]]:
    """Return the compared rows by section; `slices` are pairs of 'A' or 'B' and the deltas."""
    a = [piece for side, piece in slices if side == "A"]
    b = [piece for side, piece in slices if side == "B"]
    names = {name for _, piece in slices for name in piece}
    return {
        title: [{"key": m.key, "label": m.label, **compare(m, a, b)} for m in metrics]
        for title, metrics in sections(names).items()
    }


def effects(slices: list[tuple[str, Slice]]) -> dict[str, Effect]:
    """Return the effect on each metric that has a pair, by its key; `slices` as in summarize()."""
    names = {name for _, piece in slices for name in piece}
    found = {}
    for metric in (metric for metrics in sections(names).values() for metric in metrics):
        a, b = ([metric.value([piece]) for side, piece in slices if side == own] for own in "AB")
        if pairs := paired(a, b):
            found[metric.key] = effect(pairs)
    return found
