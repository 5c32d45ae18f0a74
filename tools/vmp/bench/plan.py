# SPDX-License-Identifier: GPL-2.0
"""What is to be measured for the pages, how often, and what of it is left; from plan.toml."""

import tomllib
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from vmp.bench.experiment import PLAN, Experiment, directory, find, made
from vmp.bench.measured import measured
from vmp.bench.registered import check
from vmp.common import Failure, Usage
from vmp.result.file import load_results
from vmp.result.model import BOOTS, Results


@dataclass(frozen=True)
class Planned:
    """A line of the plan: an experiment, the kernel of its guests, and how many of them."""

    experiment: str
    kernel: str
    boots: int

    def found(self) -> Experiment:
        """Return the experiment."""
        return find(self.experiment)

    def left(self, results: Path) -> int:
        """Return how many boots there are still to do."""
        saved = latest(self.found(), self.kernel, results)
        return max(0, self.boots - (saved.boots() if saved else 0))

    def enough(self, results: Path) -> "Planned":
        """Return the line with as many boots as it takes: more where the saved ones differ."""
        saved = latest(self.found(), self.kernel, results)
        differ = saved and any(row.differ for _, _, row in measured(self.found(), saved))
        return replace(self, boots=max(BOOTS, self.boots)) if differ else self


def latest(experiment: Experiment, kernel: str, results: Path) -> Results | None:
    """Return the last results of all runs of an experiment in guests with a kernel, None if none.

    `kernel` is what was asked for, a series or a release. Raises Failure for results from before
    the experiment's figures were chosen.
    """
    paths = sorted(
        (results / experiment.name).glob("*.json"), key=lambda path: path.stat().st_mtime
    )
    every = [found for path in paths if not (found := load_results(path)).superseded]
    fitting = [saved for saved in every
               if ("--kernel", kernel) in pairwise(saved.command.split())
               and saved.runs.keys() == experiment.runs.keys()]  # fmt: skip
    if not fitting:
        return None
    check(experiment, fitting[-1])
    return fitting[-1]


def read(path: Path | None = None) -> list[Planned]:
    """Return the plan; raises Failure for a file that is none."""
    path = path or directory() / f"{PLAN}.toml"
    try:
        rows = tomllib.loads(path.read_text()).get("row", [])
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise Failure(f"{path.name}: {error}") from None
    found: list[Planned] = [made(Planned, f"{path.name}, [[row]]", row) for row in rows]
    for row in found:
        try:
            row.found()
        except Usage as error:
            raise Failure(f"{path.name}: {error}") from None
        if not isinstance(row.boots, int) or row.boots < 1:
            raise Failure(f"{path.name}: {row.experiment}: boots is a whole number from 1 on")
    return found


def told(plan: list[Planned], results: Path) -> str:
    """Return what is left of a plan, a line for each of its lines, and the hours in all."""
    plan = [row.enough(results) for row in plan]
    lines = [f"{'experiment':<21}{'kernel':<12}{'boots':>6}{'left':>6}{'minutes':>9}"]
    boots = minutes = 0
    for row in plan:
        left = row.left(results)
        each = row.found().minutes
        boots, minutes = boots + left, minutes + left * each
        lines.append(f"{row.experiment:<21}{row.kernel:<12}{row.boots:>6}{left:>6}{left * each:>9}")
    return "\n".join([*lines, f"To do: {boots} boots, {minutes / 60:.1f} hours of guests."])
