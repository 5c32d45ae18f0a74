# SPDX-License-Identifier: GPL-2.0
"""Showing the counters of the points: once, their growth by intervals, and a live view."""

import argparse
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from textwrap import wrap
from typing import NamedTuple

from vmp.common import Command, Failure, Parser, Usage, parse_count, parse_positive_duration
from vmp.control.counters import VMSTAT, parse_pairs
from vmp.control.debugfs import Control, locate
from vmp.form import number

Counted = dict[str, dict[str, int]]  # by point and name; those of /proc/vmstat as `vmstat`
MARKS = ("largest", "longest")  # highest so far: they have no rate
OBSERVED = "observed_remote_flushes"


class Tick(NamedTuple):
    """What was counted in so many seconds; of marks, what they stand at."""

    seconds: float
    counted: Counted


def is_mark(name: str) -> bool:
    """Tell a highest-so-far mark from a counter."""
    return any(mark in name for mark in MARKS)


def grown(before: Counted, after: Counted) -> Counted:
    """Return what was counted between two readings; of marks, what they stand at."""
    return {
        point: {
            name: value if is_mark(name) else value - before.get(point, {}).get(name, 0)
            for name, value in counters.items()
        }
        for point, counters in after.items()
    }


def ticks(read: Callable[[], Counted], interval: float, number: int | None) -> Iterator[Tick]:
    """Return what is counted in each interval, in seconds; without a number, until SIGINT."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    before, then = read(), time.monotonic()
    due = then
    for done in count(1):
        due = max(due + interval, time.monotonic())
        time.sleep(max(0, due - time.monotonic()))
        after, now = read(), time.monotonic()
        if not after:
            raise Failure("the module vmscan_policy was unloaded")
        yield Tick(now - then, grown(before, after))
        if done == number:
            return
        before, then = after, now


def stats_arguments(parser: Parser) -> None:
    """Take the form, and when to go on."""
    parser.add_argument("--json", action="store_true", help="as one JSON object; one an interval")
    parser.add_argument("--interval", metavar="TIME", type=parse_positive_duration,
                        help="go on, and show what each counts: 500ms, 2s, 10m")  # fmt: skip
    parser.add_argument("--count", metavar="N", type=parse_count, help="end after N intervals")


def stats(args: argparse.Namespace) -> int:
    """Print the counters of every point, or what they count in each interval."""
    if args.count and not args.interval:
        raise Usage("--count is for --interval: give both")
    control = Control(locate())
    if args.interval:
        return follow(control, args)
    counted = control.stats()
    if args.json:
        print(json.dumps(counted, indent=2))
        return 0
    for point, counters in counted.items():
        for name, value in counters.items():
            print(f"{point + '.' + name:<32} {value}")
    return 0


def follow(control: Control, args: argparse.Namespace) -> int:
    """Print what each interval counts, behind its end in seconds; zeros are left out."""
    began = time.monotonic()
    for tick in ticks(control.stats, args.interval, args.count):
        at = time.monotonic() - began
        if args.json:
            print(json.dumps({"time": at, "seconds": tick.seconds, "counted": tick.counted}))
        else:
            found = [
                f"{at:10.3f} {point + '.' + name:<32} {value}"
                for point, counters in tick.counted.items()
                for name, value in counters.items()
                if value and not is_mark(name)
            ]
            print(*found or [f"{at:10.3f} nothing"], sep="\n")
        sys.stdout.flush()
    return 0


def per_thousand(value: float, stolen: int) -> str:
    """Return a figure per 1,000 pages stolen; - if none were."""
    return number(1000 * value / stolen) if stolen else "-"


def flushes(counted: Counted, observed: bool) -> tuple[str, int] | None:
    """Return the flushes that are known, and whose they are; reclaim's if these are observed."""
    own = counted.get("flush", {})
    if observed:
        return "remote TLB flushes of reclaim", own[OBSERVED]
    if "nr_tlb_remote_flush" in counted["vmstat"]:
        return "remote TLB flushes of all tasks", counted["vmstat"]["nr_tlb_remote_flush"]
    return ("flushes of flush=batch", own["flushes"]) if "flushes" in own else None


def summary(tick: Tick, observed: bool) -> Iterator[str]:
    """Return what reclaim as a whole does; `observed`: its flushes are counted."""
    seconds, counted = tick
    vmstat = counted["vmstat"]
    stolen, scanned = (
        sum(value for name, value in vmstat.items() if name.startswith(kind))
        for kind in ("pgsteal_", "pgscan_")
    )
    yield (
        f"Pages a second: stolen {number(stolen / seconds)} "
        f"(anon {number(vmstat.get('pgsteal_anon', 0) / seconds)}, "
        f"file {number(vmstat.get('pgsteal_file', 0) / seconds)}), "
        f"scanned {number(scanned / seconds)}"
    )
    throttle = counted.get("throttle", {})
    reasons = [name for name in throttle if f"{name}_us" in throttle]
    waits = sum(throttle[name] for name in reasons)
    waited = sum(throttle[f"{name}_us"] for name in reasons) / 1000
    found = flushes(counted, observed)
    what = f"{per_thousand(found[1], stolen)} {found[0]}; " if found else ""
    yield (
        f"Per 1,000 stolen: {what}{per_thousand(waits, stolen)} throttled waits, "
        f"{per_thousand(waited, stolen)} ms"
    )


def rates(tick: Tick, point: str) -> str:
    """Return what a point counts a second, in the order of its file; - for nothing."""
    counters = tick.counted.get(point, {})
    found = (
        f"{name} {number(value / tick.seconds)}"
        for name, value in counters.items()
        if value and not is_mark(name)
    )
    return ", ".join(found) or "-"


def frame(control: Control, tick: Tick, width: int) -> list[str]:
    """Return the lines of the view; those of a point go on below it where they are too long."""
    bypass = ", bypass is on" if control.get("bypass") == "1" else ""
    release = control.abi().get("kernel", "?")
    lines = [
        f"{time.strftime('%H:%M:%S')}  Linux {release}, profile {control.get('profile')}{bypass}"
    ]
    observed = "flush.observe" in control.names() and control.get("flush.observe") == "1"
    for text in summary(tick, observed):
        lines += wrap(text, width, subsequent_indent="  ")
    lines += ["", f"{'POINT':<10} {'POLICY':<9} COUNTED A SECOND"]
    for point in control.points():
        head = f"{point:<10} {control.get(point):<9} "
        text = rates(tick, point) + control.idle(point)
        lines += wrap(text, width, initial_indent=head, subsequent_indent=" " * len(head))
    return lines


def draw(lines: list[str], rows: int) -> str:
    """Return what has a terminal show the lines in place of the last ones."""
    return "\x1b[H" + "".join(f"{line}\x1b[K\n" for line in lines[: rows - 1]) + "\x1b[J"


def top_arguments(parser: Parser) -> None:
    """Take how often, and when to end."""
    parser.add_argument("--interval", metavar="TIME", type=parse_positive_duration, default=1.0,
                        help="show rates anew after that: 500ms, 2s, 10m (1s)")  # fmt: skip
    parser.add_argument("--count", metavar="N", type=parse_count, help="end after N intervals")


def top(args: argparse.Namespace) -> int:
    """Show what each point does now, until SIGINT."""
    control = Control(locate())

    def read() -> Counted:
        counted = control.stats()
        vmstat = parse_pairs(Path("/proc/vmstat").read_text(), VMSTAT)
        return counted and counted | {"vmstat": vmstat}

    live = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    for done, tick in enumerate(ticks(read, args.interval, args.count)):
        size = shutil.get_terminal_size()
        lines = frame(control, tick, size.columns)
        if live:
            print("" if done else "\x1b[2J", draw(lines, size.lines), sep="", end="", flush=True)
        else:
            print(*[""] * (done > 0), *lines, sep="\n", flush=True)
    return 0


STATS = Command("stats", "Show the counters of each point.", stats_arguments, stats)
TOP = Command(
    "top", "Show what each point does now, anew each second, until Ctrl-C.", top_arguments, top
)
