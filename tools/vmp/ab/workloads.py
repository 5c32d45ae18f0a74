# SPDX-License-Identifier: GPL-2.0
"""The workloads that ab knows, from workloads.toml."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vmp.common import read_data
from vmp.control.counters import parse_progress

TWIN = "{twin}"  # in a command: which of two copies it is, 1 or 2

# Settings of all points, to compare.
STOCK = (
    "flush=stock,scan=stock,aging=continue,writeback=stock,throttle=stock,unmap=stock,young=stock"
)
ALL = (
    "flush=batch,scan=budget,aging=continue,writeback=feedback,throttle=all,unmap=batch,young=batch"
)

# Fields of fio's terse output, version 3: KiB read and KiB written so far.
FIO_VERSION, FIO_READ, FIO_WRITTEN = 0, 5, 46
FIO_BLOCK = 4  # KiB


def fio_operations(text: str) -> float | None:
    """Return the I/Os in the last whole line of fio's terse output; None if there is none."""
    lines = [line.split(";") for line in text.splitlines(keepends=True) if line.endswith("\n")]
    whole = [f for f in lines if len(f) > FIO_WRITTEN and f[FIO_VERSION] == "3"]
    return (int(whole[-1][FIO_READ]) + int(whole[-1][FIO_WRITTEN])) / FIO_BLOCK if whole else None


@dataclass(frozen=True)
class Workload:
    """A command that runs until it is killed, and what it runs in.

    In the command's words ab replaces {programs} by the directory of what tools/workloads builds,
    {directory} by where the disk is mounted, {progress} by the file to count in, {folio} by the
    size of large folios in KiB, {twice} by twice the cgroup's limit in MiB, and {twin} by 1 or 2.
    """

    command: tuple[str, ...]
    title: str = ""  # for the table, where the command is too long
    program: str = ""  # what has to be installed, where it is not the command's first word
    memory: str = "64M"  # the cgroup's limit unless --memory is given
    swap: str = "any"  # "needed", "none" (it gets none) or "any"
    disk: str = ""  # the file system of the disk that it works on, if it does
    progress: Callable[[str], float | None] | None = None  # parses {progress}; None: no such file
    pages_out: bool = False  # reclaims its memory itself, or needs none: no limit is met
    # Keys of what it is there to tell: the primary figures unless others are named.
    primary: tuple[str, ...] = ("reclaim_flushes_per_1000", "scanned_per_stolen")

    def compiled(self) -> bool:
        """Tell if a program of tools/workloads is needed."""
        return any("{programs}" in word for word in self.command)

    def large(self) -> bool:
        """Tell if it is about large folios, of a size that is chosen."""
        return "{folio}" in self.command

    def words(self, places: dict[str, Path | int]) -> list[str]:
        """Return the command with the places put in; other braces stay as they are."""
        words = list(self.command)
        for name, place in places.items():
            words = [word.replace(f"{{{name}}}", str(place)) for word in words]
        return words


FORMS = {"count": parse_progress, "fio": fio_operations}


def workload(
    command: str, progress: str = "", primary: Sequence[str] = (), **more: Any
) -> Workload:
    """Return the workload that a table of the file describes."""
    return Workload(
        tuple(shlex.split(command)),
        progress=FORMS.get(progress),
        primary=tuple(primary) or Workload.primary,
        **more,
    )


def of_command(words: Sequence[str]) -> Workload:
    """Return the workload that a command line is: a program of ours counts in {progress}, too."""
    plain = Workload(tuple(words))
    ours = "make" if plain.compiled() else ""
    counts = any("{progress}" in word for word in words)
    return replace(plain, program=ours, progress=parse_progress if counts else None)


WORKLOADS = {name: workload(**table) for name, table in read_data(__file__).items()}
