# SPDX-License-Identifier: GPL-2.0
"""Running the kernel's make, and telling how far it is."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

from vmp.common import CACHE, Failure, Words, write_whole
from vmp.form import to_go
from vmp.guest.architecture import Architecture

STEPS = CACHE / "steps"
# Variants whose options change every object: nothing to gain of plain's.
OWN_TREE = ("debug", "kcsan", "bpf", "bpf-debug")
USUAL = {"plain": 1900, **dict.fromkeys(OWN_TREE, 1900)}  # steps of a first build, about
ERROR_LINE = re.compile(r"\berror\b[: ]|\*\*\*|undefined reference|^ERROR: ", re.IGNORECASE)


# Make must not see a caller's make flags, ARCH and the like: they would change the build.
def make_environment() -> dict[str, str]:
    """Return the environment of the kernel's make."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    return kept | {"LC_ALL": "C"}


def usual_steps(variant: str) -> int:
    """Return how many steps the last whole build of a variant took, or one usually takes."""
    try:
        return int((STEPS / variant).read_text())
    except (FileNotFoundError, ValueError):  # there is none, or it was not written to its end
        return USUAL.get(variant, 0)


class Progress:
    """Shows on stderr how far a build is; one line that is rewritten on a terminal.

    The steps of the last whole build of a variant tell how many there will be.
    """

    def __init__(self, what: str, variant: str, build: Path):
        self.what = what
        self.last = STEPS / variant
        self.total = usual_steps(variant)
        self.start = time.monotonic()
        self.terminal = sys.stderr.isatty()
        self.shown = self.start
        self.before = self.done = sum(1 for _ in build.rglob("*.o"))

    def line(self, text: str) -> None:
        """Take one line of make's output."""
        self.done += text.startswith("  ")
        now = time.monotonic()
        if now - self.shown >= (0.2 if self.terminal else 30):
            self.shown = now
            self.show("\r\033[K" if self.terminal else "", "" if self.terminal else "\n")

    def show(self, before: str, after: str) -> None:
        """Print the state."""
        took = time.monotonic() - self.start
        minutes, seconds = divmod(int(took), 60)
        text = f"kernel: {self.what}: {self.done - self.before} steps, {minutes}:{seconds:02}"
        if self.before < self.done < self.total:
            left = took * (self.total - self.done) / (self.done - self.before)
            text += f", {100 * self.done // self.total} %, {to_go(left)}"
        print(before + text, end=after, file=sys.stderr, flush=True)

    def finish(self) -> None:
        """Print the final state, and keep the steps of a whole build."""
        self.total = 0
        if not self.before:
            STEPS.mkdir(exist_ok=True)
            write_whole(self.last, str(self.done))
        self.show("\r\033[K" if self.terminal else "", "\n")


def make(arguments: list[str | Path], log: IO[str], what: str, progress: Progress | None) -> None:
    """Run make with its output in `log`; raises Failure with the log's error lines."""
    process = subprocess.Popen(
        # Make must not outlive us, even when we are killed.
        ["setpriv", "--pdeathsig", "TERM", "make", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=make_environment(),
        start_new_session=True,
    )
    errors: list[str] = []
    assert process.stdout
    try:
        for line in process.stdout:
            log.write(line)
            if ERROR_LINE.search(line):
                errors.append(line.rstrip())
            if progress:
                progress.line(line)
        status = process.wait()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, 15)
            process.wait()
    log.flush()
    if status:
        if progress and progress.terminal:
            print(file=sys.stderr)
        excerpt = "\n".join(["", *errors[:20]])
        raise Failure(f"{what} failed, its log is {log.name}{excerpt}")


def make_targets(
    tree: Path, build: Path, architecture: Architecture, what: str, *targets: str
) -> Path:
    """Make targets of a source tree; return the log."""
    log_path = build.with_suffix(".log")
    base: Words = ["-C", tree, f"O={build}", "LOCALVERSION=", f"-j{os.cpu_count()}"]
    base += architecture.words
    with log_path.open("w") as log:
        make([*base, *targets], log, f"making {' '.join(targets)} of {what}", None)
    return log_path
