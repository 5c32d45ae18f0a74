# SPDX-License-Identifier: GPL-2.0
"""Tests of how a tool ends, of the files that it may write, and of times and abbreviations."""

import argparse
import subprocess
import sys
from pathlib import Path

import pytest
from vmp.common import (
    KEPT,
    Parser,
    Usage,
    appearing,
    parse_duration,
    parse_positive_duration,
    result_file,
)

TOOLS = Path(__file__).resolve().parents[1]


def run_tool(body: str, reader: str, stdout: str = "") -> list[str]:
    """Run a tool whose main() has the `body`, with stdout read by a shell command."""
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
        f"import os, sys; sys.path.insert(0, {str(TOOLS)!r})\n"
        "from vmp.common import Failure, run_tool\n"
        f"def main():\n    {body}\n    return 3\n"
        "run_tool('tool', main, 9)\n"
    )
    tool = f"'{sys.executable}' -E -c \"$0\" {stdout}"  # its output is buffered
    script = f"set -o pipefail; {{ {tool}; echo $? >&2; }} | {reader}"
    done = subprocess.run(
        ["bash", "-c", script, program], capture_output=True, text=True, check=False
    )
    return done.stderr.splitlines()


def test_status_of_main() -> None:
    assert run_tool("print('x')", "cat") == ["3"]


def test_failure_is_one_sentence() -> None:
    assert run_tool("raise Failure('no')", "cat") == ["tool: no", "9"]


# What is buffered to the end, and what is not.
@pytest.mark.parametrize("lines", [1, 100000])
def test_reader_that_goes_away(lines: int) -> None:
    gone = "import select; poll = select.poll(); poll.register(1, 0); poll.poll()"
    assert run_tool(f"{gone}; print('x\\n' * {lines})", "true") == ["141"]
    assert run_tool(f"{gone}; print('x\\n' * {lines}); sys.exit(0)", "true") == ["141"]


@pytest.mark.parametrize(
    ("stdout", "end", "said"),
    [
        (">&-", "", ["3"]),
        (">&-", "raise Failure('no')", ["tool: no", "9"]),
        (">/dev/full", "", ["tool: No space left on device", "9"]),
        (">/dev/full", "sys.exit(0)", ["tool: No space left on device", "9"]),
        (">/dev/full", "raise Failure('no')", ["tool: no", "9"]),
    ],
)
def test_stdout_that_takes_nothing(stdout: str, end: str, said: list[str]) -> None:
    assert run_tool(f"print('x'); {end}", "cat", stdout) == said


def test_what_is_printed_before_an_error() -> None:
    said = sorted(run_tool("print('x'); open('/nonesuch')", "cat >&2"))
    assert said == ["9", "tool: /nonesuch: No such file or directory", "x"]


@pytest.mark.parametrize(("number", "status"), [(2, "130"), (15, "143"), (1, "129")])
def test_a_signal_is_followed_by_clean_up(number: int, status: str) -> None:
    body = f"try: os.kill(os.getpid(), {number})\n    finally: print('cleaned up')"
    assert sorted(run_tool(body, "cat >&2")) == [status, "cleaned up"]


# As tools/vm was started in a directory, or in /.
@pytest.mark.parametrize(
    ("kept", "name", "stays"),
    [
        (None, "/elsewhere/x", True),
        ("{}", "x", True),
        ("{}", "{}/sub/x", True),
        ("{}", "/dev/null", True),
        ("{}", "../x", False),
        ("{}", "{}-elsewhere/x", False),
        ("/", "x", False),
    ],
)
def test_result_file(
    kept: str | None, name: str, stays: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(KEPT, raising=False)
    if kept:
        monkeypatch.setenv(KEPT, kept.format(tmp_path))
    if stays:
        assert result_file(name.format(tmp_path)) == Path(name.format(tmp_path))
    else:
        with pytest.raises(Usage, match="would be gone with the guest"):
            result_file(name.format(tmp_path))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("2m", 120), ("500ms", 0.5), ("1.5", 1.5), ("1h", 3600), ("0", 0)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds
    if seconds:
        assert parse_positive_duration(text) == seconds


@pytest.mark.parametrize(
    "wrong", ["", "s", "-1s", "-1", "5 days", "1e3s", "inf", "nan", "9999h", "9" * 400, "1."]
)
def test_what_is_no_duration(wrong: str) -> None:
    for parse in (parse_duration, parse_positive_duration):
        with pytest.raises(argparse.ArgumentTypeError, match="is no time: write a number with"):
            parse(wrong)


@pytest.mark.parametrize("nothing", ["0", "0ms", "0.0h"])
def test_some_times_are_more_than_0(nothing: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="write more than 0"):
        parse_positive_duration(nothing)


def test_options_are_not_abbreviated() -> None:
    parser = Parser(prog="tool")
    command = parser.add_subparsers(required=True, dest="chosen").add_parser("command")
    for taken in (parser, command):
        taken.add_argument("--interval")
    for words in (["--inter=2"], ["command", "--inter=2"]):
        with pytest.raises(Usage, match="--inter|required"):
            parser.parse_args(words)


def test_an_option_is_not_empty() -> None:
    parser = Parser(prog="tool")
    parser.add_argument("--cgroup")
    parser.add_argument("--functions", metavar="NAMES", default="")
    assert parser.parse_args(["--functions", ""]).functions == parser.parse_args([]).functions == ""
    with pytest.raises(Usage, match="--cgroup: its value is empty"):
        parser.parse_args(["--cgroup", ""])


def test_what_is_built_appears_whole(tmp_path: Path) -> None:
    result = tmp_path / "builds" / "result"
    with pytest.raises(OSError, match="half"), appearing(result) as part:
        (part / "left").touch()
        raise OSError("half of it is there")
    assert not result.exists()
    with appearing(result) as part:
        (part / "new").touch()
        assert not result.exists()
    assert [path.name for path in result.iterdir()] == ["new"]
    assert [path.name for path in result.parent.iterdir()] == ["result"]
