# SPDX-License-Identifier: GPL-2.0
"""How figures grow along a curve: runs that differ in one number."""

from statistics import fmean

from vmp.bench.experiment import Curve, Experiment, Figure
from vmp.bench.measured import look_up
from vmp.form import interval, number, percent
from vmp.result.model import Results
from vmp.result.slope import doubling

MEANING = """
*A doubling* is by how much a figure grows when the number above the columns doubles, from the
slope of the straight line through the logarithms of both: one point for each run and boot, by
ordinary least squares, with the interval of Student's t. Nothing is said of numbers beyond the
columns.
"""


Points = list[tuple[float, float]]


def along(curve: Curve, figure: Figure) -> list[str]:
    """Return the runs of the curve that the figure is looked at in."""
    return [run for run in curve.at if not figure.runs or run in figure.runs]


def points(
    experiment: Experiment, curve: Curve, results: Results, figure: Figure
) -> dict[str, Points]:
    """Return for each side the number of each run and boot that has the figure, with its value."""
    found: dict[str, Points] = {"A": [], "B": []}
    for run in along(curve, figure):
        at = curve.at[run]
        for boot in results.runs.get(run, ()):
            row = look_up(figure, experiment.primary(run, results.here), [boot])
            for side, value in (("A", row.before), ("B", row.after)):
                found[side] += [(at, value)] if value is not None else []
    return found


def shown(experiment: Experiment, curve: Curve, results: Results) -> list[Figure]:
    """Return the figures that are looked at along the curve, and can be seen there."""
    return [
        figure
        for figure in experiment.figures
        if figure.seen(results.here) and along(curve, figure)
    ]


def lines(experiment: Experiment, every: list[Results]) -> list[str]:
    """Return the table of an experiment's slopes; nothing where its runs are no curve."""
    if not (curve := experiment.curve):
        return []
    columns = sorted(set(curve.at.values()))
    cells = [curve.of, *map(number, columns), "a doubling", "95 % interval", "points"]
    table = [f"| {' | '.join(cells)} |", "|---" * len(cells) + "|"]
    for results in every:
        for figure in shown(experiment, curve, results):
            for side, found in points(experiment, curve, results, figure).items():
                means = [[y for x, y in found if x == at] for at in columns]
                growth, ends = doubling(found)
                cells = [
                    f"{figure.what}, {results.kernel()}, {side}",
                    *(number(fmean(values) if values else None) for values in means),
                    percent(growth),
                    interval(ends),
                    str(len(found)),
                ]
                table.append(f"| {' | '.join(cells)} |")
    return table
