# SPDX-License-Identifier: GPL-2.0
"""Tests of how the tools are laid out: their rooms, versions and man pages."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from vmp.common import REPO, VERSION
from vmp.testing.pages import MAN, explained, heads, pages, with_heads
from vmp.vmscanctl import COMMANDS

PACKAGE = REPO / "tools" / "vmp"
# From the lowest floor up; those on one floor know nothing of each other.
FLOORS = (
    {"common"},
    {"control", "guest"},
    {"result"},
    {"ab", "doctor"},
    {"livepatch", "record", "report"},
    {"vmscanctl", "bench", "demo"},
    {"testing"},
)
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}


def imports(path: Path) -> Iterator[str]:
    """Return the rooms that a file imports from."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            if name.startswith("vmp."):
                yield name.split(".")[1]


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.name)
def test_a_room_imports_from_lower_floors_only(path: Path) -> None:
    room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    above = {other for other in imports(path) if other != room and FLOOR[other] >= FLOOR[room]}
    assert not above


def test_vmscanctl_starts_without_what_builds_kernels() -> None:
    code = "import sys, vmp.vmscanctl; sys.exit('vmp.guest' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=PACKAGE.parent, check=True)


def test_the_version_is_the_modules() -> None:
    assert f'PACKAGE_VERSION="{VERSION}"' in (REPO / "dkms.conf").read_text()


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_a_man_page_explains_the_options_of_the_parsers(page: Path) -> None:
    text, known = page.read_text(), heads(pages()[page])
    anew = "cd tools && python3 -m vmp.testing.pages"
    assert explained(text) - {"--help", "--version"} == known.keys() - {"--help", "--version"}
    assert with_heads(text, known) == text, anew


def test_vmscanctls_man_page_names_its_commands() -> None:
    text = (MAN / "vmscanctl.1").read_text()
    assert set(re.findall(r"^\.B vmscanctl (\w+)$", text, re.MULTILINE)) == set(COMMANDS)
