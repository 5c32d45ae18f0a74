# SPDX-License-Identifier: GPL-2.0
"""Applying the settings of a file, which the machine does when it boots."""

import argparse
import sys
from pathlib import Path

from vmp.common import Command, Failure, Parser
from vmp.control.debugfs import Control, locate, parse_assignments

CONF = Path("/etc/vmscan-policy.conf")


def numbered(text: str) -> list[tuple[int, str]]:
    """Return the lines that set something, with their numbers, without comments."""
    lines = enumerate((line.partition("#")[0].strip() for line in text.splitlines()), 1)
    return [(number, line) for number, line in lines if line]


def apply(control: Control, text: str) -> tuple[list[str], list[str]]:
    """Write the settings line by line; return the lines that were set, and what is wrong.

    A wrong line changes nothing, and keeps no other from being set.
    """
    done, wrong = [], []
    for number, line in numbered(text):
        try:
            assignments = parse_assignments([line])
            control.check(assignments)
            control.write(assignments)
            done.append(line)
        except Failure as failure:
            wrong.append(f"line {number}: {failure}")
    return done, wrong


def arguments(parser: Parser) -> None:
    """Take a file."""
    parser.add_argument("file", metavar="FILE", nargs="?", type=Path, default=CONF,
                        help=f"the settings, one a line ({CONF})")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Apply a file, and print what was set; the status is 1 with a wrong line in it."""
    text = args.file.read_text(errors="replace")
    done, wrong = apply(Control(locate()), text)
    for sentence in wrong:
        print(f"vmscanctl: {args.file}, {sentence}", file=sys.stderr)
    print(f"set: {', '.join(done) or 'nothing'}")
    return 1 if wrong else 0


COMMAND = Command("apply", "Apply the settings in a file, line by line.", arguments, run)
