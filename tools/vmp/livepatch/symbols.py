# SPDX-License-Identifier: GPL-2.0
"""The symbols of a kernel, compared with those of an object compiled here.

The table of symbols that kpatch's tools want comes with no kernel of Debian's but in the package of
its debug information, of a gigabyte. /proc/kallsyms has names and addresses. Which of those that
share a name is an object's follows from where its functions are: as far from one another as in the
object, if that was made of the same source by the same compiler.
"""

import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from vmp.common import Failure, run

SYMBOL = re.compile(
    r"^\s*\d+: ([0-9a-f]+)\s+(\d+|0x[0-9a-f]+) (\w+)\s+(\w+)\s+\w+\s+(\w+) (\S+)", re.MULTILINE
)
SECTION = re.compile(r"^\s*\[\s*(\d+)\] (\S+)", re.MULTILINE)
Line = tuple[int, int, str, str, str]  # address, size, kind, binding and name


@dataclass(frozen=True)
class Symbol:
    """A symbol of an object."""

    name: str
    kind: str  # FUNC, OBJECT
    local: bool
    size: int
    section: int  # number
    at: int  # its offset there


@dataclass
class Object:
    """An object file: the name of its source, its symbols, and where they are in each section."""

    source: str
    symbols: list[Symbol]
    sections: dict[str, dict[str, int]]


@dataclass
class Kernel:
    """The running kernel's symbols, without modules'."""

    entries: list[tuple[int, str, str]] = field(default_factory=list)  # address, type, name
    addresses: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))


def read_kernel(text: str) -> Kernel:
    """Read what /proc/kallsyms has."""
    kernel = Kernel()
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3:
            kernel.entries.append((int(words[0], 16), words[1], words[2]))
            kernel.addresses[words[2]].append(int(words[0], 16))
    kernel.entries.sort(key=lambda entry: entry[0])
    if not kernel.entries or not kernel.entries[-1][0]:
        raise Failure("the kernel's symbols have no addresses: root alone sees them")
    return kernel


def read_object(path: Path) -> Object:
    """Read an object's symbols."""
    listing = run(["readelf", "--wide", "--symbols", path], f"reading {path.name}")
    sections = {
        int(number): name
        for number, name in SECTION.findall(
            run(["readelf", "--wide", "--sections", path], f"reading {path.name}")
        )
    }
    symbols, source = [], ""
    for at, size, kind, binding, section, name in SYMBOL.findall(listing):
        if kind == "FILE":
            source = name
        # What is weak may be another's in the kernel.
        elif kind in ("FUNC", "OBJECT") and section.isdigit() and binding != "WEAK":
            local = binding == "LOCAL"
            symbols.append(Symbol(name, kind, local, int(size, 0), int(section), int(at, 16)))
    places: dict[str, dict[str, int]] = defaultdict(dict)
    for symbol in symbols:
        places[sections[symbol.section]][symbol.name] = symbol.at
    return Object(source, symbols, places)


def place(kernel: Kernel, found: Object) -> dict[str, int]:
    """Return the addresses of an object's functions in the kernel, and of data where that is sure.

    Raises Failure if a function is missing there, or is elsewhere among the others.
    """
    functions = place_section(kernel, found.sections.get(".text", {}))
    wrong = [name for name, at in functions.items() if at not in kernel.addresses.get(name, ())]
    if wrong or not functions:
        raise Failure(
            f"{', '.join(wrong[:3]) or 'all'} of {found.source}, compiled here, is not as in the "
            "kernel: that was built from another source, or by another compiler"
        )
    data: dict[str, int] = {}
    for section in (".data", ".bss", ".rodata"):
        data |= place_section(kernel, found.sections.get(section, {}))
    # A number behind a name may be another in another compilation.
    sure = {
        name: at
        for name, at in data.items()
        if at in kernel.addresses.get(name, ()) and "." not in name
    }
    return sure | functions


def place_section(kernel: Kernel, symbols: dict[str, int]) -> dict[str, int]:
    """Return the addresses of a section's symbols, by one whose name is there once."""
    for name, at in symbols.items():
        if len(kernel.addresses.get(name, ())) == 1:
            begin = kernel.addresses[name][0] - at
            return {name: begin + at for name, at in symbols.items()}
    return {}


def table(kernel: Kernel, found: Object, placed: dict[str, int]) -> str:
    """Return the kernel's symbols as `readelf --symbols` prints them, the object's in a block.

    `placed` is where they are, as place() returns it.
    What has the name of one of its functions stands before the block or behind it, by address:
    livepatches count them.
    """
    own = {symbol.name for symbol in found.symbols}
    before: list[Line] = []
    after: list[Line] = []
    for at, kind, name in kernel.entries:
        function = kind in "tTwW"
        if name in placed and at != placed[name]:
            (before if at < placed[name] else after).append((at, 0, "FUNC", "LOCAL", name))
        elif name not in own:
            # A name that is there twice is nothing that another file could mean.
            alone = kind.isupper() and len(kernel.addresses[name]) == 1
            after.append((at, 0, "FUNC" if function else "OBJECT",
                          "GLOBAL" if alone else "LOCAL", name))  # fmt: skip
    block = []
    for symbol in found.symbols:
        known = kernel.addresses.get(symbol.name, [])
        at = placed.get(symbol.name) or (known[0] if known else 0)
        line = (at, symbol.size, symbol.kind, "LOCAL" if symbol.local else "GLOBAL", symbol.name)
        # Twice: kpatch's tools refuse to take the address of what they find twice.
        block += [line] * (2 if len(known) > 1 and symbol.name not in placed else 1)
    lines = [
        *[(0, 0, "FILE", "LOCAL", "before"), *before],
        *[(0, 0, "FILE", "LOCAL", found.source), *block],
        *[(0, 0, "FILE", "LOCAL", "after"), *after],
    ]
    return "".join(
        f"{number:6}: {at:016x} {size:5} {kind:7} {binding:6} DEFAULT    1 {name}\n"
        for number, (at, size, kind, binding, name) in enumerate(lines)
    )
