# SPDX-License-Identifier: GPL-2.0
"""What an image of a kernel tells of itself: its notes, and what /proc/kallsyms will show."""

import re
import struct
from pathlib import Path

from vmp.common import Failure, run

# How compressed data begins, and the program for it.
PROGRAMS = {b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zXZ\x00": "xz"}
PAYLOAD = 0x248  # where a bzImage has the offset and the length of what is compressed
SETUP = 0x1F1  # and the number of sectors before that, less one
DIGITS = b"".join(b"%d\0" % digit for digit in range(10))  # tokens that each kernel has
TOKENS = 256
MARKED = 256  # each symbol of that number has a marker


def extract(image: Path, binary: Path) -> None:
    """Write the ELF file that is in a bzImage; raise Failure for an image of another form."""
    data = image.read_bytes()
    begin, length = struct.unpack_from("<II", data, PAYLOAD)
    begin += (data[SETUP] + 1) * 512
    payload = data[begin : begin + length - 4]  # its last word is the size of what comes out
    program = next((p for magic, p in PROGRAMS.items() if payload.startswith(magic)), None)
    if not program:
        raise Failure(f"{image} is compressed by neither {' nor '.join(PROGRAMS.values())}")
    packed = binary.with_suffix(".packed")
    packed.write_bytes(payload)
    run(["sh", "-c", '"$0" -dc <"$1" >"$2"', program, packed, binary], f"unpacking {image.name}")
    packed.unlink()


def read_notes(binary: Path) -> bytes:
    """Return the ELF notes, as /sys/kernel/notes has them."""
    target = binary.with_suffix(".notes")
    run(["objcopy", "-O", "binary", "--only-section=.notes", binary, target], "reading the notes")
    found = target.read_bytes()
    target.unlink()
    return found


def align(at: int) -> int:
    """Return the next place that is a multiple of 8."""
    return (at + 7) & ~7


def entry_length(data: bytes, at: int) -> tuple[int, int]:
    """Return where a compressed name begins, and its length, in tokens of a byte."""
    if data[at] < 0x80:
        return at + 1, data[at]
    return at + 2, data[at] & 0x7F | data[at + 1] << 7


def find_tokens(data: bytes) -> tuple[int, list[bytes], int]:
    """Return where the table of tokens begins, the tokens, and where the table of offsets begins.

    Behind the tokens is a table of where each begins, by which the right place is known.
    """
    for found in re.finditer(re.escape(DIGITS), data):
        begin = found.start()
        for _ in range(ord("0")):  # the token of a digit is the one of its character's number
            begin = data.rindex(b"\0", 0, begin - 1) + 1
        tokens = data[begin : begin + (1 << 14)].split(b"\0")[:TOKENS]
        starts = [0]
        for token in tokens[:-1]:
            starts.append(starts[-1] + len(token) + 1)
        index = align(begin + starts[-1] + len(tokens[-1]) + 1)
        if data[index : index + 2 * TOKENS] == struct.pack(f"<{TOKENS}H", *starts):
            return begin, tokens, align(index + 2 * TOKENS)
    raise Failure("the kernel's image has no table of symbols of the known form")


def find_names(data: bytes, tokens_at: int) -> tuple[int, int]:
    """Return where the compressed names begin, and their number, by the markers behind them."""
    at = tokens_at - 4
    if not struct.unpack_from("<I", data, at)[0]:
        at -= 4  # to align the tokens
    while struct.unpack_from("<I", data, at)[0]:
        at -= 4
    second = struct.unpack_from("<I", data, at + 4)[0]  # where the second marked symbol is
    most = (tokens_at - at) // 4 * MARKED
    for begin in range(at & ~7, max(0, at - 16 * most), -8):
        count = struct.unpack_from("<I", data, begin - 8)[0]
        if most - 2 * MARKED < count <= most:
            place = begin
            for _ in range(MARKED):
                if place < at:
                    place = sum(entry_length(data, place))
            if place - begin == second:
                return begin, count
    raise Failure("the kernel's image has no names of symbols of the known form")


def list_symbols(data: bytes) -> str:
    """Return the symbols of an x86-64 kernel from 6.4 on as /proc/kallsyms has them."""
    tokens_at, tokens, offsets_at = find_tokens(data)
    place, count = find_names(data, tokens_at)
    offsets = struct.unpack_from(f"<{count}i", data, offsets_at)
    base = struct.unpack_from("<Q", data, align(offsets_at + 4 * count))[0]
    lines = []
    for offset in offsets:
        place, length = entry_length(data, place)
        name = b"".join([tokens[token] for token in data[place : place + length]]).decode()
        place += length
        # What is not negative is an address itself, within a CPU's own data.
        at = offset if offset >= 0 else base - 1 - offset
        lines.append(f"{at:016x} {name[0]} {name[1:]}\n")
    return "".join(lines)
