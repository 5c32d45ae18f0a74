# SPDX-License-Identifier: GPL-2.0
"""The page of an experiment: what was published, what was found here, and the verdicts."""

import math
from textwrap import fill
from typing import Any

from vmp.ab.compare import by_chance
from vmp.bench.experiment import Experiment, Figure
from vmp.bench.verdicts import CANNOT, Measured, measured, rule, verdict

WIDTH = 100
HEAD = "| figure | where | A | B | ours | 95 % interval | p | published | verdict |"
CHANCE_HEAD = "| where | primary figures | runs | with a mark | which |"
INTERVAL = (
    "A, B and the change are of all slices together. The interval is of B's ratio to A in pairs of "
    "neighbouring slices, so the change may lie outside where a few slices outweigh the others; "
    "where a slice has nothing it is of the difference, in percent of A's typical slice, and so "
    "wide. p is that of the signed-rank test over the same pairs, corrected for the number of the "
    "run's figures."
)


def text(words: str, indent: str = "") -> str:
    """Return a paragraph in lines that are not too long; further ones start with `indent`."""
    return fill(
        " ".join(words.split()),
        WIDTH,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def number(value: float | None) -> str:
    """Format a figure; '-' for None."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def percent(value: float | None) -> str:
    """Format a change in percent; '-' for None, and where there was nothing before."""
    return "-" if value is None or math.isinf(value) else f"{value:+.1f} %"


def published(figure: Figure) -> str:
    """Return the published change in words."""
    if isinstance(figure.published, str):
        return figure.published or "-"
    return percent(figure.published) if figure.published else "no change"


def interval(found: Measured) -> str:
    """Return the interval of the change, in percent of A; of what is there no more can be gone."""
    if found.interval is None:
        return "-"
    low, high = found.interval
    low = max(low, -100) if found.before and found.before > 0 else low
    return f"{low:+.1f} to {high:+.1f} %"


def place(experiment: Experiment, results: dict[str, Any], run: str) -> str:
    """Return the kernel of some results, and the run where the experiment has several."""
    kernel = next(iter(results["runs"].values()))["environment"]["kernel"]
    here = ", a real machine" if results["here"] else ""
    return f"{kernel}{f', {run}' if len(experiment.runs) > 1 else ''}{here}"


def rows(experiment: Experiment, results: dict[str, Any]) -> list[str]:
    """Return the table's rows of one file of results."""
    lines = []
    for figure, run, found in measured(experiment, results):
        where = place(experiment, results, f"{figure.against} and {run}" if figure.against else run)
        said = verdict(figure, found, results["here"])
        p = "-" if found.p is None or said == CANNOT else f"{found.p:.2g}"
        ours = (number(found.before), number(found.after), percent(found.percent))
        cells = (figure.what, where, *ours, interval(found), p, published(figure), f"**{said}**")
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def judged(experiment: Experiment, every: list[dict[str, Any]]) -> list[str]:
    """Return the part of the page with the verdicts."""
    table = [line for results in every for line in rows(experiment, results)]
    why = list(dict.fromkeys(line for r in every for line in reasons(experiment, r["here"])))
    parts = ["## Verdicts", "\n".join([HEAD, "|---|---|---|---|---|---|---|---|---|", *table])]
    if why:
        parts += ["What an emulated guest can't show:", "\n".join(why)]
    return [*parts, text(f"{rule(experiment)} {INTERVAL}")]


def marks(experiment: Experiment, every: list[dict[str, Any]]) -> list[str]:
    """Return the part of the page of runs of one setting twice: what was marked by chance."""
    lines, total, wrong = [], 0, 0
    for results in every:
        for run, report in results["runs"].items():
            what = report["settings"]
            found = [keys for keys in by_chance(report) if keys]
            names = "; ".join(", ".join(f"`{key}`" for key in keys) for keys in found) or "-"
            primary = ", ".join(f"`{key}`" for key in what["primary"])
            cells = (
                place(experiment, results, run),
                primary,
                str(what["aa"]),
                str(len(found)),
                names,
            )
            lines.append(f"| {' | '.join(cells)} |")
            total, wrong = total + what["aa"], wrong + len(found)
    lines.append(f"| all | | {total} | {wrong}, {100 * wrong / total:.1f} % | |")
    return ["## Marked by chance", "\n".join([CHANCE_HEAD, "|---|---|---|---|---|", *lines])]


def reasons(experiment: Experiment, here: bool) -> list[str]:
    """Return why some figures can't be seen in a guest."""
    if here:
        return []
    said = {figure.what: figure.cannot for figure in experiment.figures if figure.cannot}
    return [text(f"- {what}: {why}", "  ") for what, why in said.items()]


def commands(results: dict[str, Any]) -> list[str]:
    """Return the commands that were run, one a line."""
    vm = f"tools/vm {results['vm']} -- \\\n\t" if results["vm"] else ""
    return [vm + command for command in results["commands"].values()]


def compared(results: dict[str, Any]) -> str:
    """Say what A and B were, in which sizes."""
    lines = []
    for name, report in results["runs"].items():
        what, where = report["settings"], report["environment"]
        both = f", both {what['both']}" if what["both"] != "(nothing)" else ""
        line = (
            f"- {name}, Linux {where['kernel']}: A `{what['a']}`, B `{what['b']}`{both}; "
            f"{where['lru']} LRU, {where['cpus']} CPUs, {what['memory_bytes'] >> 20} MiB, "
            f"{len(report['slices'])} slices of {what['slice_seconds']:g} s"
        )
        lines.append(text(line, "  "))
    return "\n".join(lines)


def render(experiment: Experiment, every: list[dict[str, Any]]) -> str:
    """Return the page of an experiment's results, one for each kernel or machine."""
    name = experiment.name
    parts = [
        "<!-- SPDX-License-Identifier: GPL-2.0 -->\n"
        f"<!-- Made by: tools/bench page docs/results/{name}/*.json -->",
        f"# {experiment.title}",
        text(experiment.about),
        text("**Published:** " + experiment.published),
        "```text\n" + "\n".join(f"$ {results['command']}" for results in every) + "\n```",
        *(judged(experiment, every) if experiment.figures else marks(experiment, every)),
        "## What was compared",
        "\n".join(compared(results) for results in every),
        "```text\n" + "\n".join(dict.fromkeys(c for r in every for c in commands(r))) + "\n```",
    ]
    return "\n\n".join(parts) + "\n"
