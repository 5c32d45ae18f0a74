# SPDX-License-Identifier: GPL-2.0
"""Programs in C that are run here or in a guest, compiled for machines as uname calls them."""

import platform
from pathlib import Path

from vmp.common import CACHE, Words, locked, run, sources

WORKLOADS = CACHE / "workloads"  # for each machine, a directory


def prefix(machine: str) -> str:
    """Return what the names of the compiler's programs for a machine begin with."""
    return "" if machine == platform.machine() else f"{machine}-linux-gnu-"


def compile_programs(source: Path, target: Path, machine: str, what: str, *words: str) -> Path:
    """Compile what is not up to date of a directory's programs, with words for make.

    Returns the directory with the machine's, below `target`.
    """
    result = target / machine
    result.mkdir(parents=True, exist_ok=True)
    command: Words = ["make", "-C", source, f"OUT={result}", f"CC={prefix(machine)}gcc", *words]
    with locked(result / ".lock"):
        run(command, f"compiling {what}")
    return result


def compile_workloads(machine: str = platform.machine()) -> Path:
    """Compile the programs of tools/workloads where they are not up to date; return where."""
    return compile_programs(sources("workloads"), WORKLOADS, machine, "the workloads")
