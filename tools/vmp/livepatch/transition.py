# SPDX-License-Identifier: GPL-2.0
"""A livepatch brought into the running kernel and taken out again.

The kernel moves one task after the other, none while it is inside a function that changes. So tasks
that reclaim all the time delay it, and are frozen during the transition if their cgroups are named.
"""

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from vmp.common import Failure, Parser, parse_positive_duration, run
from vmp.livepatch.names import BUILT, MODULE, NAME, NOTES

LIVEPATCH = Path("/sys/kernel/livepatch") / NAME
MODULES = Path("/sys/module")
CGROUPS = Path("/sys/fs/cgroup")
PATCHED, UNPATCHED = 1, 0  # a task's state
SHOWN = 5  # tasks in a message
LIMIT = 60.0  # seconds


def add_options(parser: Parser) -> None:
    """Take what a transition may do to others, and how long."""
    parser.add_argument(
        "--freeze", action="append", default=[], metavar="CGROUP",
        help="below /sys/fs/cgroup, frozen during the transition; can be given again",
    )  # fmt: skip
    parser.add_argument(
        "--limit", type=parse_positive_duration, default=LIMIT, metavar="TIME",
        help=f"after which to give up and go back: 30s, 2m (default: {LIMIT:g}s)",
    )  # fmt: skip


def find_built() -> Path:
    """Return the newest build for the running kernel."""
    build_id = NOTES.read_bytes().hex()
    release = os.uname().release
    built = [
        path.parent
        for path in sorted(BUILT.glob("[!.]*/about.json"), key=lambda path: path.stat().st_mtime)
        if json.loads(path.read_text())["build_id"] == build_id
    ]
    if not built:
        raise Failure(f"no livepatch was built for this kernel, {release}: `tools/livepatch build`")
    return built[-1]


def loaded(name: str) -> bool:
    """Tell if a module is there."""
    return (MODULES / name).exists()


def moving() -> bool:
    """Tell if tasks are still to be moved."""
    try:
        return (LIVEPATCH / "transition").read_text().strip() != "0"
    except OSError:  # it goes away at the end of the way out
        return False


def in_force() -> bool:
    """Tell if the hooks are in the kernel, for all tasks."""
    try:
        return (LIVEPATCH / "enabled").read_text().strip() == "1" and not moving()
    except OSError:
        return False


def held_up_by(wanted: int) -> list[str]:
    """Return the tasks that are not in a state yet, as NAME (ID)."""
    found = []
    for path in Path("/proc").glob("[0-9]*/task/[0-9]*/patch_state"):
        try:
            if int(path.read_text()) not in (-1, wanted):
                name = path.with_name("comm").read_text().strip()
                found.append(f"{name} ({path.parent.name})")
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def wait(limit: float) -> bool:
    """Wait for the end of a transition, `limit` seconds at most; tells if it has come."""
    end = time.monotonic() + limit
    while moving():
        if time.monotonic() >= end:
            return False
        time.sleep(0.05)
    return True


@contextmanager
def frozen(cgroups: Sequence[str]) -> Iterator[None]:
    """Freeze cgroups, named as below /sys/fs/cgroup."""
    switches = [CGROUPS / name.lstrip("/") / "cgroup.freeze" for name in cgroups]
    for switch in switches:
        if not switch.exists():
            raise Failure(f"there is no cgroup {switch.parent}: name one below {CGROUPS}")
    before = [switch.read_text() for switch in switches]
    try:
        for switch in switches:
            switch.write_text("1")
        yield
    finally:
        for switch, text in zip(switches, before, strict=True):
            switch.write_text(text)


def switch(on: bool) -> None:
    """Have the kernel move the tasks to or from the hooks."""
    (LIVEPATCH / "enabled").write_text("1" if on else "0")


def give_up(wanted: int, limit: float) -> str:
    """Turn a transition around; returns what it could not get over, '' if it has come to its end.

    Once all tasks are moved the kernel may wait for long, for a grace period of RCU's, and whoever
    writes to the switch then waits until the way out has been gone, and the switch is away.
    """
    tasks = held_up_by(wanted)
    try:
        switch(wanted != PATCHED)
    except OSError:
        if wanted == PATCHED or moving():
            raise
        return ""
    what = ", ".join(tasks[:SHOWN]) + (f" and {len(tasks) - SHOWN} more" if tasks[SHOWN:] else "")
    if not wait(limit):
        raise Failure(
            f"the transition did not finish in {limit:g} s: {what or 'tasks'} did not leave reclaim"
        )
    return f"not in {limit:g} s, for {what or 'tasks that have left since'}"


def load(limit: float, cgroups: Sequence[str]) -> None:
    """Bring in the hooks, then the module; all or nothing."""
    if LIVEPATCH.exists():
        raise Failure("the hooks are loaded already: see `tools/livepatch status`")
    built = find_built()
    with frozen(cgroups):
        run(["insmod", built / f"{NAME}.ko"], "loading the hooks")
        if not wait(limit):
            reason = give_up(PATCHED, limit)
            run(["rmmod", NAME], "taking the hooks back")
            raise Failure(f"the hooks were not loaded: {reason}; name their cgroups with --freeze")
    try:
        run(["insmod", built / f"{MODULE}.ko"], "loading the module")
    except Failure:
        take_out(limit, cgroups)
        raise


def unload(limit: float, cgroups: Sequence[str]) -> None:
    """Take out the module, which gives all decisions back, then the hooks."""
    if not loaded(NAME):
        raise Failure("the hooks are not loaded")
    if loaded(MODULE):
        run(["rmmod", MODULE], "unloading the module")
    take_out(limit, cgroups)


def take_out(limit: float, cgroups: Sequence[str]) -> None:
    """Take out the hooks, which no module uses any more."""
    with frozen(cgroups):
        if LIVEPATCH.exists():
            switch(False)
        if not wait(limit) and (reason := give_up(UNPATCHED, limit)):
            raise Failure(f"the hooks stay loaded, all policies at stock: {reason}; use --freeze")
    run(["rmmod", NAME], "unloading the hooks")
