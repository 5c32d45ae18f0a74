# SPDX-License-Identifier: GPL-2.0
"""Access to the module's control files in debugfs, and to the switch of its trace events.

A policy point is a directory below the root that has a file `policy`; its parameters are its
other files with a write bit. Such files in the root itself concern all points. No point is known
here by name, so a new one needs no change. The name `trace` stands for all trace events.
"""

import errno
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vmp.common import Failure, mount_points

DEBUGFS_DIR = "vmscan_policy"
EVENTS_DIR = "events/vmscan_policy"  # in tracefs
PROFILE = "profile"
TRACE = "trace"
NONE = "none"  # of the names that a file takes, where it takes several
MACHINES = ("bypass", "flush/observe")  # files that no cgroup has
GUARD = "guard"  # a directory with parameters that is no point
ACTIONS = ("trial", f"{GUARD}/clear")  # files that set nothing
TRIPPED = "tripped"


@dataclass(frozen=True)
class Assignment:
    """One setting: `name` is POINT (its policy), POINT.PARAMETER or a file of the root."""

    name: str
    value: str

    def __str__(self) -> str:
        return f"{self.name}={self.value}"


def locate() -> Path:
    """Return the module's debugfs root; raise Failure when it cannot be used."""
    if os.geteuid() != 0:
        raise Failure("only root can use debugfs: run this as root or with sudo")
    mounted = mount_points("debugfs")
    if not mounted:
        raise Failure("debugfs is not mounted: run `mount -t debugfs none /sys/kernel/debug` first")
    for mount in mounted:
        root = mount / DEBUGFS_DIR
        if root.is_dir():
            return root
    raise Failure(
        "the module vmscan_policy is not loaded: load it with `modprobe vmscan_policy`, "
        "on a kernel built with CONFIG_VMSCAN_POLICY"
    )


def parse_choices(text: str) -> tuple[str | None, list[str]]:
    """Split `[stock] batch` into the current choice (None if not marked) and all choices.

    Several are joined as for a setting: of `[lazyfree] [anon] file` it is `lazyfree+anon`.
    """
    current = "+".join(re.findall(r"\[([^\]\s]+)\]", text))
    return current or None, text.replace("[", " ").replace("]", " ").split()


def value_of(text: str) -> str:
    """Return what a file's text says is set, in the form that `write` takes."""
    chosen, choices = parse_choices(text)
    return chosen or (NONE if len(choices) > 1 else text)


def parse_assignments(words: list[str]) -> list[Assignment]:
    """Parse `name=value` words, each of which may be a comma-separated list."""
    parsed = []
    for part in (part for word in words for part in word.split(",")):
        name, equals, value = (text.strip() for text in part.partition("="))
        if not (name and equals and value):
            raise Failure(f"'{part}' is no setting: write POINT=POLICY or POINT.PARAMETER=VALUE")
        parsed.append(Assignment(name, value))
    return parsed


def parse_stats(text: str) -> dict[str, int]:
    """Parse `name value` lines; lines of another form are left out."""
    return {m[1]: int(m[2]) for m in re.finditer(r"^(\S+)\s+(-?\d+)$", text, re.MULTILINE)}


class Control:
    """The policy points below `root`: the module's debugfs directory, or that of a cgroup in it.

    With `of_cgroup` it has those settings alone that a cgroup can have of its own.
    """

    def __init__(self, root: Path, of_cgroup: bool = False) -> None:
        self.root = root
        self.left_out = {root / name for name in (*ACTIONS, *(MACHINES if of_cgroup else ()))}
        mounts = [] if of_cgroup else mount_points("tracefs")
        switches = [mount / EVENTS_DIR / "enable" for mount in mounts]
        self.trace = [path for path in switches if path.exists()][:1]

    def points(self) -> list[str]:
        """Return the names of the policy points."""
        return sorted(path.parent.name for path in self.root.glob("*/policy"))

    def parameters(self, point: str = "") -> list[str]:
        """Return the names of the writable files of `point`, or of the root, but for policies."""
        files = (path for path in (self.root / point).iterdir() if path.is_file())
        files = (path for path in files if path not in self.left_out)
        return sorted(f.name for f in files if f.name != "policy" and f.stat().st_mode & 0o222)

    def names(self) -> list[str]:
        """Return every name that can be set."""
        names = self.parameters() + [TRACE] * len(self.trace)
        for point in self.points():
            names += [point, *(f"{point}.{param}" for param in self.parameters(point))]
        return names + self.guard()

    def guard(self) -> list[str]:
        """Return the names of what the guard can be told."""
        there = (self.root / GUARD).is_dir()
        return [f"{GUARD}.{param}" for param in (self.parameters(GUARD) if there else [])]

    def tripped(self) -> str:
        """Return why the guard has tripped; '' if it has not."""
        if not self.guard() or self.get(f"{GUARD}.state") != TRIPPED:
            return ""
        return (self.root / GUARD / "reason").read_text().strip()

    def clear(self) -> str:
        """Arm the guard again if it has tripped; return why it had, '' if it has not."""
        if reason := self.tripped():
            (self.root / GUARD / "clear").write_text("1")
        return reason

    def path(self, name: str) -> Path:
        """Return the file behind `name`; raise Failure for a name that is not offered."""
        if name not in self.names():
            raise Failure(f"unknown name '{name}': allowed are {', '.join(self.names())}")
        if name == TRACE:
            return self.trace[0]
        path = self.root / name.replace(".", "/")
        return path / "policy" if path.is_dir() else path

    def text(self, name: str) -> str:
        """Return the file's text as it is, without the line end."""
        text = self.path(name).read_text().strip()
        return "some" if name == TRACE and text == "X" else text

    def idle(self, name: str) -> str:
        """Return a remark if `name` is a point that has no effect now, else ''."""
        path = self.root / name / "in_effect"
        said = path.read_text().strip() if path.exists() else "yes"
        return "" if said == "yes" else f"  (in effect: {said})"

    def get(self, name: str) -> str:
        """Return the value in a form that `write` takes."""
        text = self.text(name)
        if name == TRACE and text == "some":
            raise Failure("some of the trace events are on: set trace=0 or trace=1 first")
        return value_of(text)

    def check(self, assignments: list[Assignment]) -> None:
        """Raise Failure if a name or a value is not among what the module offers.

        The range of a number is known to the kernel alone, which refuses it when it is written, and
        so is whether a file takes several names at once, joined by `+`, or none.
        """
        for item in assignments:
            text = self.text(item.name)
            if re.fullmatch(r"\d+", text) or item.name == TRACE:
                allowed = f"is a decimal number (now {text})"
                fits = bool(re.fullmatch(r"\d+", item.value))
            else:
                choices = parse_choices(text)[1]
                allowed = f"are {', '.join(choices)}"
                fits = item.value == NONE or set(item.value.split("+")) <= set(choices)
            if not fits:
                raise Failure(f"{item.name} cannot be '{item.value}': allowed {allowed}")

    def write(self, assignments: list[Assignment], kept: bool = True) -> None:
        """Write in the order given; the error of a refused write says which were done before.

        With `kept` false it says that nothing was changed: the caller undoes all.
        """
        for index, item in enumerate(assignments):
            with KernelLog() as log:
                try:
                    self.path(item.name).write_text(item.value.replace("+", ","))
                except OSError as error:
                    reason = log.said() or refusal(error)
                    done = ", ".join(str(earlier) for earlier in assignments[:index])
                    raise Failure(
                        f"{item} was refused ({reason}); "
                        + (f"set before it: {done}" if done and kept else "nothing was changed")
                    ) from None

    def assign(self, assignments: list[Assignment]) -> None:
        """Write settings, if all of them can be."""
        self.check(assignments)
        self.write(assignments)

    def policies(self) -> list[Assignment]:
        """Return the policy that each point has now."""
        return [Assignment(point, self.get(point)) for point in self.points()]

    def spell_out(self, assignments: list[Assignment]) -> list[Assignment]:
        """Return settings with the policies of its points in the place of each profile.

        The kernel alone knows them: a profile is in force for a moment.
        """
        found: list[Assignment] = []
        for item in assignments:
            if item.name != PROFILE:
                found.append(item)
                continue
            before = self.policies()
            try:
                self.write([item])
                found += self.policies()
            finally:
                self.write(before)
        return found

    def stats(self) -> dict[str, dict[str, int]]:
        """Return the counters of every point that has some."""
        files = ((point, self.root / point / "stats") for point in self.points())
        return {point: parse_stats(f.read_text()) for point, f in files if f.exists()}

    def abi(self) -> dict[str, str]:
        """Return the lines of `abi`: hook ABI, module version, kernel release."""
        lines = (line.partition(" ") for line in (self.root / "abi").read_text().splitlines())
        return {name: value.strip() for name, _, value in lines}


class KernelLog:
    """What is logged while the context is open; the module names there what it allows."""

    def __enter__(self) -> "KernelLog":
        try:
            self.fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self.fd, 0, os.SEEK_END)
        except OSError:
            self.fd = -1
        return self

    def __exit__(self, *_: object) -> None:
        if self.fd >= 0:
            os.close(self.fd)

    def messages(self) -> Iterator[str]:
        """Return what the kernel has logged since the last call, without times."""
        while self.fd >= 0:
            try:
                record = os.read(self.fd, 8192).decode(errors="replace")
            except BrokenPipeError:  # records were overwritten: the next read goes on
                continue
            except OSError:
                break
            yield record.partition(";")[2].partition("\n")[0]

    def said(self) -> str:
        """Return the module's last line, '' if it logged none (its lines are rate-limited)."""
        own = [message for message in self.messages() if message.startswith(DEBUGFS_DIR)]
        return own[-1] if own else ""


def refusal(error: OSError) -> str:
    """Say in words what the kernel's errno means for a setting."""
    if error.errno == errno.ERANGE:
        return "the number is out of the range that the kernel log names"
    if error.errno == errno.EBUSY:
        return "the guard of these settings has tripped: clear it first"
    if error.errno == errno.EINVAL:
        return "the value is not one that the kernel log names as allowed"
    return (error.strerror or str(error)).lower()
