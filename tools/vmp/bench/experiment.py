# SPDX-License-Identifier: GPL-2.0
"""An experiment: what was published, and what is run to see it again, read from a file of data."""

import shlex
import tomllib
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any

from vmp.common import REPO, Failure, Usage, sources
from vmp.result.goals import NOT_UP
from vmp.result.model import SLICES, slices_needed

SUFFIX = ".toml"
PLAN = "plan"  # a file beside the experiments that is none
PAGES = REPO / "docs" / "results"
DISK = "{disk}"  # in a command: where there is a blank disk


@dataclass(frozen=True)
class Figure:
    """A figure of ours, one of the primary ones, and the change that was published."""

    what: str  # in words
    row: str  # of ab's table: its key
    published: float | str = ""  # percent, 0 for no change; or only "up", "down" or "not up"
    runs: tuple[str, ...] = ()  # where it is looked at; () is everywhere
    against: str = ""  # the run to compare the runs with, side for side; "" compares A and B
    cannot: str = ""  # why an emulated guest can't show it

    @property
    def keys(self) -> tuple[str, str]:
        """Return the row's key in a guest, and here, where a clock stands for instructions."""
        return self.row, self.row.replace(".instructions_", ".us_")

    def seen(self, here: bool) -> bool:
        """Tell if it can be seen: on this machine, or in an emulated guest."""
        return here or not self.cannot


@dataclass(frozen=True)
class Scale:
    """How large an experiment is, in an emulated guest or on a real machine."""

    ab: str  # options of ab
    vm: str = ""  # options of the guest
    command: str = ""  # the workload, where ab has none of that name; for a shell
    service: dict[str, str] = field(default_factory=dict)  # the environment of the service's script


@dataclass(frozen=True)
class Curve:
    """Runs that differ in one number."""

    of: str  # what the number is, in words
    at: dict[str, float]  # the number of each run, above 0


@dataclass(frozen=True)
class Experiment:
    """What one file says. `runs` are options of ab by the name of a run, one after the other."""

    name: str
    title: str
    about: str
    published: str  # what was published, by whom, under which conditions; in words
    ab: str  # options of ab at any scale
    emulated: Scale
    real: Scale
    figures: tuple[Figure, ...]  # none where the runs are of one setting twice: what chance marks
    runs: dict[str, str] = field(default_factory=lambda: {"ab": ""})
    kernels: tuple[str, ...] = ("6.12",)  # those that it is about
    curve: Curve | None = None  # along which figures grow
    service: str = ""  # a script beside the file, which runs ab while the service is there
    needs: tuple[str, ...] = ()  # Debian packages besides those of tools/setup
    minutes: int = 5  # that it takes in the guest, about

    def scale(self, here: bool) -> Scale:
        """Return the size for this machine, or for a guest."""
        return self.real if here else self.emulated

    def primary(self, run: str, here: bool, against: str = "") -> list[str]:
        """Return the rows that a run is looked at for, by itself or against another run."""
        figures = (
            f for f in self.figures if (not f.runs or run in f.runs) and f.against == against
        )
        return list(dict.fromkeys(f.keys[here] for f in figures if f.seen(here)))

    def words(self, run: str, here: bool, out: str) -> list[str]:
        """Return the command that does one run, and leaves what was measured in the file `out`."""
        scale = self.scale(here)
        words = ["tools/ab", "--json", out]
        words += ["--primary", ",".join(keys)] if (keys := self.primary(run, here)) else []
        words += shlex.split(f"{self.ab} {scale.ab} {self.runs[run]}")  # which may end in a command
        words += ["--", "sh", "-c", scale.command.strip()] if scale.command else []
        if self.service:
            settings = [f"{name}={value}" for name, value in scale.service.items()]
            words = ["env", *settings, f"tools/experiments/{self.service}", *words]
        return words

    def check(self, here: bool) -> None:
        """Raise Usage if a run has too few slices to tell a difference in its primary figures."""
        for run in self.runs:
            options = self.words(run, here, "")
            slices = [int(n) for word, n in pairwise(options) if word == "--slices"] or [SLICES]
            needed = slices_needed(len(self.primary(run, here)), "--twins" in options)
            if self.primary(run, here) and slices[-1] < needed:
                raise Usage(
                    f"{self.name}, {run}: {slices[-1]} slices can't tell a difference in "
                    f"{len(self.primary(run, here))} primary figures: it takes --slices {needed}"
                )

    def only(self, run: str) -> "Experiment":
        """Return the experiment with one of its runs; raise Usage for one that it has not."""
        if run not in self.runs:
            raise Usage(f"{self.name} has no run '{run}': there are {', '.join(self.runs)}")
        return replace(self, runs={run: self.runs[run]})

    def needs_disk(self, here: bool) -> bool:
        """Tell if it works on a disk."""
        return any(DISK in word for run in self.runs for word in self.words(run, here, ""))


def directory() -> Path:
    """Return where the experiments' files are."""
    return sources("experiments")


def names() -> list[str]:
    """Return the experiments that there are."""
    return sorted({path.stem for path in directory().glob(f"*{SUFFIX}")} - {PLAN})


def made(kind: type, what: str, values: dict[str, Any]) -> Any:
    """Return a `kind` of the file's values; raise Failure for a name that it has not."""
    known = {f.name for f in fields(kind)}
    if unknown := sorted(set(values) - known):
        raise Failure(f"{what}: unknown '{unknown[0]}', allowed are {', '.join(sorted(known))}")
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
    try:
        return kind(**values)
    except TypeError as error:
        raise Failure(f"{what}: {str(error).partition(') ')[2] or error}") from None


def parse(name: str, text: str) -> Experiment:
    """Return the experiment that a file's text tells; raise Failure for what is wrong with it."""
    try:
        found = from_values(name, tomllib.loads(text))
        for here, run in product((False, True), found.runs):
            found.words(run, here, "")
    except (AttributeError, TypeError, ValueError) as error:
        raise Failure(f"experiment {name}: {error}") from None
    return found


def from_values(name: str, values: dict[str, Any]) -> Experiment:
    """Return the experiment that a file has; raise what parse() knows for what is wrong with it."""
    for scale in ("emulated", "real"):
        if scale in values:
            values[scale] = made(Scale, f"experiment {name}, [{scale}]", values[scale])
    if "curve" in values:
        values["curve"] = made(Curve, f"experiment {name}, [curve]", values["curve"])
    values["figures"] = tuple(
        made(Figure, f"experiment {name}, [[figures]]", each) for each in values.get("figures", [])
    )
    found: Experiment = made(Experiment, f"experiment {name}", {"name": name, **values})
    for figure in found.figures:
        if isinstance(figure.published, str) and figure.published not in ("up", "down", NOT_UP, ""):
            raise Failure(
                f"experiment {name}: '{figure.what}': published is a number, up, down or {NOT_UP}"
            )
        for run in {*figure.runs, *filter(None, [figure.against])} - set(found.runs):
            raise Failure(f"experiment {name}: '{figure.what}' names no run of it, '{run}'")
    for run, at in found.curve.at.items() if found.curve else ():
        if run not in found.runs or at <= 0:
            raise Failure(f"experiment {name}, [curve]: '{run}' is no run, or at no number above 0")
    return found


def find(name: str) -> Experiment:
    """Return an experiment; raise Usage for a name that there is not."""
    if name not in names():
        raise Usage(f"there is no experiment '{name}': there are {', '.join(names())}")
    return parse(name, (directory() / f"{name}{SUFFIX}").read_text())
