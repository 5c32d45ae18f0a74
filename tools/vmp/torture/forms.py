# SPDX-License-Identifier: GPL-2.0
"""What the module's files take, as they say it themselves, and what they read afterwards."""

import os
import random
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from vmp.common import Failure
from vmp.control.debugfs import KernelLog, parse_choices

NUMBER = re.compile(r"takes a number from (\d+) to (\d+)$")
ONE = re.compile(r"takes one of: (.+)$")
SEVERAL = re.compile(r"takes none, or any of: (.+)$")
LONGEST = 64  # characters of a write
RATE = 6  # seconds after which the log takes lines again
WORDS = (
    b"", b"\n", b"\n\n", b"\t", b"\0", b"0\0x", b",", b"nonsense", b"none,none", b"batch,",
    b"stock batch", b"yes", b"[stock]", b"%s%n", b"../..", b"0x", b"1 2", b" 1", b"1 ", b"-1",
    b"-0", b"+1", b"1.5", b"1e3", b"4294967295", b"4294967296", b"18446744073709551616", b"9" * 63,
    b"0" * 64, b"0" * 65, b"x" * 64, b"x" * 65, b"x" * 4095, b"x" * 4096, b"x" * 4097,
    b"x" * (1 << 20),
)  # fmt: skip


@dataclass(frozen=True)
class Form:
    """A file's form: a number in a range, one of some names, or several; else it is not known.

    It may read more names than it takes.
    """

    names: tuple[str, ...] = ()
    more: tuple[str, ...] = ()  # all that it reads, if these are more
    several: bool = False
    lowest: int = 0
    highest: int = -1

    @property
    def number(self) -> bool:
        """Tell if it takes a number."""
        return self.highest >= self.lowest

    @property
    def known(self) -> bool:
        """Tell if what it takes is known."""
        return self.number or bool(self.names)

    def right(self, rng: random.Random) -> str:
        """Return what it takes."""
        if self.number:
            near = (self.lowest, self.highest, rng.randint(self.lowest, self.highest))
            return str(rng.choice(near))
        if self.several:
            return ",".join(rng.sample(self.names, rng.randint(0, len(self.names)))) or "none"
        return rng.choice(self.names)

    def wrong(self, rng: random.Random) -> str:
        """Return what it all but takes."""
        if self.number:
            beyond = self.highest + rng.choice((1, 1, rng.randint(2, 1 << 20)))
            return str(rng.choice((beyond, self.lowest - 1)))
        name = rng.choice(self.names)
        return rng.choice((name[:-1], name + "x", name.upper(), f"{name} {name}"))

    def reads(self, data: bytes) -> str | None:
        """Return what the file reads after a write of `data`; None for what it has to refuse."""
        text = data.partition(b"\0")[0].decode(errors="replace").removesuffix("\n")
        if len(data) > LONGEST:
            return None
        if self.number:
            number = kernel_number(text)
            fits = number is not None and self.lowest <= number <= self.highest
            return str(number) if fits else None
        wanted = text.split(",") if self.several else [text]
        allowed = {*self.names}
        if self.several and text == "none":
            allowed = {"none"}  # which is shown where there is one name alone
        if not set(wanted) <= allowed:
            return None
        return " ".join(f"[{name}]" if name in wanted else name for name in self.more or self.names)


def kernel_number(text: str) -> int | None:
    """Return the number that kstrtouint() reads with base 0; None for what it refuses."""
    match = re.fullmatch(r"\+?(?:0[xX]([0-9a-fA-F]+)|(0[0-7]*)|([1-9][0-9]*))", text)
    if not match:
        return None
    number = int(match[1], 16) if match[1] else int(match[2], 8) if match[2] else int(match[3])
    return number if number < 1 << 32 else None


def form_of(path: Path) -> Form:
    """Return a file's form, by what the log says of a word that no file takes."""
    for _ in range(3):
        with KernelLog() as log:
            with suppress(OSError):
                path.write_text("nonsense")
                raise Failure(f"{path} takes 'nonsense'")
            said = log.said()
        if number := NUMBER.search(said):
            return Form(lowest=int(number[1]), highest=int(number[2]))
        if names := ONE.search(said) or SEVERAL.search(said):
            several = bool(SEVERAL.search(said))
            taken = tuple(names[1].replace(",", " ").split())
            more = parse_choices(path.read_text())[1]
            return Form(taken, tuple(more) if set(more) > set(taken) else (), several)
        if said:
            break
        time.sleep(RATE)
    return Form()


def data_for(form: Form, rng: random.Random) -> bytes:
    """Return what to write to a file: right, all but right, or anything."""
    draw = rng.random()
    if form.known and draw < 0.5:
        text = form.right(rng) if draw < 0.25 else form.wrong(rng)
        tail = rng.choice((b"", b"", b"\n", b"\n\n", b"\0", b"\0junk", b" ", b","))
        return text.encode() + tail
    if draw < 0.8:
        return rng.choice(WORDS)
    return rng.randbytes(rng.choice((1, 2, 7, 63, 64, 65, 300)))


def in_choices(form: Form, text: str) -> bool:
    """Tell if a file reads something that its form allows."""
    if form.number:
        return text.isdigit() and form.lowest <= int(text) <= form.highest
    return set(parse_choices(text)[1]) == set(form.more or form.names)


def openable(path: Path, flags: int) -> bool:
    """Tell if a file can be opened."""
    with suppress(OSError):
        os.close(os.open(path, flags))
        return True
    return False
