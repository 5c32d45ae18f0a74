# SPDX-License-Identifier: GPL-2.0
"""Tests of how the tools are laid out: their rooms, versions and man pages."""

import argparse
import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import vmp.bench.command
import vmp.demo.command
import vmp.guest.building
import vmp.guest.command
import vmp.livepatch.command
from vmp.common import REPO, VERSION, Command, Parser
from vmp.vmscanctl import COMMANDS, make_parser

PACKAGE = REPO / "tools" / "vmp"
# From the lowest floor up; those on one floor know nothing of each other.
FLOORS = (
    {"common"},
    {"control", "guest"},
    {"result"},
    {"ab", "doctor"},
    {"livepatch", "record", "report"},
    {"vmscanctl", "bench", "demo", "testing"},
)
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
OTHERS = (
    vmp.bench.command.COMMAND,
    vmp.demo.command.COMMAND,
    vmp.guest.building.COMMAND,
    vmp.guest.command.COMMAND,
    vmp.livepatch.command.COMMAND,
)


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


def documented(page: str) -> set[str]:
    """Return the long options that a man page explains."""
    text = (REPO / "tools" / "man" / f"{page}.1").read_text().replace("\\-", "-")
    section = re.search(r"^\.SH OPTIONS$(.*?)^\.SH", text, re.MULTILINE | re.DOTALL)
    return set(re.findall(r"--[a-z][a-z-]*", "\n".join(tags(section[1])))) if section else set()


def tags(section: str) -> Iterator[str]:
    """Return the heads of a section's paragraphs."""
    lines = section.splitlines()
    return (lines[i + 1] for i, line in enumerate(lines[:-1]) if line == ".TP")


def taken(parser: Parser) -> set[str]:
    """Return the long options of a parser."""
    options = (option for action in parser._actions for option in action.option_strings)
    return {option for option in options if option.startswith("--")}


def all_taken(parser: Parser) -> set[str]:
    """Return the long options of a parser, or of its commands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return set().union(*map(taken, action.choices.values())) - {"--help"}
    return taken(parser)


@pytest.mark.parametrize(
    "command",
    [COMMANDS[name] for name in ("ab", "record", "report", "shark")] + list(OTHERS),
    ids=lambda command: command.name,
)
def test_a_man_page_explains_the_options(command: Command) -> None:
    parser = Parser(prog=command.name)
    command.arguments(parser)
    assert documented(command.name) == all_taken(parser)


def test_vmscanctls_man_page_names_its_commands() -> None:
    text = (REPO / "tools" / "man" / "vmscanctl.1").read_text()
    assert set(re.findall(r"^\.B vmscanctl (\w+)$", text, re.MULTILINE)) == set(COMMANDS)
    assert documented("vmscanctl") == {"--json"} | taken(make_parser())
