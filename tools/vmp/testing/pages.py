# SPDX-License-Identifier: GPL-2.0
"""The man pages' options, made from the parsers. What an option does is told in the page."""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import vmp.bench.command
import vmp.demo.command
import vmp.guest.command
import vmp.livepatch.command
import vmp.testing.releases
import vmp.torture.command
from vmp.common import REPO, Command, Parser
from vmp.vmscanctl import COMMANDS, make_parser

MAN = REPO / "tools" / "man"
OWN_PAGE = ("ab", "record", "report", "shark")  # commands of vmscanctl
TOOLS = (
    vmp.bench.command.COMMAND,
    vmp.demo.command.COMMAND,
    vmp.testing.releases.COMMAND,
    vmp.guest.command.COMMAND,
    vmp.livepatch.command.COMMAND,
    vmp.torture.command.COMMAND,
)


def parser_of(command: Command) -> Parser:
    """Return the parser of a command."""
    parser = Parser(prog=command.name)
    command.arguments(parser)
    return parser


def all_parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Return a parser and those of its commands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from all_parsers(inner)


def pages() -> dict[Path, list[argparse.ArgumentParser]]:
    """Return the pages, and the parsers whose options each explains."""
    found = {MAN / f"{tool.name}.1": list(all_parsers(parser_of(tool))) for tool in TOOLS}
    for name in OWN_PAGE:
        found[MAN / f"vmscanctl-{name}.1"] = [parser_of(COMMANDS[name])]
    own = [command for name, command in COMMANDS.items() if name not in OWN_PAGE]
    return found | {MAN / "vmscanctl.1": list(all_parsers(make_parser(own)))}


def head(action: argparse.Action) -> str:
    """Return the line that an option's paragraph begins with."""
    value = action.metavar or "|".join(map(str, action.choices or ()))
    names = ", ".join(f"\\fB{name}\\fR" for name in action.option_strings)
    taken = f"\\fI{value}\\fR" if value else ""
    line = f"{names} {f'[{taken}]' if action.nargs == '?' else taken}".rstrip()
    return line.replace("-", "\\-")


def heads(parsers: list[argparse.ArgumentParser]) -> dict[str, str]:
    """Return these lines by their long options; raise ValueError where one has two."""
    found: dict[str, str] = {}
    for action in (action for parser in parsers for action in parser._actions):
        if action.option_strings:
            name, line = action.option_strings[-1], head(action)
            if found.setdefault(name, line) != line:
                raise ValueError(f"{name} takes this and that: {found[name]}, {line}")
    return found


def section(text: str) -> re.Match[str] | None:
    """Return the options of a page, if it has some."""
    return re.search(r"^\.SH OPTIONS$.*?(?=^\.SH )", text, re.MULTILINE | re.DOTALL)


def long_option(line: str) -> str:
    """Return the option that a paragraph is of, by its first line; '' for none."""
    names = re.findall(r"--[a-z][a-z-]*", line.replace("\\-", "-"))
    return names[-1] if names else ""


def with_heads(text: str, known: dict[str, str]) -> str:
    """Return a page with the first lines of its options' paragraphs as the parsers have them."""
    found = section(text)
    if not found:
        return text
    made = re.sub(
        r"(?<=^\.TP\n).*$",
        lambda line: known.get(long_option(line[0]), line[0]),
        found[0],
        flags=re.MULTILINE,
    )
    return text[: found.start()] + made + text[found.end() :]


if __name__ == "__main__":
    for page, parsers in pages().items():
        page.write_text(with_heads(page.read_text(), heads(parsers)))
