# SPDX-License-Identifier: GPL-2.0
"""What the compiler made: instructions, static branches and sizes in object files."""

import re
from dataclasses import dataclass
from pathlib import Path

from vmp.common import run

HEAD = re.compile(r"^[0-9a-f]+ <(.+)>:$")
SECTION = re.compile(r"^Disassembly of section (\S+):$")
INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\t(\S.*?)\s*$")
RELOCATION = re.compile(r"^\s*[0-9a-f]+: R_\w+\t(\S+)$")
# In the jump table, an entry is where the branch is, where it leads, and its key.
ENTRY = re.compile(
    r"R_X86_64_PC32\s+(\S+)\+0x([0-9a-f]+)\n\S+\s+R_X86_64_PC32\s+(\S+)\+0x([0-9a-f]+)\n"
    r"\S+\s+R_X86_64_PC64\s+(\w+)"
)
Place = tuple[str, int]  # section and offset


@dataclass
class Instruction:
    """An instruction in an object file, and the symbol that the linker puts into it."""

    place: Place
    text: str
    symbol: str = ""

    @property
    def code(self) -> str:
        """Return it without what depends on where things are."""
        text = re.sub(r"\b[0-9a-f]+ <([\w.]+)(\+0x[0-9a-f]+)?>", r"\1", self.text)
        symbol = re.sub(r"^(\.\S+?)[+-]0x.*", r"\1", self.symbol)
        return f"{text} {symbol}".strip()


def base(name: str) -> str:
    """Return the function that a symbol belongs to: it may be a part or a variant of it."""
    return re.sub(r"\.(cold|part|isra|constprop)\b.*", "", name)


def functions(binary: Path) -> dict[str, list[Instruction]]:
    """Return the instructions of each function of an object file, with all of its parts."""
    listing = run(["objdump", "-dr", "--no-show-raw-insn", binary], "disassembling")
    found: dict[str, list[Instruction]] = {}
    section, code = "", []
    for line in listing.splitlines():
        if head := HEAD.match(line):
            code = found.setdefault(base(head[1]), [])
        elif begin := SECTION.match(line):
            section = begin[1]
        elif instruction := INSTRUCTION.match(line):
            code.append(Instruction((section, int(instruction[1], 16)), instruction[2]))
        elif (relocation := RELOCATION.match(line)) and code:
            code[-1].symbol = relocation[1]
    return found


def branches(binary: Path) -> dict[str, dict[Place, Place]]:
    """Return where the static branches on each key are, and where each of them leads."""
    said = run(["objdump", "-r", binary], "reading the jump table")
    table = said.partition("[__jump_table]:")[2].partition("RELOCATION RECORDS")[0]
    found: dict[str, dict[Place, Place]] = {}
    for code, at, target, to, key in ENTRY.findall(table):
        found.setdefault(key, {})[(code, int(at, 16))] = (target, int(to, 16))
    return found


def text_size(binary: Path) -> int:
    """Return the size of an object file's text in bytes."""
    listing = run(["size", binary], f"asking for the size of {binary.name}")
    return int(listing.splitlines()[1].split()[0])
