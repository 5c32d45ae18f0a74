# SPDX-License-Identifier: GPL-2.0
"""Wrong command lines of all tools, at random: each is refused with one sentence and status 2."""

import argparse
import random
import runpy
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from vmp.common import (
    REPO,
    SIGNALS,
    Parser,
    parse_count,
    parse_duration,
    parse_positive_duration,
    run_command,
)
from vmp.livepatch.install import INSTALL, UNINSTALL
from vmp.testing.pages import OWN_PAGE, TOOLS, parser_of
from vmp.vmscanctl import COMMANDS, OF_A_CGROUP, entry, make_parser

SEED, LINES = 29, 200
TIMES = ("nan", "inf", "-inf", "-1", "-2s", "", "soon", "5 days", "1e3s", "9999h")
NUMBERS = ("nan", "inf", "1.5", "many", "", "0x", "1G", "-1")
SIZES = ("8000", "0", "0M", "-1M", "M", "nan", "1.5G", "64X", "", f"{'9' * 20}G")
CGROUPS = ("", "/", "//", "..", "a/../b")
SETTINGS = ("flush", "=batch", "flush=", ",", "flush=batch,,")
# Of options whose values are texts, by what --help calls these.
TEXTS = {"SIZE": SIZES, "SETTINGS": SETTINGS, "SIZE[:IOPS]": SIZES, "KIND,...|none": ("all", "")}
INSTALLERS = (INSTALL, UNINSTALL)
Line = tuple[str, ...]
Lines = Iterator[Line]
OTHERS = {tool.name: tool for tool in (*TOOLS, *(COMMANDS[name] for name in OWN_PAGE))}


def parsers(words: Line, parser: argparse.ArgumentParser) -> Iterator[tuple[Line, Parser]]:
    """Return a parser and those of its commands, with the words that lead to each."""
    assert isinstance(parser, Parser)
    yield words, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from parsers((*words, name), inner)


def wrong_values(action: argparse.Action) -> tuple[str, ...]:
    """Return values that an option doesn't take; none for a text that may be anything."""
    if action.type in (parse_duration, parse_positive_duration):
        return TIMES if action.type is parse_duration else (*TIMES, "0", "0ms")
    if action.type in (int, parse_count):
        return NUMBERS
    return ("bogus", "") if action.choices else TEXTS.get(str(action.metavar), ())


def spoil(rng: random.Random, parser: Parser) -> str:
    """Return an option that is wrong, or whose value is."""
    options = [action for action in parser._actions if action.option_strings]
    names = {name for action in options for name in action.option_strings}
    action = rng.choice(options)
    name = action.option_strings[-1]
    spare = f"{name}=no" if action.nargs == 0 else name  # one value too many, or none
    valued = [option for option in options if wrong_values(option)]
    kinds = [f"--{''.join(rng.choices('abcdefgh', k=9))}"]
    kinds += [spare] * (action.nargs != "?")
    if len(name) > 4:
        short = name[: rng.randrange(3, len(name))]
        kinds += [short] * (short not in names)
    if valued:
        wrong = rng.choice(valued)
        value = rng.choice(wrong_values(wrong))
        kinds += [f"{wrong.option_strings[-1]}={value}"] * 3
    return rng.choice(kinds)


def wrong_lines() -> Lines:
    """Return lines that are wrong, of each tool and of each command in turn."""
    rng = random.Random(SEED)
    known = list(parsers(("vmscanctl",), make_parser([*COMMANDS.values(), *INSTALLERS])))
    for command in OTHERS.values():
        known += parsers((command.name,), parser_of(command))
    for number in range(LINES):
        words, parser = known[number % len(known)]
        spoiled = spoil(rng, parser)
        tail = ["--", "true"] if words[-1] in ("ab", "record", "vm") and "=" in spoiled else []
        yield (*words, spoiled, *tail)


def wrong_cgroups() -> Lines:
    """Return a line of each command with a cgroup that is none, or that the command can't take."""
    for name, command in COMMANDS.items():
        who = random.Random(name).choice(CGROUPS) if name in OF_A_CGROUP else "db"
        taken = (action for action in parser_of(command)._actions if not action.option_strings)
        needed = ["x=y" for action in taken if action.nargs not in ("?", "*")]
        yield ("vmscanctl", f"--cgroup={who}", name, *needed)


def begun(*_: object, **__: object) -> None:
    raise AssertionError("what was asked for has begun")


@pytest.fixture
def nothing_begins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let no line start a program or reach the module, and keep what handles signals."""
    for place in ("subprocess.Popen", "os.execvp", "os.execv"):
        monkeypatch.setattr(place, begun)
    kept = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


def status_of(words: Line, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setattr(sys, "argv", list(words))
    with pytest.raises(SystemExit) as ended:
        run_command(OTHERS[words[0]]) if words[0] in OTHERS else entry(*INSTALLERS)
    return ended.value.code


@pytest.mark.usefixtures("nothing_begins")
@pytest.mark.parametrize("words", [*wrong_lines(), *wrong_cgroups()], ids=shlex.join)
def test_a_wrong_line(
    words: Line, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status = status_of(words, monkeypatch)
    said = capsys.readouterr()
    assert (status, said.out, said.err.count("\n")) == (2, "", 1), said.err
    assert said.err.startswith(f"{words[0]}: ")


@pytest.mark.usefixtures("nothing_begins")
@pytest.mark.parametrize(
    "words", ["check --arch=arm64", "patches --arch=arm64 DIR", "check --kernel=7.3:arm64"]
)
def test_an_architecture_that_makes_no_difference(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of(("kernel", *words.split()), monkeypatch) == 2
    assert "arm64" in capsys.readouterr().err


@pytest.mark.usefixtures("nothing_begins")
@pytest.mark.parametrize("words", ["no-such-group", "--ful", "--changed=HEAD static", "--kernel"])
def test_a_wrong_line_of_test(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["test", *words.split()])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(REPO / "tools" / "test"), run_name="__main__")
    said = capsys.readouterr()
    assert (ended.value.code, said.out, said.err.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("words", ["--benc", "bench", "--bench=1", "--version demo"])
def test_a_wrong_line_of_setup(words: str) -> None:
    command = [str(REPO / "tools" / "setup"), *words.split()]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
