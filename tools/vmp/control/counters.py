# SPDX-License-Identifier: GPL-2.0
"""Reading the counters that an A/B run compares.

A snapshot is one flat mapping of `source.name` to a number: `vmstat.*` (/proc/vmstat, whole
machine), `irq.*` (/proc/interrupts, summed over the CPUs), `folios.*` (the kernel's counts of
large anonymous folios, of all sizes together), `memcg.*` (memory.stat, memory.current, of
memory.events oom_kill, of memory.pressure some_usec and full_usec), `cpu.*` (the memcg's
cpu.stat), `stats.POINT.*` (the module) and `progress`; `instructions`, the memcg's, where the
clocks count these. vmstat.pgpgin is in KiB, for all reads of block devices together.
"""

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from vmp.common import ICOUNT, Failure
from vmp.control.debugfs import Control
from vmp.control.marker import Marker

VMSTAT = (
    "nr_tlb_remote_flush pgscan_anon pgscan_file pgsteal_anon pgsteal_file pswpin pswpout "
    "nr_vmscan_write workingset_refault_anon workingset_refault_file oom_kill pgpgin pgrefill "
    "nr_isolated_anon"
).split()
MEMCG = (
    "pgscan pgsteal pgrefill pswpin pswpout workingset_refault_anon workingset_refault_file "
    "pgfault pgmajfault file_dirty"
).split()
IRQ = ("TLB", "CAL")
THP = Path("/sys/kernel/mm/transparent_hugepage")
CPU = ("system_usec", "user_usec", "usage_usec")
READ = "vmscan-policy ab read"  # a mark in the trace
COMMAND_TIMEOUT = 10  # seconds, for what tells the operations
PROGRESS_TAIL = 8192  # bytes at the end of a progress file that are parsed


def parse_pairs(text: str, wanted: tuple[str, ...] | list[str]) -> dict[str, int]:
    """Return the `wanted` ones of `name value` lines; a name the text lacks is left out."""
    lines = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in lines if len(pair) == 2 and pair[0] in wanted}


def parse_interrupts(text: str, wanted: tuple[str, ...] = IRQ) -> dict[str, int]:
    """Return the counts of /proc/interrupts' lines `wanted`, summed over the CPUs."""
    counts = {}
    for line in text.splitlines():
        label, _, rest = line.partition(":")
        if label.strip() in wanted:
            numbers = re.match(r"(?:\s+\d+)*", rest)
            counts[label.strip()] = sum(map(int, numbers[0].split())) if numbers else 0
    return counts


def parse_progress(text: str) -> float | None:
    """Return the last number of the text, None if there is none.

    Raises Failure for one with an exponent, which is rounded: a slice would count by thousands.
    """
    numbers = re.findall(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", text)
    if numbers and not re.fullmatch(r"[\d.]+", numbers[-1]):
        raise Failure(
            f"the count of operations is rounded, {numbers[-1]}: print all of its digits, as "
            'printf "%.0f" does in awk'
        )
    return float(numbers[-1]) if numbers else None


def of_machine(name: str) -> bool:
    """Tell a counter of the whole machine from one that a memory cgroup has by itself."""
    return name.startswith(("vmstat.", "irq.", "folios.", "function.", "stats.flush.observed_"))


def is_level(name: str) -> bool:
    """Tell a highest-so-far mark of the module from a counter: it has no difference."""
    return name.rpartition(".")[2].startswith("largest_")


def is_gauge(name: str) -> bool:
    """Tell what stands at some height, which rises and falls, from a counter."""
    return name in ("memcg.current", "memcg.file_dirty", "vmstat.nr_isolated_anon")


def change(name: str, before: float, after: float) -> float:
    """Return what became of a value between two snapshots."""
    if is_gauge(name):
        return (before + after) / 2
    return after if is_level(name) else after - before


def fold_vmstat() -> None:
    """Fold the per-CPU parts of /proc/vmstat in, where the kernel offers that."""
    try:
        Path("/proc/sys/vm/stat_refresh").read_text()
    except OSError:
        pass  # counters are then exact to within a few hundred pages


@contextmanager
def at_once() -> Iterator[None]:
    """Let no workload come between: what it does meanwhile is in some of the counters alone."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, -20)
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, before)


class Progress(Protocol):
    """Tells how many operations a workload has done."""

    def peek(self) -> float | None:
        """Return the operations so far, None while nothing tells them."""

    def read(self) -> float:
        """Return the operations so far; raises Failure if nothing tells them."""


@dataclass(frozen=True)
class ProgressCommand:
    """A shell command that prints how many operations a workload has done, as its last number."""

    command: str

    def peek(self) -> float | None:
        """Return the operations so far, None while the command prints no number."""
        return parse_progress(self.run().stdout)

    def run(self) -> subprocess.CompletedProcess[str]:
        """Run the command to its end; raises Failure if it takes too long."""
        try:
            return subprocess.run(
                ["sh", "-c", self.command],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=COMMAND_TIMEOUT,
            )
        except subprocess.TimeoutExpired:
            raise Failure(
                f"the progress command takes more than {COMMAND_TIMEOUT} s: {self.command}"
            ) from None

    def read(self) -> float:
        """Return the operations so far."""
        done = self.run()
        number = parse_progress(done.stdout)
        if done.returncode or number is None:
            said = (done.stderr or done.stdout).strip().rpartition("\n")[2]
            raise Failure(
                f"the progress command has to print a number and exit with 0, but `{self.command}` "
                f"exits with {done.returncode}" + (f" and says: {said}" if said else "")
            )
        return number


@dataclass(frozen=True)
class ProgressFile:
    """The file in which a workload counts its operations, and how to parse its end."""

    path: Path
    parse: Callable[[str], float | None] = parse_progress

    def peek(self) -> float | None:
        """Return the operations so far, None while the file does not tell."""
        try:
            with self.path.open("rb") as handle:
                handle.seek(max(0, os.fstat(handle.fileno()).st_size - PROGRESS_TAIL))
                return self.parse(handle.read().decode(errors="replace"))
        except FileNotFoundError:
            return None

    def read(self) -> float:
        """Return the operations so far.

        The file may be empty for a moment while the workload writes it anew.
        """
        for _ in range(10):
            number = self.peek()
            if number is not None:
                return number
            time.sleep(0.05)
        raise Failure(
            f"the progress file {self.path} has no number: the workload has to keep a count of "
            "its operations there"
        )


def parse_pressure(text: str) -> dict[str, int]:
    """Return the microseconds that some, and all, tasks have waited for memory so far."""
    found = re.findall(r"^(some|full) .*total=(\d+)", text, re.MULTILINE)
    return {f"{who}_usec": int(total) for who, total in found}


def of_folios() -> dict[str, int]:
    """Return what the kernel counts of large folios, if it does."""
    files = list(THP.glob("hugepages-*kB/stats/split_deferred"))
    return {"split_deferred": sum(int(path.read_text()) for path in files)} if files else {}


def of_cgroup(memcg: Path) -> dict[str, dict[str, int]]:
    """Return what a memory cgroup counts by itself, by source."""
    pressure = ""
    with suppress(OSError):  # a kernel without PSI
        pressure = (memcg / "memory.pressure").read_text()
    return {
        "memcg": parse_pairs((memcg / "memory.stat").read_text(), MEMCG)
        | {"current": int((memcg / "memory.current").read_text())}
        | parse_pairs((memcg / "memory.events").read_text(), ["oom_kill"])
        | parse_pressure(pressure),
        "cpu": parse_pairs((memcg / "cpu.stat").read_text(), CPU),
    }


class Counters:
    """Takes snapshots of all counters of one run."""

    def __init__(
        self, control: Control, memcg: Path, progress: Progress | None, alone: bool = True
    ) -> None:
        """Choose what is read; not the machine's counters of a cgroup that is not `alone`."""
        self.control = control
        self.memcg = memcg
        self.progress = progress
        self.alone = alone
        self.marker = Marker()

    def snapshot(self, mark: str | None = None) -> dict[str, float]:
        """Read everything now; `time` is in seconds on the monotonic clock.

        A `mark` is left in the trace right before the counters that a recording is compared with,
        which come first, and another right after them.
        """
        fold_vmstat()
        with at_once():
            if mark:
                self.marker.write(mark)
            stats = self.control.stats()
            vmstat = Path("/proc/vmstat").read_text()
            if mark:
                self.marker.write(READ)
        sources = {f"stats.{point}": counts for point, counts in stats.items()} | {
            "vmstat": parse_pairs(vmstat, VMSTAT),
            "irq": parse_interrupts(Path("/proc/interrupts").read_text()),
            "folios": of_folios(),
            **of_cgroup(self.memcg),
        }
        values: dict[str, float] = {"time": time.monotonic()}
        for source, counts in sources.items():
            values |= {f"{source}.{name}": value for name, value in counts.items()}
        if not self.alone:
            values = {name: value for name, value in values.items() if not of_machine(name)}
        if os.environ.get(ICOUNT):
            values["instructions"] = values["cpu.usage_usec"] * 1000
        if self.progress:
            values["progress"] = self.progress.read()
        return values


def delta(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    """Return what happened between two snapshots; `seconds` is the time between them.

    A mark (see is_level) is what it stood at in the end, a gauge the mean of both. A name that
    one of them lacks is left out.
    """
    names = before.keys() & after.keys() - {"time"}
    changes = {name: change(name, before[name], after[name]) for name in sorted(names)}
    return {"seconds": after["time"] - before["time"], **changes}
