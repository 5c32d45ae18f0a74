# SPDX-License-Identifier: GPL-2.0
"""What a figure of ours says of one that was published."""

import math
from dataclasses import dataclass
from typing import Any

from vmp.ab.compare import summarize, with_stalls
from vmp.ab.significance import SIGNIFICANT
from vmp.bench.experiment import NOT_UP, Experiment, Figure

ENOUGH = 0.5  # of the published change
EQUAL = 10  # percent: a change that is surely smaller is none

REPRODUCED = "reproduced"
DIRECTION = "same direction"
NOT_SEEN = "not seen"
OTHER_WAY = "the other way"
CHANGED = "a change, none was published"
NOISY = "too noisy to tell"
FEW = "too few slices to tell"
CANNOT = "can't be seen here"
OURS_ALONE = "no figure was published"
MISSING = "no figure here"
BETTER = "better"
WORSE = "worse"
NO_WORSE = "no worse beyond the noise"

RULE = (
    f"*{REPRODUCED}*: a change in the published direction, with a p below {SIGNIFICANT}, of at "
    f"least half the published percentage. *{DIRECTION}*: such a change, but a smaller one, or "
    f"only the direction was published. *{NOT_SEEN}*: no change with a p below {SIGNIFICANT}; "
    f"*{FEW}*: none, but an interval without 0, and so few slices that no p can be below. "
    f"*{OTHER_WAY}*: one in the other direction. *{CANNOT}*: what the emulator does not have. "
    f"Where no change was published, *{REPRODUCED}* is an interval within {EQUAL} % either way, "
    f"*{CHANGED}* another with a p below {SIGNIFICANT}, and *{NOISY}* any other."
)
RISE_RULE = (
    f"Where a figure only has not to rise, *{BETTER}* and *{WORSE}* are changes with a p below "
    f"{SIGNIFICANT}, *{NO_WORSE}* any other."
)


def rule(experiment: Experiment) -> str:
    """Return in words how the figures of an experiment are judged."""
    kinds = {figure.published == NOT_UP for figure in experiment.figures}
    return " ".join([RULE] * (False in kinds) + [RISE_RULE] * (True in kinds))


@dataclass(frozen=True)
class Measured:
    """What runs found of a figure: A, B, and the change in percent with its interval and p."""

    before: float | None
    after: float | None
    percent: float | None
    interval: tuple[float, float] | None
    p: float | None
    least: float = 0.0  # p, with so many slices and figures


def no_change(found: Measured, significant: bool) -> str:
    """Judge a figure for which no change was published."""
    if found.percent == 0 or (
        found.interval and -EQUAL < found.interval[0] and found.interval[1] < EQUAL
    ):
        return REPRODUCED
    return CHANGED if significant else NOISY


def verdict(figure: Figure, found: Measured, here: bool) -> str:
    """Judge what was found of a figure; `here` is a real machine."""
    percent, significant = found.percent, found.p is not None and found.p < SIGNIFICANT
    if figure.cannot and not here:
        return CANNOT
    if percent is None:
        return MISSING
    if figure.published == "":
        return OURS_ALONE
    if figure.published == 0:
        return no_change(found, significant)
    if figure.published == NOT_UP:
        return NO_WORSE if not significant else WORSE if percent > 0 else BETTER
    if not significant:
        without_0 = found.interval and found.interval[0] * found.interval[1] > 0
        return FEW if without_0 and found.least >= SIGNIFICANT else NOT_SEEN
    if isinstance(figure.published, str):
        return DIRECTION if (percent > 0) == (figure.published == "up") else OTHER_WAY
    if percent * figure.published < 0:
        return OTHER_WAY
    return REPRODUCED if abs(percent) >= ENOUGH * abs(figure.published) else DIRECTION


def sides(report: dict[str, Any], against: dict[str, Any] | None) -> list[tuple[str, Any]]:
    """Return the slices with their sides. `against` another run all of that one's are A, ours B."""
    own = [(piece["side"], with_stalls(piece)) for piece in report["slices"]]
    if against is None:
        return own
    others = [("A", with_stalls(piece)) for piece in against["slices"]]
    number = min(len(others), len(own))
    return others[:number] + [("B", piece) for _, piece in own[:number]]


def relative(before: float | None, after: float | None) -> float | None:
    """Return a change in percent, which is without end where there was nothing before."""
    if before is None or after is None:
        return None
    if before == after:
        return 0.0
    return 100 * (after - before) / before if before else math.copysign(math.inf, after)


def look_up(
    figure: Figure, primary: list[str], report: dict[str, Any], other: dict[str, Any] | None
) -> Measured:
    """Return what a run found of a figure; p is corrected for the number of `primary` ones."""
    keys = {figure.row, figure.row.replace(".instructions_", ".us_")}  # where a clock is one
    slices = sides(report, other)
    summary = summarize(slices, primary)
    least = max(1, len(primary)) * 2.0 ** (1 - len(slices) // 2)
    rows = (row for section in summary.values() for row in section)
    found = next((row for row in rows if row["key"] in keys), {})
    before, after = found.get("before"), found.get("after")
    low, high = found.get("low_percent"), found.get("high_percent")
    interval = None if low is None or high is None else (low, high)
    p = found.get("p_corrected")
    return Measured(before, after, relative(before, after), interval, p, least)


def measured(experiment: Experiment, results: dict[str, Any]) -> list[tuple[Figure, str, Measured]]:
    """Return what was measured of each figure, run by run."""
    runs, here, found = results["runs"], results["here"], []
    for figure in experiment.figures:
        for name in figure.runs or experiment.runs:
            if {name, figure.against} - {""} <= runs.keys() and name != figure.against:
                other = runs.get(figure.against) if figure.against else None
                primary = experiment.primary(name, here, figure.against)
                found.append((figure, name, look_up(figure, primary, runs[name], other)))
    return found
