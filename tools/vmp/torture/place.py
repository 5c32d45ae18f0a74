# SPDX-License-Identifier: GPL-2.0
"""Where torture works, and the small steps that its actions share."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from vmp.common import Failure

DEBUG = Path("/sys/kernel/debug")
SYSFS = Path("/sys/kernel/mm")
CPUS = Path("/sys/devices/system/cpu")
LRU_GEN = SYSFS / "lru_gen/enabled"
THP = SYSFS / "transparent_hugepage"
KSM = SYSFS / "ksm"
FAULTS = (DEBUG / "failslab", DEBUG / "fail_page_alloc")
BITS = (1, 1, 1, 4, 9, 12, 13)  # of random numbers: many files take 0 or 1
OTHER_WORDS = ("", "nonsense", "-1", "4097", "99999999999999999999")  # what no file takes


@dataclass(frozen=True)
class Place:
    """The directories and devices of a run."""

    policy: Path  # the module's debugfs
    module: Path  # vmscan_policy.ko
    programs: Path  # the compiled checkers
    top: Path  # a memory cgroup: one below it has the checkers, others come and go
    files: Path  # a directory on a disk
    swap: str  # a device that is swapped to
    faulty_swap: str = ""  # one whose writes fail now and then
    faulty_disk: str = ""  # likewise, with nothing on it
    plugin: str = ""  # a module with a policy for flush that has the module's name
    bpf: str = ""  # a directory with a BPF program that is a policy, and bpftool

    @property
    def checked(self) -> Path:
        """Return the memory cgroup of the checkers that run all the time."""
        return self.top / "checked"

    @property
    def tight(self) -> Path:
        """Return that of the others, which has little memory."""
        return self.top / "tight"

    def cgroup(self, rng: random.Random) -> Path:
        """Return one of the cgroups that come and go; it may not be there."""
        return self.top / f"torture-{rng.randrange(6)}"

    def any_cgroup(self, rng: random.Random) -> Path:
        """Return that or the checkers'."""
        return self.checked if rng.random() < 0.5 else self.cgroup(rng)

    def any_id(self, rng: random.Random) -> str:
        """Return the id that the module's files know such a one by."""
        return str(self.any_cgroup(rng).stat().st_ino)


def write(path: Path, text: str | bytes) -> bool:
    """Write to a file in one write, which raises OSError when it is refused."""
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode() if isinstance(text, str) else text)
    finally:
        os.close(descriptor)
    return True


def read(path: Path) -> str:
    """Return a file's text; '' where it is not there."""
    try:
        return path.read_text()
    except OSError:
        return ""


def settings(root: Path) -> list[Path]:
    """Return the files below a directory that can be written to, whatever they are called."""
    found = []
    for directory, _, names in os.walk(root):
        for name in names:
            path = Path(directory, name)
            with suppress(OSError):
                if path.stat().st_mode & 0o222:
                    found.append(path)
    return sorted(found)


def value_for(text: str, rng: random.Random) -> str:
    """Return what to write to a file that reads `text`: mostly what it may take, else nonsense."""
    draw, word = rng.random(), rng.choice(OTHER_WORDS)
    names = text.replace("[", " ").replace("]", " ").split()
    number = rng.randrange(1 << rng.choice(BITS))
    index, several = rng.randrange(1 << 16), rng.randrange(1, 1 << 16)
    if draw < 0.1:
        return word
    if len(names) < 2:
        return str(number)
    if text.count("[") != 1 and draw < 0.6:  # takes several
        return ",".join(name for bit, name in enumerate(names) if several >> bit & 1) or "none"
    return names[index % len(names)]


def child(work: Callable[[], object], seconds: int = 0) -> int:
    """Do something in a process of its own, killed after some seconds if so asked; return its pid.

    `seconds` are of the machine's clock; 0: it may take as long as it takes.
    """
    pid = os.fork()
    if not pid:
        status = 1
        signal.alarm(seconds)
        os.setpriority(os.PRIO_PROCESS, 0, 0)
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return pid


def done(pid: int) -> bool:
    """Wait for a child; tell if it succeeded."""
    return os.waitpid(pid, 0)[1] == 0


def command(*words: str | Path) -> bool:
    """Run a program quietly; tell if it succeeded."""
    quiet = subprocess.DEVNULL
    ended = subprocess.run(words, stdin=quiet, stdout=quiet, stderr=quiet, check=False)
    return ended.returncode == 0


def stacks(pid: int) -> str:
    """Return where the threads of a process and those of its children are in the kernel."""
    tasks = Path(f"/proc/{pid}/task").glob("*")
    own = [f"{read(task / 'comm').strip()} {read(task / 'stack')}" for task in tasks]
    statuses = Path("/proc").glob("[0-9]*/status")
    children = [path.parent.name for path in statuses if f"\nPPid:\t{pid}\n" in read(path)]
    return "\n".join([*own, *(stacks(int(each)) for each in children)])


def clock() -> float:
    """Return seconds by the guest tests' clock, which slows down with the machine, if there is one.

    See tests/guest/clock.sh.
    """
    path = Path(os.environ.get("VMP_TEST_WORK", "/nonesuch"), "clock")
    while path.exists():
        if text := read(path).strip():  # it is empty while it is written
            return float(text)
    return time.monotonic()


def wait_until(condition: Callable[[], bool], what: str, seconds: float) -> None:
    """Wait until something holds; raise Failure ("WHAT for N s") when it takes too long."""
    end = clock() + seconds
    while not condition():
        if clock() > end:
            raise Failure(f"{what} for {seconds:g} s")
        time.sleep(0.05)
