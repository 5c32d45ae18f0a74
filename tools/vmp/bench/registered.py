# SPDX-License-Identifier: GPL-2.0
"""Figures are chosen before a run: the commit that has them is older than any result."""

from typing import Any

from vmp.bench.experiment import SUFFIX, Experiment, parse
from vmp.checkout import COMMIT, DIRTY, git
from vmp.common import Failure
from vmp.result.model import Result, Results

LOST = "lost"  # in a result's environment, written by hand: no history has the commit any more
AGAIN = "measure again, or say in the file why it is superseded"


def chosen(experiment: Experiment, here: bool) -> tuple[Any, ...]:
    """Return the figures and sizes of an experiment, without what is only told."""
    figures = [(f.row, f.published, f.runs, f.against, bool(f.cannot)) for f in experiment.figures]
    sizes = (experiment.ab, experiment.scale(here), experiment.runs, experiment.service)
    return (*sizes, figures)


def registered(experiment: Experiment, here: bool) -> str | None:
    """Return the commit that made figures and sizes what they are; None if there is none yet."""
    path, found = f"tools/experiments/{experiment.name}{SUFFIX}", None
    for commit in (git("log", "--format=%H", "--", path) or "").split():
        try:
            then = parse(experiment.name, git("show", f"{commit}:{path}") or "")
        except Failure:
            break  # the file had another form
        if chosen(then, here) != chosen(experiment, here):
            break
        found = commit
    return found


def is_registered(results: Results) -> bool:
    """Tell if all boots say at which commit they were made, and it is there to be looked at."""
    return None not in map(made_at, results.every())


def made_at(result: Result) -> str | None:
    """Return the commit that a run was made at; None if it tells none, or that is lost."""
    where = result.environment
    return None if where.get(LOST) else where.get(COMMIT)


def sizes(result: Result) -> tuple[Any, ...]:
    """Return what the boots of a run have in common."""
    what, where = result.settings, result.environment
    return (what.a, what.b, what.both, what.memory_bytes, what.slices, what.slice_seconds,
            what.twins, what.turnovers, where.get("lru"), where.get("cpus"))  # fmt: skip


def check(experiment: Experiment, results: Results) -> None:
    """Raise Failure for results that can't be one, or are older than what they are judged by.

    Results without a commit pass: they are shown as what they are. So do those whose commit is
    lost, and superseded ones.
    """
    if results.superseded:
        return
    for name, boots in results.runs.items():
        if len(set(map(sizes, boots))) > 1:
            raise Failure(
                f"{experiment.name}, {name}: the boots of the result on {results.kernel()} differ "
                f"in their sides or sizes: {AGAIN}"
            )
    made = {commit for run in results.every() if (commit := made_at(run))}
    if not made:
        return
    if any(made_at(run) and run.environment.get(DIRTY) for run in results.every()):
        raise Failure(
            f"{experiment.name}: the result on {results.kernel()} was made with changes that were "
            f"in no commit: {AGAIN}"
        )
    since = registered(experiment, results.here)
    for name, boots in results.runs.items():
        asked = experiment.primary(name, results.here)
        if asked and any(list(boot.settings.primary) != asked for boot in boots):
            raise Failure(
                f"{experiment.name}, {name}: the result on {results.kernel()} has other primary "
                f"figures than the experiment: {AGAIN}"
            )
    for commit in made:
        if since is None or git("merge-base", "--is-ancestor", since, commit) is None:
            raise Failure(
                f"{experiment.name}: the result on {results.kernel()} was made at commit "
                f"{commit[:12]}, and figures or sizes were chosen "
                f"{f'at {since[:12]}, which is not before it' if since else 'in no commit yet'}: "
                f"{AGAIN}"
            )


def told(result: Result) -> str:
    """Say at which commit a run was made."""
    commit = result.environment.get(COMMIT)
    if not commit:
        return "made before figures were registered"
    changed = " with changes that were not committed" if result.environment.get(DIRTY) else ""
    lost = " (lost)" if result.environment.get(LOST) else ""
    return f"made at {commit[:12]}{changed}{lost}"
