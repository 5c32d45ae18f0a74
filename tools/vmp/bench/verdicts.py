# SPDX-License-Identifier: GPL-2.0
"""What a figure of ours says of one that was published."""

import math
from typing import Any

from vmp.ab.compare import summarize, with_stalls
from vmp.bench.experiment import Experiment, Figure

SIGNIFICANT = 0.05
ENOUGH = 0.5  # of the published change

REPRODUCED = "reproduced"
DIRECTION = "same direction"
NOT_SEEN = "not seen"
OTHER_WAY = "the other way"
CHANGED = "a change, none was published"
CANNOT = "can't be seen here"
OURS_ALONE = "no figure was published"
MISSING = "no figure here"

RULE = (
    f"*{REPRODUCED}*: a change in the published direction, with a p below {SIGNIFICANT}, of at "
    "least half the published percentage; or, where no change was published, none with a p below "
    f"{SIGNIFICANT}. *{DIRECTION}*: such a change, but a smaller one, or only the direction was "
    f"published. *{NOT_SEEN}*: no change with a p below {SIGNIFICANT}. *{OTHER_WAY}*: one in the "
    f"other direction. *{CANNOT}*: what the emulator does not have."
)


def verdict(figure: Figure, percent: float | None, p: float | None, here: bool) -> str:
    """Judge a change in percent with its `p`; `here` is a real machine."""
    if figure.cannot and not here:
        return CANNOT
    if percent is None:
        return MISSING
    if figure.published == "":
        return OURS_ALONE
    significant = p is not None and p < SIGNIFICANT
    if figure.published == 0:
        return CHANGED if significant else REPRODUCED
    if not significant:
        return NOT_SEEN
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


class Measured:
    """What runs found of a figure: its row, and the interval of the change."""

    def __init__(
        self,
        figure: Figure,
        primary: list[str],
        report: dict[str, Any],
        other: dict[str, Any] | None,
    ):
        """Look a figure up; its p is corrected for the number of `primary` ones of the run."""
        keys = {figure.row, figure.row.replace(".instructions_", ".us_")}  # where a clock is one
        summary = summarize(sides(report, other), primary)
        rows = (row for section in summary.values() for row in section)
        found = next((row for row in rows if row["key"] in keys), {})
        self.before: float | None = found.get("before")
        self.after: float | None = found.get("after")
        self.percent = relative(self.before, self.after)
        self.p: float | None = found.get("p_corrected")
        low, high = found.get("low_percent"), found.get("high_percent")
        self.interval = None if low is None or high is None else (low, high)


def measured(experiment: Experiment, results: dict[str, Any]) -> list[tuple[Figure, str, Measured]]:
    """Return what was measured of each figure, run by run."""
    runs, here, found = results["runs"], results["here"], []
    for figure in experiment.figures:
        for name in figure.runs or experiment.runs:
            if name in runs and name != figure.against:
                other = runs.get(figure.against) if figure.against else None
                primary = experiment.primary(name, here, figure.against)
                found.append((figure, name, Measured(figure, primary, runs[name], other)))
    return found
