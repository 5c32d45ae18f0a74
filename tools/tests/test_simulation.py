# SPDX-License-Identifier: GPL-2.0
"""The method, tried on loads whose effect is known: what intervals cover, and what chance marks.

Values are logarithms. Each figure is of so many runs that a rate of 5 % is known to a percent or
so; the seeds are fixed.
"""

import itertools
import math
import operator
import random
import statistics
from collections.abc import Callable, Iterator

import pytest
from vmp.result.metrics import Metric
from vmp.result.model import Boot, compare, slice_order
from vmp.result.significance import Effect, apart, by_ranks, by_t, of_few

RUNS = 3000
PAIRS = 12
EFFECT = -0.2
SPREAD = 0.1  # of a slice
Load = Callable[[random.Random], Iterator[float]]


def noise(source: random.Random) -> Iterator[float]:
    """Give what a steady load adds to its slices."""
    while True:
        yield source.gauss(0, SPREAD)


def drift(source: random.Random) -> Iterator[float]:
    """Give noise on a slope, three times as much from the first slice to the last."""
    for number, value in enumerate(noise(source)):
        yield value + 3 * SPREAD * number / (2 * PAIRS)


def lasting(source: random.Random) -> Iterator[float]:
    """Give noise of which eight tenths last until the next slice."""
    state = source.gauss(0, SPREAD)
    while True:
        yield state
        state = 0.8 * state + 0.6 * source.gauss(0, SPREAD)


def periodic(source: random.Random) -> Iterator[float]:
    """Give noise on a load that repeats itself every four slices, in a phase of its own."""
    phase = source.random() * 2 * math.pi
    for number, value in enumerate(noise(source)):
        yield value + 2 * SPREAD * math.sin(math.pi / 2 * number + phase)


def heavy(source: random.Random) -> Iterator[float]:
    """Give noise with heavy tails: Student's t with two degrees of freedom."""
    while True:
        yield SPREAD * source.gauss(0, 1) / math.sqrt(source.expovariate(1))


LOADS: list[Load] = [noise, drift, lasting, periodic, heavy]


def of_slices(load: Load, source: random.Random, effect: float, pairs: int = PAIRS) -> Effect:
    """Return what a run of slices tells of a load."""
    order = slice_order(2 * pairs, source.randrange(1 << 32))
    values = [(side, value + effect * (side == "B"))
              for side, value in zip(order, load(source), strict=False)]  # fmt: skip
    a, b = ([value for each, value in values if each == side] for side in "AB")
    return by_ranks([y - x for x, y in zip(a, b, strict=True)])


def of_twins(load: Load, source: random.Random, effect: float) -> Effect:
    """Return what a run of twins tells: the load moves both, and the second place counts more."""
    order = slice_order(2 * PAIRS, source.randrange(1 << 32))
    both, first, second = load(source), load(source), noise(source)
    sides, contrasts = [], []
    for number in range(PAIRS):
        side = 1 if order[2 * number] == "A" else -1
        common = next(both)
        one, two = common + next(first), common + next(second) + 0.3
        a, b = (one, two) if side > 0 else (two, one)
        sides.append(side)
        contrasts.append(b + effect - a)
    return by_t(contrasts, sides)


def of_boots(load: Load, source: random.Random, effect: float) -> Effect:
    """Return what five boots of six pairs tell, which differ by more than their slices do."""
    found = []
    for own in (source.gauss(effect, 0.15) for _ in range(5)):
        values = [*itertools.islice(load(source), 12)]
        signs = [1 if side == "B" else -1 for side in slice_order(12, source.randrange(1 << 32))]
        found.append(own + sum(map(operator.mul, signs, values)) / 6)
    return by_t(found)


def of_two_boots(load: Load, source: random.Random, effect: float, spread: float = 0.5) -> Effect:
    """Return what two boots of eight pairs tell, or five where the intervals of two don't overlap.

    Boots differ by `spread` times the standard error of one with a load that is noise.
    """

    def boots(count: int) -> list[Effect]:
        own = (source.gauss(effect, spread * SPREAD / 2) for _ in range(count))
        return [of_slices(load, source, each, 8) for each in own]

    two = boots(2)
    if not apart(two):
        return of_few(two)
    return by_t([each.shift for each in two + boots(3)])


def of_two_that_differ(load: Load, source: random.Random, effect: float) -> Effect:
    """Return what they tell where boots differ as much as is promised."""
    return of_two_boots(load, source, effect, 2)


def of_a_fixed_order(load: Load, source: random.Random, effect: float) -> Effect:
    """Return what a run of slices would tell in the order A B B A without a coin."""
    order = "ABBA" * (PAIRS // 2)
    values = [(side, value + effect * (side == "B"))
              for side, value in zip(order, load(source), strict=False)]  # fmt: skip
    a, b = ([value for each, value in values if each == side] for side in "AB")
    return by_ranks([y - x for x, y in zip(a, b, strict=True)])


Method = Callable[[Load, random.Random, float], Effect]
METHODS: list[Method] = [of_slices, of_twins, of_boots]


def tried(method: Method, load: Load, effect: float, runs: int = RUNS) -> tuple[float, float]:
    """Return how many of the intervals hold the effect, and how many runs see one, of 1."""
    source = random.Random(f"{method.__name__} {load.__name__} {effect}")
    found = [method(load, source, effect) for _ in range(runs)]
    held = sum(each.low <= effect <= each.high for each in found
               if each.low is not None and each.high is not None)  # fmt: skip
    return held / runs, sum(each.sign() != 0 for each in found) / runs


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("method", METHODS)
def test_intervals_hold_what_they_should(method: Method, load: Load) -> None:
    """The signed-rank test has steps: with 12 pairs its interval is one of 95.8 %."""
    held, _ = tried(method, load, EFFECT)
    assert 0.93 <= held <= 0.97


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("method", METHODS)
def test_chance_marks_one_in_twenty_at_most(method: Method, load: Load) -> None:
    """As far as so many runs can tell: with three standard errors of them."""
    _, marked = tried(method, load, 0.0)
    assert marked <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / RUNS)


@pytest.mark.parametrize(
    ("method", "loads"), [(of_two_boots, LOADS), (of_two_that_differ, [noise, drift])]
)
def test_a_few_boots_are_on_the_safe_side(method: Method, loads: list[Load]) -> None:
    """As far as so many runs can tell: `lasting` halves the error, so that twice of it is less."""
    for load in loads:
        held, _ = tried(method, load, EFFECT, 1000)
        _, marked = tried(method, load, 0.0, 1000)
        assert held >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / 1000)
        assert marked <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 1000)


def test_two_boots_that_differ_and_do_not_ask_for_more_are_found_wrong() -> None:
    """So the rule that takes five where intervals do not overlap is needed."""
    source = random.Random(2)

    def two() -> Effect:
        own = [source.gauss(0, 6 * SPREAD / 2) for _ in range(2)]
        return of_few([of_slices(noise, source, each, 8)._replace(p=0.0) for each in own])

    runs = [two() for _ in range(400)]
    assert sum(each.sign() != 0 for each in runs) > 0.2 * len(runs)
    assert sum(each.sign() != 0 and each.p == 0 for each in runs) < 0.2 * len(runs)


def test_a_method_that_is_wrong_is_found() -> None:
    """A load that keeps time with a fixed order is taken for an effect."""
    held, marked = tried(of_a_fixed_order, periodic, 0.0)
    assert held < 0.8
    assert marked > 0.2


@pytest.mark.parametrize(("pairs", "tests"), [(6, 1), (8, 1), (8, 2), (12, 3), (30, 1)])
def test_what_is_visible_is_seen_in_four_runs_of_five(pairs: int, tests: int) -> None:
    """By the median of what runs without an effect call visible, with p corrected."""
    source = random.Random(pairs)
    runs = [of_slices(noise, source, 0.0, pairs).visible(tests) for _ in range(400)]
    visible = statistics.median(each for each in runs if each is not None)
    seen = [of_slices(noise, source, visible, pairs) for _ in range(1000)]
    power = sum(each.p is not None and each.p * tests < 0.05 for each in seen) / 1000
    assert 0.7 <= power <= 0.9


def count(source: random.Random, mean: float) -> int:
    """Return how many events there are, of a Poisson distribution."""
    total, number = source.expovariate(1), 0
    while total < mean:
        total, number = total + source.expovariate(1), number + 1
    return number


@pytest.mark.parametrize("boots", [2, 5])
@pytest.mark.parametrize(("a", "b"), [(14, 14), (14, 4), (30, 3)])
def test_rare_events_are_compared_over_boots(a: float, b: float, boots: int) -> None:
    """As OOM kills are, half of one added: the interval of the boots holds the ratio."""
    source, kills = random.Random(5), Metric("x", "x", ("vmstat.oom_kill",))
    none, held = {"vmstat.oom_kill": 0}, 0
    for _ in range(RUNS):
        each = ([{"vmstat.oom_kill": count(source, mean)} for mean in (a, b)] for _ in range(boots))
        ends = compare(kills, [Boot([one, none], [other, none]) for one, other in each]).ends
        assert ends
        held += ends[0] <= 100 * (b / a - 1) <= ends[1]
    assert 0.93 <= held / RUNS <= 0.97
