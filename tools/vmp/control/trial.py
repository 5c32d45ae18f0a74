# SPDX-License-Identifier: GPL-2.0
"""Trying settings out for a time: the module puts back what was set before, come what may.

The module's file `trial` is kept open all the while. Whatever ends this process closes it, and what
was set before comes back.
"""

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from vmp.common import (
    SIGNALS,
    Command,
    Failure,
    Parser,
    Usage,
    ignore_signals,
    parse_duration,
    parse_positive_duration,
)
from vmp.control.cgroups import Cgroup, chosen, shown
from vmp.control.counters import parse_pairs, parse_pressure
from vmp.control.debugfs import MACHINES, TRACE, Assignment, Control, KernelLog, parse_assignments
from vmp.control.show import red
from vmp.control.watch import throttled
from vmp.form import number

GRACE = 5  # seconds that the module waits longer than this: it is a net
MOST = 604800  # seconds that the module takes
REMOTE = "nr_tlb_remote_flush"
REFAULTS = ("workingset_refault_anon", "workingset_refault_file")
VMSTAT = Path("/proc/vmstat")
# Settings of the machine alone, which the module leaves as they are.
LEFT = (TRACE, *(name.replace("/", ".") for name in MACHINES))


class Stopped(Exception):
    """A signal came, of that number."""

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.signum = signum


def on_signal(signum: int, _frame: object) -> None:
    """Leave through the end of the trial, once."""
    ignore_signals()
    raise Stopped(signum)


class Lease:
    """A trial of the module's, bound to its open file."""

    def __init__(self, control: Control, remove: bool) -> None:
        """Open the file; with `remove` the cgroup's settings go at the end."""
        self.remove = remove
        try:
            self.fd = os.open(control.root / "trial", os.O_RDWR)
        except FileNotFoundError:
            raise Failure("this module has no trials: load the present vmscan_policy") from None

    def last(self, seconds: float) -> None:
        """Have it last so long from now on; 0: end it."""
        with KernelLog() as log:
            try:
                os.write(self.fd, f"{round(seconds)}{' remove' * self.remove}".encode())
            except OSError as error:
                raise Failure(f"no trial: {log.said() or error.strerror}") from None

    def close(self) -> None:
        """End it, if it is not over."""
        os.close(self.fd)


@dataclass
class Reading:
    """What is counted at a time, in seconds; none of what the kernel does not count."""

    at: float
    counted: dict[str, float] = field(default_factory=dict)


class Meter:
    """Reads what reclaim does to the machine, or to a cgroup."""

    def __init__(self, control: Control, cgroup: Cgroup | None) -> None:
        """`control` has the settings that are tried."""
        self.control = control
        self.directory = cgroup.directory if cgroup else None

    def files(self) -> tuple[Path, Path, Path]:
        """Return where reclaim, kills and pressure are counted."""
        if self.directory:
            names = ("memory.stat", "memory.events", "memory.pressure")
            reclaim, kills, psi = (self.directory / name for name in names)
            return reclaim, kills, psi
        return VMSTAT, VMSTAT, Path("/proc/pressure/memory")

    def read(self) -> Reading:
        """Read all now."""
        reclaim, kills, psi = self.files()
        vmstat = parse_pairs(VMSTAT.read_text(), (REMOTE,))
        # The machine's pgsteal_direct and its like leave out what a cgroup reclaims at its limit.
        stolen = ("pgsteal",) if self.directory else ("pgsteal_anon", "pgsteal_file")
        found = parse_pairs(reclaim.read_text(), (*stolen, *REFAULTS))
        counted: dict[str, float] = {
            "stolen": sum(found.get(name, 0) for name in stolen),
            "refaults": sum(found.get(name, 0) for name in REFAULTS),
            "kills": parse_pairs(kills.read_text(), ("oom_kill",)).get("oom_kill", 0),
        }
        if REMOTE in vmstat:
            counted["flushes"] = vmstat[REMOTE]
        with suppress(OSError, KeyError):  # the settings were removed
            counted["waits"], counted["waited_ms"] = throttled(self.control.stats()["throttle"])
        with suppress(OSError):  # without PSI
            counted |= parse_pressure(psi.read_text())
        return Reading(time.monotonic(), counted)


# What is told: a title, the counter, and by what its growth in a second is divided.
ROWS = (
    ("pages stolen a second", "stolen", 1),
    ("flushes a second, of all", "flushes", 1),
    ("waits a second", "waits", 1),
    ("ms waited a second", "waited_ms", 1),
    ("refaults a second", "refaults", 1),
    ("PSI some, %", "some_usec", 10_000),
    ("PSI full, %", "full_usec", 10_000),
)


@dataclass
class Phase:
    """A time in which the same was set, with what was counted at its ends."""

    name: str
    first: Reading
    last: Reading

    def rate(self, counter: str, unit: float = 1) -> float | None:
        """Return the growth in a second; None if it is not counted, or no time has passed."""
        seconds = self.last.at - self.first.at
        ends = [reading.counted.get(counter) for reading in (self.first, self.last)]
        if None in ends or seconds <= 0:
            return None
        return ((ends[1] or 0) - (ends[0] or 0)) / seconds / unit

    def kills(self) -> int:
        """Return how many tasks were killed for want of memory."""
        return int(self.last.counted["kills"] - self.first.counted["kills"])


def table(phases: list[Phase]) -> Iterator[str]:
    """Return the lines of the verdict's table."""

    def line(title: str, cells: list[str]) -> str:
        return f"{title:<26}" + "".join(f"{text:>12}" for text in cells)

    yield line("", [phase.name for phase in phases])
    yield line("seconds", [number(phase.last.at - phase.first.at) for phase in phases])
    for title, counter, unit in ROWS:
        yield line(title, [number(phase.rate(counter, unit)) for phase in phases])
    yield line("OOM kills", [str(phase.kills()) for phase in phases])


def progress(name: str, step: Phase, left: float) -> str:
    """Return the line of an interval."""
    shown_rows = ("stolen", "flushes", "waits", "refaults")
    found = ", ".join(f"{counter} {number(step.rate(counter))}" for counter in shown_rows)
    some = number(step.rate("some_usec", 10_000))
    kills = f", {step.kills()} OOM kills" if step.kills() else ""
    return f"{name}, {left:.0f} s to go; a second: {found}; PSI some {some} %{kills}"


class Trial:
    """A trial, and what it has measured so far."""

    def __init__(self, meter: Meter, interval: float) -> None:
        self.meter = meter
        self.interval = interval
        self.phases: list[Phase] = []
        self.signal = 0  # that ended it

    def measure(self, name: str, seconds: float, tripped: Callable[[], bool]) -> bool:
        """Measure for that long; False: the guard has tripped meanwhile."""
        first = step = self.meter.read()
        phase = Phase(name, first, first)
        self.phases.append(phase)
        end, due = first.at + seconds, first.at
        while (now := time.monotonic()) < end:
            due = min(max(due + self.interval, now), end)
            while (now := time.monotonic()) < due and not tripped():
                time.sleep(min(0.2, due - now))
            phase.last = self.meter.read()
            print(progress(name, Phase(name, step, phase.last), max(end - phase.last.at, 0)),
                  flush=True)  # fmt: skip
            step = phase.last
            if tripped():
                return False
        return True


def command_for(cgroup: Cgroup | None) -> str:
    """Return what a command line about these settings begins with."""
    return f"vmscanctl --cgroup {shown(cgroup.path)}" if cgroup else "vmscanctl"


@contextmanager
def lease(cgroup: Cgroup | None, machine: Control) -> Iterator[tuple[Lease, Control]]:
    """Return a trial that has not begun, and the settings that it is of; it ends with the context.

    A cgroup without settings of its own gets some for it.
    """
    remove = False
    try:
        if cgroup and cgroup.holding()[0] != cgroup.path:
            remove = True  # before it has some: a signal may come in between
            try:
                cgroup.request("add")
            except Failure:
                remove = False
                raise
        control = cgroup.own() if cgroup else machine
        if reason := control.tripped():
            raise Failure(
                f"the guard has tripped: run `{command_for(cgroup)} clear` first; {reason}"
            )
        held = Lease(control, remove)
        held.last(GRACE)
    except BaseException:
        if cgroup and remove:
            with suppress(Failure):  # it has none
                cgroup.request("remove")
        raise
    try:
        yield held, control
    finally:
        held.close()


def run_phases(
    trial: Trial, held: Lease, control: Control, args: argparse.Namespace, wanted: list[Assignment]
) -> str:
    """Measure before, during and after; return why it ended early, '' if it did not."""
    ended = ""
    try:
        held.last(args.seconds + GRACE)
        spelt = control.spell_out(wanted)
        before = [Assignment(item.name, control.get(item.name)) for item in spelt]
        if args.around:
            held.last(args.around + GRACE)
            trial.measure("before", args.around, lambda: False)
        held.last(args.seconds + GRACE)
        control.write(wanted, kept=False)
        if not trial.measure("during", args.seconds, lambda: bool(control.tripped())):
            ended = "the guard tripped"
        if args.around:
            if not ended:
                held.last(args.around + GRACE)
                control.write(before, kept=False)
            trial.measure("after", args.around, lambda: False)
    except Stopped as stopped:
        trial.signal = stopped.signum
        return f"{stopped} came"
    finally:
        ignore_signals()
    return ended


def arguments(parser: Parser) -> None:
    """Take for how long, and the settings."""
    parser.add_argument("--for", metavar="TIME", type=parse_positive_duration, required=True,
                        dest="seconds", help="how long: 90s, 10m, 2h")  # fmt: skip
    parser.add_argument("--around", metavar="TIME", type=parse_duration, default=60.0,
                        help="measure so long before and after it, too; 0: don't (1m)")  # fmt: skip
    parser.add_argument("--interval", metavar="TIME", type=parse_positive_duration, default=5.0,
                        help="print a line each (5s)")  # fmt: skip
    taken = parser.add_argument("assignments", nargs="+", metavar="POINT[.PARAMETER]=VALUE")
    taken.complete = {"bash": "_vmscanctl_settings"}  # type: ignore[attr-defined]


def check(args: argparse.Namespace) -> list[Assignment]:
    """Return the settings; raises Usage."""
    if not 1 <= args.seconds <= MOST - GRACE or not args.around <= MOST - GRACE:
        raise Usage("a trial takes --for 1s to 7 days, less five seconds, and --around as much")
    try:
        wanted = parse_assignments(args.assignments)
    except Failure as failure:
        raise Usage(str(failure)) from None
    if left := [item.name for item in wanted if item.name in LEFT]:
        raise Usage(f"{left[0]} is no setting that the module takes back: leave it out")
    return wanted


def run(args: argparse.Namespace) -> int:
    """Try settings out; the status is 1 if the guard tripped, and 130 or so after a signal."""
    wanted = check(args)
    machine, cgroup = chosen(args)
    for each in SIGNALS:
        signal.signal(each, on_signal)
    try:
        return try_out(args, wanted, machine, cgroup)
    except Stopped as stopped:  # before there was anything to tell
        return 128 + stopped.signum


def try_out(
    args: argparse.Namespace, wanted: list[Assignment], machine: Control, cgroup: Cgroup | None
) -> int:
    """Do it, and print what came of it; return the status."""
    with lease(cgroup, machine) as (held, control):
        control.check(wanted)
        trial = Trial(Meter(control, cgroup), args.interval)
        ended = run_phases(trial, held, control, args, wanted)
        reason = control.tripped()
    whose = shown(cgroup.path) if cgroup else "the machine"
    back = (
        "policies are stock, all else is as before"
        if reason
        else "what was set before is set again"
    )
    print(f"\n{whose}, {','.join(map(str, wanted))}: {'ended, ' + ended if ended else 'done'}; "
          f"{back}")  # fmt: skip
    print(*table(trial.phases), sep="\n")
    print(red(f"The guard tripped: {reason}") if reason else "The guard did not trip.")
    if reason:
        again = command_for(cgroup)
        print(f"`{again} clear` arms it again, and leaves policies stock."
              + f" {whose} keeps settings of its own until `{again} reset`." * held.remove,
              file=sys.stderr)  # fmt: skip
        return 1
    return 128 + stopped if (stopped := trial.signal) else 0


COMMAND = Command(
    "trial",
    "Try settings out for a time, with figures before, during and after.",
    arguments,
    run,
)
