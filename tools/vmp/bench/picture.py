# SPDX-License-Identifier: GPL-2.0
"""The picture of a curve: how figures grow with a number, both on logarithmic scales."""

from statistics import fmean
from textwrap import fill

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator
from vmp.bench.curve import points, shown
from vmp.bench.experiment import Curve, Experiment
from vmp.form import number
from vmp.report.svg import alone, draw, style
from vmp.result.model import Results

LEGEND = 56  # characters of a line
HEIGHT = 10  # times from the lowest value to the highest, at least: chance is no growth


def paint(axes: Axes, experiment: Experiment, curve: Curve, results: Results) -> None:
    """Draw a line for each figure and side, from the means over boots."""
    settings = next(iter(results.runs.values()))[0].settings
    lines = [
        (figure, side, found)
        for figure in shown(experiment, curve, results)
        for side, found in points(experiment, curve, results, figure).items()
    ]
    for index, (figure, side, found) in enumerate(lines):
        columns = sorted({x for x, y in found if y > 0})  # 0 has no logarithm
        means = [fmean(y for x, y in found if x == at) for at in columns]
        policy = settings.a if side == "A" else settings.b
        axes.plot(columns, means, label=f"{policy}:\n{fill(figure.what, LEGEND)}", **style(index))
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    room = max(1, (HEIGHT * low / high) ** 0.5)
    axes.set_ylim(low / room, high * room)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    axes.yaxis.set_minor_formatter(NullFormatter())
    ticks = sorted(set(curve.at.values()))
    axes.set_xticks(ticks, [number(x) for x in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(curve.of)


def picture(experiment: Experiment, curve: Curve, results: Results) -> str:
    """Return the picture of one file of results, as an SVG file."""
    title = f"{experiment.title}: Linux {results.kernel()}"
    drawn = draw(experiment.name, title, lambda axes: paint(axes, experiment, curve, results))
    return alone(drawn, "tools/bench page")
