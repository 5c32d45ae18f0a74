# SPDX-License-Identifier: GPL-2.0
"""Wrong input for every file of the module that can be written to.

What is refused changes nothing; what is taken is what the file reads then. Files are found by
looking, and say themselves what they take.
"""

import ctypes
import errno
import mmap
import os
import random
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))

from vmp.common import Failure, Parser, run_tool
from vmp.control.debugfs import NONE, value_of
from vmp.control.points import known_parameters
from vmp.torture.forms import Form, data_for, form_of, in_choices, openable
from vmp.torture.options import options
from vmp.torture.place import DEBUG, child, done, read, settings

# What else a write may change, by the name of the file: a profile is the policies of the points.
FOLLOWS = {"profile": "policy", "policy": "profile"}
# What these take is done at once, or undone when they are closed: nothing is set afterwards.
ACTING = ("clear", "trial")
IDS = {"cgroups/add", "cgroups/remove"}  # what these take is a cgroup's: no form has it
NOBODY = 65534
LOCKDOWN = Path("/sys/kernel/security/lockdown")
REFUSALS = (errno.EINVAL, errno.ERANGE, errno.EFAULT, errno.ENOENT, errno.EEXIST, errno.EOPNOTSUPP,
            errno.ESPIPE, errno.ENOSPC, errno.EBUSY)  # fmt: skip
LIBC = ctypes.CDLL(None, use_errno=True)
Write = Callable[[int, bytes, random.Random], int]


def plainly(descriptor: int, data: bytes, _: random.Random) -> int:
    """Write all at once."""
    return os.write(descriptor, data)


def at_an_offset(descriptor: int, data: bytes, rng: random.Random) -> int:
    """Write somewhere, where there is nothing."""
    return os.pwrite(descriptor, data, rng.choice((1, len(data), 4096, 1 << 40)))


def at_the_end(descriptor: int, data: bytes, _: random.Random) -> int:
    """Write behind what is there."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    return os.write(descriptor, data)


def guarded(descriptor: int, data: bytes, rng: random.Random) -> int:
    """Write from the end of a page, with none behind it; maybe for more than that."""
    size = mmap.PAGESIZE * (1 + len(data) // mmap.PAGESIZE)
    area = mmap.mmap(-1, size + mmap.PAGESIZE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(area))
    LIBC.mprotect(ctypes.c_void_p(start + size), mmap.PAGESIZE, 0)
    area[size - len(data) : size] = data
    more = rng.choice((0, 0, 1, 60))
    address = ctypes.c_void_p(start + size - len(data))
    written = int(LIBC.write(descriptor, address, len(data) + more))
    number = ctypes.get_errno()
    LIBC.mprotect(ctypes.c_void_p(start + size), mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE)
    if written < 0:
        raise OSError(number, os.strerror(number))
    if more:
        raise Failure("a write from more memory than there is is taken")
    return written


def from_nowhere(descriptor: int, data: bytes, _: random.Random) -> int:
    """Write from an address that is none."""
    if LIBC.write(descriptor, ctypes.c_void_p(8), len(data) or 1) < 0:
        raise OSError(ctypes.get_errno(), "write")
    raise Failure("a write from an address that is none is taken")


WRITES: tuple[Write, ...] = (plainly, plainly, at_an_offset, at_the_end, guarded, from_nowhere)


class Fuzzer:
    """The files below the module's directory, and how often what was tried."""

    def __init__(self, root: Path, rng: random.Random) -> None:
        self.root, self.rng = root, rng
        self.files = settings(root)
        self.forms = {path: form_of(path) for path in self.files}
        self.counts: Counter[str] = Counter()
        shown = [path for path in self.files if path.stat().st_mode & 0o400]
        # Kept open: a state is read before and after each write.
        self.open = {self.name(path): os.open(path, os.O_RDONLY) for path in shown}
        self.last = self.state()
        for path in self.files:
            self.agrees(path, self.forms[path])

    def name(self, path: Path) -> str:
        """Return a file's path below the module's directory."""
        return str(path.relative_to(self.root))

    def agrees(self, path: Path, form: Form) -> None:
        """Raise Failure if a file takes other numbers than its description says."""
        known = known_parameters().get(".".join(path.relative_to(self.root).parts[-2:]))
        numbers = [int(number) for number in re.findall(r"\d+", known.values)] if known else []
        if form.number and numbers and numbers != [form.lowest, form.highest]:
            raise Failure(
                f"{self.name(path)} says that it takes a number from {form.lowest} to "
                f"{form.highest}: documented is {known.values if known else ''}"
            )

    def state(self) -> dict[str, str]:
        """Return what all files read that can be read, by their names."""
        return {name: os.pread(file, 4096, 0).decode().strip() for name, file in self.open.items()}

    def one(self) -> None:
        """Write something to a file; raise Failure if its answer and its state don't fit."""
        path, how = self.rng.choice(self.files), self.rng.choice(WRITES)
        form = self.forms[path]
        data = data_for(form, self.rng)
        what = f"{self.name(path)}, {how.__name__}, {data[:80]!r}"
        descriptor = os.open(path, os.O_WRONLY | self.rng.choice((0, os.O_TRUNC, os.O_APPEND)))
        try:
            taken = how(descriptor, data, self.rng)
        except OSError as error:
            if error.errno not in REFUSALS:
                raise Failure(f"{what}: refused with {error.strerror}") from None
            taken = -1
        finally:
            os.close(descriptor)
        self.judge(path, data, taken, what)

    def judge(self, path: Path, data: bytes, taken: int, what: str) -> None:
        """Raise Failure if what came of a write, -1 when it was refused, is not what may come."""
        form, name = self.forms[path], self.name(path)
        before, after = self.last, self.state()
        self.last = after
        changed = {each for each in before if before[each] != after[each]}
        if taken < 0:
            self.counts["refused"] += 1
            if changed:
                raise Failure(f"{what}: refused, and changes {', '.join(sorted(changed))}")
            return
        self.counts["taken"] += 1
        if not form.known:
            return
        wanted = form.reads(data)
        if wanted is None:
            raise Failure(f"{what}: taken, and reads '{after.get(name, '')}'")
        if path.name in ACTING:
            if changed:
                raise Failure(f"{what}: taken, and {', '.join(sorted(changed))} stays changed")
            return
        if after[name] != wanted:
            raise Failure(f"{what}: taken, and reads '{after[name]}', not '{wanted}'")
        follows = FOLLOWS.get(path.name)
        others = [each for each in changed - {name} if not follows or Path(each).name != follows]
        if others:
            raise Failure(f"{what}: taken, and changes {', '.join(sorted(others))}, too")

    def in_parts(self) -> None:
        """Write a right value in two parts, neither of which is one; and close in between."""
        path = self.rng.choice([path for path in self.files if self.forms[path].names])
        form = self.forms[path]
        text = form.right(self.rng).encode()
        cut = self.rng.randrange(1, len(text))
        for part in (text[:cut], text[cut:]):
            descriptor = os.open(path, os.O_WRONLY)
            try:
                taken = os.write(descriptor, part)
            except OSError:
                taken = -1
            os.close(descriptor)
            self.judge(path, part, taken, f"{self.name(path)}, a part, {part!r}")
        with suppress(OSError), path.open("wb", 0) as file:
            os.writev(file.fileno(), [text[:cut], text[cut:]])
        if form.reads(text[:cut]) is None and self.state() != self.last:
            raise Failure(f"{self.name(path)}: the parts of {text!r} change what is set")
        self.last = self.state()
        self.counts["in parts"] += 1

    def at_once(self) -> None:
        """Have some write at once, one of whom is killed: the state is always one of theirs."""
        known = [path for path in self.files if self.forms[path].known]
        path = self.rng.choice([path for path in known if path.name not in ACTING])
        form = self.forms[path]
        values = [form.right(self.rng).encode() for _ in range(3)]
        allowed = {form.reads(value) for value in values} | {read(path).strip()}

        def write_on(value: bytes) -> None:
            for _ in range(8):
                with path.open("wb", 0) as file:
                    file.write(value)

        pids = [child(lambda value=value: write_on(value)) for value in values]  # type: ignore[misc]
        for _ in range(5):
            text = read(path).strip()
            if text not in allowed or not in_choices(form, text):
                raise Failure(f"{self.name(path)}: reads '{text}' while {values} are written")
        os.kill(pids[0], signal.SIGKILL)
        results = [done(pid) for pid in pids]
        if not all(results[1:]):
            raise Failure(f"{self.name(path)}: one of several writers is refused")
        if read(path).strip() not in allowed:
            raise Failure(f"{self.name(path)}: reads '{read(path).strip()}' after {values}")
        self.last = self.state()
        self.counts["at once"] += 1

    def modes(self) -> None:
        """Raise Failure if somebody else than root may read or write a file of the module."""
        found = [path for path in self.root.rglob("*") if path.is_file()]
        for path in found:
            if path.stat().st_mode & 0o177 or path.stat().st_uid:
                mode = path.stat().st_mode & 0o777
                raise Failure(f"{self.name(path)} has the mode {mode:o}: give it to root alone")
        top = DEBUG.stat().st_mode & 0o777
        got: list[str] = []

        def as_nobody() -> None:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            flags = (os.O_RDONLY, os.O_WRONLY, os.O_RDWR)
            got.extend(str(path) for path in found for flag in flags if openable(path, flag))
            os._exit(bool(got))

        DEBUG.chmod(0o755)  # that alone is not what keeps others out
        try:
            refused = done(child(as_nobody))
        finally:
            DEBUG.chmod(top)
        if not refused:
            raise Failure("an unprivileged user can open files of the module")
        self.counts["files that are root's alone"] = len(found)

    def lockdown(self) -> None:
        """Look at lockdown, where it is: it refuses what can be written to."""
        active = value_of(read(LOCKDOWN))
        if active in ("", NONE):
            why = "is off" if active else "is not in this kernel"
            print(f"fuzz: lockdown {why}: what it refuses was not looked at", flush=True)
            return
        if any(openable(path, os.O_WRONLY) for path in self.files):
            raise Failure(f"under lockdown={active} files can be written to")


def main() -> int:
    """Fuzz for a time, and say how often."""
    parser = Parser(prog="fuzz")
    options(parser)
    parser.add_argument("root", type=Path)
    arguments = parser.parse_args()
    print(f"fuzz: seed {arguments.seed}, {arguments.for_:.0f} s", flush=True)
    fuzzer = Fuzzer(arguments.root, random.Random(arguments.seed))
    unknown = {fuzzer.name(path) for path, form in fuzzer.forms.items() if not form.known}
    if unknown - IDS:
        raise Failure(f"the form of these is not known: {', '.join(sorted(unknown - IDS))}")
    print(f"fuzz: {len(fuzzer.files)} files")
    fuzzer.modes()
    fuzzer.lockdown()
    end = time.monotonic() + arguments.for_
    while time.monotonic() < end:
        for _ in range(50):
            fuzzer.one()
        fuzzer.in_parts()
        fuzzer.at_once()
    print("fuzz: " + ", ".join(f"{count} {name}" for name, count in fuzzer.counts.items()))
    return 0


if __name__ == "__main__":
    run_tool("fuzz", main)
