# SPDX-License-Identifier: GPL-2.0
"""Tests of results: their files, the statistics, the one judge, and how its figures are written."""

import ast
import itertools
import json
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from vmp import form
from vmp.bench.experiment import find, names
from vmp.bench.measured import measured
from vmp.common import REPO, Failure, Usage
from vmp.control import counters
from vmp.demo.goals import GOALS, TITLES
from vmp.demo.suite import judged
from vmp.report import verdict as told
from vmp.result import file, goals, metrics, significance, slope, table
from vmp.result.goals import Goal
from vmp.result.metrics import PRIMARY, Metric
from vmp.result.model import (
    CHOICES,
    Boot,
    Result,
    Results,
    Row,
    Settings,
    Slice,
    compare,
    contrast,
    difference,
    judge,
    slice_order,
    slices_needed,
)
from vmp.result.significance import Effect

STORED = sorted(
    path
    for path in (REPO / "docs" / "results").glob("*/*.json")
    if "format" in json.loads(path.read_text())
)
SEED = 1
X = Metric("x", "x", ("x",))
MEAN = Metric("x", "x", ("x",), ("one",))


def run_of(slices: list[tuple[str, dict[str, Any]]], **settings: Any) -> Result:
    """Return a result of slices, each a side and its counters."""
    what: dict[str, Any] = {
        "a": "flush=stock",
        "b": "flush=batch",
        "both": "(nothing)",
        "title": "true",
    }
    what |= {"memory_bytes": 64 << 20, "slice_seconds": 10.0} | settings
    where = {"kernel": "6.12.117", "lru": "mglru", "cpus": 4, "abi": {"abi": "1"}}
    return Result(Settings(**what), where, tuple(Slice(*piece) for piece in slices))


def result(**settings: Any) -> Result:
    """Return a result of four slices, with all that the flush counts."""
    slices = []
    for index, side in enumerate("ABBA"):
        flushes, batch = (500, 0) if side == "A" else (20, 1)
        piece = {
            "seconds": 10.0,
            "vmstat.pgsteal_anon": 1000 + index,
            "vmstat.pgsteal_file": 0,
            "vmstat.nr_tlb_remote_flush": flushes,
            "stats.flush.calls": 20 * batch,
            "stats.flush.flushes": 21 * batch,
            "stats.flush.deferred": 980 * batch,
            "stats.flush.observed_dirty_flushes": flushes - 3,
            "stats.flush.observed_clean_flushes": 3,
            "stats.flush.observed_remote_flushes": flushes - 2,
            "stats.flush.observed_interrupts": 2 * flushes,
            "memcg.pgscan": 1500,
            "memcg.pgrefill": 300,
            "memcg.pgsteal": 1000,
        }
        slices.append((side, piece))
    return run_of(slices, **settings)


def alternating(a: dict[str, Any], b: dict[str, Any], count: int, **settings: Any) -> Result:
    """Return a result of so many slices, all of a side alike."""
    order = slice_order(count, SEED)
    return run_of([(side, {"A": a, "B": b}[side]) for side in order], **settings)


def rows() -> dict[str, list[str]]:
    """Return the table's cells by label."""
    lines = table.render(result()).splitlines()
    return {line[: table.LABEL].strip(): line[table.LABEL :].split() for line in lines}


def test_slices_alternate_against_drift() -> None:
    for count in (2, 6, 8, 10):
        order = slice_order(count, SEED)
        assert len(order) == count
        assert all(sorted(order[n : n + 2]) == ["A", "B"] for n in range(0, count, 2))


def test_a_coin_chooses_the_order_and_a_seed_repeats_it() -> None:
    orders = {slice_order(40, seed) for seed in range(20)}
    assert len(orders) == 20
    assert slice_order(40, 7) == slice_order(40, 7)
    assert len(slice_order(6, 7, runs=3)) == 18


@pytest.mark.parametrize(("tests", "slices"), [(0, 12), (1, 12), (2, 14), (3, 14), (4, 16)])
def test_so_many_slices_are_needed(tests: int, slices: int) -> None:
    assert slices_needed(tests) == slices
    assert (
        max(1, tests) * 2.0 ** (1 - slices // 2) < 0.05 <= max(1, tests) * 2.0 ** (2 - slices // 2)
        or slices == 12
    )
    assert slices_needed(tests, twins=True) == 12


def test_of_a_gauge_the_mean_counts() -> None:
    dirty = "memcg.file_dirty"
    before, after = {"time": 1.0, dirty: 4096}, {"time": 2.0, dirty: 20480}
    assert counters.delta(before, after)[dirty] == 12288
    (row,) = (m for m in metrics.sections(set())["ratios and rates"] if m.key == "dirty_pages")
    assert row.value([{dirty: 8192 * n} for n in (1, 2, 6)]) == 3 * 8192 / metrics.PAGE
    isolated = "vmstat.nr_isolated_anon"
    assert counters.delta({"time": 1, isolated: 64}, {"time": 2, isolated: 32})[isolated] == 48


def test_large_folios_are_counted_in_all_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counters, "THP", tmp_path)
    assert counters.of_folios() == {}
    for size, count in ((64, 3), (2048, 4)):
        stats = tmp_path / f"hugepages-{size}kB" / "stats"
        stats.mkdir(parents=True)
        (stats / "split_deferred").write_text(f"{count}\n")
    assert counters.of_folios() == {"split_deferred": 7}
    assert counters.of_machine("folios.split_deferred")


def test_per_1000_stolen_weighs_slices_by_their_pages() -> None:
    metric = metrics.metric("flushes_per_1000", "flushes", "x / stolen", 1000)
    slices = [
        {"x": 10, "vmstat.pgsteal_anon": 900, "vmstat.pgsteal_file": 100},
        {"x": 80, "vmstat.pgsteal_anon": 2000, "vmstat.pgsteal_file": 0},
    ]
    assert metric.value(slices) == 30
    assert metric.value(slices[:1]) == 10


def test_missing_counters_and_zero_denominators_have_no_value() -> None:
    ratio = metrics.Metric("r", "r", ("x",), ("y",))
    assert ratio.value([{"x": 1, "y": 0}]) is None
    assert ratio.value([{"x": 1}]) is None
    assert ratio.value([]) is None


def test_the_highest_mark_counts() -> None:
    mark = metrics.Metric("m", "m", ("stats.flush.largest_batch",))
    assert mark.value([{"stats.flush.largest_batch": n} for n in (3, 8, 8)]) == 8


def test_percentiles_are_nearest_ranks() -> None:
    values = [15, 20, 35, 40, 50]
    percents = (0, 5, 30, 40, 50, 99, 100)
    ranks = [metrics.nearest_rank(values, percent) for percent in percents]
    assert ranks == [15, 15, 20, 20, 35, 50, 50]


def test_stalls_of_all_slices_are_pooled() -> None:
    slices = [Slice("A", {"seconds": 1}, times).values() for times in ((3000, 1000), (), (9,))]
    rows = {row.key: row for row in metrics.sections({"stall_us"})[metrics.STALLS]}
    assert rows["stall_p50_ms"].value(slices) == 1
    assert rows["stall_longest_ms"].value(slices) == 3
    assert rows["stall_p99_ms"].value(slices[1:2]) is None
    assert rows["stall_p50_ms"].value([]) is None
    for piece in slices:
        piece.update({"vmstat.pgsteal_anon": 400, "vmstat.pgsteal_file": 100})
    assert rows["stalls_per_1000"].value(slices) == 2
    assert Slice("A", {"x": 1}).values() == {"x": 1}


def test_difference() -> None:
    assert difference(400, 20) == (-380, -95)
    assert difference(0, 20) == (20, None)
    assert difference(None, 20) == (None, None)


def test_how_far_beyond_a_hundredfold_a_rise_is_is_not_told() -> None:
    assert form.percent(10_000) == "+10000.0 %"
    assert form.percent(2e9) == ">+10,000 %"
    assert form.interval((-100, 2e9)) == "-100.0 to >+10,000 %"


def test_signed_rank_has_the_published_values() -> None:
    assert significance.signed_rank([1, 2, 3, 4, 5]) == 2 / 32
    assert significance.signed_rank([-1, -2, -3, -4, -5, -6]) == 2 / 64
    assert significance.signed_rank([-1, 2, 3, 4, 5, 6]) == 4 / 64
    assert significance.signed_rank([1, -1]) == 1
    assert significance.signed_rank([0, 1, 2, 0]) == 2 / 4
    assert significance.signed_rank([0, 0]) is None


def test_signed_rank_counts_ties_as_enumeration_does() -> None:
    differences: list[float] = [3, 3, -1, 2, 5, -2, 8]
    sizes = sorted(map(abs, differences))
    ranks = [(2 * sizes.index(abs(d)) + sizes.count(abs(d)) + 1) / 2 for d in differences]
    mean = sum(ranks) / 2
    seen = abs(sum(r for d, r in zip(differences, ranks, strict=True) if d > 0) - mean)
    signs = itertools.product((0, 1), repeat=len(ranks))
    sums = [sum(r for s, r in zip(sign, ranks, strict=True) if s) for sign in signs]
    p = sum(abs(total - mean) >= seen for total in sums) / len(sums)
    assert significance.signed_rank(differences) == p


def test_p_is_counted_for_primary_figures_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[float] = []

    def signed_rank(_differences: list[float]) -> float:
        counted.append(0.5)
        return 0.5

    monkeypatch.setattr(significance, "signed_rank", signed_rank)
    a = {"seconds": 2.0, "progress": 10, "vmstat.oom_kill": 2}
    found = alternating(a, a | {"progress": 12}, 20, primary=("oom_kill",))
    assert (found.row("oom_kill").p, found.row("operations").p, len(counted)) == (0.5, None, 1)


def test_an_interval_ends_at_the_rank_of_the_tables() -> None:
    # One more than the critical values of the signed-rank test, two-sided, 5 %, as printed in
    # tables for 5 to 15 pairs and for 30.
    ranks = [significance.cut(pairs) for pairs in range(5, 16)]
    assert ranks == [0, 1, 3, 4, 6, 9, 11, 14, 18, 22, 26]
    assert significance.cut(30) == 138


def test_the_effect_of_six_pairs() -> None:
    # All six differences, and the median of their 21 Walsh averages.
    found = significance.by_ranks([1, 2, 3, 4, 5, 9])
    assert found == significance.Effect(3.5, 1, 9, 2 / 64, 2 / 64)
    assert found.sign() == 1


def test_ratios_are_compared() -> None:
    """B is half of A in all phases, though the differences are 1 to 100."""
    sizes, factors = (1e6, 3e6, 1e7, 3e7, 6e7, 1e8), (0.9, 1.0, 1.0, 1.0, 1.0, 1.1)
    a = [{"x": 2 * size} for size in sizes]
    b = [{"x": size * factor} for size, factor in zip(sizes, factors, strict=True)]
    found = compare(X, [Boot(a, b)])
    assert (found.shift, *(found.ends or ())) == pytest.approx((-50, -55, -45), rel=1e-5)


def contrast_of(metric: Any, a: dict[str, Any], b: dict[str, Any]) -> float:
    """Return the contrast of two slices as a ratio."""
    found = contrast(metric, [a], [b])
    assert found is not None
    return math.exp(found)


def test_half_a_count_is_added_whatever_was_counted() -> None:
    """So a zero changes no scale, and none on both sides is no difference."""
    per = metrics.metric("k", "kills", "vmstat.oom_kill / stolen", 1000)
    some, none, less = ({"vmstat.oom_kill": n, "vmstat.pgsteal_anon": pages,
                         "vmstat.pgsteal_file": 0}
                        for n, pages in ((14, 1000), (0, 1000), (0, 500)))  # fmt: skip
    assert contrast_of(per, some, none) == pytest.approx(0.5 / 14.5)
    assert contrast_of(per, none, less) == 1
    total = metrics.metric("k", "kills", "vmstat.oom_kill")
    assert contrast_of(total, some, none) == pytest.approx(0.5 / 14.5)
    time = metrics.metric("t", "ms", "stall_total_us / seconds", 0.001)
    waits = [{"stall_total_us": us, "seconds": 2} for us in (0, 9500)]
    assert contrast_of(time, *waits) == pytest.approx((9.5 + 0.5) / 0.5)
    longest = metrics.StallTime("x", "x", 100)
    assert contrast_of(longest, {"stall_us": [0]}, {"stall_us": [1]}) == pytest.approx(3)
    assert contrast(longest, [{"stall_us": []}], [{"stall_us": [1]}]) is None


def test_one_zero_does_not_change_the_others() -> None:
    a = [{"x": 1000 * n} for n in range(1, 9)]
    b = [{"x": 500 * n} for n in range(1, 8)] + [{"x": 0}]
    found = Boot(a, b).contrasts(X)
    assert [math.exp(each) for each in list(found.values())[:7]] == pytest.approx([0.5] * 7, 1e-3)
    assert math.exp(found[7]) == pytest.approx(0.5 / 8000.5)


def test_five_pairs_tell_nothing() -> None:
    found = significance.by_ranks([-0.5] * 5)
    assert (found.shift, found.low, found.high, found.sign()) == (-0.5, None, None, 0)
    assert found.visible(1) is None


def test_the_interval_tells_what_the_test_tells() -> None:
    sizes = (1, 2, 4, 8, 16, 32, 64)
    for signs in itertools.product((-1, 1), repeat=len(sizes)):
        differences = [float(sign * size) for sign, size in zip(signs, sizes, strict=True)]
        found = significance.by_ranks(differences)
        assert found.p
        assert bool(found.sign()) == (found.p <= 0.05)
        assert found.low is not None
        assert found.high is not None
        assert found.low <= found.shift <= found.high


def test_the_interval_covers_what_it_should() -> None:
    # Of all signs of six differences around 0, all positive and all negative leave it out.
    missed = sum(
        bool(significance.by_ranks([float(d) for d in signed]).sign())
        for signed in itertools.product(*((-size, size) for size in (1, 2, 4, 8, 16, 32)))
    )
    assert missed == 2


def test_t_has_the_values_of_the_tables() -> None:
    # Student's t, two-sided, 5 %, as printed.
    found = [round(significance.t_quantile(freedom), 3) for freedom in (1, 2, 3, 4, 10, 30, 120)]
    assert found == [12.706, 4.303, 3.182, 2.776, 2.228, 2.042, 1.980]
    assert significance.t_p(-2.776445, 4) == pytest.approx(0.05)
    assert significance.t_p(0, 3) == 1


def test_boots_are_judged_by_t() -> None:
    # Mean 3, standard error 1 / sqrt(2), 2.776 of these either way.
    found = significance.by_t([1, 2, 3, 4, 5])
    assert found.shift == 3
    assert (found.low, found.high) == pytest.approx((3 - 2.776445 / 2**0.5, 3 + 2.776445 / 2**0.5))
    assert significance.by_t([1]).low is None
    assert significance.by_t([2, 2]) == significance.Effect(2, 2, 2, 0)
    assert significance.by_t([0, 0]).p == 1


def test_a_place_that_is_faster_is_no_effect() -> None:
    """Of twins: the second place counts twice as much, and B does nothing."""
    noise = (0.01, -0.02, 0.01, 0.0, 0.02, -0.02)
    sides = (1, -1, -1, 1, 1, -1)
    values = [0.69 * side + n for side, n in zip(sides, noise, strict=True)]
    found = significance.by_t(values, sides)
    assert found.sign() == 0
    assert found.high is not None
    assert found.high < 0.05
    assert significance.by_t([0.3 + value for value in values], sides).sign() == 1
    assert significance.by_t(values, [1] * 6).low is None
    assert significance.by_t([1, 2], [1, -1]).low is None


def test_what_could_have_been_seen() -> None:
    # By the normal distribution: (1.960 + 0.842) / 1.960 of the half of the interval.
    found = significance.Effect(0.1, -0.5, 0.5, 0.4)
    assert found.visible(1) == pytest.approx(0.5 * 2.8016 / 1.95996, rel=1e-4)
    row = Row("x", "x", 1, 1, found, 12, True)
    assert row.visible == pytest.approx((-51.06, 104.3), rel=1e-3)
    said = table.unseen(row)
    assert said.startswith("no difference; one of -51 % or +104 % would have been seen")
    assert table.unseen(replace(row, effect=Effect(0.7, 0.2, 1.2, 0.01), p_corrected=0.01)) == ""
    few = replace(row, effect=found._replace(least=0.03), tests=2)
    assert few.visible is None
    assert few.undecidable()


def test_unknown_counters_are_dashes() -> None:
    assert rows()["operations / s"] == ["-"] * 5


def test_rows() -> None:
    found = rows()
    remote = ["499.3", "19.97", "-479.3", "-96.0", "%", "-"]
    assert found["remote TLB flushes / anon only"] == remote
    assert found["flushes / deferring call"][:4] == ["-", "1.05", "-", "-"]
    assert found["all flushes / deferring call"][:2] == ["-", "1"]
    assert found["deferred folios / deferring call"][1] == "49"
    assert found["deferring calls"][:2] == ["0", "19.97"]
    assert found["reclaim's own remote flushes"][:2] == ["497.3", "17.97"]
    assert found["interrupts by these"][:2] == ["998.5", "39.94"]
    assert found["memcg's scanned+refilled / stolen"][0] == "1.8"


def test_holm_has_the_published_values() -> None:
    # The example of Holm's paper: 0.01, 0.04, 0.03, 0.005 of four tests.
    found = significance.holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005})
    assert found == {"d": 0.02, "a": 0.03, "c": 0.06, "b": 0.06}
    assert significance.holm({"x": 0.9, "y": 0.8}) == {"y": 1, "x": 1}
    assert significance.holm({}) == {}


@pytest.fixture
def scipy_stats() -> Any:
    """Return scipy.stats, which the tools themselves do without."""
    return pytest.importorskip("scipy.stats")


def exact_p(scipy_stats: Any, differences: list[float]) -> float:
    """Return scipy's p of the exact test; with ties or zeros it enumerates all signs."""
    differences = [d for d in differences if d]
    method = scipy_stats.PermutationMethod(n_resamples=1 << 14)
    tied = len({abs(d) for d in differences}) < len(differences)
    found = scipy_stats.wilcoxon(differences, method=method if tied else "exact")
    return float(found.pvalue)


def test_the_slope_of_a_line_is_that_of_scipy(scipy_stats: Any) -> None:
    source = random.Random(5)
    points = [(float(x), 3 - 0.4 * x + source.gauss(0, 1)) for x in (1, 2, 2, 5, 9, 9)]
    found, other = slope.by_line(points), scipy_stats.linregress(*zip(*points, strict=True))
    half = scipy_stats.t.ppf(0.975, len(points) - 2) * other.stderr
    assert found[:4] == pytest.approx(
        (other.slope, other.slope - half, other.slope + half, other.pvalue)
    )


def test_a_slope_of_too_few_points_has_no_interval() -> None:
    assert slope.by_line([(1, 1), (3, 5)]) == significance.Effect(2, None, None, None, 1)
    assert slope.by_line([(1, 1), (1, 5), (1, 7)]).low is None
    assert slope.by_line([(1, 1), (2, 2), (3, 3)]) == significance.Effect(1, 1, 1, 0)


@pytest.mark.parametrize("seed", range(12))
def test_signed_rank_is_that_of_scipy(scipy_stats: Any, seed: int) -> None:
    source = random.Random(seed)
    size = source.randrange(6, 13)
    apart = [source.gauss(0.4, 1) for _ in range(size + 12 * (seed % 2))]
    tied = [float(source.randrange(-3, 5)) for _ in range(size)]
    for differences in (apart, tied):
        assert significance.signed_rank(differences) == pytest.approx(
            exact_p(scipy_stats, differences)
        )


@pytest.mark.parametrize("seed", range(6))
def test_an_interval_is_what_the_test_of_scipy_does_not_refuse(scipy_stats: Any, seed: int) -> None:
    """The shift is the Hodges-Lehmann estimate; just inside an end p is above 0.05, outside not."""
    source = random.Random(seed)
    changes = [source.gauss(1, 2) for _ in range(7 + 3 * seed)]
    found = significance.by_ranks(changes)
    averages = [(x + y) / 2 for i, x in enumerate(changes) for y in changes[i:]]
    assert found.shift == pytest.approx(float(scipy_stats.scoreatpercentile(averages, 50)))
    for end, out in ((found.low, -1e-9), (found.high, 1e-9)):
        assert end is not None
        outside, inside = (
            scipy_stats.wilcoxon([c - end - step for c in changes], method="exact").pvalue
            for step in (out, -out)
        )
        assert outside <= 0.05 < inside


@pytest.mark.parametrize("seed", range(6))
def test_t_is_that_of_scipy(scipy_stats: Any, seed: int) -> None:
    """Of boots the test of one sample, of twins the pooled test of two: by who was first."""
    source = random.Random(seed)
    values = [source.gauss(0.5, 1) for _ in range(5 + seed)]
    assert significance.by_t(values).p == pytest.approx(scipy_stats.ttest_1samp(values, 0).pvalue)
    found = significance.by_t(values).low, significance.by_t(values).high
    assert found == pytest.approx(tuple(scipy_stats.ttest_1samp(values, 0).confidence_interval()))
    sides = [1, -1, *(source.choice((1, -1)) for _ in values[2:])]
    first = [value for value, side in zip(values, sides, strict=True) if side > 0]
    other = [-value for value, side in zip(values, sides, strict=True) if side < 0]
    pooled = scipy_stats.ttest_ind(first, other).pvalue
    assert significance.by_t(values, sides).p == pytest.approx(pooled)
    for freedom in (1, 2, 7, 30):
        for t in (0.1, 2.5, 40.0):
            exact = 2 * scipy_stats.t.sf(t, freedom)
            assert significance.t_p(t, freedom) == pytest.approx(exact, abs=1e-14)
    assert all(significance.t_p(t, 16) >= 0 for t in range(50, 150))


@pytest.mark.parametrize("seed", range(6))
def test_holm_is_closed_testing(seed: int) -> None:
    """A hypothesis is refused if each set with it is, by Bonferroni; scipy has no Holm."""
    source = random.Random(seed)
    ps = {str(number): source.random() ** 3 for number in range(5)}
    found = significance.holm(ps)
    for name in ps:
        others = [other for other in ps if other != name]
        sets = [[name, *more] for size in range(5) for more in itertools.combinations(others, size)]
        closed = max(min(1.0, len(each) * min(ps[one] for one in each)) for each in sets)
        assert found[name] == pytest.approx(closed)


def test_neighbours_are_compared_across_phases() -> None:
    a = [{"x": 1e6 * n} for n in range(1, 7)]
    b = [{"x": 1e6 * n - 1e4 * n} for n in range(1, 7)]
    found = compare(X, [Boot(a, b)])
    assert (found.pairs, found.direction()) == (6, -1)
    assert found.ends == pytest.approx((-1, -1), rel=1e-4)


def test_the_last_slice_without_a_neighbour_is_left_out() -> None:
    found = run_of([(side, {"progress": 1}) for side in "ABBAA"])
    assert (found.pairs, len(found.side("A")), len(found.side("B"))) == (2, 2, 2)


def test_every_line_fits_its_columns() -> None:
    counted = {"progress": 10, "function.try_to_unmap+folio_referenced.instructions": 1e6}
    given = result()
    given = replace(
        given, slices=tuple(replace(p, counters=p.counters | counted) for p in given.slices)
    )
    text = table.render(given)
    assert "  try_to_unmap+folio_referenced, instructions / 1,000 operations\n" in text
    assert max(map(len, text.splitlines())) <= 100


def test_stalls_have_rows_only_where_they_were_recorded() -> None:
    title = "reclaim stalls (direct and memcg)"
    assert title not in table.render(result())
    found = Result(result().settings, {}, tuple(Slice(s, {"seconds": 1.0}, (2500,)) for s in "AB"))
    assert [row.before for row in found.rows[title]] == [2.5, 2.5, 2.5, *[None] * 4]


def test_all_stalls_together() -> None:
    stolen = dict(zip(metrics.STOLEN, (1500.0, 500.0), strict=True)) | {"progress": 10.0}
    a = Slice("A", stolen | {"stats.scan.passes": 12}, (1000, 2000, 5000))
    b = Slice("B", stolen | {"stats.scan.passes": 0}, (4000,))
    found = Result(result().settings, {}, (a, b))
    values = {key: (found.row(key).before, found.row(key).after) for key in (
        "total_wait_ms_per_1000", "total_wait_ms_per_operation", "passes_per_wait")}  # fmt: skip
    assert list(values.values()) == [(4, 2), (0.8, 0.4), (4, None)]


def test_what_is_told_below_the_table() -> None:
    given = result()
    assert table.lost_note(given) == table.ended_note(given) == ""
    pieces = tuple(replace(piece, events_lost=2) for piece in given.slices)
    given = replace(given, slices=pieces, lacks=("No x.", "No y: " + "z " * 60), ended="oh")
    text = table.render(given)
    assert "8 trace events were lost" in text
    assert "INCOMPLETE: the run ended after 4 slices: oh." in text
    assert "\nNo x.\nNo y: z " in text
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize(("p", "sign"), [(None, ""), (0.05, ""), (0.0286, "*"), (0.0079, "**")])
def test_marks(p: float | None, sign: str) -> None:
    row = Row("x", "x", 2, 1, Effect(-1, -1.5, -0.5, p), 12, True, 1, p)
    assert table.mark(row) == sign
    assert table.mark(replace(row, primary=False)) == ""
    assert table.mark(replace(row, effect=Effect(-1, -1.5, 0.1, p))) == ""


@pytest.mark.parametrize(("pairs", "primary", "few"), [(5, 1, True), (6, 1, False), (6, 2, True)])
def test_too_few_slices_are_told_once(pairs: int, primary: int, few: bool) -> None:
    keys = ("operations_per_second", "ms_per_operation")[:primary]
    counters = {"seconds": 1.0, "progress": 3}
    given = alternating(counters, counters | {"progress": 4}, 2 * pairs, primary=keys)
    assert table.render(given).count("too few") == few
    assert " ".join(told.of_run("x", given).sentences).count("too few") == few


def test_primary_figures_come_first_and_alone_are_judged() -> None:
    a = {"seconds": 2.0, "progress": 10, "vmstat.pgsteal_anon": 100, "vmstat.pgsteal_file": 0,
         "vmstat.pswpin": 5}  # fmt: skip
    keys = ("operations_per_second", "pswpin_per_1000", "absent")
    found = alternating(a, a | {"progress": 12, "vmstat.pswpin": 4}, 12, primary=keys)
    first = found.rows[PRIMARY]
    assert [row.key for row in first] == ["operations_per_second", "pswpin_per_1000"]
    assert [row.label for row in first] == ["operations / s", "pswpin / 1,000 stolen"]
    assert [row.p_corrected for row in first] == [4 / 64, 4 / 64]
    rest = [row for title, each in found.rows.items() if title != PRIMARY for row in each]
    assert not {row.key for row in rest} & {row.key for row in first}
    assert {(row.p, row.p_corrected, row.primary) for row in rest} == {(None, None, False)}
    assert found.row("pswpin_per_operation").ends


def test_a_primary_figure_without_any_difference_claims_nothing_and_counts_as_a_test() -> None:
    a = {"seconds": 2.0, "progress": 10, "vmstat.oom_kill": 0}
    keys = ("operations_per_second", "oom_kill")
    speed, kills = alternating(a, a | {"progress": 12}, 20, primary=keys).rows[PRIMARY]
    assert (speed.tests, speed.p, speed.p_corrected) == (2, 2**-9, 2**-8)
    assert (kills.p, kills.p_corrected, kills.visible) == (None, None, None)
    assert table.unseen(kills).startswith("no difference: A and B are too often equal")


def test_figures_per_operation_are_there_where_something_counts_them() -> None:
    a = {"seconds": 1.0, "progress": 50, "vmstat.pgsteal_anon": 100, "vmstat.pgsteal_file": 0,
         "vmstat.workingset_refault_file": 25}  # fmt: skip
    values = {row.key: row.before for row in judge([Boot([a], [a])], ())[metrics.PER_OPERATION]}
    assert values["refault_file_per_operation"] == 500
    assert "operations_per_operation" not in values
    del a["progress"]
    assert not judge([Boot([a], [a])], ())[metrics.PER_OPERATION]


def test_an_interval_is_in_percent_of_a() -> None:
    pieces = [{"x": 1e7 + 1e6 * change} for change in (1, 2, 3, 4, 5, 9)]
    found = compare(X, [Boot([{"x": 1e7}] * 6, pieces)])
    assert found.ends == pytest.approx((10, 90), rel=1e-5)
    assert form.interval(found.ends, None) == "+10 to +90 %"
    assert form.interval((-100, -2.04), None) == "-100 to -2.0 %"
    assert form.interval(None) == "-"


def test_why_there_is_no_interval_is_said() -> None:
    assert Row("x", "x", 2, 1, Effect(-1, -1, -1, 0.01), 6).no_interval() == ""
    assert Row("x", "x", 2, 1, Effect(-1, None, None, 0.06), 5).no_interval() == (
        "no interval: 5 of 6 pairs"
    )


def boots(*changes: float) -> list[Boot]:
    """Return boots in which B is that times A, with the same noise in each."""
    noise = (1.0, 1.1, 0.9, 1.05, 0.95, 1.0)
    return [Boot([{"x": 1e6 * n} for n in noise], [{"x": change * 1e6 / n} for n in noise])
            for change in changes]  # fmt: skip


def test_a_boot_counts_once() -> None:
    """However sure each is of itself, the interval is over boots."""
    one = compare(X, boots(0.5))
    assert (one.pairs, one.boots) == (6, ())
    changes = (0.5, 0.6, 0.4, 0.5, 0.5)
    found = compare(X, boots(*changes))
    assert (found.pairs, found.differ) == (5, False)
    assert found.boots == pytest.approx((-49.8, -39.7, -59.8, -49.8, -49.8), abs=0.1)
    assert found.ends and found.ends[1] - found.ends[0] > 15
    assert found.before == pytest.approx(30e6)
    assert found.shift == pytest.approx(100 * (math.prod(changes) ** (1 / 5) - 1), abs=0.4)
    assert replace(compare(X, boots(*[0.5] * 5)), primary=True).p == 0


def test_of_a_few_boots_each_has_to_show_it() -> None:
    """The interval is from the lowest of theirs to the highest, and p is the largest."""
    low, high = (compare(X, boots(change)) for change in (0.5, 0.6))
    assert low.ends and high.ends
    both = replace(compare(X, boots(0.5, 0.6)), primary=True)
    assert both.ends == pytest.approx((low.ends[0], high.ends[1]))
    assert (both.pairs, both.p, both.direction(), both.differ) == (6, 2**-5, -1, False)
    assert both.shift == pytest.approx(100 * (math.sqrt(0.5 * 0.6) - 1), abs=0.4)
    weak = Boot([{"x": 1e6}] * 6, [{"x": 1e6 * each} for each in (0.9, 0.8, 0.7, 0.6, 0.5, 1.01)])
    less = replace(compare(X, [*boots(0.7), weak]), primary=True)
    assert (less.differ, less.p) == (False, replace(compare(X, [weak]), primary=True).p)
    assert less.p == 2**-4
    against = replace(compare(X, boots(0.95, 1.05)), primary=True)
    assert (against.p, against.direction(), against.differ) == (1, 0, False)


def test_a_few_boots_that_differ_tell_nothing() -> None:
    """Also where all show a fall: it takes five. That it is no rise they do tell."""
    row = replace(compare(X, boots(0.5, 0.2)), primary=True)
    assert (row.p, row.differ, row.direction(), row.visible) == (1, True, -1, None)
    assert goals.verdict(-50.0, replace(row, p_corrected=1.0)) == goals.DIFFER
    assert goals.verdict("not up", replace(row, p_corrected=1.0)) == goals.NO_WORSE


def test_twins_are_judged_by_their_periods() -> None:
    """The second cgroup counts twice as much; what B does is seen beside that."""
    pieces = []
    for number, place in enumerate((1, 2, 2, 1, 1, 2, 2, 1)):
        noise = 1 + 0.01 * (number % 3)
        for side, change in (("A", 1.0), ("B", 0.8)):
            where = place if side == "A" else 3 - place
            pieces.append(Slice(side, {"seconds": 1.0, "progress": 1e5 * where * change * noise},
                                place=where))  # fmt: skip
            noise = 1
    run = replace(run_of([]), slices=tuple(pieces))
    key = "operations_per_second"
    run = replace(run, settings=replace(run.settings, twins=True, primary=(key,)))
    row = run.row(key)
    assert (row.pairs, row.sign()) == (8, -1)
    assert row.shift == pytest.approx(-20, abs=1)
    assert "t test" in table.render(run)
    assert "t over periods" in file.test(run)
    slices = replace(run, settings=replace(run.settings, twins=False))
    assert slices.row(key).sign() == 0


def test_a_run_of_one_setting_tells_what_chance_marks() -> None:
    key = "remote_flushes_per_1000"
    assert table.chance_note(result()) == ""
    same = result(aa=1, primary=(key,))
    text = table.chance_note(replace(same, slices=same.slices * 4))
    assert "1 of 1 primary figures are marked by chance: remote" in " ".join(text.split())


def test_runs_of_one_setting_are_judged_one_by_one() -> None:
    key = "remote_flushes_per_1000"
    one = result(aa=3, primary=(key,))
    same = one.slices * 4
    even = tuple(Slice(piece.side, same[0].counters) for piece in same)
    given = replace(one, slices=even + same + even)
    assert given.by_chance() == [[], [key], []]
    said = f"Cut into 3 runs of {len(even)} slices, 1 have a primary figure marked: {key}."
    assert said in " ".join(table.chance_note(given).split())


def test_runs_of_one_setting_stand_for_boots() -> None:
    key = "remote_flushes_per_1000"
    one = result(aa=6, primary=(key,))
    same = one.slices * 4
    even = tuple(Slice(piece.side, same[0].counters) for piece in same)
    given = replace(one, slices=same * 6)
    assert given.by_chance(2) == given.by_chance(5) == [[key]] * CHOICES
    given = replace(one, slices=even + same * 5)
    marks = [found for found in given.by_chance(2) if found]
    assert 0 < len(marks) < CHOICES  # not with the run that has no difference
    assert given.by_chance(5) == given.by_chance(5)
    assert given.by_chance(7) == []


def test_of_runs_of_one_setting_that_ended_early_whole_ones_are_judged() -> None:
    key = "remote_flushes_per_1000"
    one = result(aa=20, primary=(key,))
    planned = replace(one.settings, slices=12)
    given = replace(one, settings=planned, slices=one.slices * 8, ended="oh")
    assert given.by_chance() == [[key], [key]]
    assert "Cut into 2 runs of 12 slices, 2 have" in table.chance_note(given).replace("\n", " ")
    assert replace(given, slices=one.slices).by_chance() == []
    old = replace(given, settings=one.settings)
    assert "Cut" not in table.chance_note(old)


@pytest.mark.parametrize(
    ("b", "seconds", "warned"),
    [("scan=budget", 6, False), ("scan=budget", 5, True), ("flush.max_folios=31", 5, False)],
)
def test_slices_shorter_than_three_turnovers_are_told(b: str, seconds: int, warned: bool) -> None:
    given = result(b=b, slice_seconds=seconds)
    assert table.turnover(given) == []
    held = {"A": 100 * metrics.PAGE, "B": 200 * metrics.PAGE}
    pieces = tuple(
        replace(piece, counters=piece.counters | {"memcg.current": held[piece.side]})
        for piece in given.slices
    )
    (said,) = table.turnover(replace(given, slices=pieces))
    assert "1 s with A, 2 s with B" in said
    assert ("take --seconds 6 or more" in said) == warned


def test_without_a_limit_of_its_own() -> None:
    assert "true, without a limit, " in table.heading(result(memory_bytes=None))


def test_numbers() -> None:
    texts = [form.number(n) for n in (None, 0, 12.0, 0.0214, 123.456, 98765.4, -2.5)]
    assert texts == ["-", "0", "12", "0.0214", "123.5", "98,765", "-2.5"]
    assert [form.percent(n) for n in (None, 12.34, float("inf"))] == ["-", "+12.3 %", "-"]
    assert [form.percent(n, None) for n in (-0.01, 9.9, 99.6)] == ["+0.0 %", "+9.9 %", "+100 %"]


@pytest.mark.parametrize("path", STORED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_stored_file_is_read_and_written_as_what_it_is(path: Path, tmp_path: Path) -> None:
    found, copy = file.load(path), tmp_path / "copy.json"
    document = (
        file.run_document(found) if isinstance(found, Result) else file.results_document(found)
    )
    copy.write_text(json.dumps(document))
    assert file.load(copy) == found
    assert file.convert(document)["format"] == file.FORMAT
    old = json.loads(path.read_text())
    pairs = [(old, found)] if isinstance(found, Result) else [
        (given, run) for name, runs in found.runs.items()
        for given, run in zip(boots_of(old["runs"][name]), runs, strict=True)]  # fmt: skip
    for given, run in pairs:
        assert [piece["counters"] for piece in given["slices"]] == [p.counters for p in run.slices]
        for row in (row for rows in given.get("summary", {}).values() for row in rows):
            new = run.row(row["key"])
            assert (new.before, new.after) == (row["before"], row["after"])


def boots_of(given: Any) -> list[Any]:
    """Return the boots of a run in a file, which had one before format 3."""
    return given if isinstance(given, list) else [given]


@pytest.mark.parametrize("path", STORED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_demo_report_and_bench_agree(path: Path) -> None:
    """Each says of a primary figure that it changed, and which way, where the judge does."""
    for name, run in file.named(path).items():
        sentences = told.of_run(name, run).sentences
        for row in run.primary:
            kinds = {-1: ("Better", "Lower"), 1: ("Worse", "Higher"), 0: ("No ", "A ", "Undec")}
            label = told.LABELS.get(row.key, row.label)
            assert any(
                said.startswith(kinds[row.sign()]) and f"{label} " in said for said in sentences
            )
            assert bool(table.mark(row)) == bool(row.sign())
            assert not (row.sign() and row.ends and row.ends[0] * row.ends[1] < 0)
        if path.stem in TITLES and path.parent.name.startswith("demo"):
            assert "not reached" not in judged(path.stem, run)[1] or not all(
                judged(path.stem, run)[0]
            )
            for goal in (g for g in GOALS if g.run == path.stem and g.kind.startswith("no ")):
                risen = run.row(goal.key).sign()
                assert goal.holds(run.row(goal.key)) == (
                    risen >= 0 if goal.kind == "no lower" else risen <= 0
                )
    found = file.load(path)
    if isinstance(found, Results) and found.experiment in names():
        for figure, name, row in measured(find(found.experiment), found):
            if figure.cannot:
                continue
            verdict = goals.verdict(figure.published, row)
            changed = {goals.DIRECTION, goals.OTHER_WAY, goals.BETTER, goals.WORSE, goals.CHANGED}
            assert not (verdict in changed and not row.marked())
            first, *more = found.runs[name]
            asked = first.settings.primary
            registered = asked == tuple(find(found.experiment).primary(name, False))
            if not figure.against and not more and registered:
                same = first.row(row.key)
                assert (same.p_corrected, same.ends) == (row.p_corrected, row.ends)


JUDGING = "signed_rank holm by_ranks by_t contrast contrasts walsh rank_sums least_p t_p".split()
JUDGED = {"p", "p_corrected", "ends", "limits", "low_percent", "high_percent"}


def judges(text: str) -> set[str]:
    """Return what a program has of a judge: statistics, or a comparison of p or of an interval."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module in ("scipy", "scipy.stats"):
            found.add(node.module)
        if isinstance(node, ast.ImportFrom) and node.module == "vmp.result.significance":
            found.add(node.module)
        if isinstance(node, ast.FunctionDef) and node.name in JUDGING:
            found.add(node.name)
        if isinstance(node, ast.Compare) and not all(
            isinstance(sign, ast.Is | ast.IsNot | ast.In | ast.NotIn) for sign in node.ops
        ):
            sides = [part for side in (node.left, *node.comparators) for part in ast.walk(side)]
            found |= {part.attr for part in sides if isinstance(part, ast.Attribute)} & JUDGED
            found |= {str(part.value) for part in sides if isinstance(part, ast.Constant)
                      and part.value in (0.05, 0.01, *JUDGED)}  # fmt: skip
    return found


def test_nothing_but_the_result_judges() -> None:
    package = REPO / "tools" / "vmp"
    found = {path: judges(path.read_text()) for path in package.rglob("*.py")}
    assert {path.parent.name for path, what in found.items() if what} == {"result"}


@pytest.mark.parametrize(
    "text",
    ["x.p < y", 'row["p_corrected"] >= LEAST', "p < 0.05", "0 < row.ends[0]", "def holm(): ..."],
)
def test_a_judge_elsewhere_would_be_found(text: str) -> None:
    assert judges(text)
    assert not judges("row.p is None")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": 1}', '{"format": 4}', "nan", "[" * 200_000]
)
def test_what_is_no_result_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "f").write_text(text)
    with pytest.raises(Failure, match="has no results"):
        file.load(tmp_path / "f")


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("counters", "progress", math.nan),
        pytest.param("counters", "progress", 10**400, id="huge"),
        ("counters", "progress", "5"),
        ("slice", "stalls", "12"),
        ("slice", "events_lost", "1"),
        ("settings", "memory_bytes", "x"),
        ("settings", "slice_seconds", "2"),
        ("settings", "slices", 3),
        ("settings", "aa", -1),
        ("settings", "title", None),
        ("settings", "aa", 2.0),
        ("slice", "void", "no"),
        ("environment", "abi", "1"),
        ("environment", "kernel", 6),
        ("environment", "commit", ["a"]),
        ("run", "ended", 5),
    ],
)
def test_a_value_of_a_wrong_kind_is_no_result(
    tmp_path: Path, part: str, name: str, value: Any
) -> None:
    run = file.run_document(run_of([(side, {"progress": 1}) for side in "AB"]))
    (tmp_path / "f").write_text(json.dumps(run))
    assert file.load_run(tmp_path / "f").pairs == 1
    first = run["slices"][0]
    {"run": run, "slice": first, "counters": first["counters"], **run}[part][name] = value
    (tmp_path / "f").write_text(json.dumps(run))
    with pytest.raises(Failure, match="has no results"):
        file.load(tmp_path / "f")


@pytest.mark.parametrize(
    ("name", "value"), [("runs", {}), ("command", 5), ("experiment", []), ("commands", ["x"])]
)
def test_an_experiment_without_what_it_has_is_no_result(
    tmp_path: Path, name: str, value: Any
) -> None:
    results = Results("x", "c", False, "", {"one": "x"}, {"one": (result(),)})
    document = file.results_document(results)
    (tmp_path / "f").write_text(json.dumps(document))
    assert file.load_results(tmp_path / "f").boots() == 1
    (tmp_path / "f").write_text(json.dumps(document | {name: value}))
    with pytest.raises(Failure, match="has no results"):
        file.load(tmp_path / "f")


def test_one_run_and_an_experiment_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "f").write_text(file.run_text(result(), summary=True))
    assert file.load_run(tmp_path / "f") == result()
    with pytest.raises(Failure, match="is of a single run"):
        file.load_results(tmp_path / "f")
    results = Results("x", "c", False, "", {}, {"one": (result(),), "two": (result(), result())})
    (tmp_path / "g").write_text(json.dumps(file.results_document(results)))
    assert file.load_results(tmp_path / "g") == results
    names = [name.removeprefix(f"{tmp_path}/") for name in file.named(tmp_path / "g")]
    assert names == ["g, one", "g, two, boot 1", "g, two, boot 2"]
    assert (results.boots(), len(results.every())) == (1, 3)
    with pytest.raises(Failure, match="has the runs of an experiment"):
        file.load_run(tmp_path / "g")


def test_what_can_not_be_written_is_told_before(tmp_path: Path) -> None:
    file.check_writable(tmp_path / "x")
    file.check_writable(Path("/dev/null"))
    assert list(tmp_path.iterdir()) == []
    for path in (tmp_path, tmp_path / "nonesuch" / "x", Path("/proc/x")):
        with pytest.raises(Usage):
            file.check_writable(path)


def test_a_file_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = tmp_path / "old", tmp_path / "nonesuch" / "new"
    old.write_text("old")
    with pytest.raises(Failure, match="cannot write"):
        file.write({old: "x", new: "y"})
    assert (old.read_text(), list(tmp_path.iterdir())) == ("old", [old])
    file.write({old: "x"})
    assert (old.read_text(), list(tmp_path.iterdir())) == ("x", [old])
    monkeypatch.setattr(file, "unwritten", lambda _path: Path("/dev/full"))
    with pytest.raises(Failure, match="cannot write"):
        file.write({old: "y"})


@pytest.mark.parametrize(
    ("kind", "limit", "values", "holds"),
    [
        ("at most", 0.025, (0.3, 0.02), True),
        ("at most", 0.025, (0.3, 0.03), False),
        ("at most", 0, (0, 0), True),
        ("ratio", 0.03, (100, 3), True),
        ("ratio", 0.03, (100, 3.1), False),
        ("ratio", 0.03, (0, 0), False),
        ("lower", 0, (2, 1), True),
        ("lower", 0, (1, 2), False),
        ("lower", 0, (1, 1), False),
        ("no lower", 0, (1, 1), True),
        ("no lower", 0, (2, 1), False),
        ("no higher", 0, (1, 2), False),
        ("no higher", 0, (2, 1), True),
    ],
)
def test_a_goal_holds(kind: str, limit: float, values: tuple[float, float], holds: bool) -> None:
    goal = Goal("run", "what", "x", kind, limit)
    a, b = ([{"x": value, "one": 1}] * 6 for value in values)
    row = compare(MEAN, [Boot(a, b)])
    assert goal.holds(row) == holds
    assert goal.told(row).startswith(f"  goal {'reached' if holds else 'not reached'}: what: ")
    assert not goal.holds(Row("x", "x", None, None))
    assert "- with A, - with B" in goal.told(Row("x", "x", None, None))


def test_slices_that_are_added_make_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    pieces = tuple(Slice(side, {"x": number}, (1.5,), number) for number, side in enumerate("ABBA"))
    run = Result(Settings("a", "b", "", None, 1), {"kernel": "6", "lru": "x", "cpus": 1}, pieces)
    path.write_text(file.run_text(replace(run, slices=pieces[:1]), summary=False))
    for piece in pieces[1:]:
        file.append_slice(path, piece)
    assert path.read_text() == file.run_text(run, summary=False)
