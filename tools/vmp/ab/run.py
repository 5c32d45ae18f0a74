# SPDX-License-Identifier: GPL-2.0
"""A run of ab: the workload in its cgroup, or two as twins, and the slices that are measured."""

import json
import os
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from vmp.ab.cgroup import Cgroup, Memcg, existing
from vmp.ab.disk import mounted
from vmp.ab.folios import held_folios
from vmp.ab.functions import Functions
from vmp.ab.lru import current_lru, held_lru
from vmp.ab.plan import Plan
from vmp.ab.stalls import Stalls
from vmp.ab.swap import swap_areas, zram
from vmp.ab.twins import PLACES, SETTLED, Twin, begin, measure, wait
from vmp.common import Failure, ignore_signals, size_text
from vmp.control.cgroups import Cgroup as Settable
from vmp.control.cgroups import cgroup2_root, require_machines, require_settings
from vmp.control.counters import Counters, Progress, delta
from vmp.control.debugfs import TRACE, Assignment, Control
from vmp.control.needs import OBSERVED, told
from vmp.form import number, percent, to_go
from vmp.programs import compile_workloads
from vmp.result.file import append_slice, run_text, write
from vmp.result.model import Result, Slice, asked, difference

DEFAULT_SYSTEM = "ext4"
BEGIN_TIMEOUT = 600  # seconds for the workload to lay out its files, or fill its memory
RECLAIM_TIMEOUT = 120  # and then to reach its limit
OBSERVE = "flush.observe"


def say(text: str) -> None:
    """Report progress on stderr; stdout is for the table alone."""
    print(f"ab: {text}", file=sys.stderr, flush=True)


def complete(
    side: list[Assignment], both: list[Assignment], now: dict[str, str]
) -> list[Assignment]:
    """Return what to write for one side: its own settings, after the present value of each name
    that only the other side sets.
    """
    own = {item.name for item in side}
    others = dict.fromkeys(item.name for item in both if item.name not in own)
    return [Assignment(name, now[name]) for name in others] + side


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
        deadline = time.monotonic() + BEGIN_TIMEOUT
        while progress and not progress.peek():
            memcg.require_alive()
            if time.monotonic() > deadline:
                progress.read()
                raise Failure(f"the workload counted no operation in {BEGIN_TIMEOUT} s")
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

    def put(self, control: Control, side: list[Assignment]) -> None:
        """Set a side; a guard that trips over its first policies refuses the rest: set it again."""
        self.had_tripped(control)
        try:
            control.write(side)
        except Failure:
            if not self.had_tripped(control):
                raise
            control.write(side)

    def switch(self, memcg: Cgroup, side: list[Assignment]) -> None:
        """Put a side in force.

        Trace events are switched by patching the kernel in many places, the scheduler among them.
        The workload stands still for it: QEMU's emulation does not always survive that under load.
        """
        patches = any(item.name == TRACE for item in side)
        with memcg.frozen() if patches else nullcontext():
            self.put(self.control, side)

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
            begin(twins, sides, self.put)
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
