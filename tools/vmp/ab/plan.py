# SPDX-License-Identifier: GPL-2.0
"""What a run of ab is to do: the options, checked."""

import argparse
import difflib
import random
import shutil
from dataclasses import dataclass
from pathlib import Path

from vmp.ab.folios import DEFAULT_SIZE
from vmp.ab.functions import parse_functions
from vmp.ab.twins import PLACES, check_options, twins_order
from vmp.ab.workloads import TWIN, WORKLOADS, Workload, of_command
from vmp.common import (
    SEEDS,
    Failure,
    Parser,
    Usage,
    parse_count,
    parse_duration,
    parse_positive_duration,
    parse_size,
    result_file,
)
from vmp.control.counters import Progress, ProgressCommand, ProgressFile, of_machine
from vmp.control.debugfs import Assignment, parse_assignments
from vmp.result.file import check_writable
from vmp.result.metrics import Metric, StallTime, sections
from vmp.result.model import SLICES, Settings, slice_order, slices_needed

DEFAULT_WORKLOAD = "vm"
DEFAULT_B = "flush=batch"
DEFAULT_DISKS = (Path("/dev/vda"), Path("/dev/vdb"))  # the second for the other twin
TWINS_SLICES = 24
MOST_SLICES = 100_000  # of all runs
MOST_IN_RUN = 2000  # the exact test of more takes hours
SECONDS, TWINS_SECONDS = 2.0, 300.0
TURNOVERS = 5
# Figures of OOM kills, and what keeps the guard from ending the slices in which there are some.
KILLS = {"oom_kill", "oom_kills_per_1000", "oom_kills_per_operation", "memcg_oom_kill"}
UNGUARDED = Assignment("guard.window", "0")


def settings(words: list[Assignment]) -> str:
    """Return settings as they are typed."""
    return ",".join(map(str, words)) or "(nothing)"


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
    counted = {"+".join(names) for names in parse_functions(args.functions)}
    for key in keys:
        if key.startswith("function.") and key.split(".")[1] not in counted:
            raise Failure(f"--primary {key} takes --functions with that function, too")
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


def both_sides(args: argparse.Namespace, primary: list[str]) -> list[Assignment]:
    """Return what both sides set: without the guard's look at OOM kills if these are counted.

    It would make the slices void that have most of them.
    """
    named = parse_assignments(args.set)
    counted = KILLS.intersection(primary) and UNGUARDED.name not in {item.name for item in named}
    return [*named, UNGUARDED] if counted else named


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
    if not 2 <= args.slices <= MOST_IN_RUN or args.slices % 2:
        raise Usage(f"--slices has to be an even number from 2 to {MOST_IN_RUN}")
    if args.slices * (args.aa or 1) > MOST_SLICES:
        raise Usage(f"the runs of --aa can have {MOST_SLICES} slices together")
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
        primary = enough(args, choose_primary(args, workload))
        return Plan(
            a=parse_assignments([args.a]),
            b=parse_assignments([args.a if args.aa else args.b or DEFAULT_B]),
            both=both_sides(args, primary),
            workload=workload,
            primary=primary,
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
