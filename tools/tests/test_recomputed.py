# SPDX-License-Identifier: GPL-2.0
"""Figures of pages, computed again from the stored slices by other means, with scipy.

They are README's, those quoted in docs/results, and how sharp twins are beside slices. Nothing of
vmp is used here, so that an error of its own can't hide. Of one boot the interval is found by
asking scipy's signed-rank test which ratios it does not refuse; of twins it is that of a
regression's intercept.
"""

import json
import math
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

stats = pytest.importorskip("scipy.stats", reason="scipy is not installed")

ROOT = Path(__file__).parents[2]
STOLEN = ["vmstat.pgsteal_anon", "vmstat.pgsteal_file"]
# Counters above and below the line, the factor, and half of one, which is added on both sides.
FORMULAS: dict[str, tuple[list[str], list[str], float, float]] = {
    "reclaim_flushes_per_1000": (["stats.flush.observed_remote_flushes"], STOLEN, 1000, 0.5),
    "remote_flushes_per_1000_anon": (["vmstat.nr_tlb_remote_flush"], STOLEN[:1], 1000, 0.5),
    "total_wait_ms_per_1000": (["waits"], STOLEN, 1, 500),
    "oom_kill": (["vmstat.oom_kill"], [], 1, 0.5),
    "stolen_per_second": (STOLEN, ["seconds"], 1, 0.5),
    "tlb_shootdowns_per_1000": (["irq.TLB"], STOLEN, 1000, 0.5),
    "instructions_per_1000": (["instructions"], STOLEN, 1000, 0.5),
    "instructions_per_operation": (["instructions"], ["progress"], 1000, 0.5),
    "scanned_per_stolen": (["memcg.pgscan"], ["memcg.pgsteal"], 1, 0.5),
    "refault_file_per_operation": (
        ["vmstat.workingset_refault_file"], ["progress"], 1000, 0.5,
    ),
    "memcg_refault_file_per_operation": (
        ["memcg.workingset_refault_file"], ["progress"], 1, 0.5,
    ),
    "operations_per_second": (["progress"], ["seconds"], 1, 0.5),
    "dirty_pages": (["memcg.file_dirty"], [], 1 / 4096, 2048),  # from bytes
}  # fmt: skip
FUNCTION = re.compile(r"function\.(.*)\.(\w+)_per_1000")
ROW = re.compile(r"^\| (.*) \| \[[\w-]+\]\((?:docs/results/)?([\w-]+)\.md\) \|$", re.MULTILINE)
Slices = list[dict[str, Any]]
Boot = tuple[Slices, Slices]  # of A and of B, the n-th of which are a pair


def formula(key: str, slices: Slices) -> tuple[list[str], list[str], float, float] | None:
    """Return how a figure is made, None for one that is no sum of counters."""
    counted = "progress" in slices[0]["counters"]
    if found := FUNCTION.fullmatch(key):
        below = ["progress"] if counted else STOLEN
        return [f"function.{found[1]}.{found[2]}"], below, 1000, 0.5
    if key == "instructions_per_1000" and counted:
        return FORMULAS["instructions_per_operation"]
    return FORMULAS.get(key)


def total(slices: Slices, names: list[str]) -> float:
    """Return the sum of some counters over slices."""
    waits = [piece["counters"].get("stall_total_us", sum(piece.get("stalls") or []))
             for piece in slices]  # fmt: skip
    if names == ["waits"]:
        return float(sum(waits))
    return float(sum(piece["counters"][name] for piece in slices for name in names))


def figure(key: str, slices: Slices) -> tuple[float, float, float]:
    """Return a figure over slices, what is below its line, and its half of one before that."""
    if found := re.fullmatch(r"stall_p(\d+)_ms", key):
        waits = sorted(wait for piece in slices for wait in piece["stalls"])
        rank = math.ceil(int(found[1]) * len(waits) / 100)
        return (waits[rank - 1] / 1000 if waits else math.nan), 1, 0.0005
    made = formula(key, slices)
    assert made, f"{key} has no formula here"
    above, below, scale, half = made
    under = total(slices, below) if below else 1
    value = scale * total(slices, above) / under if under else math.nan
    return value, under, scale * half


def contrast(key: str, a: Slices, b: Slices) -> float:
    """Return the logarithm of B's ratio to A, with half of one added."""
    (x, below_a, half), (y, below_b, _) = figure(key, a), figure(key, b)
    added = half / ((below_a + below_b) / 2)
    return math.log((y + added) / (x + added))


def signed_rank_ends(contrasts: list[float]) -> tuple[float, float]:
    """Return the ends of what the exact signed-rank test does not refuse, by bisection."""

    def p(shift: float) -> float:
        return float(stats.wilcoxon([c - shift for c in contrasts], method="exact").pvalue)

    middle = float(stats.scoreatpercentile(
        [(x + y) / 2 for i, x in enumerate(contrasts) for y in contrasts[i:]], 50))  # fmt: skip
    reach = 2 * (max(contrasts) - min(contrasts)) + 1e-6

    def end(inside: float, outside: float) -> float:
        for _ in range(60):
            half = (inside + outside) / 2
            inside, outside = (half, outside) if p(half) > 0.05 else (inside, half)
        return inside

    return end(middle, middle - reach), end(middle, middle + reach)


def regression_ends(contrasts: list[float], places: list[int]) -> tuple[float, float]:
    """Return the ends for twins: a place that is faster by itself is the slope."""
    line = stats.linregress([1 if place == 1 else -1 for place in places], contrasts)
    half = stats.t.ppf(0.975, len(contrasts) - 2) * line.intercept_stderr
    return line.intercept - half, line.intercept + half


def pair_ends(key: str, a: Slices, b: Slices) -> tuple[float, float]:
    """Return the ends of the interval that the pairs of one boot have."""
    pairs = [(contrast(key, [x], [y]), x.get("place")) for x, y in zip(a, b, strict=True)]
    contrasts = [value for value, _ in pairs if not math.isnan(value)]
    if places := [place for value, place in pairs if place and not math.isnan(value)]:
        return regression_ends(contrasts, places)
    return signed_rank_ends(contrasts)


def recomputed(key: str, boots: list[Boot]) -> tuple[float, float, float, float]:
    """Return a figure of A and of B over all boots, and the ends of the interval in percent."""
    a, b = ([piece for boot in boots for piece in boot[side]] for side in (0, 1))
    if len(boots) >= 5 or (len(boots) > 1 and any(figure(key, [x])[0] == 0 for x in a + b)):
        found = stats.ttest_1samp([contrast(key, *boot) for boot in boots], 0)
        low, high = found.confidence_interval(0.95)
    else:
        ends = [pair_ends(key, *boot) for boot in boots]
        low, high = min(low for low, _ in ends), max(high for _, high in ends)
    before, after = figure(key, a)[0], figure(key, b)[0]
    lowest = -100 if before and not after else 100 * math.expm1(float(low))
    return before, after, lowest, 100 * math.expm1(float(high))


def sides(run: dict[str, Any]) -> Boot:
    """Return the slices of A and of B, without the pairs in which one is void."""
    pairs = zip(run["slices"][::2], run["slices"][1::2], strict=False)
    every = [
        piece for pair in pairs if not any(each.get("void") for each in pair) for piece in pair
    ]
    a, b = ([piece for piece in every if piece["side"] == side] for side in "AB")
    return a, b


def candidates(experiment: str) -> list[tuple[str, list[Boot]]]:
    """Return the figures and runs that a page of an experiment has rows of."""
    made = tomllib.loads((ROOT / "tools/experiments" / f"{experiment}.toml").read_text())
    found = []
    for path in sorted((ROOT / "docs/results" / experiment).glob("*.json")):
        runs = json.loads(path.read_text())["runs"]
        runs = {name: run if isinstance(run, list) else [run] for name, run in runs.items()}
        for each in made["figures"]:
            for name in each.get("runs", runs):
                if name not in runs:
                    continue
                boots = [sides(run) for run in runs[name]]
                if other := each.get("against"):
                    if name == other or other not in runs:
                        continue
                    boots = [(first["slices"], second["slices"]) for first, second in zip(
                        runs[other], runs[name], strict=False)]  # fmt: skip
                found.append((each["row"], boots))
    return found


def number(text: str) -> float:
    """Return a number of the table."""
    return float(text.replace(",", "").replace("%", "").replace("+", "").strip())


def close(told: str, found: float) -> bool:
    """Tell if a figure of the table is what was found: whole from 1,000 on, else four digits."""
    value = number(told)
    margin = 0.5 if abs(value) >= 1000 else 0.0006 * abs(value)
    return abs(value - found) <= margin + 1e-9


def rows(document: str) -> list[tuple[list[str], str]]:
    """Return the cells of the rows of a document's table of figures, and their experiments."""
    text = (ROOT / document).read_text()
    found = [(row.split(" | "), name) for row, name in ROW.findall(text)]
    return [(cells[-4:], name) for cells, name in found if len(cells) >= 5]


QUOTED = [(document, *row) for document in ("README.md", "docs/results/README.md")
          for row in rows(document)]  # fmt: skip


def test_there_are_rows() -> None:
    assert len(QUOTED) == 21


@pytest.mark.parametrize(("document", "cells", "experiment"), QUOTED,
                         ids=lambda each: each if isinstance(each, str) else each[0])  # fmt: skip
def test_a_row_is_what_the_slices_say(document: str, cells: list[str], experiment: str) -> None:
    before, after, change, interval = cells
    tries = []
    for key, boots in candidates(experiment):
        try:
            a, b, low, high = recomputed(key, boots)
        except (AssertionError, KeyError, ValueError):
            continue  # a figure that no row of README has
        if not (close(before, a) and close(after, b)):
            tries.append((key, a, b))
            continue
        ends = [number(end) for end in interval.split(" to ")]
        if number(change) == pytest.approx(100 * (b - a) / a, abs=0.051) and ends == pytest.approx(
            [low, high], abs=0.051
        ):
            return
        tries.append((key, low, high))
    pytest.fail(f"{document}: no run has {cells}; found {tries}")


SHARP = re.compile(r"^\| (\w+) \| (\d) \| (twins|slices) \| (\d+) s \| (.*) \|$", re.MULTILINE)
COMPARED = ("memcg_refault_file_per_operation", "operations_per_second", "dirty_pages")


def compared(by: str, load: str, boot: int) -> tuple[float, list[tuple[float, float]]]:
    """Return for how long a boot counted, and the ends of its intervals, as logarithms."""
    path = ROOT / f"docs/results/feedback-{by}/6.12.118.json"
    a, b = sides(json.loads(path.read_text())["runs"][load][boot - 1])
    at_once = 2 if by == "twins" else 1
    seconds = total(a + b, ["seconds"]) / at_once
    return seconds, [pair_ends(key, a, b) for key in COMPARED]


def test_how_sharp_twins_are_is_what_the_slices_say() -> None:
    """At equal time: an interval shrinks with the root of the time that was counted."""
    table = SHARP.findall((ROOT / "docs/results/twins.md").read_text())
    assert len(table) == 8
    for twins, slices in zip(table[::2], table[1::2], strict=True):
        load, boot = twins[0], int(twins[1])
        found = [compared(row[2], load, boot) for row in (twins, slices)]
        for row, (seconds, intervals) in zip((twins, slices), found, strict=True):
            assert number(row[3]) == pytest.approx(seconds, abs=0.51)
            told = row[4].split(" | ")[:3]
            ends = [number(end) for each in told for end in each.split(" to ")]
            assert ends == pytest.approx(
                [100 * math.expm1(end) for each in intervals for end in each], abs=0.051
            )
        (short, sharp), (long, wide) = found
        percents = [100 * (x[1] - x[0]) / (y[1] - y[0]) * math.sqrt(short / long)
                    for x, y in zip(sharp, wide, strict=True)]  # fmt: skip
        assert [number(each) for each in twins[4].split(" | ")[3:]] == pytest.approx(
            percents, abs=0.51
        )
