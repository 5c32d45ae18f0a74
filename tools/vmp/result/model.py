# SPDX-License-Identifier: GPL-2.0
"""What an A/B run has found: the result, its slices, and its rows, each judged once, here."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from vmp.result.metrics import (
    PAGE,
    PRIMARY,
    PRIMARY_LABELS,
    STOLEN,
    Metric,
    StallTime,
    Values,
    sections,
)
from vmp.result.significance import (
    SIGNIFICANT,
    Effect,
    contrasts,
    effect,
    holm,
    least_p,
    paired,
    signed_rank,
)

ENOUGH = 6  # pairs, for an interval


@dataclass(frozen=True)
class Slice:
    """What one slice has counted, under side 'A' or 'B'; the stalls are in microseconds.

    Of twins, `place` tells in which of the two cgroups, 1 or 2; two slices that follow each other
    are then of the same time. 0: there is one cgroup. `void`: it does not count, nor does its
    neighbour.
    """

    side: str
    counters: dict[str, float]
    stalls: tuple[float, ...] | None = None  # None: not recorded
    events_lost: int = 0
    place: int = 0
    void: bool = False

    def values(self) -> Values:
        """Return what the rows are made of."""
        if self.stalls is None:
            return self.counters
        times = list(self.stalls)
        found: Values = {"stall_us": times, "stall_count": len(times), "stall_total_us": sum(times)}
        passes = self.counters.get("stats.scan.passes")
        return self.counters | found | ({"stall_passes": passes} if passes else {})


@dataclass(frozen=True)
class Row:
    """One figure of a run: its value over all slices of A and of B, and what B does to it.

    `effect` is over `pairs` neighbouring slices, None without any. Only a primary figure, one that
    was asked for before the run, is judged: p and p corrected for the number of these. Any other is
    exploratory, and has its interval alone.
    """

    key: str
    label: str
    before: float | None
    after: float | None
    effect: Effect | None = None
    pairs: int = 0
    primary: bool = False
    tests: int = 1  # so many primary figures are judged together
    p: float | None = None
    p_corrected: float | None = None

    @property
    def delta(self) -> float | None:
        """Return the change of the value over all slices."""
        return difference(self.before, self.after)[0]

    @property
    def percent(self) -> float | None:
        """Return the change in percent of A's value; None where that is 0."""
        return difference(self.before, self.after)[1]

    @property
    def change(self) -> float:
        """Return the change in percent, without end where A has nothing and B something."""
        return self.percent if self.percent is not None else math.inf

    @property
    def shift(self) -> float | None:
        """Return what B does to a typical slice, in percent of A's."""
        return self.effect.percent(self.effect.shift) if self.effect else None

    @property
    def ends(self) -> tuple[float, float] | None:
        """Return the ends of the interval in percent of A's typical slice.

        Of what is never below 0 no more than all can be gone.
        """
        low, high = (self.effect.percent(end) if self.effect else None for end in self.limits)
        if low is None or high is None:
            return None
        return (max(low, -100.0) if (self.before or 0) > 0 <= (self.after or 0) else low), high

    @property
    def limits(self) -> tuple[float | None, float | None]:
        """Return the ends of the interval in the figure's unit."""
        return (self.effect.low, self.effect.high) if self.effect else (None, None)

    def no_interval(self) -> str:
        """Say why there is no interval in percent; '' if there is one."""
        if self.ends:
            return ""
        if self.pairs < ENOUGH:
            return f"no interval: {self.pairs} of {ENOUGH} pairs"
        return "no percentage: A has nothing"

    def direction(self) -> int:
        """Return 1 if the interval is above 0, -1 if it is below, 0 if 0 is in it."""
        return self.effect.sign() if self.effect else 0

    def sign(self) -> int:
        """Return 1 for a rise and -1 for a fall, 0 where that is not sure.

        Of a primary figure the interval has to leave 0 out and p, corrected, has to be small: so
        neither contradicts the other. Of any other only the interval tells.
        """
        p = 1.0 if self.p_corrected is None else self.p_corrected
        return self.direction() if not self.primary or p < SIGNIFICANT else 0

    def undecidable(self) -> bool:
        """Tell if so few pairs can't make p small, whatever they are."""
        return self.pairs < ENOUGH or least_p(self.pairs, self.tests) >= SIGNIFICANT

    def marked(self) -> bool:
        """Tell if this is a primary figure that changed."""
        return self.primary and self.sign() != 0

    def as_json(self) -> dict[str, Any]:
        """Return the row for a file."""
        names = "key label before after delta percent p primary p_corrected".split()
        ends = dict(zip(("low", "high"), self.limits, strict=True))
        ends |= dict(zip(("low_percent", "high_percent"), self.ends or (None, None), strict=True))
        return {name: getattr(self, name) for name in names} | ends


@dataclass(frozen=True)
class Settings:
    """What was compared, as ab was told."""

    a: str
    b: str
    both: str
    memory_bytes: int | None
    slice_seconds: float
    title: str = ""
    aa: int = 0  # so many runs of one setting twice; 0: A and B differ
    twins: bool = False  # A and B at the same time, each in a cgroup of its own
    seed: int | None = None  # of the coin that chose the order; None: none was thrown
    primary: tuple[str, ...] = ()
    warmup_seconds: float = 0
    settle_seconds: float = 0
    workload: tuple[str, ...] = ()

    def place(self) -> str:
        """Return the limit of the workload's cgroup in words."""
        if not self.memory_bytes:
            return "without a limit"
        return f"in {self.memory_bytes / (1 << 20):g} MiB"


@dataclass(frozen=True)
class Result:
    """An A/B run: its settings, where it was done, and its slices.

    `ended` says why not all slices are there; it is '' of a complete run.
    """

    settings: Settings
    environment: dict[str, Any]
    slices: tuple[Slice, ...] = ()
    lacks: tuple[str, ...] = ()
    ended: str = ""

    def side(self, side: str) -> list[Values]:
        """Return the slices of a side; a last one that has no neighbour is left out."""
        return [piece.values() for piece in self.whole if piece.side == side]

    @cached_property
    def whole(self) -> list[Slice]:
        """Return the slices in pairs of neighbours, without pairs in which one is void."""
        pairs = zip(self.slices[::2], self.slices[1::2], strict=False)
        return [piece for pair in pairs for piece in pair if not any(each.void for each in pair)]

    @property
    def pairs(self) -> int:
        """Return the number of pairs of neighbouring slices."""
        return len(self.whole) // 2

    @cached_property
    def rows(self) -> dict[str, list[Row]]:
        """Return the rows by section."""
        return judge(self.side("A"), self.side("B"), self.settings.primary)

    def row(self, key: str) -> Row:
        """Return one row; one that has no values if the run has none of that key."""
        every = (row for rows in self.rows.values() for row in rows)
        return next((row for row in every if row.key == key), Row(key, key, None, None))

    @property
    def primary(self) -> list[Row]:
        """Return the primary figures."""
        return self.rows[PRIMARY]

    def undecidable(self) -> str:
        """Say that so few pairs can't decide; '' if they can."""
        count = len(self.primary)
        if not Row("", "", None, None, pairs=self.pairs, tests=count).undecidable():
            return ""
        if self.pairs < ENOUGH:
            return (
                f"{self.pairs} pairs are too few to tell a difference from none, or for an "
                f"interval: it takes {2 * ENOUGH} slices."
            )
        return f"{self.pairs} pairs are too few for {count} primary figures: take more slices."

    def turnover(self) -> dict[str, float | None]:
        """Return for each side in how many seconds reclaim takes what the cgroup holds."""
        found: dict[str, float | None] = {}
        for side in "AB":
            pieces, names = self.side(side), ("memcg.pgsteal", "memcg.current", "seconds")
            stolen, held, seconds = (sum(p.get(name, 0) for p in pieces) for name in names)
            pages = held / len(pieces) / PAGE if pieces else 0
            found[side] = pages * seconds / stolen if stolen and held else None
        return found

    def by_chance(self) -> list[list[str]]:
        """Return the primary figures that are marked in each of the runs of one setting."""
        each = len(self.slices) // self.settings.aa
        parts = (self.slices[start : start + each] for start in range(0, len(self.slices), each))
        runs = (replace(self, slices=part) for part in parts)
        return [[row.key for row in run.primary if row.marked()] for run in runs]


@dataclass(frozen=True)
class Results:
    """The runs of an experiment, and the commands that they were made with."""

    experiment: str
    command: str
    here: bool
    vm: str
    commands: dict[str, str]
    runs: dict[str, Result] = field(default_factory=dict)

    def kernel(self) -> str:
        """Return the release of the kernel that it was done on."""
        release: str = next(iter(self.runs.values())).environment["kernel"]
        return release

    def heading(self) -> dict[str, Any]:
        """Return all but the runs, for a file."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "runs"}


def slice_order(count: int) -> str:
    """Return A, B, B, A repeated to `count` slices: a steady drift falls on both alike."""
    return ("ABBA" * count)[:count]


def stolen(counters: Values) -> float:
    """Return the pages that reclaim took in a slice."""
    return float(sum(counters.get(name, 0) for name in STOLEN))


def difference(before: float | None, after: float | None) -> tuple[float | None, float | None]:
    """Return the change and the change in percent of `before`; None where undefined."""
    if before is None or after is None:
        return None, None
    return after - before, (100 * (after - before) / before if before else None)


def compare(metric: Metric | StallTime, a: list[Values], b: list[Values]) -> Row:
    """Return the row of one figure.

    The n-th slices of A and of B are neighbours, and so in the same phase of the workload: they
    are compared pair by pair.
    """
    pairs = pairs_of(metric, a, b)
    return Row(
        metric.key,
        metric.label,
        metric.value(a),
        metric.value(b),
        effect(pairs) if pairs else None,
        len(pairs),
    )


def pairs_of(
    metric: Metric | StallTime, a: list[Values], b: list[Values]
) -> list[tuple[float, float]]:
    """Return a figure's values in neighbouring slices that both have it."""
    each_a, each_b = ([metric.value([piece]) for piece in side] for side in (a, b))
    return paired(each_a, each_b)


def asked(
    primary: Sequence[str], pieces: Sequence[Values]
) -> dict[str, tuple[Metric | StallTime, str]]:
    """Return the primary figures that some slices can have, and their labels, by key."""
    every = sections({name for piece in pieces for name in piece})
    found = {m.key: (m, PRIMARY_LABELS.get(title, "{}").format(m.label))
             for title, metrics in every.items() for m in metrics}  # fmt: skip
    return {key: found[key] for key in dict.fromkeys(primary) if key in found}


def judge(a: list[Values], b: list[Values], primary: Sequence[str]) -> dict[str, list[Row]]:
    """Return the rows by section, of the slices of A and of B; those that are `primary` first.

    Only these are tested, and their p is corrected for their number.
    """
    chosen = asked(primary, [*a, *b])
    ps = {key: signed_rank(contrasts(pairs_of(m, a, b))) for key, (m, _) in chosen.items()}
    corrected = holm({key: p for key, p in ps.items() if p is not None})
    rows = [
        replace(
            compare(metric, a, b),
            label=label,
            primary=True,
            tests=len(chosen),
            p=ps[key],
            p_corrected=corrected.get(key),
        )
        for key, (metric, label) in chosen.items()
    ]
    every = sections({name for piece in (*a, *b) for name in piece})
    rest = {title: [compare(m, a, b) for m in metrics if m.key not in chosen]
            for title, metrics in every.items()}  # fmt: skip
    return {PRIMARY: rows, **rest}
