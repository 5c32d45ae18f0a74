# SPDX-License-Identifier: GPL-2.0
"""Comparing two settings of the reclaim policies under one workload that never stops."""

import argparse
import difflib
import json
import os
import random
import shutil
import signal
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vmp.ab.cgroup import Cgroup, Memcg, existing
from vmp.ab.disk import mounted
from vmp.ab.folios import DEFAULT_SIZE, held_folios
from vmp.ab.functions import Functions, parse_functions
from vmp.ab.lru import current_lru, held_lru
from vmp.ab.stalls import Stalls
from vmp.ab.swap import swap_areas, zram
from vmp.ab.twins import (
    PLACES,
    SETTLED,
    Twin,
    begin,
    check_options,
    measure,
    twins_order,
    wait,
)
from vmp.ab.workloads import TWIN, WORKLOADS, Workload, of_command
from vmp.common import (
    SEEDS,
    SIGNALS,
    Command,
    Failure,
    Parser,
    Usage,
    ignore_signals,
    parse_count,
    parse_duration,
    parse_positive_duration,
    parse_size,
    result_file,
    size_text,
)
from vmp.control.cgroups import Cgroup as Settable
from vmp.control.cgroups import cgroup2_root, require_machines, require_settings
from vmp.control.counters import (
    Counters,
    Progress,
    ProgressCommand,
    ProgressFile,
    delta,
    of_machine,
)
from vmp.control.debugfs import TRACE, Assignment, Control, locate, parse_assignments
from vmp.control.needs import OBSERVED, told
from vmp.form import number, percent, to_go
from vmp.programs import compile_workloads
from vmp.result.file import append_slice, check_writable, run_text, write
from vmp.result.metrics import Metric, StallTime, sections
from vmp.result.model import (
    SLICES,
    Result,
    Settings,
    Slice,
    asked,
    difference,
    slice_order,
    slices_needed,
)
from vmp.result.table import render, turnover

DEFAULT_WORKLOAD = "vm"
DEFAULT_B = "flush=batch"
DEFAULT_DISKS = (Path("/dev/vda"), Path("/dev/vdb"))  # the second for the other twin
TWINS_SLICES = 24
MOST_SLICES = 100_000  # of all runs
SECONDS, TWINS_SECONDS = 2.0, 300.0
TURNOVERS = 5
DEFAULT_SYSTEM = "ext4"
RECLAIM_TIMEOUT = 120  # seconds for the workload to begin, and then to reach its limit
OBSERVE = "flush.observe"


def say(text: str) -> None:
    """Report progress on stderr; stdout is for the table alone."""
    print(f"ab: {text}", file=sys.stderr, flush=True)


def settings(words: list[Assignment]) -> str:
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


@dataclass(frozen=True)
class Plan:
    """What a run is to do: the command line, checked.

    Sizes are in bytes but where told, times in seconds.
    """

    a: list[Assignment]
    b: list[Assignment]
    both: list[Assignment]
    workload: Workload
    primary: list[str]
    memory: int | None
    zram: int | None
    functions: list[tuple[str, ...]]
    folio: int  # KiB
    disks: tuple[Path, ...]  # none, one, or one for each twin
    progress: str | None
    progress_command: str | None
    cgroup: str | None
    json: Path | None
    lru: str
    stalls: bool
    aa: int
    slices: int
    seconds: float  # of a slice; the most, where turnovers end it
    settle: float | None  # None: until contents were replaced
    warmup: float
    twins: bool
    turnovers: float  # that end a period of twins
    seed: int

    def order(self) -> str:
        """Return the sides of all slices."""
        order = twins_order if self.twins else slice_order
        return order(self.slices, self.seed, self.aa or 1)

    def settings(self, limit: int | None, command: list[str]) -> Settings:
        """Return what the result tells of the plan."""
        return Settings(
            a=settings(self.a),
            b=settings(self.b),
            both=settings(self.both),
            aa=self.aa,
            slices=self.slices,
            seed=self.seed,
            primary=tuple(self.primary),
            memory_bytes=limit,
            warmup_seconds=self.warmup,
            settle_seconds=self.settle or 0,
            slice_seconds=self.seconds,
            title=self.workload.title or " ".join(command),
            workload=tuple(command),
            twins=self.twins,
            turnovers=self.turnovers,
        )

    def progress_of(self, places: dict[str, Path | int]) -> Progress | None:
        """Return what tells the operations of a copy of the workload, whose places are given."""
        if self.workload.progress:
            return ProgressFile(Path(str(places["progress"])), self.workload.progress)
        twin = str(places.get("twin", ""))
        if self.progress:
            return ProgressFile(Path(self.progress.replace(TWIN, twin)))
        if self.progress_command:
            return ProgressCommand(self.progress_command.replace(TWIN, twin))
        return None


class Run:
    """One A/B run: its plan, and what it has found so far."""

    def __init__(self, plan: Plan, control: Control) -> None:
        self.plan = plan
        self.control = control
        self.progress: Progress | None = None
        self.stalls: Stalls | None = None
        self.functions: Functions | None = None
        self.observes = False
        self.common: list[Assignment] = []
        self.result: Result | None = None
        self.saved = 0  # slices in the file
        self.unsaved = ""

    def observe(self, stack: ExitStack) -> None:
        """Have the module count the flushes of reclaim, where the kernel lets it."""
        before = {OBSERVE: self.control.get(OBSERVE)}
        with suppress(Failure):
            self.control.write([Assignment(OBSERVE, "1")])
            stack.callback(restore, self.control, before)
            self.observes = True

    def prepare(self, stack: ExitStack, control: Control) -> dict[str, list[Assignment]]:
        """Check and save the settings, write the common ones, return what each side writes."""
        plan = self.plan
        control.check([*plan.both, *plan.a, *plan.b])
        common, a, b = (control.spell_out(side) for side in (plan.both, plan.a, plan.b))
        self.common = common
        named = [*common, *a, *b]
        before = {item.name: control.get(item.name) for item in named}
        stack.callback(restore, control, before)
        for part in (a, b, common):  # the kernel refuses a bad number here, not later
            control.write(part)
        now = before | {item.name: item.value for item in common}
        return {"A": complete(a, a + b, now), "B": complete(b, a + b, now)}

    def make_places(self, stack: ExitStack) -> list[dict[str, Path | int]]:
        """Make what the command of each copy names in braces, and return where it is."""
        places: dict[str, Path | int] = {"twice": max(1, 2 * (self.plan.memory or 0) >> 20)}
        if self.plan.workload.large():
            stack.enter_context(held_folios(self.plan.folio))
            places["folio"] = self.plan.folio
        if self.plan.workload.compiled():
            places["programs"] = compile_workloads()
        if not self.plan.twins:
            return [places | self.make_own(stack, self.plan.disks)]
        disks = self.plan.disks
        return [
            places | {"twin": place} | self.make_own(stack, disks[place - 1 : place])
            for place in PLACES
        ]

    def make_own(self, stack: ExitStack, disks: tuple[Path, ...]) -> dict[str, Path | int]:
        """Make the places that are of one copy alone, on its disk, if it has one."""
        places: dict[str, Path | int] = {}
        if not (disks or self.plan.workload.progress):
            return places
        scratch = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="vmscan-policy-ab.", dir="/run"))
        )
        for disk in disks:
            directory = places["directory"] = scratch / "disk"
            directory.mkdir()
            system = self.plan.workload.disk or DEFAULT_SYSTEM
            stack.enter_context(mounted(system, disk, directory))
        if self.plan.workload.progress:
            places["progress"] = scratch / "progress"
        return places

    def require_swap(self, stack: ExitStack) -> None:
        """Switch zram on if that is wanted; raise Failure without swap for a workload in need."""
        if self.plan.zram:
            stack.enter_context(zram(self.plan.zram))
        if self.plan.workload.swap == "needed" and not swap_areas():
            raise Failure("there is no swap: switch some on, or add --zram 1G")

    def wait_for_operations(self, memcg: Cgroup, progress: Progress | None) -> None:
        """Wait until a workload that counts has begun to: before that it lays out its files."""
        deadline = time.monotonic() + RECLAIM_TIMEOUT
        while progress and not progress.peek():
            memcg.require_alive()
            if time.monotonic() > deadline:
                progress.read()
                raise Failure(f"the workload counted no operation in {RECLAIM_TIMEOUT} s")
            time.sleep(0.2)

    def wait_for_reclaim(self, memcg: Cgroup, progress: Progress | None) -> None:
        """Wait until the workload has begun and met its limit."""
        self.wait_for_operations(memcg, progress)
        deadline = time.monotonic() + RECLAIM_TIMEOUT
        at_first = memcg.stolen()  # laying out files has made reclaim work, too
        while memcg.stolen() == at_first and not self.plan.workload.pages_out:
            memcg.require_alive()
            if time.monotonic() > deadline:
                limit = (
                    f"its limit of {size_text(self.plan.memory)}"
                    if self.plan.memory
                    else "there is"
                )
                raise Failure(
                    f"no page was reclaimed within {RECLAIM_TIMEOUT} s: the workload has to use "
                    f"more memory than {limit}"
                )
            time.sleep(0.2)

    def warm_up(self, *memcgs: Cgroup) -> None:
        """Let the workload go on for the warm-up."""
        time.sleep(self.plan.warmup)
        for memcg in memcgs:
            memcg.require_alive()

    def counted(self, values: dict[str, float]) -> dict[str, float]:
        """Return the counters without those of the module that nothing counts."""
        absent = () if self.observes else OBSERVED
        return {name: value for name, value in values.items() if name not in absent}

    def measure_slice(self, counters: Counters, number: int, side: str) -> Slice:
        """Return what one slice has counted, and its stalls if they are recorded."""
        if self.stalls:
            self.stalls.start()
        if self.functions:
            self.functions.start()
        before = counters.snapshot(f"vmscan-policy ab begin {number} {side}")
        time.sleep(self.plan.seconds)
        after = counters.snapshot(f"vmscan-policy ab end {number} {side}")
        counted = self.counted(delta(before, after))
        if self.functions:
            counted |= self.functions.stop()
        if not self.stalls:
            return Slice(side, counted)
        self.stalls.stop()
        times, total, lost = self.stalls.take()
        return Slice(side, counted | {"stall_total_us": total}, tuple(times), lost)

    def had_tripped(self, control: Control) -> bool:
        """Tell if the guard has tripped; then arm it again, with what both sides have."""
        reason = control.clear()
        if reason:
            say(f"the guard tripped: {reason}")
            control.write(self.common)
        return bool(reason)

    def unless_void(self, control: Control, piece: Slice) -> Slice:
        """Return a slice, void if the guard has tripped or a counter has fallen."""
        fallen = piece.fallen()
        for name in fallen:
            say(f"{name} fell by {-piece.counters[name]:g} in a slice, which is void")
        return replace(piece, void=True) if self.had_tripped(control) or fallen else piece

    def switch(self, memcg: Cgroup, side: list[Assignment]) -> None:
        """Put a side in force.

        Trace events are switched by patching the kernel in many places, the scheduler among them.
        The workload stands still for it: QEMU's emulation does not always survive that under load.
        """
        self.had_tripped(self.control)
        patches = any(item.name == TRACE for item in side)
        with memcg.frozen() if patches else nullcontext():
            self.control.write(side)

    def measure(self, memcg: Cgroup, sides: dict[str, list[Assignment]], result: Result) -> None:
        """Switch and read the counters, slice by slice; the workload goes on all the while.

        After each slice `self.result` has what there is, and so has the file.
        """
        counters = Counters(self.control, memcg.path, self.progress)
        order = self.plan.order()
        what = {"a": result.settings.a, "b": result.settings.b}
        counters.marker.write(f"vmscan-policy ab run {json.dumps(what)}")
        lacks = told(self.counted(counters.snapshot()))
        for sentence in lacks:
            say(sentence)
        result = replace(result, lacks=lacks)
        for index, side in enumerate(order, 1):
            self.switch(memcg, sides[side])
            if index == 1 or side != order[index - 2] or result.slices[-1].void:
                time.sleep(self.plan.settle or 0)
            piece = self.measure_slice(counters, index, side)
            memcg.require_alive()
            result = self.keep(result, [self.unless_void(self.control, piece)])

    def measure_twins(self, twins: list[Twin], result: Result) -> None:
        """Exchange the sides and read the counters, period by period."""
        order, plan = self.plan.order(), self.plan
        for index in range(0, len(order), 2):
            sides = order[index : index + 2]
            for twin in twins:
                self.had_tripped(twin.control)
            begin(twins, sides)
            if plan.settle is None:
                wait(twins, SETTLED, plan.seconds)
            else:
                time.sleep(plan.settle)
            pieces = zip(twins, measure(twins, sides, plan.turnovers, plan.seconds), strict=True)
            result = self.keep(
                result, [self.unless_void(twin.control, piece) for twin, piece in pieces]
            )

    def keep(self, result: Result, pieces: list[Slice]) -> Result:
        """Add what was measured now to the result, and to its file; return the result."""
        slices = (*result.slices, *pieces)
        ended = "" if len(slices) == len(self.plan.order()) else "it was killed"
        self.result = replace(result, slices=slices, ended=ended)
        self.save(summary=not ended)
        number = len(slices) // len(pieces)  # of the slice, or of the twins' period
        if sys.stderr.isatty() or number % 10 == 0 or number == 1:
            say(progress_line(self.result, self.plan))
        return self.result

    def save(self, *, summary: bool) -> None:
        """Write the result to its file; what hinders that is told once, and the run goes on."""
        if not self.plan.json or not self.result or (special(self.plan.json) and not summary):
            return
        path, slices = self.plan.json, self.result.slices
        try:
            if summary or self.unsaved or not self.saved:
                write({path: run_text(self.result, summary=summary)})
            else:
                for piece in slices[self.saved :]:
                    append_slice(path, piece)
            self.saved, self.unsaved = len(slices), ""
        except (Failure, OSError) as error:
            if not self.unsaved:
                say(f"{error}: the run goes on, and prints its table at the end")
            self.unsaved = str(error)

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
        if self.plan.cgroup:
            found = existing(self.plan.cgroup)
            require_machines(self.control, found.path)
            return found
        return self.new_memcg(stack)

    def new_memcg(self, stack: ExitStack, suffix: str = "") -> Memcg:
        """Make a cgroup for the workload, which the run ends."""
        name = f"vmscan-policy-ab.{os.getpid()}{suffix}"
        memcg = Memcg(name, self.plan.memory or 0, self.plan.workload.swap != "none")
        return stack.enter_context(memcg)

    def enter_twin(self, stack: ExitStack, places: dict[str, Path | int]) -> Twin:
        """Make a cgroup with settings of its own, which go before it."""
        memcg = self.new_memcg(stack, f".{places['twin']}")
        settable = Settable(self.control, cgroup2_root(), memcg.path)
        settable.request("add")
        stack.callback(settable.request, "remove")
        control = settable.own()
        sides = self.prepare(stack, control)
        counters = Counters(control, memcg.path, self.plan.progress_of(places), alone=False)
        return Twin(int(str(places["twin"])), memcg, control, sides, counters)

    def measure_both(self, stack: ExitStack) -> None:
        """Do a run of twins."""
        plan = self.plan
        require_settings(self.control)
        places = self.make_places(stack)
        twins = [self.enter_twin(stack, each) for each in places]
        stack.callback(ignore_signals)
        commands = [plan.workload.words(each) for each in places]
        begin(twins, plan.order()[:2])
        for twin, command in zip(twins, commands, strict=True):
            say(f"workload {twin.place}: {' '.join(command)} in {size_text(plan.memory)}")
            twin.memcg.start(command)
        for twin in twins:
            self.wait_for_reclaim(twin.memcg, twin.counters.progress)
        self.warm_up(*(twin.memcg for twin in twins))
        self.measure_twins(
            twins, Result(plan.settings(plan.memory, commands[0]), self.environment())
        )

    def measure_all(self) -> None:
        """Do the run; everything set up for it is taken down again."""
        plan = self.plan
        with ExitStack() as stack:
            self.require_swap(stack)
            stack.enter_context(held_lru(plan.lru))
            if plan.twins:
                self.measure_both(stack)
                say("done, removing the cgroups")
                return
            if OBSERVE in self.control.names():
                self.observe(stack)
            sides = self.prepare(stack, self.control)
            (places,) = self.make_places(stack)
            command = plan.workload.words(places)
            self.progress = plan.progress_of(places)
            if plan.stalls:
                self.stalls = stack.enter_context(Stalls())
            if plan.functions:
                self.functions = stack.enter_context(Functions(plan.functions))
            memcg = self.enter_cgroup(stack)
            stack.callback(ignore_signals)
            self.control.write(sides["A"])
            where = f" in {size_text(plan.memory)}" if plan.memory else ""
            say(f"workload: {' '.join(command) or plan.workload.title}{where}")
            if isinstance(memcg, Memcg):
                memcg.start(command)
            self.wait_for_reclaim(memcg, self.progress)
            self.warm_up(memcg)
            result = Result(plan.settings(memcg.limit(), command), self.environment())
            self.measure(memcg, sides, result)
            say("done, restoring the former settings")

    def end(self, why: str) -> None:
        """Keep what an incomplete run has found, and say why it ended."""
        if self.result:
            self.result = replace(self.result, ended=why)
            self.save(summary=True)


def restore(control: Control, before: dict[str, str]) -> None:
    """Write back the values of before the run; a guard that has tripped would refuse them."""
    control.clear()
    control.write([Assignment(name, value) for name, value in before.items()])


def special(path: Path) -> bool:
    """Tell if a path is no file, but such as /dev/stdout: it takes the result at the end."""
    return path.exists() and not path.is_file()


def progress_line(result: Result, plan: Plan) -> str:
    """Return what is told after a slice: the primary figures, and how far the run is."""
    done, count, what = len(result.slices), len(plan.order()), "slice"
    each = plan.seconds + (plan.settle or 0) / 2
    if plan.twins:
        done, count, what = done // 2, count // 2, "period"
        each = statistics.fmean(piece.counters["seconds"] for piece in result.slices)
        each += each * SETTLED / plan.turnovers if plan.settle is None else plan.settle
    left = to_go((count - done) * each)
    a, b = result.side("A"), result.side("B")
    figures = []
    for metric, label in asked(result.settings.primary, [*a, *b]).values():
        before, after = metric.value(a), metric.value(b)
        change = percent(difference(before, after)[1])
        figures.append(f"{label}: A {number(before)}, B {number(after)} ({change})")
    return "; ".join([f"{what} {done} of {count}, {left}", *figures])


def row_keys(stalls: bool, twins: bool = False) -> set[str]:
    """Return the keys of the rows that any run has, with or without recorded stalls; or twins."""
    names = {"progress", "instructions"} | ({"stall_us"} if stalls else set())
    every = [metric for rows in sections(names).values() for metric in rows]
    return {metric.key for metric in every if not (twins and is_machines(metric))}


def is_machines(metric: Metric | StallTime) -> bool:
    """Tell if a figure is made of what is counted for the whole machine."""
    return isinstance(metric, Metric) and any(map(of_machine, metric.parts + metric.per))


def check_primary(keys: list[str], stalls: bool, twins: bool = False) -> None:
    """Raise Failure for a key that no row has."""
    known = row_keys(stalls, twins)
    for key in keys:
        if twins and (key in row_keys(stalls) - known or of_machine(key)):
            raise Failure(
                f"--primary {key} is of the whole machine, so it can't tell twins apart: name one "
                "of the cgroup, such as memcg_refault_file_per_operation"
            )
        if key in known or key.startswith(("function.", "stats.")):
            continue
        if key in row_keys(stalls=True):
            raise Failure(f"--primary {key} takes --stalls, too")
        near = difflib.get_close_matches(key, sorted(known), 3) or ["what --list-figures prints"]
        raise Failure(f"--primary {key} is no figure: there is {', '.join(near)}")


def choose_primary(args: argparse.Namespace, workload: Workload) -> list[str]:
    """Return the keys of the primary figures: those named, or the workload's own that it can have.

    Raises Failure for one that there is not.
    """
    if args.primary is None:
        known = row_keys(args.stalls, args.twins)
        return [key for key in workload.primary if key in known]
    keys = [key.strip() for key in args.primary.split(",") if key.strip()]
    check_primary(keys, args.stalls, args.twins)
    return list(dict.fromkeys(keys))


def enough(args: argparse.Namespace, primary: list[str]) -> list[str]:
    """Return the primary figures; raise Usage for so few slices that none of them can be told."""
    needed = slices_needed(len(primary), args.twins)
    if primary and args.slices < needed:
        raise Usage(
            f"{args.slices} slices can't tell a difference in {len(primary)} primary figures: "
            f"it takes --slices {needed} or more, or --primary '' for intervals without a verdict"
        )
    return primary


def choose_workload(args: argparse.Namespace) -> Workload:
    """Return the workload that is named, or is a command, or runs in a cgroup that is there.

    Raises Failure for options that do not go with it.
    """
    name = args.workload
    if sum(map(bool, (name, args.command, args.cgroup))) > 1:
        raise Failure("give one of --workload NAME, --cgroup PATH and a command")
    if args.cgroup:
        for option in ("memory", "disk", "folio"):
            if getattr(args, option):
                raise Failure(
                    f"--{option} is for a workload that ab starts: leave it or --cgroup out"
                )
        return Workload((), title=f"what runs in {args.cgroup}")
    name = None if args.command else name or DEFAULT_WORKLOAD
    workload = WORKLOADS[name] if name else of_command(args.command)
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
    if args.twins and workload.pages_out and args.seconds is None:
        raise Failure(
            f"the workload {name} has no limit that takes its memory: give --seconds, how long a "
            "period of --twins lasts"
        )
    if args.folio is not None and not workload.large():
        raise Failure("--folio is for the workloads large-*: leave it out")
    return workload


def arguments(parser: Parser) -> None:
    """Tell the parser what ab takes."""
    parser.usage = "%(prog)s [OPTIONS] [--workload NAME | --cgroup PATH | -- CMD...]"
    parser.epilog = "SETTINGS: a comma-separated list of POINT=POLICY and POINT.PARAMETER=VALUE; "
    parser.epilog += "profile=NAME stands for the policies of all points that the profile sets."
    add = parser.add_argument
    names = ", ".join(WORKLOADS)
    add("--a", metavar="SETTINGS", default="flush=stock", help="side A (flush=stock)")
    add("--b", metavar="SETTINGS", help="side B (flush=batch)")
    add("--aa", metavar="RUNS", type=int, nargs="?", const=1,
        help="compare A with itself, in so many runs (1): shows marks by chance alone")  # fmt: skip
    add("--set", metavar="SETTINGS", action="append", default=[], help="set for both sides")
    add("--memory", metavar="SIZE", help="the workload's limit (64M, or the named workload's own)")
    add("--slices", metavar="N", type=int,
        help=f"how many slices, an even number ({SLICES}; twins: {TWINS_SLICES})")  # fmt: skip
    add("--seed", metavar="N", type=int, help="repeat the order of the slices of a run (by chance)")
    add("--seconds", metavar="TIME", type=parse_positive_duration,
        help="length of a slice: 500ms, 2s, 1m, a bare number is in seconds (2s); "
             "twins: the most (5m)")  # fmt: skip
    add("--settle", metavar="TIME", type=parse_duration,
        help="wait after each switch (0; twins: until contents were replaced)")  # fmt: skip
    add("--twins", action="store_true",
        help="run A and B at the same time, in two cgroups, and exchange them")  # fmt: skip
    add("--turnovers", metavar="N", type=parse_count,
        help=f"twins: contents are replaced so often in a slice ({TURNOVERS})")  # fmt: skip
    add("--warmup", metavar="TIME", type=parse_duration, default=10.0,
        help="wait after reclaim starts (10s)")  # fmt: skip
    add("--json", metavar="FILE", type=result_file, help="save everything measured as JSON")
    add("--lru", choices=("mglru", "classic", "keep"), default="keep", help="LRU to use (keep)")
    add("--zram", metavar="SIZE", help="swap to a zram device, made for the run")
    add("--stalls", action="store_true", help="measure how long tasks wait in reclaim")
    add("--folio", metavar="SIZE", help=f"size of folios of the workloads large-* ({DEFAULT_SIZE})")
    add("--functions", metavar="NAMES", default="", help="count functions' calls and time: A,B+C")
    add("--disk", metavar="DEVICE",
        help=f"blank disk to work on ({DEFAULT_DISKS[0]}); twins: two, as in A,B")  # fmt: skip
    add("--list-figures", action="store_true", help="print all figures with their keys, and exit")
    add("--primary", metavar="KEYS", help="figures to decide on: A,B; see --list-figures")
    add("--progress", metavar="FILE", help="file that ends in the count of operations")
    add("--progress-command", metavar="CMD", help="prints the count of operations so far")
    add("--cgroup", metavar="PATH", help="measure the tasks there; its limits stay as they are")
    add("--workload", metavar="NAME", choices=WORKLOADS, help=f"{names} ({DEFAULT_WORKLOAD})")
    add("command", metavar="CMD", nargs="*", help="the workload's command line")


def check(args: argparse.Namespace) -> None:
    """Raise Usage for numbers and options that can't be."""
    if args.slices < 2 or args.slices % 2 or args.slices * (args.aa or 1) > MOST_SLICES:
        raise Usage(
            f"--slices has to be an even number from 2 on, {MOST_SLICES} at most in all runs of "
            "--aa together"
        )
    if args.seed is not None and not 0 <= args.seed < SEEDS:
        raise Usage(f"--seed takes a number from 0 to {SEEDS - 1}")
    if args.twins:
        check_options(args)
    elif args.turnovers is not None:
        raise Usage("--turnovers is for --twins: leave it out, or add that")
    if args.aa is not None and args.aa < 1:
        raise Usage("--aa takes a number of runs from 1 on")
    if args.aa is not None and args.b:
        raise Usage("--aa runs side A twice: leave --b out")
    if args.progress and args.progress_command:
        raise Usage("give --progress or --progress-command, not both")
    if args.json:
        check_writable(args.json)


def choose_disks(args: argparse.Namespace, workload: Workload) -> tuple[Path, ...]:
    """Return the disks to work on: none, one, or one for each twin; raises Failure."""
    count = len(PLACES) if args.twins else 1
    if not args.disk:
        return DEFAULT_DISKS[:count] if workload.disk else ()
    disks = tuple(Path(name.strip()) for name in args.disk.split(","))
    if len(set(disks)) != count or len(disks) != count:
        wanted = "two disks, or two partitions of one: A,B" if args.twins else "one disk"
        raise Failure(f"--disk {args.disk}: name {wanted}")
    return disks


def make_plan(args: argparse.Namespace) -> Plan:
    """Return what the command line asks for; raises Usage."""
    if args.slices is None:
        args.slices = TWINS_SLICES if args.twins else SLICES
    try:
        check(args)
        workload = choose_workload(args)
        settle = args.settle
        if settle is None and (not args.twins or workload.pages_out):
            settle = 0.0
        memory = workload.memory if args.memory is None else args.memory
        return Plan(
            a=parse_assignments([args.a]),
            b=parse_assignments([args.a if args.aa else args.b or DEFAULT_B]),
            both=parse_assignments(args.set),
            workload=workload,
            primary=enough(args, choose_primary(args, workload)),
            memory=None if args.cgroup or memory is None else parse_size(memory),
            zram=None if args.zram is None else parse_size(args.zram),
            functions=parse_functions(args.functions),
            folio=parse_size(DEFAULT_SIZE if args.folio is None else args.folio) >> 10,
            disks=choose_disks(args, workload),
            progress=args.progress,
            progress_command=args.progress_command,
            cgroup=args.cgroup,
            json=args.json,
            lru=args.lru,
            stalls=args.stalls,
            aa=args.aa or 0,
            slices=args.slices,
            seconds=args.seconds or (TWINS_SECONDS if args.twins else SECONDS),
            settle=settle,
            warmup=args.warmup,
            twins=args.twins,
            turnovers=(args.turnovers or TURNOVERS) if args.twins else 0,
            seed=random.randrange(SEEDS) if args.seed is None else args.seed,
        )
    except (ValueError, Failure) as error:
        raise Usage(str(error)) from None


def figures_text() -> str:
    """Return the figures that a run can have: keys for --primary, and what they are."""
    found = sections({"progress", "instructions", "stall_us"})
    width = max(len(row.key) for rows in found.values() for row in rows)
    lines = []
    for title, rows in found.items():
        lines += [f"{title}:"] * bool(rows)
        lines += [f"  {row.key.ljust(width)}  {row.label}" for row in rows]
    return "\n".join([
        *lines, "",
        "Those of stalls and waits take --stalls. There are more: with --functions",
        "function.NAME.calls_per_1000 and function.NAME.instructions_per_1000 or _per_call, and",
        "the module's counters as stats.POINT.NAME.",
    ])  # fmt: skip


def on_signal(signum: int, _frame: object) -> None:
    """Leave through the clean-up."""
    ignore_signals()
    sys.exit(128 + signum)


def reason(error: BaseException) -> tuple[str, int]:
    """Return in words what ended a run, and the exit status."""
    if isinstance(error, SystemExit):
        status = int(error.code or 0)
        return f"it was stopped by {signal.Signals(status - 128).name}", status
    return (isinstance(error, OSError) and error.strerror) or str(error), 1


def run(args: argparse.Namespace) -> int:
    """Run, print the table; the file has what is measured all the while."""
    if args.list_figures:
        print(figures_text())
        return 0
    plan = make_plan(args)
    for each in SIGNALS:
        signal.signal(each, on_signal)
    run, status = Run(plan, Control(locate())), 0
    try:
        run.measure_all()
    except (Failure, OSError, SystemExit) as error:
        if not run.result or len(run.result.slices) < 2:
            raise
        why, status = reason(error)
        if run.result.ended:
            run.end(why)
        say(f"{len(run.result.slices)} of {len(plan.order())} slices were measured: {why}")
    result = run.result
    if not result:
        raise Failure("nothing was measured")
    for sentence in turnover(result):
        say(sentence)
    print(render(result), flush=True)
    if run.unsaved:
        raise Failure(run.unsaved)
    return status


COMMAND = Command(
    "ab",
    "Compare two settings of the reclaim policies under one workload that never stops.",
    arguments,
    run,
)
