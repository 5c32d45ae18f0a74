# SPDX-License-Identifier: GPL-2.0
"""What an A/B run has found: the result, its slices, and its rows, each judged once, here."""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import islice
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
    apart,
    by_ranks,
    by_t,
    holm,
    in_percent,
    least_p,
    of_few,
)

SLICES = 60  # of a run, if nothing else is asked for
ENOUGH = 6  # pairs or periods, to tell anything
CHOICES = 200  # of runs of one setting that stand for boots: tell a share of 5 % to 1.5 %
BOOTS = 5  # enough of them for an interval over boots; with fewer it is mostly of each one's pairs


@dataclass(frozen=True)
class Slice:
    """What one slice has counted, under side 'A' or 'B'; the stalls are in microseconds.

    Of twins, `place` tells in which of the two cgroups, 1 or 2; two slices that follow each other
    are then of the same time. 0: there is one cgroup. `void`: it does not count, nor does its
    neighbour: the guard tripped, or a counter fell.
    """

    side: str
    counters: dict[str, float]
    stalls: tuple[float, ...] | None = None  # None: not recorded
    events_lost: int = 0
    place: int = 0
    void: bool = False

    def fallen(self) -> list[str]:
        """Return the counters that fell, as where a service was started anew: they tell nothing."""
        return [name for name, value in self.counters.items() if value < 0]

    def values(self) -> Values:
        """Return what the rows are made of."""
        if self.stalls is None:
            return self.counters
        times = list(self.stalls)
        found: Values = {"stall_us": times, "stall_count": len(times), "stall_total_us": sum(times)}
        passes = self.counters.get("stats.scan.passes")
        # A slice that counted them has stall_total_us, with its part of waits across its edges.
        return found | self.counters | ({"stall_passes": passes} if passes else {})


@dataclass(frozen=True)
class Row:
    """One figure of a run: its value over all slices of A and of B, and what B does to it.

    `effect` is over `pairs`: neighbouring slices or periods of twins, in each of a few boots, or
    boots; None without any.
    Only a primary figure, one that was asked for before the run, is judged: by p corrected for the
    number of these. Any other is exploratory, and has its interval alone.
    """

    key: str
    label: str
    before: float | None
    after: float | None
    effect: Effect | None = None
    pairs: int = 0
    primary: bool = False
    tests: int = 1  # so many primary figures are judged together
    p_corrected: float | None = None
    boots: tuple[float, ...] = ()  # the change in each, in percent, if there are several
    differ: bool = False  # boots, so few that each is judged by its pairs, do by their intervals

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
    def p(self) -> float | None:
        """Return p, not corrected; None where nothing differs, and of what was not asked for."""
        return self.effect.p if self.effect and self.primary else None

    @property
    def shift(self) -> float | None:
        """Return what B does to a typical slice, in percent of A's."""
        return in_percent(self.effect.shift) if self.effect else None

    @property
    def ends(self) -> tuple[float, float] | None:
        """Return the ends of the interval, in percent of A; where B has nothing all may be gone."""
        if not self.effect or self.effect.low is None or self.effect.high is None:
            return None
        gone = self.before and self.after == 0
        return -100.0 if gone else in_percent(self.effect.low), in_percent(self.effect.high)

    @property
    def visible(self) -> tuple[float, float] | None:
        """Return the smallest fall and rise, in percent, that four runs of five would have told.

        None where none can be, and where the interval has no width, so that it does not tell.
        """
        least = self.effect.visible(self.tests) if self.effect else None
        return (in_percent(-least), in_percent(least)) if least else None

    def no_interval(self) -> str:
        """Say why there is no interval; '' if there is one."""
        return "" if self.ends else f"no interval: {self.pairs} of {ENOUGH} pairs"

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
        return not self.effect or self.effect.visible(self.tests) is None

    def marked(self) -> bool:
        """Tell if this is a primary figure that changed."""
        return self.primary and self.sign() != 0

    def as_json(self) -> dict[str, Any]:
        """Return the row for a file."""
        names = "key label before after delta percent p primary p_corrected".split()
        found = {name: getattr(self, name) for name in names}
        pairs = {"percent": self.ends, "visible_percent": self.visible}
        for name, ends in pairs.items():
            found["low_" + name], found["high_" + name] = ends or (None, None)
        return found


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
    slices: int = 0  # of each run, as planned; 0: a file of before does not tell
    twins: bool = False  # A and B at the same time, each in a cgroup of its own
    turnovers: float = 0  # of twins: how often contents are replaced in a slice, if time is enough
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

    def kernel(self) -> str:
        """Return the kernel as --kernel has it: with its architecture, unless that is x86-64."""
        release: str = self.environment["kernel"]
        return f"{release}:arm64" if self.environment.get("machine") == "aarch64" else release

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

    def boot(self) -> "Boot":
        """Return both sides of the run."""
        places = [3 - 2 * piece.place for piece in self.whole if piece.side == "A"]
        twins = self.settings.twins
        return Boot(self.side("A"), self.side("B"), tuple(places) if twins else ())

    @cached_property
    def rows(self) -> dict[str, list[Row]]:
        """Return the rows by section."""
        return judge([self.boot()], self.settings.primary)

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
        needed = slices_needed(len(self.primary), self.settings.twins)
        if len(self.whole) >= needed:
            return ""
        return (
            f"{self.pairs} pairs are too few to tell a difference from none in "
            f"{max(1, len(self.primary))} primary figures: it takes {needed} slices."
        )

    def turnover(self) -> dict[str, float | None]:
        """Return for each side in how many seconds reclaim takes what the cgroup holds."""
        found: dict[str, float | None] = {}
        for side in "AB":
            pieces, names = self.side(side), ("memcg.pgsteal", "memcg.current", "seconds")
            stolen, held, seconds = (sum(p.get(name, 0) for p in pieces) for name in names)
            pages = held / len(pieces) / PAGE if pieces else 0
            found[side] = pages * seconds / stolen if stolen and held else None
        return found

    def each_run(self) -> int:
        """Return of how many slices each of the runs of one setting is; 0 if that is not known."""
        told = 0 if self.ended else len(self.slices) // max(1, self.settings.aa)
        return self.settings.slices or told

    def by_chance(self, boots: int = 1) -> list[list[str]]:
        """Return the primary figures that are marked in each whole run of one setting.

        Where runs stand for `boots`, so many are judged together, chosen by coin time and again.
        """
        each = self.each_run()
        count = len(self.slices) // each if each else 0
        parts = (self.slices[number * each : (number + 1) * each] for number in range(count))
        runs = [replace(self, slices=part).boot() for part in parts]
        coin = random.Random(self.settings.seed or 0)
        families = [[run] for run in runs]
        if boots > 1:
            families = [coin.sample(runs, boots) for _ in range(CHOICES) if boots <= count]
        rows = (judge_primary(family, self.settings.primary) for family in families)
        return [[row.key for row in found.values() if row.marked()] for found in rows]


@dataclass(frozen=True)
class Results:
    """The runs of an experiment, each in one or more boots, and the commands of these.

    `superseded` says why a page shows other results in their place; '' where it does not.
    """

    experiment: str
    command: str
    here: bool
    vm: str
    commands: dict[str, str]
    runs: dict[str, tuple[Result, ...]] = field(default_factory=dict)
    superseded: str = ""

    def every(self) -> list[Result]:
        """Return the runs of all boots."""
        return [result for boots in self.runs.values() for result in boots]

    def kernel(self) -> str:
        """Return the kernel that it was done on, as --kernel has it."""
        return self.every()[0].kernel()

    def boots(self) -> int:
        """Return the number of boots that have all runs."""
        return min(map(len, self.runs.values()))

    def heading(self) -> dict[str, Any]:
        """Return all but the runs, for a file."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "runs"}


def turns(coin: random.Random) -> Iterator[str]:
    """Give sides without end, in pairs: A B or B A, by coin.

    Whatever a load does, drift, last or repeat itself, it does to either side by the coin alone. So
    the signs of the contrasts of pairs are chance where B does nothing, as the tests have it. With
    A B B A or B A A B by coin two pairs would hang together: a load with a period of four slices
    then had one false mark in ten.
    """
    while True:
        yield from coin.choice(("AB", "BA"))


def slice_order(count: int, seed: int, runs: int = 1) -> str:
    """Return the sides of so many slices in each of the `runs`; the same ones for the same seed."""
    coin = random.Random(seed)
    return "".join("".join(islice(turns(coin), count)) for _ in range(runs))


def slices_needed(tests: int, twins: bool = False) -> int:
    """Return how many slices it takes to tell a change of one of so many primary figures."""
    pairs = ENOUGH
    while not twins and least_p(pairs, tests) >= SIGNIFICANT:
        pairs += 1
    return 2 * pairs


def stolen(counters: Values) -> float:
    """Return the pages that reclaim took in a slice."""
    return float(sum(counters.get(name, 0) for name in STOLEN))


def difference(before: float | None, after: float | None) -> tuple[float | None, float | None]:
    """Return the change and the change in percent of `before`; None where undefined."""
    if before is None or after is None:
        return None, None
    return after - before, (100 * (after - before) / before if before else None)


@dataclass(frozen=True)
class Boot:
    """The slices of A and of B of one run.

    The n-th of both are neighbours, and so in the same phase of the workload. Of twins they are of
    the same time, and `places` has 1 where A was in the first of the two cgroups, else -1. They
    are none where A is another run.
    """

    a: list[Values]
    b: list[Values]
    places: tuple[int, ...] = ()
    neighbours: bool = True

    def contrasts(self, metric: Metric | StallTime) -> dict[int, float]:
        """Return the logarithm of B's ratio to A in each pair that has the figure, by number."""
        each = (contrast(metric, [a], [b]) for a, b in zip(self.a, self.b, strict=True))
        return {number: found for number, found in enumerate(each) if found is not None}

    def effect(self, metric: Metric | StallTime, tested: bool) -> tuple[Effect | None, int]:
        """Return what B does in this boot, None without a pair that has the figure, and pairs."""
        found = self.contrasts(metric)
        values = [*found.values()]
        if not found:
            return None, 0
        if not self.places:
            return by_ranks(values, tested), len(found)
        return by_t(values, [self.places[number] for number in found]), len(found)

    def whole(self, metric: Metric | StallTime) -> float | None:
        """Return the one contrast that a boot counts as; None if it has none.

        Of twins it is the effect, which does without what the place does.
        """
        if not self.places:
            return contrast(metric, self.a, self.b)
        effect, _ = self.effect(metric, tested=False)
        return effect.shift if effect else None


def contrast(metric: Metric | StallTime, a: list[Values], b: list[Values]) -> float | None:
    """Return the logarithm of B's ratio to A, of some slices; None where one has no value."""
    before, after = metric.value(a), metric.value(b)
    if before is None or after is None:
        return None
    half = metric.half(a, b)
    return math.log((after + half) / (before + half))


def by_pairs(metric: Metric | StallTime, boots: Sequence[Boot]) -> bool:
    """Tell if several boots are judged by their own pairs: a few are, where a slice is a unit.

    It is none of a rare event, as OOM kills are: there half a count is too much for a slice.
    """
    pieces = (piece for boot in boots for piece in (*boot.a, *boot.b))
    return (
        len(boots) < BOOTS
        and all(boot.neighbours for boot in boots)
        and all(metric.value([piece]) != 0 for piece in pieces)
    )


def compare(metric: Metric | StallTime, boots: Sequence[Boot], tested: bool = True) -> Row:
    """Return the row of one figure: a few boots are judged by pairs, more by a value of each."""
    a, b = ([piece for boot in boots for piece in getattr(boot, side)] for side in "ab")
    row = Row(metric.key, metric.label, metric.value(a), metric.value(b))
    if len(boots) > 1:
        each = [found for boot in boots if (found := boot.whole(metric)) is not None]
        row = replace(row, boots=tuple(map(in_percent, each)))
        if not by_pairs(metric, boots):
            return replace(row, effect=by_t(each) if each else None, pairs=len(each))
    judged = [boot.effect(metric, tested) for boot in boots]
    effects = [effect for effect, _ in judged if effect]
    if not effects:
        return row
    pairs = min(pairs for effect, pairs in judged if effect)
    return replace(row, effect=of_few(effects), pairs=pairs, differ=apart(effects))


def asked(
    primary: Sequence[str], pieces: Sequence[Values]
) -> dict[str, tuple[Metric | StallTime, str]]:
    """Return the primary figures that some slices can have, and their labels, by key."""
    every = sections({name for piece in pieces for name in piece})
    found = {m.key: (m, PRIMARY_LABELS.get(title, "{}").format(m.label))
             for title, metrics in every.items() for m in metrics}  # fmt: skip
    return {key: found[key] for key in dict.fromkeys(primary) if key in found}


def judge_primary(boots: Sequence[Boot], primary: Sequence[str]) -> dict[str, Row]:
    """Return the rows of the primary figures that a run in one boot or in several has, by key.

    Their p is corrected for their number, which one without any difference counts in, too.
    """
    chosen = asked(primary, [piece for boot in boots for piece in (*boot.a, *boot.b)])
    found = {key: replace(compare(metric, boots), label=label, primary=True, tests=len(chosen))
             for key, (metric, label) in chosen.items()}  # fmt: skip
    corrected = holm({key: 1.0 if row.p is None else row.p for key, row in found.items()})
    return {key: row if row.p is None else replace(row, p_corrected=corrected[key])
            for key, row in found.items()}  # fmt: skip


def judge(boots: Sequence[Boot], primary: Sequence[str]) -> dict[str, list[Row]]:
    """Return the rows by section, of a run in one boot or in several; those `primary` first.

    Only these are tested.
    """
    pieces = [piece for boot in boots for piece in (*boot.a, *boot.b)]
    found = judge_primary(boots, primary)
    every = sections({name for piece in pieces for name in piece})
    rest = {title: [compare(m, boots, tested=False) for m in metrics if m.key not in found]
            for title, metrics in every.items()}  # fmt: skip
    return {PRIMARY: [*found.values()], **rest}
