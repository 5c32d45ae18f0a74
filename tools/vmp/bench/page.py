# SPDX-License-Identifier: GPL-2.0
"""The page of an experiment: what was published, what was found here, and the verdicts."""

from textwrap import fill

from vmp.bench import curve
from vmp.bench.experiment import Experiment, Figure
from vmp.bench.measured import counting, measured
from vmp.bench.registered import told
from vmp.form import interval, number, percent
from vmp.result.goals import CANNOT, rule, verdict
from vmp.result.model import CHOICES, Results, Row
from vmp.result.table import pieces

WIDTH = 100
HEAD = (
    "| figure | where | A | B | ours | 95 % interval | p | boots | visible | published | verdict |"
)
CHANCE_HEAD = "| where | primary figures | runs | marked | of 2 as boots | of 5 as boots |"
TOGETHER = (1, 2, 5)  # so many runs of one setting are judged together
AS_BOOTS = (
    "The last columns are of "
    f"{CHOICES} choices, by coin, of two and of five of the runs, judged as boots are: the share "
    "that has a mark. As both sides are the same, what a boot does to the load is in both, and "
    "runs in one boot can stand for boots."
)
INTERVAL = (
    "A, B and the change are of all slices together. Of one boot the interval is of B's ratio to A "
    "in pairs of neighbouring slices, so the change may lie outside where a few slices outweigh "
    "the others, and p is that of the signed-rank test over the same pairs; of twins it is the "
    "t test over periods. Of two to four boots each is judged so: the interval is from the lowest "
    "of their ends to the highest, and p is the largest of theirs, 1 where they do not agree. Of "
    "five or more, and of fewer where a slice has none or A is another run, interval and p are "
    "those of Student's t over one ratio a boot. The column says between which changes the boots "
    "lie. Half a count is added to each side, which pulls the ratio of one boot's rare events, "
    "such as OOM kills, towards none. p is corrected for the number of the run's figures. "
    "*Visible* is the smallest fall or rise that four runs of five like this one would have told."
)
SUPERSEDED = "These results are not the ones that count: "


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


def by_boot(row: Row) -> str:
    """Return the number of boots, and of several the changes of the lowest and of the highest."""
    if not row.boots:
        return "one"
    return f"{len(row.boots)}: {interval((min(row.boots), max(row.boots)))}"


def visible(row: Row) -> str:
    """Return the smallest changes that would have been told."""
    return " or ".join(percent(end, None) for end in row.visible) if row.visible else "-"


def rows(experiment: Experiment, results: Results) -> list[str]:
    """Return the table's rows of one file of results."""
    lines = []
    for figure, run, found in measured(experiment, results):
        where = place(experiment, results, f"{figure.against} and {run}" if figure.against else run)
        hidden = not figure.seen(results.here)
        said = CANNOT if hidden else verdict(figure.published, found)
        p = "-" if found.p_corrected is None or hidden else f"{found.p_corrected:.2g}"
        ends = interval(found.ends if found.before else None)
        change = percent(0.0 if found.delta == 0 else found.percent)
        ours = (number(found.before), number(found.after), change, ends)
        sure = (p, by_boot(found), "-" if hidden else visible(found))
        cells = (figure.what, where, *ours, *sure, published(figure), f"**{said}**")
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def table(experiment: Experiment, every: list[Results]) -> str:
    """Return the table of verdicts."""
    lines = [line for results in every for line in rows(experiment, results)]
    return "\n".join([HEAD, "|---" * HEAD.count(" |") + "|", *lines])


def judged(experiment: Experiment, every: list[Results]) -> list[str]:
    """Return the part of the page with the verdicts."""
    why = list(dict.fromkeys(line for r in every for line in reasons(experiment, r.here)))
    parts = ["## Verdicts", table(experiment, every)]
    if why:
        parts += ["What an emulated guest can't show:", "\n".join(why)]
    return [*parts, text(f"{rule([f.published for f in experiment.figures])} {INTERVAL}")]


def slopes(experiment: Experiment, every: list[Results]) -> list[str]:
    """Return the part of the page with how figures grow along a curve, if the runs are one."""
    lines = curve.lines(experiment, every)
    if not lines:
        return []
    drawn = f"![The first rows, on logarithmic scales]({experiment.name}.svg)"
    return ["## Slopes", "\n".join(lines), text(curve.MEANING), drawn]


def share(families: list[list[str]]) -> str:
    """Return how many of some families of figures have a mark, in percent."""
    return f"{100 * sum(map(bool, families)) / len(families):.1f} %" if families else "-"


def chance_table(experiment: Experiment, every: list[Results]) -> str:
    """Return the table of runs of one setting twice: what was marked by chance."""
    lines = [CHANCE_HEAD, "|---" * CHANCE_HEAD.count(" |") + "|"]
    total: dict[int, list[list[str]]] = {count: [] for count in TOGETHER}
    for results in every:
        for run, result in ((run, boot) for run, boots in results.runs.items() for boot in boots):
            found = {count: result.by_chance(count) for count in TOGETHER}
            for count, families in found.items():
                total[count] += families
            primary = ", ".join(f"`{key}`" for key in result.settings.primary)
            marks = "; ".join(", ".join(f"`{key}`" for key in keys) for keys in found[1] if keys)
            cells = (place(experiment, results, run), primary, str(len(found[1])), marks or "none")
            lines.append(f"| {' | '.join((*cells, share(found[2]), share(found[5])))} |")
    shares = " | ".join(share(families) for families in total.values())
    return "\n".join([*lines, f"| all | | {len(total[1])} | {shares} |"])


def reasons(experiment: Experiment, here: bool) -> list[str]:
    """Return why some figures can't be seen in a guest."""
    said = {figure.what: figure.cannot for figure in experiment.figures if not figure.seen(here)}
    return [text(f"- {what}: {why}", "  ") for what, why in said.items()]


def commands(results: Results) -> list[str]:
    """Return the commands that were run, one a line."""
    vm = f"tools/vm {results.vm} -- \\\n\t" if results.vm else ""
    return [vm + command for command in results.commands.values()]


def compared(results: Results) -> str:
    """Say what A and B were, in which sizes."""
    lines = []
    for name, boots in results.runs.items():
        result = boots[0]
        what, where = result.settings, result.environment
        both = f", both {what.both}" if what.both != "(nothing)" else ""
        line = (
            f"- {name}, Linux {result.kernel()}: A `{what.a}`, B `{what.b}`{both}; "
            f"{where['lru']} LRU, {where['cpus']} CPUs, {(what.memory_bytes or 0) >> 20} MiB, "
            f"{pieces(result)}; "
            f"{len(boots)} boot{'s' * (len(boots) > 1)}, "
            f"{' and '.join(dict.fromkeys(map(told, boots)))}"
        )
        lines.append(text(line, "  "))
    return "\n".join(lines)


def old(experiment: Experiment, every: list[Results]) -> list[str]:
    """Return the part of the page with results that do not count any more, and why."""
    parts = ["## Superseded"] if every else []
    for results in every:
        part = table if experiment.figures else chance_table
        parts += [text(f"{SUPERSEDED}{results.superseded}"), part(experiment, [results])]
    return parts


def render(experiment: Experiment, files: list[Results]) -> str:
    """Return the page of an experiment's results, one for each kernel or machine."""
    name = experiment.name
    every = counting(files)
    parts = [
        "<!-- SPDX-License-Identifier: GPL-2.0 -->\n"
        f"<!-- Made by: tools/bench page docs/results/{name}/*.json -->",
        f"# {experiment.title}",
        text(experiment.about),
        text("**Published:** " + experiment.published),
        "```text\n" + "\n".join(f"$ {results.command}" for results in every) + "\n```",
        *(
            judged(experiment, every)
            if experiment.figures
            else ["## Marked by chance", chance_table(experiment, every), text(AS_BOOTS)]
        ),
        *slopes(experiment, every),
        "## What was compared",
        "\n".join(compared(results) for results in every),
        "```text\n" + "\n".join(dict.fromkeys(c for r in every for c in commands(r))) + "\n```",
        *old(experiment, [results for results in files if results.superseded]),
    ]
    return "\n\n".join(parts) + "\n"
