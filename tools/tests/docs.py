#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Do what documents tell their readers to do, in a copy of the checkout.

In a ```sh block each line is a command, run from the top; one that ends in a backslash goes on
in the next line. A ```diff block is a patch. A block below a line that ends with
"`FILE`, a new file:" is that file. All other blocks are for readers only.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

from vmp.common import REPO, Failure, run_tool

BLOCK = re.compile(r"([^\n]*)\n+^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NEW_FILE = re.compile(r"`([^`]+)`, a new file:$")
COMMAND = re.compile(r"(?:.*\\\n)*.*\n")


@dataclass(frozen=True)
class Step:
    """What a document has done: the `kind` is sh, diff or file; `line` is where it begins."""

    kind: str
    text: str
    line: int
    path: str = ""

    def __str__(self) -> str:
        """Return what is printed of it."""
        return {"diff": "patch", "file": f"write {self.path}"}.get(self.kind, self.text.strip())


def steps(document: str) -> Iterator[Step]:
    """Find the steps of a document, in order."""
    for block in BLOCK.finditer("\n\n" + document):
        line = document.count("\n", 0, block.start(3) - 2) + 1
        new_file = NEW_FILE.search(block[1])
        if block[2] == "diff":
            yield Step("diff", block[3], line)
        elif new_file:
            yield Step("file", block[3], line, new_file[1])
        elif block[2] == "sh":
            for command in COMMAND.finditer(block[3]):
                if command[0].strip():
                    before = block[3].count("\n", 0, command.start())
                    yield Step("sh", command[0], line + before)


def do(step: Step, top: Path) -> int:
    """Do a step in the copy at `top`; return its exit status."""
    if step.kind == "file":
        (top / step.path).parent.mkdir(parents=True, exist_ok=True)
        (top / step.path).write_text(step.text)
        return 0
    patch = "patch -p1 -s --fuzz=0 --no-backup-if-mismatch"
    script = patch if step.kind == "diff" else f"set -eo pipefail\n{step.text}"
    given = step.text if step.kind == "diff" else ""
    command = ["bash", "-c", script]
    return subprocess.run(command, cwd=top, input=given, text=True, check=False).returncode


def copy_checkout(top: Path) -> None:
    """Copy the checkout as it is now, without what was built in it."""
    ignored = shutil.ignore_patterns(".git", "out", "__pycache__", "*.o", "*.ko")
    shutil.copytree(REPO, top, symlinks=True, ignore=ignored, dirs_exist_ok=True)


def main() -> int:
    """Do the steps of each document, each in a copy of its own, until one fails."""
    parser = argparse.ArgumentParser(prog="docs", description=__doc__)
    parser.add_argument("--edits", action="store_true", help="run no commands: files and patches")
    parser.add_argument("--skip", action="append", default=[], metavar="CMD", help="leave it out")
    parser.add_argument("document", nargs="+", type=Path)
    arguments = parser.parse_args()
    for document in arguments.document:
        with tempfile.TemporaryDirectory(prefix="vmscan-policy-docs.") as name:
            copy_checkout(Path(name))
            for step in steps(document.read_text()):
                if step.kind == "sh" and (arguments.edits or str(step) in arguments.skip):
                    continue
                print(f"{document}:{step.line}: {step}", flush=True)
                status = do(step, Path(name))
                if status:
                    raise Failure(f"{document}, line {step.line}, ends with status {status}")
    return 0


if __name__ == "__main__":
    run_tool("docs", main)
