# SPDX-License-Identifier: GPL-2.0
"""What runs the guest tests: their programs, and a guest for them."""

import subprocess
from collections.abc import Callable
from pathlib import Path

from vmp.common import OUT, REPO
from vmp.guest.architecture import Architecture
from vmp.guest.log import STALE_BREAKPOINT, find_splat
from vmp.guest.patched import source
from vmp.guest.sources import Version
from vmp.programs import compile_programs

VM = REPO / "tools" / "vm"
GUEST = REPO / "tools" / "tests" / "guest"
PROGRAMS = OUT / "tests"  # for each machine, a directory; of this tree's sources alone
DEBUG_SCALE = 10  # percent of the plain kernel's sizes
# The guest ends a test that hangs, by a clock of its own; these are for a guest that has died. It
# says each minute that it lives, and a minute is longer where the machine is busy.
PATIENCE = ("--silence", "900", "--timeout", "36000")  # seconds
GUESTS = 10  # so many may be needed: QEMU has lost two in one run, and tests may fail


def vm(arguments: list[str | Path], log: Path) -> tuple[int, str]:
    """Run tools/vm, again if QEMU lost the guest, with both streams in `log`.

    Returns its exit status and the log's text.
    """
    for _ in range(GUESTS):
        status, text = vm_once(arguments, log)
        if status != STALE_BREAKPOINT:
            break
        print(f"# QEMU lost the guest: {log}", flush=True)
    return status, text


def vm_once(
    arguments: list[str | Path], log: Path, tell: Callable[[str], object] = lambda _: None
) -> tuple[int, str]:
    """Run tools/vm with both streams in `log`; return its exit status and the log's text.

    `tell` is called with each line when it comes.
    """
    log.parent.mkdir(exist_ok=True)
    # The guest must not outlive us, even when we are killed.
    command = ["setpriv", "--pdeathsig", "TERM", str(VM), *map(str, arguments)]
    with (
        log.open("wb", buffering=0) as output,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, cwd=REPO) as guest,
    ):  # fmt: skip
        assert guest.stdout
        try:
            for line in guest.stdout:
                output.write(line)
                tell(line.decode(errors="replace").rstrip())
        except BaseException:
            guest.terminate()
            raise
    return guest.returncode, log.read_text(errors="replace")


def programs_of(architecture: Architecture) -> Path:
    """Return where the programs of the guest tests are, compiled for an architecture."""
    return PROGRAMS / architecture.machine


def prepare(version: Version) -> None:
    """Compile the programs of the guest tests, some of them a release's own."""
    tree = f"SOURCE={source(version)}"
    compile_programs(GUEST, PROGRAMS, version.architecture.machine, "the guest tests", tree)


def tail(text: str) -> str:
    """Return the kernel's report of trouble or the last lines of a log, for a reason of failure."""
    lines = text.splitlines()
    return "\n".join(find_splat(lines)[:15] or lines[-15:])
