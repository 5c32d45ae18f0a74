# SPDX-License-Identifier: GPL-2.0
"""Memory cgroups, and the settings that they have of their own.

A path of a cgroup is below the mount of cgroup2 and begins with a slash. Settings hold for a cgroup
and for all below it that have none. The root's are the machine's.
"""

import argparse
import errno
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from vmp.common import Failure, Usage, mount_points
from vmp.control.debugfs import (
    NONE,
    PROFILE,
    Assignment,
    Control,
    KernelLog,
    locate,
    value_of,
)

MACHINE = "/"
DIRECTORY = "cgroups"  # in debugfs
NAMED = 9  # cgroups that an error names at most
REFUSED = {
    errno.ENOENT: "it was removed",
    errno.EOPNOTSUPP: "it has no memory controller: write +memory to its parent's "
    "cgroup.subtree_control",
    errno.EEXIST: "it has some already",
    errno.ENOSPC: "as many cgroups as there can be have some",
}


class NotThere(Failure):
    """There is no such cgroup now."""


def cgroup2_root() -> Path:
    """Return where cgroup2 with the memory controller is mounted."""
    for root in mount_points("cgroup2"):
        if "memory" in (root / "cgroup.controllers").read_text().split():
            return root
    raise Failure(
        "there is no cgroup2 with the memory controller: mount one with "
        "`mount -t cgroup2 none /sys/fs/cgroup`, on a system without cgroup v1 memory"
    )


def request(machine: Control, what: str, number: int) -> None:
    """Have the module `add` or `remove` settings of the cgroup with that id; raises OSError."""
    (machine.root / DIRECTORY / what).write_text(str(number))


class Cgroup:
    """A memory cgroup that is there."""

    def __init__(self, machine: Control, mount: Path, directory: Path) -> None:
        self.machine = machine
        self.mount = mount
        self.directory = directory
        self.path = f"/{directory.relative_to(mount)}"

    def holding(self) -> tuple[str, Control]:
        """Return the path of the cgroup whose settings hold for this one, and these settings."""
        for directory in (self.directory, *self.directory.parents):
            if directory == self.mount:
                break
            own = self.machine.root / DIRECTORY / str(directory.stat().st_ino)
            if own.is_dir():
                return f"/{directory.relative_to(self.mount)}", Control(own, of_cgroup=True)
        return MACHINE, Control(self.machine.root, of_cgroup=True)

    def whose(self) -> str:
        """Say in a sentence whose settings hold for it."""
        path = self.holding()[0]
        if path == self.path:
            return f"{shown(path)} has settings of its own."
        return f"{shown(self.path)} has no settings of its own: {those_of(path)} hold for it."

    def own(self) -> Control:
        """Return its own settings; raise Failure if it has none."""
        path, control = self.holding()
        if path != self.path:
            raise Failure(self.whose().rstrip("."))
        return control

    def assign(self, assignments: list[Assignment]) -> None:
        """Write settings of its own, which it gets if it has none; they go if one is refused."""
        path, control = self.holding()
        control.check(assignments)
        if path == self.path:
            control.write(assignments)
            return
        self.request("add")
        try:
            self.own().write(assignments, kept=False)
        except BaseException:
            self.request("remove")
            raise

    def remove(self) -> None:
        """Remove its own settings."""
        self.own()
        self.request("remove")

    def request(self, what: str) -> None:
        """Have the module `add` or `remove` its settings; raise Failure where that is refused."""
        with KernelLog() as log:
            try:
                request(self.machine, what, self.directory.stat().st_ino)
            except OSError as error:
                number = error.errno or 0
                reason = log.said() or REFUSED.get(number) or os.strerror(number).lower()
                done = "get settings of its own" if what == "add" else "lose its settings"
                raise Failure(f"{shown(self.path)} can't {done}: {reason}") from None


def those_of(path: str) -> str:
    """Say whose settings are meant."""
    return "the machine's" if path == MACHINE else f"those of {shown(path)}"


def shown(path: str) -> str:
    """Return a path for a terminal: of what can't be printed each byte is shown as \\ooo."""
    return "".join(
        one if one.isprintable() else "".join(f"\\{byte:03o}" for byte in os.fsencode(one))
        for one in path
    )


def control_group(unit: str) -> str:
    """Return the path of a systemd unit's cgroup; '' if it has none, or there is no systemd."""
    if not shutil.which("systemctl"):
        return ""
    command = ["systemctl", "show", "-P", "ControlGroup", "--", unit]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return "" if done.returncode else os.fsdecode(done.stdout).strip()


def named(mount: Path, name: str) -> list[Path]:
    """Return the cgroups of that name, or of the systemd unit of that name."""
    found = mount / control_group(name).strip("/")
    if found != mount and found.is_dir():
        return [found]
    return sorted(Path(at) for at, *_ in os.walk(mount) if os.path.basename(at) == name)


def check_form(who: str) -> None:
    """Raise Usage for what is neither the path of a cgroup below the root nor a unit."""
    if not who.strip("/") or ".." in who.split("/"):
        raise Usage(
            f"'{who}' is no cgroup that can have settings: name its path, such as "
            "system.slice/NAME.service, or its systemd unit; those of the root are the machine's, "
            "without --cgroup"
        )


def require_settings(machine: Control) -> None:
    """Raise Failure for a module that has settings of the machine alone."""
    if not (machine.root / DIRECTORY).is_dir():
        raise Failure(
            "this module has no settings for cgroups: load the present vmscan_policy, on a kernel "
            "built with CONFIG_MEMCG"
        )


def find(machine: Control, who: str) -> Cgroup:
    """Return the cgroup of that path, with or without the mount, or of that systemd unit.

    Raises Usage for what can be none, NotThere if there is none, Failure for several.
    """
    require_settings(machine)
    mount = cgroup2_root()
    below = who.removeprefix(str(mount)).strip("/")
    check_form(below)
    fitting = [mount / below] if (mount / below).is_dir() else []
    if not fitting and "/" not in below:
        fitting = named(mount, below)
    if not fitting:
        raise NotThere(
            f"there is no cgroup '{who}': name a path below {mount}, such as "
            "system.slice/NAME.service, or a systemd unit that runs"
        )
    if len(fitting) > 1:
        paths = [shown(f"/{path.relative_to(mount)}") for path in fitting[:NAMED]]
        raise Failure(f"'{who}' is the name of several cgroups: name one of {', '.join(paths)}")
    return Cgroup(machine, mount, fitting[0])


def require_machines(machine: Control, directory: Path) -> None:
    """Raise Failure unless it is the machine's settings that hold for a cgroup."""
    cgroup = Cgroup(machine, cgroup2_root(), directory)
    path = cgroup.holding()[0]
    if path != MACHINE:
        raise Failure(
            f"{those_of(path)} hold for {shown(cgroup.path)}, and not the machine's, which are "
            f"switched: run `vmscanctl --cgroup {shown(path)} reset` first"
        )


def chosen(args: argparse.Namespace) -> tuple[Control, Cgroup | None]:
    """Return the machine's settings, and the cgroup that the command line is about, if any."""
    machine = Control(locate())
    who = getattr(args, "who", None)
    return machine, None if who is None else find(machine, who)


def with_settings(machine: Control) -> dict[str, Control]:
    """Return the settings of all cgroups that have some, by path: a parent before its children."""
    found = {}
    for file in (machine.root / DIRECTORY).glob("*/path"):
        with suppress(OSError):  # its cgroup is gone
            escaped = os.fsdecode(file.read_bytes()).rstrip("\n")
            path = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), escaped)
            found[path] = Control(file.parent, of_cgroup=True)
    return dict(sorted(found.items(), key=lambda item: item[0].split("/")))


def parent_of(path: str, others: Mapping[str, object]) -> str:
    """Return the nearest path above one that is among others, or MACHINE."""
    while path and path != MACHINE:
        path = path.rpartition("/")[0]
        if path in others:
            return path
    return MACHINE


def values(control: Control, files: Mapping[str, Path]) -> dict[str, str]:
    """Return what is set, by the names of the files below a control's root."""
    texts = ((name, (control.root / file).read_text()) for name, file in files.items())
    return {name: value_of(text.strip()) for name, text in texts}


def all_values(machine: Control) -> dict[str, dict[str, str]]:
    """Return what the machine, first, and each cgroup with settings have set, by path and name."""
    like = Control(machine.root, of_cgroup=True)
    files = {name: like.path(name).relative_to(like.root) for name in like.names()}
    found = {MACHINE: values(like, files)}
    for path, control in with_settings(machine).items():
        with suppress(OSError):  # it was removed
            found[path] = values(control, files)
    return found


def differing(own: Mapping[str, str], other: Mapping[str, str]) -> list[Assignment]:
    """Return what is set otherwise; a profile in the place of the policies that it stands for."""
    items = [Assignment(name, value) for name, value in own.items() if value != other.get(name)]
    if PROFILE in (item.name for item in items):
        if own[PROFILE] == NONE:
            return [item for item in items if item.name != PROFILE]
        return [item for item in items if item.name == PROFILE or "." in item.name]
    return items
