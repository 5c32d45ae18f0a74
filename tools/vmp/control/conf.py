# SPDX-License-Identifier: GPL-2.0
"""Applying the settings of a file, which the machine does when it boots.

Lines of the machine come first. Those behind a line `[CGROUP]` are of that cgroup.
"""

import argparse
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from vmp.common import Command, Failure, Parser
from vmp.control.cgroups import Cgroup, NotThere, chosen, find, shown
from vmp.control.debugfs import Control, parse_assignments

CONF = Path("/etc/vmscan-policy.conf")
Lines = list[tuple[int, str]]  # with their numbers


@dataclass(frozen=True)
class Section:
    """Lines of one cgroup, by the words behind `[`, whose line has the `number`; 0: the machine."""

    number: int
    head: str
    lines: Lines = field(default_factory=list)

    def target(self, machine: Control) -> Control | Cgroup:
        """Return what its lines are for; raise NotThere, or Failure for what is no section."""
        if not self.number:
            return machine
        who = self.head.removesuffix("]").strip()
        if who == self.head or not who:
            raise Failure(
                f"'[{self.head}' is no section, and its lines are left out: write [CGROUP], as in "
                "[system.slice/mariadb.service]"
            )
        return find(machine, who)


def numbered(text: str) -> Lines:
    """Return the lines that set something, with their numbers, without comments."""
    lines = enumerate((line.partition("#")[0].strip() for line in text.splitlines()), 1)
    return [(number, line) for number, line in lines if line]


def sections(text: str) -> list[Section]:
    """Return the machine's lines, and after them those of each cgroup."""
    found = [Section(0, "")]
    for number, line in numbered(text):
        if line.startswith("["):
            found.append(Section(number, line[1:]))
        else:
            found[-1].lines.append((number, line))
    return found


def apply(to: Control | Cgroup, lines: Lines) -> tuple[list[str], list[str]]:
    """Write settings line by line; return the lines that were set, and what is wrong.

    A wrong line changes nothing, and keeps no other from being set.
    """
    done, wrong = [], []
    for number, line in lines:
        try:
            to.assign(parse_assignments([line]))
            done.append(line)
        except Failure as failure:
            wrong.append(f"line {number}: {failure}")
    return done, wrong


def arguments(parser: Parser) -> None:
    """Take a file."""
    parser.add_argument("file", metavar="FILE", nargs="?", type=Path, default=CONF,
                        help=f"the settings, one a line ({CONF})")  # fmt: skip


@dataclass
class Outcome:
    """What was set, as lines; what is wrong; and the sections whose cgroups are not there."""

    done: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)

    def apply(self, to: Control | Cgroup, lines: Lines) -> None:
        """Apply the lines of a section."""
        done, wrong = apply(to, lines)
        whose = f" for {shown(to.path)}" if isinstance(to, Cgroup) else ""
        self.done.append(f"set{whose}: {', '.join(done) or 'nothing'}")
        self.wrong += wrong


def apply_all(machine: Control, text: str) -> Outcome:
    """Apply a file."""
    outcome = Outcome()
    for section in sections(text):
        try:
            outcome.apply(section.target(machine), section.lines)
        except NotThere:
            outcome.absent.append(f"[{shown(section.head)}")
        except Failure as failure:
            outcome.wrong.append(f"line {section.number}: {failure}")
    return outcome


def apply_one(machine: Control, cgroup: Cgroup, text: str) -> Outcome:
    """Apply the sections of one cgroup alone."""
    outcome = Outcome()
    for section in sections(text):
        with suppress(Failure):  # of another cgroup, or of none
            to = section.target(machine)
            if isinstance(to, Cgroup) and to.path == cgroup.path:
                outcome.apply(to, section.lines)
    return outcome


def run(args: argparse.Namespace) -> int:
    """Apply a file, and print what was set; the status is 1 with a wrong line in it."""
    text = args.file.read_text(errors="replace")
    machine, cgroup = chosen(args)
    outcome = apply_one(machine, cgroup, text) if cgroup else apply_all(machine, text)
    if cgroup and not outcome.done:
        raise Failure(f"{args.file} has no section [{shown(cgroup.path[1:])}]")
    for sentence in outcome.wrong:
        print(f"vmscanctl: {args.file}, {sentence}", file=sys.stderr)
    print(*outcome.done, sep="\n")
    if outcome.absent:
        print(f"not there now: {', '.join(outcome.absent)}")
    return 1 if outcome.wrong else 0


COMMAND = Command("apply", "Apply the settings in a file, line by line.", arguments, run)
