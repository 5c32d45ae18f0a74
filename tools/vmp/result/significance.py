# SPDX-License-Identifier: GPL-2.0
"""The statistics of pairs and boots: tests, the intervals that belong to them, power, and Holm."""

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import accumulate, combinations_with_replacement
from typing import NamedTuple

SIGNIFICANT = 0.05  # a p below it counts as a change
TAIL = 40  # one in so many at each end is left out of an interval: 95 % are inside
POWER = 0.8  # of the runs that would tell a change, where it is said which one could be seen


@lru_cache(4)
def rank_sums(ranks: tuple[int, ...]) -> list[int]:
    """Return for each sum of the positive ranks, from 0 on, how many choices of signs have it."""
    ways = [1]
    for rank in ranks:
        none = [0] * rank
        ways = [n + raised for n, raised in zip(ways + none, none + ways, strict=True)]
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
    ways = rank_sums(tuple(twice_rank[size] for size in sizes))
    twice_mean = sum(twice_rank[size] for size in sizes)
    seen = abs(2 * sum(twice_rank[d] for d in differences if d > 0) - twice_mean)
    extreme = sum(n for total, n in enumerate(ways) if abs(2 * total - twice_mean) >= seen)
    return extreme / sum(ways)


@cache
def cut(pairs: int) -> int:
    """Return the rank, from 1, of the Walsh average that ends an interval; 0 if there is none."""
    below = accumulate(rank_sums(tuple(range(1, pairs + 1))))
    return sum(TAIL * n <= 1 << pairs for n in below)


class Effect(NamedTuple):
    """What B does to a figure, as the logarithm of B's ratio to A, and its p of two sides.

    `low` and `high` are the ends of the interval of 95 %, None where there are too few values for
    one; `least` is the least p that so many values can have.
    """

    shift: float
    low: float | None
    high: float | None
    p: float | None
    least: float = 0.0

    def sign(self) -> int:
        """Return 1 for a rise and -1 for a fall, 0 where the interval does not tell."""
        if self.low is None or self.high is None:
            return 0
        return (self.low > 0) - (self.high < 0)

    def visible(self, tests: int) -> float | None:
        """Return the least change that four runs of five like this one would tell.

        It is as many times the half of the interval as a normal distribution has it, if p is
        corrected for so many tests; None where no p can be small enough.
        """
        if self.low is None or self.high is None or tests * self.least >= SIGNIFICANT:
            return None
        quantile = statistics.NormalDist().inv_cdf
        times = quantile(1 - SIGNIFICANT / 2 / tests) + quantile(POWER)
        return (self.high - self.low) / 2 * times / quantile(1 - 1 / TAIL)


def walsh(values: Iterable[float]) -> list[float]:
    """Return the Walsh averages in their order: the means of all two values, each with itself too.

    Their median is the Hodges-Lehmann estimate of the values' centre.
    """
    return sorted((x + y) / 2 for x, y in combinations_with_replacement(values, 2))


def by_ranks(contrasts: list[float], tested: bool = True) -> Effect:
    """Return what pairs of neighbouring slices tell, one contrast or more.

    The shift is the Hodges-Lehmann estimate. The interval is the one that belongs to the
    signed-rank test, exact without ties and too wide rather than too narrow with them (Hollander
    and Wolfe, Nonparametric Statistical Methods, chapter 3). It takes six pairs. The p takes long
    to count, and is left out of what is not `tested`.
    """
    averages, rank = walsh(contrasts), cut(len(contrasts))
    low, high = (averages[rank - 1], averages[-rank]) if rank else (None, None)
    p = signed_rank(contrasts) if tested else None
    return Effect(statistics.median(averages), low, high, p, least_p(len(contrasts)))


class Line(NamedTuple):
    """The straight line through points by ordinary least squares.

    `centre` is the mean of x, `spread` the sum of the squares around it, and `rest` the sum of
    the squares of what the line leaves of y.
    """

    slope: float
    intercept: float
    centre: float
    spread: float
    rest: float


def least_squares(xs: Sequence[float], ys: Sequence[float]) -> Line | None:
    """Return the line through points, None where all have one x."""
    centre = statistics.fmean(xs)
    spread = sum((x - centre) ** 2 for x in xs)
    if not spread:
        return None
    slope = sum((x - centre) * y for x, y in zip(xs, ys, strict=True)) / spread
    intercept = statistics.fmean(ys) - slope * centre
    rest = sum((y - intercept - slope * x) ** 2 for x, y in zip(xs, ys, strict=True))
    return Line(slope, intercept, centre, spread, rest)


def from_error(value: float, error: float, freedom: int) -> Effect:
    """Return the effect of a value with that standard error, by Student's t."""
    half = t_quantile(freedom) * error
    p = t_p(value / error, freedom) if error else float(not value)
    return Effect(value, value - half, value + half, p)


def by_t(contrasts: Sequence[float], sides: Sequence[int] = ()) -> Effect:
    """Return what contrasts that are independent tell, one or more: those of boots, or of twins.

    `sides` are 1 where A was in the first place of two and -1 where it was in the second: a place
    that is faster by itself is a term of the model, ordinary least squares. A coin chooses the
    sides, so what drifts or lasts is noise; test_simulation.py has what the interval covers. There
    is none with fewer contrasts than terms and one more, or where the sides never changed.
    """
    count, shift, weight = len(contrasts), statistics.fmean(contrasts), 1.0
    freedom = count - (2 if sides else 1)
    if sides:
        line = least_squares(sides, contrasts)
        if not line:
            return Effect(shift, None, None, None, 1.0)
        shift, rest = line.intercept, line.rest
        weight += count * line.centre**2 / line.spread
    else:
        rest = sum((y - shift) ** 2 for y in contrasts)
    if freedom < 1:
        return Effect(shift, None, None, None, 1.0)
    return from_error(shift, math.sqrt(rest / freedom * weight / count), freedom)


def in_percent(contrast: float) -> float:
    """Return the logarithm of a ratio as a change in percent."""
    return 100 * math.expm1(min(contrast, 700.0))


def apart(effects: Sequence[Effect]) -> bool:
    """Tell if the intervals of some boots do not all overlap, as far as they have some."""
    lows, highs = ends(effects)
    return bool(lows) and max(lows) > min(highs)


def ends(effects: Sequence[Effect]) -> tuple[list[float], list[float]]:
    """Return the lower ends of the intervals of some effects, and the upper ones."""
    lows = [effect.low for effect in effects if effect.low is not None]
    return lows, [effect.high for effect in effects if effect.high is not None]


def of_few(effects: Sequence[Effect]) -> Effect:
    """Return what one boot tells, or a few, which are too few for a t test over boots.

    The interval is from the lowest end of theirs to the highest, and p is the largest of theirs:
    so each of them has to show what counts as a change (an intersection-union test). Where they
    differ in its direction, or by more than their intervals, nothing counts. It is 95 % or more
    as long as boots differ by no more than twice the standard error of one: test_simulation.py.
    """
    if len(effects) == 1:
        return effects[0]
    shift = statistics.fmean(effect.shift for effect in effects)
    lows, highs = ends(effects)
    if len(lows) < len(effects):
        return Effect(shift, None, None, None, 1.0)
    least = 1.0 if apart(effects) else max(effect.least for effect in effects)
    agree = len({effect.shift > 0 for effect in effects}) == 1 and least < 1
    p = max(1.0 if effect.p is None else effect.p for effect in effects) if agree else 1.0
    return Effect(shift, min(lows), max(highs), p, least)


def t_p(t: float, freedom: int) -> float:
    """Return the two-sided p of Student's t, with so many degrees of freedom, from 1 on.

    Exact for whole ones: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 4;
    0 where it is below what 1 - x can tell.
    """
    angle, odd, total = math.atan2(abs(t), math.sqrt(freedom)), freedom % 2, 0.0
    term = math.cos(angle) if odd else 1.0
    for step in range(1 + odd, freedom + odd, 2):
        total += term
        term *= math.cos(angle) ** 2 * step / (step + 1)
    inside = math.sin(angle) * total
    return max(0.0, 1 - (2 / math.pi * (angle + inside) if odd else inside))


@cache
def t_quantile(freedom: int) -> float:
    """Return the t whose two-sided p is 0.05, to a millionth."""
    low, high = 0.0, 16.0  # 12.7 with one degree of freedom, 1.96 with many
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if t_p(middle, freedom) > SIGNIFICANT else (low, middle)
    return high


def least_p(pairs: int, tests: int = 1) -> float:
    """Return the least p that so many pairs can have, corrected for so many tests."""
    return max(1, tests) * 2.0 ** (1 - pairs)


def holm(found: Mapping[str, float]) -> dict[str, float]:
    """Return the p values of tests made together, by name, corrected for their number.

    Below 0.05 they name a difference that is none in one of 20 such families of tests at most
    (Holm, A Simple Sequentially Rejective Multiple Test Procedure, 1979).
    """
    corrected, most = {}, 0.0
    for index, (name, p) in enumerate(sorted(found.items(), key=lambda item: item[1])):
        most = max(most, min(1.0, p * (len(found) - index)))
        corrected[name] = most
    return corrected
