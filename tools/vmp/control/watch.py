# SPDX-License-Identifier: GPL-2.0
"""Showing the counters of the points: once, their growth by intervals, and a live view."""

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from textwrap import wrap
from typing import NamedTuple

from vmp.common import Command, Failure, Parser, Usage, parse_count, parse_positive_duration
from vmp.control.cgroups import (
    Cgroup,
    cgroup2_root,
    chosen,
    differing,
    shown,
    values,
    with_settings,
)
from vmp.control.counters import VMSTAT, parse_pairs
from vmp.control.debugfs import Control, parse_stats
from vmp.control.show import NORMAL, red
from vmp.form import number

Counted = dict[str, dict[str, int]]  # by point and name; those of /proc/vmstat as `vmstat`
MARKS = ("largest", "longest")  # highest so far: they have no rate
OBSERVED = "observed_remote_flushes"
RECLAIM = ("pgsteal", "pgscan")  # of a cgroup
CGROUPS_HEAD = " STOLEN/S GROUPS/S FOLIOS EACH WAITS/S  CGROUP, POLICIES UNLIKE THE MACHINE'S"


class Tick(NamedTuple):
    """What was counted in so many seconds; of marks, what they stand at."""

    seconds: float
    counted: Counted


def is_mark(name: str) -> bool:
    """Tell a highest-so-far mark from a counter."""
    return any(mark in name for mark in MARKS)


def grown(before: Counted, after: Counted) -> Counted:
    """Return what was counted between two readings; of marks, what they stand at.

    What only the later one has, as of a cgroup that is new, has counted nothing yet.
    """
    return {
        point: {
            name: value if is_mark(name) else value - before.get(point, {}).get(name, value)
            for name, value in counters.items()
        }
        for point, counters in after.items()
    }


def ticks(read: Callable[[], Counted], interval: float, number: int | None) -> Iterator[Tick]:
    """Return what is counted in each interval, in seconds; without a number, until SIGINT."""
    before, then = read(), time.monotonic()
    due = then
    for done in count(1):
        due = max(due + interval, time.monotonic())
        time.sleep(max(0, due - time.monotonic()))
        after, now = read(), time.monotonic()
        if not after:
            raise Failure("what counted is gone: the module was unloaded, or the settings removed")
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
    machine, cgroup = chosen(args)
    control = cgroup.own() if cgroup else machine
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


def throttled(throttle: dict[str, int]) -> tuple[int, float]:
    """Return the waits that a point's counters tell, and their milliseconds."""
    reasons = [name for name in throttle if f"{name}_us" in throttle]
    return (
        sum(throttle[name] for name in reasons),
        sum(throttle[f"{name}_us"] for name in reasons) / 1000,
    )


def summary(tick: Tick, observed: bool) -> Iterator[str]:
    """Return what reclaim as a whole does; `observed`: its flushes are counted."""
    seconds, counted = tick
    vmstat = counted["vmstat"]
    stolen, scanned = (
        sum(value for name, value in vmstat.items() if name.startswith(kind))
        for kind in ("pgsteal", "pgscan")
    )
    kinds = ", ".join(
        f"{kind} {number(vmstat[f'pgsteal_{kind}'] / seconds)}"
        for kind in ("anon", "file")
        if f"pgsteal_{kind}" in vmstat
    )
    yield (
        f"Pages a second: stolen {number(stolen / seconds)}{f' ({kinds})' if kinds else ''}, "
        f"scanned {number(scanned / seconds)}"
    )
    waits, waited = throttled(counted.get("throttle", {}))
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


def frame(machine: Control, tick: Tick, width: int, cgroup: Cgroup | None = None) -> list[str]:
    """Return the lines of the view; those of a point go on below it where they are too long."""
    control = cgroup.own() if cgroup else machine
    what = shown(cgroup.path) if cgroup else f"Linux {machine.abi().get('kernel', '?')}"
    bypass = ", bypass is on" if machine.get("bypass") == "1" else ""
    lines = [f"{time.strftime('%H:%M:%S')}  {what}, profile {control.get('profile')}{bypass}"]
    if reason := control.tripped():
        lines += map(red, wrap(f"the guard has tripped: {reason}", width, subsequent_indent="  "))
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
    """Return what has a terminal show the lines in place of the last ones.

    A line that was cut has lost the end of its color.
    """
    whole = (f"{line}{NORMAL if NORMAL[0] in line else ''}" for line in lines[: rows - 1])
    return "\x1b[H" + "".join(f"{line}\x1b[K\n" for line in whole) + "\x1b[J"


def top_arguments(parser: Parser) -> None:
    """Take how often, and when to end."""
    parser.add_argument("--interval", metavar="TIME", type=parse_positive_duration, default=1.0,
                        help="show rates anew after that: 500ms, 2s, 10m (1s)")  # fmt: skip
    parser.add_argument("--count", metavar="N", type=parse_count, help="end after N intervals")


def of_cgroups(own: dict[str, Control]) -> Counted:
    """Return what cgroups with settings count, by path."""
    mount = cgroup2_root() if own else Path()
    found = {}
    for path, control in own.items():
        with suppress(OSError):  # it was removed
            flush, throttle = (
                parse_stats((control.root / point / "stats").read_text())
                for point in ("flush", "throttle")
            )
            memory = parse_pairs((mount / path[1:] / "memory.stat").read_text(), RECLAIM)
            found[path] = {
                "stolen": memory["pgsteal"],
                "groups": flush["batches"],
                "folios": flush["deferred"],
                "waits": throttled(throttle)[0],
            }
    return found


def cgroup_lines(
    machine: Control, own: dict[str, Control], tick: Tick, most: int | None
) -> list[str]:
    """Return up to `most` lines of cgroups with settings, the busiest first."""
    paths = [path for path in own if path in tick.counted]
    busiest = sorted(paths, key=lambda path: -tick.counted[path]["stolen"])
    policies = {point: Path(point, "policy") for point in machine.points()}
    usual = values(machine, policies)
    lines = []
    for path in busiest[:most]:
        with suppress(OSError):
            others = differing(values(own[path], policies), usual)
            counted = tick.counted[path]
            stolen, groups, waits = (
                number(counted[name] / tick.seconds) for name in ("stolen", "groups", "waits")
            )
            each = number(counted["folios"] / counted["groups"]) if counted["groups"] else "-"
            tripped = own[path].tripped()
            what = ", ".join([shown(path), *map(str, others), *["guard tripped"] * bool(tripped)])
            said = f"{stolen:>9} {groups:>8} {each:>11} {waits:>7}  {what}"
            lines.append(red(said) if tripped else said)
    return lines


def top(args: argparse.Namespace) -> int:
    """Show what each point does now, until SIGINT."""
    machine, cgroup = chosen(args)
    control = cgroup.own() if cgroup else machine
    own: dict[str, Control] = {}

    def read() -> Counted:
        counted = control.stats()
        memory = cgroup.directory / "memory.stat" if cgroup else Path("/proc/vmstat")
        own.clear()
        own.update({} if cgroup else with_settings(machine))
        vmstat = parse_pairs(memory.read_text(), RECLAIM if cgroup else VMSTAT)
        return counted and counted | {"vmstat": vmstat} | of_cgroups(own)

    live = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    for done, tick in enumerate(ticks(read, args.interval, args.count)):
        size = shutil.get_terminal_size()
        lines = frame(machine, tick, size.columns, cgroup)
        rows = max(size.lines - len(lines) - 3, 0) if live else None
        if cgroups := cgroup_lines(machine, own, tick, rows):
            cut = size.columns if live else None
            lines += ["", *(line[:cut] for line in (CGROUPS_HEAD, *cgroups))]
        if live:
            print("" if done else "\x1b[2J", draw(lines, size.lines), sep="", end="", flush=True)
        else:
            print(*[""] * (done > 0), *lines, sep="\n", flush=True)
    return 0


STATS = Command("stats", "Show the counters of each point.", stats_arguments, stats)
TOP = Command(
    "top", "Show what each point does now, anew each second, until Ctrl-C.", top_arguments, top
)
