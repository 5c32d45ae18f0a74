# SPDX-License-Identifier: GPL-2.0
"""The statistics of pairs: the signed-rank test, the interval that belongs to it, and Holm."""

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import accumulate, combinations_with_replacement
from typing import NamedTuple

SIGNIFICANT = 0.05  # a p below it counts as a change
TAIL = 40  # one in so many at each end is left out of an interval: 95 % are inside


def paired(a: list[float | None], b: list[float | None]) -> list[tuple[float, float]]:
    """Return the pairs of which both values are there."""
    return [(x, y) for x, y in zip(a, b, strict=True) if x is not None and y is not None]


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

    The shift is what becomes of A's centre. It is -a at least where nothing is below 0, however
    skewed A is: with its mean for `a` it could be less. `low` and `high` are None for fewer than
    six pairs, which have no interval of 95 %.
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

    def percent(self, change: float | None) -> float | None:
        """Return a change of the metric in percent of A's centre; None without one."""
        return None if change is None or not self.a else 100 * change / abs(self.a)


def walsh(values: Iterable[float]) -> list[float]:
    """Return the Walsh averages in their order: the means of all two values, each with itself too.

    Their median is the Hodges-Lehmann estimate of the values' centre.
    """
    return sorted((x + y) / 2 for x, y in combinations_with_replacement(values, 2))


def are_ratios(pairs: list[tuple[float, float]]) -> bool:
    """Tell if pairs can be compared by B's ratio to A: if nothing in them is 0 or below.

    A workload's phases change A and B of a pair by the same factor, and so not their ratio.
    """
    return all(value > 0 for pair in pairs for value in pair)


def contrasts(pairs: list[tuple[float, float]]) -> list[float]:
    """Return how B differs from A in each pair: the logarithm of the ratio, or the difference."""
    if are_ratios(pairs):
        return [math.log(b / a) for a, b in pairs]
    return [b - a for a, b in pairs]


def effect(pairs: list[tuple[float, float]]) -> Effect:
    """Return what B does, from the values of one or more neighbouring slices of A and of B.

    Centres and shift are Hodges-Lehmann estimates. The interval is the one that belongs to the
    signed-rank test of contrasts(), exact without ties and too wide rather than too narrow with
    them (Hollander and Wolfe, Nonparametric Statistical Methods, chapter 3).
    """
    averages = walsh(contrasts(pairs))
    a, b = (statistics.median(walsh(side)) for side in zip(*pairs, strict=True))
    if are_ratios(pairs):
        averages = [a * math.expm1(average) for average in averages]
    rank = cut(len(pairs))
    low, high = (averages[rank - 1], averages[-rank]) if rank else (None, None)
    return Effect(a, b, statistics.median(averages), low, high)


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
