# SPDX-License-Identifier: GPL-2.0
"""What is to be measured for the pages, how often, and what of it is left; from plan.toml."""

import re
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

from vmp.bench.experiment import PAGES, PLAN, Experiment, directory, find, made
from vmp.bench.measured import measured
from vmp.bench.registered import check, is_registered
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
        return self.missing(self.saved(results))

    def saved(self, results: Path) -> Results | None:
        """Return what there is of it, None if nothing."""
        return latest(self.found(), self.kernel, results)

    def missing(self, saved: Results | None) -> int:
        """Return how many boots there are still to do beside the saved ones."""
        return max(0, self.boots - (saved.boots() if saved else 0))

    def enough(self, saved: Results | None) -> "Planned":
        """Return the line with as many boots as it takes: more where the saved ones differ."""
        differ = saved and any(row.differ for _, _, row in measured(self.found(), saved))
        return replace(self, boots=max(BOOTS, self.boots)) if differ else self


def latest(experiment: Experiment, kernel: str, results: Path) -> Results | None:
    """Return what counts of all runs of an experiment in guests with a kernel, None if nothing.

    It is in `results`, or on the experiment's page if it was registered before: of the newest
    release, and with most boots. `kernel` is what was asked for, a series or a release. Raises
    Failure for results from before the experiment's figures were chosen.
    """
    places = (results / experiment.name, PAGES / experiment.name)
    every = [(place, load_results(path)) for place in places for path in place.glob("*.json")]
    fitting = [saved for place, saved in every
               if not saved.superseded and saved.runs.keys() == experiment.runs.keys()
               and fits(experiment, kernel, saved)
               and (place == places[0] or is_registered(saved))]  # fmt: skip
    if not fitting:
        return None
    found = max(fitting, key=lambda saved: (release(saved), saved.boots()))
    check(experiment, found)
    return found


def fits(experiment: Experiment, kernel: str, saved: Results) -> bool:
    """Tell if some results were made with a kernel: of a series, with any that has no own line."""
    words = saved.command.split()
    asked = words[words.index("--kernel") + 1] if "--kernel" in words else ""
    series, colon, architecture = kernel.partition(":")
    in_series = re.fullmatch(rf"{re.escape(series)}\.\d+{colon}{architecture}", asked)
    return asked == kernel or (bool(in_series) and asked not in experiment.kernels)


def release(saved: Results) -> tuple[int, ...]:
    """Return the numbers of the release that results are of."""
    return tuple(map(int, re.findall(r"\d+", saved.kernel().partition(":")[0])))


def read(path: Path | None = None) -> list[Planned]:
    """Return the plan; raises Failure for a file that is none."""
    path = path or directory() / f"{PLAN}.toml"
    try:
        rows = tomllib.loads(path.read_text())["row"]
        found: list[Planned] = [made(Planned, f"{path.name}, [[row]]", row) for row in rows]
    except KeyError:
        raise Failure(f"{path.name}: it has no [[row]]") from None
    except (OSError, TypeError, ValueError) as error:
        raise Failure(f"{path.name}: {error}") from None
    for row in found:
        try:
            row.found()
        except Usage as error:
            raise Failure(f"{path.name}: {error}") from None
        if type(row.boots) is not int or row.boots < 1:
            raise Failure(f"{path.name}: {row.experiment}: boots is a whole number from 1 on")
        if not isinstance(row.kernel, str):
            raise Failure(f"{path.name}: {row.experiment}: kernel is text, as in '6.12'")
    return found


def told(plan: list[Planned], results: Path) -> str:
    """Return what is left of a plan, a line for each of its lines, and the hours in all."""
    lines = [f"{'experiment':<21}{'kernel':<12}{'boots':>6}{'left':>6}{'minutes':>9}"]
    boots = minutes = 0
    for planned in plan:
        saved = planned.saved(results)
        row = planned.enough(saved)
        left = row.missing(saved)
        each = row.found().minutes
        boots, minutes = boots + left, minutes + left * each
        lines.append(f"{row.experiment:<21}{row.kernel:<12}{row.boots:>6}{left:>6}{left * each:>9}")
    return "\n".join([*lines, f"To do: {boots} boots, {minutes / 60:.1f} hours of guests."])
