# SPDX-License-Identifier: GPL-2.0
"""Tests of which prebuilt kernel is taken, and of what an image tells of its symbols."""

import struct

import pytest
from vmp.common import Failure
from vmp.guest.sources import Version
from vmp.guest.stock import FLAVOUR, Stock, choose
from vmp.livepatch.image import TOKENS, align, list_symbols

NAMES = """linux-image-6.12.117+deb12-cloud-amd64
linux-image-6.12.117+deb12-cloud-amd64-unsigned
linux-image-6.12.115+deb12-cloud-amd64
linux-image-6.12.113+deb12-cloud-amd64
linux-image-6.12.101+deb12-cloud-amd64
linux-image-6.12-cloud-amd64
"""
VERSIONS = {"6.12.117": "6.12.117-1~deb12u1", "6.12.115": "6.12.115-2~deb12u1",
            "6.12.113": "6.12.113-1~deb12u1", "6.12.101": "6.12.101-1"}  # fmt: skip


def madison(*without: str) -> str:
    """Return what apt-cache says of all packages, but for some."""
    lines = []
    for point, version in VERSIONS.items():
        kernel = Stock(f"{point}+deb12{FLAVOUR}", Version(point, version))
        for name in (*kernel.packages, "linux-source-6.12"):
            if f"{name} {point}" not in without and name not in without:
                lines.append(f"{name} | {version} | http://mirror.example/debian bookworm/main")
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("gone", "newest"),
    [
        ([], "6.12.117"),
        (["linux-source-6.12 6.12.117"], "6.12.115"),
        (["linux-headers-6.12.117+deb12-common"], "6.12.115"),
        (["linux-kbuild-6.12.117+deb12", "linux-image-6.12.115+deb12-cloud-amd64"], "6.12.113"),
    ],
)
def test_the_newest_that_is_whole_is_taken(gone: list[str], newest: str) -> None:
    found = choose("6.12", NAMES, madison(*gone))
    assert found[-1].version == Version(newest, VERSIONS[newest])
    assert found[-1].release == f"{newest}+deb12-cloud-amd64"


def test_releases_without_hooks_and_other_series_are_left_out() -> None:
    points = [kernel.version.point for kernel in choose("6.12", NAMES, madison())]
    assert points == ["6.12.113", "6.12.115", "6.12.117"]
    assert choose("7.3", NAMES, madison()) == []
    assert choose("6.12", "", "") == []


WORDS = [("ffffffff81000000", "T", "_text"), ("0000000000001000", "A", "cpu_debug_store"),
         *((f"{0xFFFFFFFF81000100 + 16 * n:016x}", "t", f"f{n}_of_300") for n in range(300)),
         ("ffffffff82000000", "d", "x" * 200)]  # fmt: skip


def image(digits: bytes = b"0") -> bytes:
    """Return what a kernel's image has of WORDS: as its build packs them, by tokens of a letter."""
    tokens = [b"" if n == 0 else bytes([n]) for n in range(TOKENS)]
    tokens[ord("0")] = digits
    names, markers = b"", []
    for number, (_, kind, name) in enumerate(WORDS):
        if number % 256 == 0:
            markers.append(len(names))
        text = f"{kind}{name}".encode()
        length = len(text)
        names += bytes([length]) if length < 0x80 else bytes([length & 0x7F | 0x80, length >> 7])
        names += text
    base = 0xFFFFFFFF81000000
    places = [int(at, 16) for at, _, _ in WORDS]
    offsets = [at if at < 1 << 20 else base - 1 - at for at in places]
    starts = [sum(len(token) + 1 for token in tokens[:n]) for n in range(TOKENS)]
    data = bytes(64)
    for part in (
        struct.pack("<I", len(WORDS)),
        names,
        struct.pack(f"<{len(markers)}I", *markers),
        b"".join(token + b"\0" for token in tokens),
        struct.pack(f"<{TOKENS}H", *starts),
        struct.pack(f"<{len(offsets)}i", *offsets),
        struct.pack("<Q", base),
    ):
        data += bytes(align(len(data)) - len(data)) + part
    return data + bytes(64)


def test_the_symbols_of_an_image() -> None:
    assert list_symbols(image()).splitlines() == [" ".join(words) for words in WORDS]


@pytest.mark.parametrize("data", [b"", bytes(4096), image(digits=b"nought")])
def test_an_image_of_another_form_is_refused(data: bytes) -> None:
    with pytest.raises(Failure, match="no table of symbols of the known form"):
        list_symbols(data)
