# SPDX-License-Identifier: GPL-2.0
"""Recording the trace events of the reclaim policies while a command runs, or for a while."""

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter, defaultdict
from contextlib import ExitStack
from dataclasses import dataclass
from math import inf
from pathlib import Path

from vmp.ab.alternation import Alternation, parse_sides
from vmp.common import (
    Command,
    Failure,
    Parser,
    Usage,
    emulated,
    parse_positive_duration,
    parse_size,
    result_file,
)
from vmp.control.cgroups import MACHINE, shown, with_settings
from vmp.control.counters import is_level
from vmp.control.debugfs import Assignment, Control, locate
from vmp.control.marker import Marker
from vmp.control.plugins import plugins
from vmp.record import children
from vmp.record.recorder import (
    FOLIO_KINDS,
    Recorder,
    lacks_folios,
    lost_sentence,
    parse_folios,
)

FAILED = 125
PROBED = "discard"  # where stock does this, probes tell of its large folios
Counted = dict[str, dict[str, dict[str, int]]]  # by whose settings, point and name


def say(text: str) -> None:
    """Report on stderr; stdout is the command's."""
    print(f"record: {text}", file=sys.stderr, flush=True)


def arguments(parser: Parser) -> None:
    """Tell the parser what record takes."""
    parser.usage = "%(prog)s [OPTION]... [--for TIME] [-- CMD [ARG]...]"
    parser.epilog = (
        "TIME: a number with ms, s, m or h, as in 30s. The exit status is CMD's; "
        "125: there is no recording, it ended early, or with --strict it is incomplete."
    )
    add = parser.add_argument
    add("-o", "--output", metavar="FILE", type=result_file, default="trace.dat",
        help="the file to write (trace.dat)")  # fmt: skip
    add("--for", metavar="TIME", dest="seconds", type=parse_positive_duration, default=inf,
        help="end the recording, and CMD, after that time")  # fmt: skip
    add(
        "--ab",
        metavar="POINT[.PARAMETER]=X,Y",
        action="append",
        default=[],
        help="switch between X and Y meanwhile, in pairs X Y or Y X by coin; may be repeated",
    )
    add("--every", metavar="TIME", type=parse_positive_duration, default="2s",
        help="how long each --ab setting lasts (2s)")  # fmt: skip
    add(
        "--folios",
        metavar="KIND,...|none",
        help=f"events of large folios: only of these kinds ({','.join(FOLIO_KINDS)})",
    )
    add("--buffer", metavar="SIZE", default="8M", help="trace buffer of each CPU (8M)")
    add("--strict", action="store_true", help="fail if events were lost")


@dataclass(frozen=True)
class Plan:
    """What is to be recorded: the command line, checked. Times are in seconds, the buffer bytes."""

    command: list[str]
    output: Path
    seconds: float
    sides: dict[str, list[Assignment]]
    every: float
    folios: list[str] | None  # None: nobody chose
    buffer: int
    strict: bool


def make_plan(args: argparse.Namespace) -> Plan:
    """Return what the command line asks for; raises Usage."""
    if not args.command and args.seconds == inf:
        raise Usage("give the command to run after --, or --for TIME")
    try:
        return Plan(
            command=args.command,
            output=args.output,
            seconds=args.seconds,
            sides=parse_sides(args.ab),
            every=args.every,
            folios=None if args.folios is None else parse_folios(args.folios),
            buffer=parse_size(args.buffer),
            strict=args.strict,
        )
    except (ValueError, Failure) as error:
        raise Usage(str(error)) from None


def all_folios(root: Path) -> list[str]:
    """Return the kinds of folio that are recorded where nobody chose: all that can be."""
    if emulated() and PROBED in (root / "traits").read_text().split():
        say("no events of large folios: these need probes, and CPUs are emulated; see --folios")
        return []
    return [*FOLIO_KINDS]


def all_stats(machine: Control) -> Counted:
    """Return the counters of the machine, and of each cgroup with settings by its id."""
    own = {control.root.name: control.stats() for control in with_settings(machine).values()}
    return {MACHINE: machine.stats()} | own


def grown(before: Counted, after: Counted) -> dict[str, Counter[str]]:
    """Return what all have counted between two readings, by point; settings may be new."""
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for whose, stats in after.items():
        for point, counters in stats.items():
            found[point].update(counters)
            found[point].subtract(before.get(whose, {}).get(point, {}))
    return found


class Run:
    """One recording and what goes on meanwhile."""

    def __init__(self, plan: Plan, control: Control) -> None:
        self.plan = plan
        self.control = control
        self.folios = all_folios(control.root) if plan.folios is None else plan.folios
        self.recorder = Recorder(plan.output, plan.buffer, self.folios)
        self.alternation = (
            Alternation(control, plan.sides, plan.every, random.Random())
            if any(plan.sides.values())
            else None
        )
        self.child: subprocess.Popen[bytes] | None = None

    def start_command(self) -> None:
        """Start the command, if there is one; stdin is empty where it is a terminal."""
        if self.plan.command:
            stdin = subprocess.DEVNULL if os.isatty(0) else None
            self.child = children.start(self.plan.command, stdin=stdin)

    def watch(self) -> int:
        """Switch settings until the command ends, the time is over or a signal comes.

        A switch that is refused, as after the guard has tripped, ends it, too. Returns the exit
        status: the command's, 0 when the time was over.
        """
        end = time.monotonic() + self.plan.seconds
        while True:
            self.recorder.require_alive()
            if self.child and self.child.poll() is not None:
                return children.exit_status(self.child.returncode)
            if time.monotonic() >= end:
                return 0
            try:
                turn = self.alternation.step() if self.alternation else inf
            except Failure as failure:
                say(f"the recording ends early: {failure}")
                return FAILED
            number = children.wait(min(turn, end) - time.monotonic())
            if number:
                return 128 + number

    def mark_counted(self, before: Counted) -> None:
        """Leave in the trace what the module has counted since `before`, to compare with.

        And the paths of the cgroups with settings, of which events have the ids.
        """
        marker = Marker()
        if lacks_folios(self.folios):
            marker.write("vmscan-policy lacks folios")
        for path, control in with_settings(self.control).items():
            marker.write(f"vmscan-policy settings {control.root.name} {shown(path)}")
        for point, counters in grown(before, all_stats(self.control)).items():
            told = {name: value for name, value in counters.items() if value and not is_level(name)}
            marker.write(f"vmscan-policy counted {point} {json.dumps(told)}")

    def mark_plugins(self) -> None:
        """Leave in the trace what policies of other modules are called; events have numbers."""
        marker = Marker()
        for (point, name), plugin in plugins(self.control.root).items():
            marker.write(f"vmscan-policy plugin {point} {plugin.index} {name}")

    def record(self) -> int:
        """Record and return the exit status; what is done for it is undone."""
        with ExitStack() as stack:
            if self.alternation:
                stack.enter_context(self.alternation)
            stack.enter_context(self.recorder)
            self.mark_plugins()
            if self.alternation:
                self.alternation.start()
            before = all_stats(self.control)
            self.start_command()
            try:
                status = self.watch()
                self.mark_counted(before)
                self.recorder.stop()
            finally:
                if self.child:
                    children.end(self.child)
            counts = self.recorder.save()
        return self.tell(counts, status)

    def tell(self, counts: dict[int, tuple[int, int]], status: int) -> int:
        """Say what was recorded and what was lost, and return the exit status."""
        total = sum(recorded for recorded, _ in counts.values())
        say(f"{total} event{'' if total == 1 else 's'} in {self.plan.output}")
        lost = {cpu: number for cpu, (_, number) in counts.items()}
        if not any(lost.values()):
            return status
        say(lost_sentence(lost, self.plan.buffer))
        return status or (FAILED if self.plan.strict else 0)


def run(args: argparse.Namespace) -> int:
    """Check, record, and tell the outcome."""
    plan = make_plan(args)
    children.hold_signals()
    return Run(plan, Control(locate())).record()


COMMAND = Command(
    "record",
    "Record the trace events of the reclaim policies while a command runs, or for a while.",
    arguments,
    run,
    FAILED,
)
