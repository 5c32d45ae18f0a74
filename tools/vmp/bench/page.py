# SPDX-License-Identifier: GPL-2.0
"""The page of an experiment: what was published, what was found here, and the verdicts."""

from textwrap import fill

from vmp.bench.experiment import Experiment, Figure
from vmp.form import interval, number, percent
from vmp.result.goals import CANNOT, rule, verdict
from vmp.result.metrics import Values
from vmp.result.model import Result, Results, Row, judge

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


def published(figure: Figure) -> str:
    """Return the published change in words."""
    if isinstance(figure.published, str):
        return figure.published or "-"
    return percent(figure.published) if figure.published else "no change"


def place(experiment: Experiment, results: Results, run: str) -> str:
    """Return the kernel of some results, and the run where the experiment has several."""
    here = ", a real machine" if results.here else ""
    return f"{results.kernel()}{f', {run}' if len(experiment.runs) > 1 else ''}{here}"


def sides(result: Result, against: Result | None) -> tuple[list[Values], list[Values]]:
    """Return the slices of A and of B; `against` another run all of that one's are A, ours B."""
    if against is None:
        return result.side("A"), result.side("B")
    number = min(len(against.slices), len(result.slices))
    a, b = ([piece.values() for piece in run.slices[:number]] for run in (against, result))
    return a, b


def look_up(figure: Figure, primary: list[str], result: Result, against: Result | None) -> Row:
    """Return what a run found of a figure, one of those `primary` that are judged together."""
    keys = {figure.row, figure.row.replace(".instructions_", ".us_")}  # where a clock is one
    every = (row for rows in judge(*sides(result, against), primary).values() for row in rows)
    return next((row for row in every if row.key in keys), Row(figure.row, "", None, None))


def measured(experiment: Experiment, results: Results) -> list[tuple[Figure, str, Row]]:
    """Return what was measured of each figure, run by run."""
    runs, found = results.runs, []
    for figure in experiment.figures:
        for name in figure.runs or experiment.runs:
            if {name, figure.against} - {""} <= runs.keys() and name != figure.against:
                other = runs[figure.against] if figure.against else None
                primary = experiment.primary(name, results.here, figure.against)
                found.append((figure, name, look_up(figure, primary, runs[name], other)))
    return found


def rows(experiment: Experiment, results: Results) -> list[str]:
    """Return the table's rows of one file of results."""
    lines = []
    for figure, run, found in measured(experiment, results):
        where = place(experiment, results, f"{figure.against} and {run}" if figure.against else run)
        hidden = figure.cannot and not results.here
        said = CANNOT if hidden else verdict(figure.published, found)
        p = "-" if found.p_corrected is None or hidden else f"{found.p_corrected:.2g}"
        change = percent(0.0 if found.delta == 0 else found.percent)
        ours = (number(found.before), number(found.after), change, interval(found.ends))
        cells = (figure.what, where, *ours, p, published(figure), f"**{said}**")
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def judged(experiment: Experiment, every: list[Results]) -> list[str]:
    """Return the part of the page with the verdicts."""
    table = [line for results in every for line in rows(experiment, results)]
    why = list(dict.fromkeys(line for r in every for line in reasons(experiment, r.here)))
    parts = ["## Verdicts", "\n".join([HEAD, "|---|---|---|---|---|---|---|---|---|", *table])]
    if why:
        parts += ["What an emulated guest can't show:", "\n".join(why)]
    return [*parts, text(f"{rule([f.published for f in experiment.figures])} {INTERVAL}")]


def marks(experiment: Experiment, every: list[Results]) -> list[str]:
    """Return the part of the page of runs of one setting twice: what was marked by chance."""
    lines, total, wrong = [], 0, 0
    for results in every:
        for run, result in results.runs.items():
            what = result.settings
            found = [keys for keys in result.by_chance() if keys]
            names = "; ".join(", ".join(f"`{key}`" for key in keys) for keys in found) or "-"
            primary = ", ".join(f"`{key}`" for key in what.primary)
            cells = (
                place(experiment, results, run),
                primary,
                str(what.aa),
                str(len(found)),
                names,
            )
            lines.append(f"| {' | '.join(cells)} |")
            total, wrong = total + what.aa, wrong + len(found)
    lines.append(f"| all | | {total} | {wrong}, {100 * wrong / total:.1f} % | |")
    return ["## Marked by chance", "\n".join([CHANCE_HEAD, "|---|---|---|---|---|", *lines])]


def reasons(experiment: Experiment, here: bool) -> list[str]:
    """Return why some figures can't be seen in a guest."""
    if here:
        return []
    said = {figure.what: figure.cannot for figure in experiment.figures if figure.cannot}
    return [text(f"- {what}: {why}", "  ") for what, why in said.items()]


def commands(results: Results) -> list[str]:
    """Return the commands that were run, one a line."""
    vm = f"tools/vm {results.vm} -- \\\n\t" if results.vm else ""
    return [vm + command for command in results.commands.values()]


def compared(results: Results) -> str:
    """Say what A and B were, in which sizes."""
    lines = []
    for name, result in results.runs.items():
        what, where = result.settings, result.environment
        both = f", both {what.both}" if what.both != "(nothing)" else ""
        line = (
            f"- {name}, Linux {where['kernel']}: A `{what.a}`, B `{what.b}`{both}; "
            f"{where['lru']} LRU, {where['cpus']} CPUs, {(what.memory_bytes or 0) >> 20} MiB, "
            f"{len(result.slices)} slices of {what.slice_seconds:g} s"
        )
        lines.append(text(line, "  "))
    return "\n".join(lines)


def render(experiment: Experiment, every: list[Results]) -> str:
    """Return the page of an experiment's results, one for each kernel or machine."""
    name = experiment.name
    parts = [
        "<!-- SPDX-License-Identifier: GPL-2.0 -->\n"
        f"<!-- Made by: tools/bench page docs/results/{name}/*.json -->",
        f"# {experiment.title}",
        text(experiment.about),
        text("**Published:** " + experiment.published),
        "```text\n" + "\n".join(f"$ {results.command}" for results in every) + "\n```",
        *(judged(experiment, every) if experiment.figures else marks(experiment, every)),
        "## What was compared",
        "\n".join(compared(results) for results in every),
        "```text\n" + "\n".join(dict.fromkeys(c for r in every for c in commands(r))) + "\n```",
    ]
    return "\n\n".join(parts) + "\n"
