# SPDX-License-Identifier: GPL-2.0
"""What the runs of an experiment found of its figures."""

from collections.abc import Iterable, Sequence

from vmp.bench.experiment import Experiment, Figure
from vmp.result.model import Boot, Result, Results, Row, judge


def counting(files: Sequence[Results]) -> list[Results]:
    """Return the results that are not superseded."""
    return [results for results in files if not results.superseded]


def against(boots: Sequence[Result], others: Sequence[Result]) -> list[Boot]:
    """Return another run's slices as A and ours as B, boot by boot, where neither is void."""
    found = []
    for ours, other in zip(boots, others, strict=False):
        pairs = [(a.values(), b.values())
                 for a, b in zip(other.slices, ours.slices, strict=False)
                 if not (a.void or b.void)]  # fmt: skip
        found.append(Boot([a for a, _ in pairs], [b for _, b in pairs], neighbours=False))
    return found


def judged(primary: list[str], boots: Sequence[Result], others: Sequence[Result] = ()) -> list[Row]:
    """Return all rows of a run, those `primary` first; see look_up()."""
    sides = against(boots, others) if others else [result.boot() for result in boots]
    return [row for rows in judge(sides, primary).values() for row in rows]


def pick(figure: Figure, rows: Iterable[Row]) -> Row:
    """Return the row of a figure; one that has no values if there is none."""
    return next((row for row in rows if row.key in figure.keys), Row(figure.row, "", None, None))


def look_up(
    figure: Figure, primary: list[str], boots: Sequence[Result], others: Sequence[Result] = ()
) -> Row:
    """Return what a run found of a figure, one of those `primary` that are judged together.

    Of `others`, the boots of another run, all slices are A, and ours are B.
    """
    return pick(figure, judged(primary, boots, others))


def measured(experiment: Experiment, results: Results) -> list[tuple[Figure, str, Row]]:
    """Return what was measured of each figure, run by run."""
    runs, found = results.runs, []
    rows: dict[tuple[str, str], list[Row]] = {}  # of a run, and of the one that it is compared with
    for figure in experiment.figures:
        for name in figure.runs or experiment.runs:
            if {name, figure.against} - {""} <= runs.keys() and name != figure.against:
                which = name, figure.against
                if which not in rows:
                    other = runs[figure.against] if figure.against else ()
                    primary = experiment.primary(name, results.here, figure.against)
                    rows[which] = judged(primary, runs[name], other)
                found.append((figure, name, pick(figure, rows[which])))
    return found
