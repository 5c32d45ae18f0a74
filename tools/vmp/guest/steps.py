# SPDX-License-Identifier: GPL-2.0
"""Running tools one after the other, in a guest where that is wanted, until each has its file."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from vmp.common import REPO, Failure
from vmp.guest.log import STALE_BREAKPOINT

GUESTS = 3  # so many may be needed for one step


def step(title: str, command: list[str], guests: int = 1, tool: str = "demo") -> None:
    """Run one command, whose progress goes to stderr; raise Failure when it fails.

    Up to so many `guests` are started in all where QEMU loses one.
    """
    print(f"{tool}: {title}", file=sys.stderr, flush=True)
    for _ in range(guests):
        status = subprocess.run(command, cwd=REPO, stdout=subprocess.DEVNULL).returncode
        if status != STALE_BREAKPOINT:
            break
    if status:
        raise Failure(f"{title}: {command[0]} failed with status {status}, see above")


def script_of(runs: Mapping[Path, str]) -> str:
    """Return a script of the commands that are not done yet; it says which it is at.

    What a guest was at when it was lost may have left a part of its file.
    """
    at = (f"{number} of {len(runs)}" for number in range(1, len(runs) + 1))
    return " && ".join(
        f"{{ [ -e {path}.done ] || "
        f"{{ echo run {told}: {path.stem} >&2; rm -f {path}; {run} && touch {path}.done; }}; }}"
        for told, (path, run) in zip(at, runs.items(), strict=True)
    )


def measure(
    what: str, options: list[str], runs: Mapping[Path, str], timeout: int, tool: str = "demo"
) -> None:
    """Run commands one after the other in a guest, each of which leaves a file in the end.

    Another guest goes on where QEMU has lost one.
    """
    guest = ["tools/vm", *options, "--timeout", str(timeout), "--", "bash", "-c"]
    step(what, [*guest, script_of(runs)], GUESTS, tool)
