# SPDX-License-Identifier: GPL-2.0
"""Comparing two settings of the reclaim policies under one workload that never stops."""

import argparse
import difflib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from contextlib import ExitStack, nullcontext, suppress
from pathlib import Path
from typing import Any

from vmp.ab.cgroup import Cgroup, Memcg, existing
from vmp.ab.compare import PAGE, Slice, sections, slice_order, summarize, with_stalls
from vmp.ab.disk import mounted
from vmp.ab.folios import DEFAULT_KIB, held_folios
from vmp.ab.functions import Functions, parse_functions
from vmp.ab.lru import current_lru, held_lru
from vmp.ab.stalls import Stalls
from vmp.ab.swap import swap_areas, zram
from vmp.ab.table import render, turnover
from vmp.ab.workloads import WORKLOADS, Workload, build_programs
from vmp.common import (
    Command,
    Failure,
    Parser,
    Usage,
    parse_count,
    parse_duration,
    parse_positive_duration,
    parse_size,
    result_file,
)
from vmp.control.counters import Counters, Progress, ProgressCommand, ProgressFile, delta
from vmp.control.debugfs import TRACE, Assignment, Control, locate, parse_assignments
from vmp.control.needs import OBSERVED, lacking

DEFAULT_WORKLOAD = "vm"
DEFAULT_B = "flush=batch"
DEFAULT_DISK = Path("/dev/vda")
DEFAULT_SYSTEM = "ext4"
RECLAIM_TIMEOUT = 120  # seconds for the workload to begin, and then to reach its limit
OBSERVE = "flush.observe"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def say(text: str) -> None:
    """Report progress on stderr; stdout is for the table alone."""
    print(f"ab: {text}", file=sys.stderr, flush=True)


def settings(words: list[str]) -> str:
    """Return settings as they are typed."""
    return ",".join(map(str, words)) or "(nothing)"


def complete(
    side: list[Assignment], both: list[Assignment], now: dict[str, str]
) -> list[Assignment]:
    """Return what to write for one side: its own settings, after the present value of each name
    that only the other side sets.
    """
    own = {item.name for item in side}
    others = dict.fromkeys(item.name for item in both if item.name not in own)
    return [Assignment(name, now[name]) for name in others] + side


class Run:
    """One A/B run: its settings, and the slices measured so far."""

    def __init__(self, args: argparse.Namespace, control: Control) -> None:
        self.args = args
        self.control = control
        self.workload: Workload = args.workload
        self.progress: Progress | None = None
        if args.progress:
            self.progress = ProgressFile(args.progress)
        if args.progress_command:
            self.progress = ProgressCommand(args.progress_command)
        self.stalls: Stalls | None = None
        self.functions: Functions | None = None
        self.observes = False
        self.lacks: list[str] = []
        self.slices: list[dict[str, Any]] = []

    def restore(self, before: dict[str, str]) -> None:
        """Write back the values of before the run."""
        self.control.write([Assignment(name, value) for name, value in before.items()])

    def observe(self, stack: ExitStack) -> None:
        """Have the module count the flushes of reclaim, where the kernel lets it."""
        before = {OBSERVE: self.control.get(OBSERVE)}
        with suppress(Failure):
            self.control.write([Assignment(OBSERVE, "1")])
            stack.callback(self.restore, before)
            self.observes = True

    def prepare(self, stack: ExitStack) -> dict[str, list[Assignment]]:
        """Check and save the settings, write the common ones, return what each side writes."""
        args, control = self.args, self.control
        if OBSERVE in control.names():
            self.observe(stack)
        control.check([*args.set, *args.a, *args.b])
        common, a, b = (control.spell_out(side) for side in (args.set, args.a, args.b))
        named = [*common, *a, *b]
        before = {item.name: control.get(item.name) for item in named}
        stack.callback(self.restore, before)
        for part in (a, b, common):  # the kernel refuses a bad number here, not later
            control.write(part)
        now = before | {item.name: item.value for item in common}
        return {"A": complete(a, a + b, now), "B": complete(b, a + b, now)}

    def make_places(self, stack: ExitStack) -> dict[str, Path | int]:
        """Make what the workload's command names in braces, and return where it is."""
        places: dict[str, Path | int] = {"twice": max(1, 2 * (self.args.memory or 0) >> 20)}
        if self.workload.large():
            stack.enter_context(held_folios(self.args.folio))
            places["folio"] = self.args.folio
        if self.workload.compiled():
            places["programs"] = build_programs()
        if not (self.args.disk or self.workload.progress):
            return places
        scratch = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="vmscan-policy-ab.", dir="/run"))
        )
        if self.args.disk:
            directory = places["directory"] = scratch / "disk"
            directory.mkdir()
            system = self.workload.disk or DEFAULT_SYSTEM
            stack.enter_context(mounted(system, self.args.disk, directory))
        if self.workload.progress:
            counted = places["progress"] = scratch / "progress"
            self.progress = ProgressFile(counted, self.workload.progress)
        return places

    def require_swap(self, stack: ExitStack) -> None:
        """Switch zram on if that is wanted; raise Failure without swap for a workload in need."""
        if self.args.zram:
            stack.enter_context(zram(self.args.zram))
        if self.workload.swap == "needed" and not swap_areas():
            raise Failure("there is no swap: switch some on, or add --zram 1G")

    def wait_for_operations(self, memcg: Cgroup) -> None:
        """Wait until a workload that counts has begun to: before that it lays out its files."""
        deadline = time.monotonic() + RECLAIM_TIMEOUT
        while self.progress and not self.progress.peek():
            memcg.require_alive()
            if time.monotonic() > deadline:
                self.progress.read()
                raise Failure(f"the workload counted no operation in {RECLAIM_TIMEOUT} s")
            time.sleep(0.2)

    def wait_for_reclaim(self, memcg: Cgroup) -> None:
        """Wait until the workload has begun and met its limit, then for the warm-up."""
        self.wait_for_operations(memcg)
        deadline = time.monotonic() + RECLAIM_TIMEOUT
        at_first = memcg.stolen()  # laying out files has made reclaim work, too
        while memcg.stolen() == at_first and not self.workload.pages_out:
            memcg.require_alive()
            if time.monotonic() > deadline:
                limit = f"its limit of {self.args.memory_text}" if self.args.memory else "there is"
                raise Failure(
                    f"no page was reclaimed within {RECLAIM_TIMEOUT} s: the workload has to use "
                    f"more memory than {limit}"
                )
            time.sleep(0.2)
        time.sleep(self.args.warmup)
        memcg.require_alive()

    def counted(self, values: dict[str, float]) -> dict[str, float]:
        """Return the counters without those of the module that nothing counts."""
        absent = () if self.observes else OBSERVED
        return {name: value for name, value in values.items() if name not in absent}

    def measure_slice(self, counters: Counters, name: str) -> dict[str, Any]:
        """Return what one slice has counted, and its stalls if they are recorded."""
        if self.stalls:
            self.stalls.start()
        if self.functions:
            self.functions.start()
        before = counters.snapshot(f"vmscan-policy ab begin {name}")
        time.sleep(self.args.seconds)
        after = counters.snapshot(f"vmscan-policy ab end {name}")
        piece: dict[str, Any] = {"counters": self.counted(delta(before, after))}
        if self.functions:
            piece["counters"] |= self.functions.stop()
        if self.stalls:
            self.stalls.stop()
            piece["stalls"], piece["events_lost"] = self.stalls.take()
        return piece

    def switch(self, memcg: Cgroup, side: list[Assignment]) -> None:
        """Put a side in force.

        Trace events are switched by patching the kernel in many places, the scheduler among them.
        The workload stands still for it: QEMU's emulation does not always survive that under load.
        """
        patches = any(item.name == TRACE for item in side)
        with memcg.frozen() if patches else nullcontext():
            self.control.write(side)

    def measure(self, memcg: Cgroup, sides: dict[str, list[Assignment]]) -> None:
        """Switch and read the counters, slice by slice; the workload goes on all the while."""
        counters = Counters(self.control, memcg.path, self.progress)
        order = slice_order(self.args.slices) * (self.args.aa or 1)
        named = {"a": settings(self.args.a), "b": settings(self.args.b)}
        counters.marker.write(f"vmscan-policy ab run {json.dumps(named)}")
        self.lacks = [str(need) for need in lacking(self.counted(counters.snapshot()))]
        for sentence in self.lacks:
            say(sentence)
        for index, side in enumerate(order, 1):
            if index % 10 == 1:
                say(f"slice {index} of {len(order)}")
            self.switch(memcg, sides[side])
            if index == 1 or side != order[index - 2]:
                time.sleep(self.args.settle)
            piece = self.measure_slice(counters, f"{index} {side}")
            memcg.require_alive()
            self.slices.append({"side": side, **piece})

    def environment(self) -> dict[str, Any]:
        """Return what the figures depend on besides the settings."""
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return {
            "kernel": os.uname().release,
            "machine": os.uname().machine,
            "cpus": os.cpu_count(),
            "memory_bytes": pages,
            "abi": self.control.abi(),
            "lru": current_lru(),
            "swap": swap_areas(),
        }

    def enter_cgroup(self, stack: ExitStack) -> Cgroup:
        """Return the cgroup to measure: one that is there, or a fresh one that the run ends."""
        if self.args.cgroup:
            return existing(self.args.cgroup)
        name = f"vmscan-policy-ab.{os.getpid()}"
        memcg = Memcg(name, self.args.memory, self.workload.swap != "none")
        return stack.enter_context(memcg)

    def turnovers(self) -> dict[str, float | None]:
        """Return for each side in how many seconds reclaim takes what the cgroup holds."""
        found: dict[str, float | None] = {}
        for side in "AB":
            pieces = [piece["counters"] for piece in self.slices if piece["side"] == side]
            stolen, held, seconds = (
                sum(piece[name] for piece in pieces)
                for name in ("memcg.pgsteal", "memcg.current", "seconds")
            )
            pages = held / len(pieces) / PAGE
            found[side] = pages * seconds / stolen if stolen else None
        return found

    def measure_all(self) -> dict[str, Any]:
        """Do the run and return the report; everything set up for it is taken down again."""
        args = self.args
        with ExitStack() as stack:
            self.require_swap(stack)
            stack.enter_context(held_lru(args.lru))
            sides = self.prepare(stack)
            command = self.workload.words(self.make_places(stack))
            if args.stalls:
                self.stalls = stack.enter_context(Stalls())
            if args.functions:
                self.functions = stack.enter_context(Functions(args.functions))
            memcg = self.enter_cgroup(stack)
            stack.callback(ignore_signals)
            self.control.write(sides["A"])
            where = f" in {args.memory_text}" if args.memory else ""
            say(f"workload: {' '.join(command) or self.workload.title}{where}")
            if isinstance(memcg, Memcg):
                memcg.start(command)
            self.wait_for_reclaim(memcg)
            self.measure(memcg, sides)
            environment = self.environment()
            limit = memcg.limit()
            say("done, restoring what was there before")
        pieces: list[tuple[str, Slice]] = [(p["side"], with_stalls(p)) for p in self.slices]
        report = {
            "format": 1,
            "settings": {
                "a": settings(args.a),
                "b": settings(args.b),
                "both": settings(args.set),
                "aa": args.aa or 0,
                "primary": args.primary,
                "memory_bytes": limit,
                "warmup_seconds": args.warmup,
                "settle_seconds": args.settle,
                "slice_seconds": args.seconds,
                "title": self.workload.title or " ".join(command),
                "workload": command,
            },
            "environment": environment,
            "lacks": self.lacks,
            "slices": self.slices,
            "turnover_seconds": self.turnovers(),
            "summary": summarize(pieces, args.primary),
            "test": "exact two-sided Wilcoxon signed-rank over neighbouring slices, after Holm",
        }
        for sentence in turnover(report):
            say(sentence)
        return report


def choose_cgroup(args: argparse.Namespace) -> None:
    """Put the workload for a cgroup that is there in the place of its name.

    Raises Failure for options that would change something in it.
    """
    refused = {"--memory": args.memory, "--disk": args.disk, "--folio": args.folio}
    for option, value in refused.items():
        if value:
            raise Failure(f"{option} is for a workload that ab starts: leave it or --cgroup out")
    args.workload = Workload((), title=f"what runs in {args.cgroup}")
    args.memory_text = None


def row_keys(stalls: bool) -> set[str]:
    """Return the keys of the rows that any run has, with or without recorded stalls."""
    names = {"progress", "instructions"} | ({"stall_us"} if stalls else set())
    return {metric.key for rows in sections(names).values() for metric in rows}


def check_primary(keys: list[str], stalls: bool) -> None:
    """Raise Failure for a key that no row has."""
    known = row_keys(stalls)
    for key in keys:
        if key in known or key.startswith(("function.", "stats.")):
            continue
        if key in row_keys(stalls=True):
            raise Failure(f"--primary {key} takes --stalls, too")
        near = difflib.get_close_matches(key, sorted(known), 3) or sorted(known)
        raise Failure(f"--primary {key} is no figure: there is {', '.join(near)}")


def choose_primary(args: argparse.Namespace) -> list[str]:
    """Return the keys of the primary figures: those named, or the workload's own that it can have.

    Raises Failure for one that there is not.
    """
    if args.primary is None:
        known = row_keys(args.stalls)
        return [key for key in args.workload.primary if key in known]
    keys = [key.strip() for key in args.primary.split(",") if key.strip()]
    check_primary(keys, args.stalls)
    return list(dict.fromkeys(keys))


def choose_workload(args: argparse.Namespace) -> None:
    """Replace the workload's name or the command by a Workload, and fill in what it implies.

    Raises Failure for options that do not go with it.
    """
    name = args.workload
    if sum(map(bool, (name, args.command, args.cgroup))) > 1:
        raise Failure("give one of --workload NAME, --cgroup PATH and a command")
    if args.cgroup:
        choose_cgroup(args)
        return
    if args.command:
        workload = Workload(tuple(args.command))
    else:
        name = name or DEFAULT_WORKLOAD
        workload = WORKLOADS[name]
    program = workload.program or workload.command[0]
    if not shutil.which(program):
        raise Failure(f"the command {program} is missing: install it or name another one")
    if args.zram and workload.swap == "none":
        raise Failure(f"the workload {name} runs without swap: leave --zram out")
    if args.disk and name and not workload.disk:
        raise Failure(f"the workload {name} uses no disk: leave --disk out")
    if (args.progress or args.progress_command) and workload.progress:
        raise Failure(
            f"the workload {name} counts in a file of its own: leave --progress and "
            "--progress-command out"
        )
    args.workload = workload
    if args.folio and not workload.large():
        raise Failure("--folio is for the workloads large-*: leave it out")
    args.folio = args.folio or DEFAULT_KIB
    args.memory_text = workload.memory if args.memory is None else args.memory
    args.disk = args.disk or (DEFAULT_DISK if workload.disk else None)


def arguments(parser: Parser) -> None:
    """Tell the parser what ab takes."""
    parser.usage = "%(prog)s [OPTIONS] [--workload NAME | --cgroup PATH | -- CMD...]"
    parser.epilog = "SETTINGS: a comma-separated list of POINT=POLICY and POINT.PARAMETER=VALUE; "
    parser.epilog += "profile=NAME stands for the policies of all points that the profile sets."
    add = parser.add_argument
    names = ", ".join(WORKLOADS)
    add("--a", metavar="SETTINGS", default="flush=stock", help="side A (flush=stock)")
    add("--b", metavar="SETTINGS", help="side B (flush=batch)")
    add(
        "--aa",
        metavar="RUNS",
        type=int,
        nargs="?",
        const=1,
        help="side B is A again, in so many runs, one after the other (1): what is marked by "
        "chance?",
    )
    add("--set", metavar="SETTINGS", action="append", default=[], help="set for both sides")
    add("--memory", metavar="SIZE", help="the workload's limit (64M, or the named workload's own)")
    add("--slices", metavar="N", type=int, default=60, help="an even number of slices (60)")
    add("--seconds", metavar="TIME", type=parse_positive_duration, default=2.0,
        help="length of a slice: 500ms, 2s, 1m; a bare number is in seconds (2s)")  # fmt: skip
    add("--settle", metavar="TIME", type=parse_duration, default=0.0,
        help="wait after each switch (0)")  # fmt: skip
    add("--warmup", metavar="TIME", type=parse_duration, default=10.0,
        help="wait after reclaim starts (10s)")  # fmt: skip
    add("--json", metavar="FILE", type=result_file, help="save everything measured as JSON")
    add("--lru", choices=("mglru", "classic", "keep"), default="keep", help="LRU to use (keep)")
    add("--zram", metavar="SIZE", help="swap to a zram device, made for the run")
    add("--stalls", action="store_true", help="measure how long reclaim holds tasks up")
    add(
        "--folio",
        metavar="KIB",
        type=parse_count,
        help=f"size of folios of large-* ({DEFAULT_KIB})",
    )
    add("--functions", metavar="NAMES", default="", help="count calls of kernel functions: A,B+C")
    add("--disk", metavar="DEVICE", type=Path, help=f"blank disk to work on ({DEFAULT_DISK})")
    add("--primary", metavar="KEYS", help="figures asked for, by their keys in the JSON: A,B")
    add("--progress", metavar="FILE", type=Path, help="file in which the workload counts")
    add("--progress-command", metavar="CMD", help="prints how much the workload has done")
    add("--cgroup", metavar="PATH", help="measure what runs there, and change nothing in it")
    add("--workload", metavar="NAME", choices=WORKLOADS, help=f"{names} ({DEFAULT_WORKLOAD})")
    add("command", metavar="CMD", nargs="*", help="the workload's command line")


def complete_args(args: argparse.Namespace) -> None:
    """Check what was given, and put sizes, settings and the workload in the place of their texts.

    Raises Usage.
    """
    try:
        choose_workload(args)
        args.memory = None if args.memory_text is None else parse_size(args.memory_text)
        args.primary = choose_primary(args)
        args.zram = None if args.zram is None else parse_size(args.zram)
        if args.aa is not None and args.b:
            raise Failure("--aa runs side A twice: leave --b out")
        args.b = args.a if args.aa else args.b or DEFAULT_B
        args.a, args.b = parse_assignments([args.a]), parse_assignments([args.b])
        args.set = parse_assignments(args.set)
        args.functions = parse_functions(args.functions)
    except (ValueError, Failure) as error:
        raise Usage(str(error)) from None
    if args.slices < 2 or args.slices % 2:
        raise Usage("--slices has to be an even number from 2 on")
    if args.aa is not None and args.aa < 1:
        raise Usage("--aa takes a number of runs from 1 on")
    if args.progress and args.progress_command:
        raise Usage("give --progress or --progress-command, not both")
    if args.json and not args.json.absolute().parent.is_dir():
        raise Usage(f"there is no directory for {args.json}: make it first")


def ignore_signals() -> None:
    """Keep further signals from cutting the clean-up short."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def on_signal(number: int, _frame: object) -> None:
    """Leave through the clean-up."""
    ignore_signals()
    sys.exit(128 + number)


def run(args: argparse.Namespace) -> int:
    """Run, print the table and save the JSON file."""
    complete_args(args)
    for number in SIGNALS:
        signal.signal(number, on_signal)
    report = Run(args, Control(locate())).measure_all()
    print(render(report), flush=True)
    if args.json:
        args.json.write_text(json.dumps(report, indent=1) + "\n")
    return 0


COMMAND = Command(
    "ab",
    "Compare two settings of the reclaim policies under one workload that never stops.",
    arguments,
    run,
)
