# SPDX-License-Identifier: GPL-2.0
"""Tests of how a tool ends, and of the files that it may write."""

import subprocess
import sys
from pathlib import Path

import pytest
from vmp.common import KEPT, Usage, result_file

TOOLS = Path(__file__).resolve().parents[1]


def run_tool(body: str, reader: str) -> list[str]:
    """Run a tool whose main() has the `body`, with stdout read by a shell command."""
    program = (
        f"import sys; sys.path.insert(0, {str(TOOLS)!r})\n"
        "from vmp.common import Failure, run_tool\n"
        f"def main():\n    {body}\n    return 3\n"
        "run_tool('tool', main, 9)\n"
    )
    script = f"set -o pipefail; {{ '{sys.executable}' -c \"$0\"; echo $? >&2; }} | {reader}"
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
