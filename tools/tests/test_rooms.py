# SPDX-License-Identifier: GPL-2.0
"""Tests of how the tools are laid out: their rooms, versions and man pages."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from vmp.common import REPO, VERSION
from vmp.livepatch.install import INSTALL, UNINSTALL
from vmp.testing.pages import MAN, heads, long_option, pages, section, with_heads
from vmp.vmscanctl import COMMANDS

PACKAGE = REPO / "tools" / "vmp"
# From the lowest floor up; those on one floor know nothing of each other.
FLOORS = (
    {"common", "form"},
    {"programs", "checkout"},
    {"control", "guest"},
    {"result"},
    {"ab", "doctor"},
    {"livepatch", "record", "report"},
    {"vmscanctl", "bench", "demo", "torture"},
    {"testing"},
)
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}


def imports(path: Path) -> Iterator[str]:
    """Return the modules that a file imports, in its functions, too."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        yield from names


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.name)
def test_a_room_imports_from_lower_floors_only(path: Path) -> None:
    room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    rooms = {name.split(".")[1] for name in imports(path) if name.startswith("vmp.")}
    assert not {other for other in rooms - {room} if FLOOR[other] >= FLOOR[room]}


def test_what_is_installed_imports_nothing_that_is_not() -> None:
    """Which is its own packages, the standard library, and libraries that pip is told of."""
    tools = PACKAGE.parent
    project = tomllib.loads((tools / "pyproject.toml").read_text())
    packages = project["tool"]["setuptools"]["packages"]
    files = [path for name in packages for path in (tools / name.replace(".", "/")).glob("*.py")]
    ours = {".".join(path.relative_to(tools).with_suffix("").parts) for path in files}
    extra = project["project"]["optional-dependencies"]["report"]
    others = sys.stdlib_module_names | {library.partition("=")[0] for library in extra}
    for path in (*files, tools / "debian" / "run-vmscanctl"):
        found = {name for name in imports(path) if name.partition(".")[0] not in others}
        assert not found - ours - (set(packages) - {"vmp"}), path


def test_a_checkouts_vmscanctl_starts_without_what_builds_kernels() -> None:
    code = "import sys, vmp.livepatch.install; sys.exit('vmp.guest' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=PACKAGE.parent, check=True)


def programs() -> Iterator[Path]:
    """Return the programs in Python that users start."""
    for path in (*PACKAGE.parent.iterdir(), *(PACKAGE.parent / "debian").iterdir()):
        if path.is_file() and path.read_bytes().startswith(b"#!/usr/bin/env python3"):
            yield path


@pytest.mark.parametrize("path", sorted(programs()), ids=lambda path: path.name)
def test_ctrl_c_ends_a_program_without_a_word_while_it_is_loaded(path: Path) -> None:
    first = [ast.unparse(line) for line in ast.parse(path.read_text()).body[1:3]]
    assert first == ["import signal", "signal.signal(signal.SIGINT, signal.SIG_DFL)"]


def test_the_version_is_the_modules() -> None:
    assert f'PACKAGE_VERSION="{VERSION}"' in (REPO / "dkms.conf").read_text()


def explained(text: str) -> set[str]:
    """Return the options that a page explains."""
    found = section(text)
    lines = re.findall(r"^\.TP\n(.*)$", found[0], re.MULTILINE) if found else []
    return set(filter(None, map(long_option, lines)))


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_a_man_page_explains_the_options_of_the_parsers(page: Path) -> None:
    text, known = page.read_text(), heads(pages()[page])
    anew = "cd tools && python3 -m vmp.testing.pages"
    assert explained(text) - {"--help", "--version"} == known.keys() - {"--help", "--version"}
    assert with_heads(text, known) == text, anew


def test_vmscanctls_man_page_names_its_commands() -> None:
    text = (MAN / "vmscanctl.1").read_text()
    named = set(re.findall(r"^\.B vmscanctl (\w+)$", text, re.MULTILINE))
    assert named == {*COMMANDS, INSTALL.name, UNINSTALL.name}
