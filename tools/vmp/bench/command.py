# SPDX-License-Identifier: GPL-2.0
"""The published experiments: list them, run them in a guest or here, and make their pages."""

import argparse
import json
import shlex
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from vmp.bench.experiment import DISK, Experiment, find, names
from vmp.bench.page import render
from vmp.common import OUT, REPO, Command, Failure, Parser, Usage
from vmp.control.debugfs import locate
from vmp.form import to_go
from vmp.guest.kernel import decide
from vmp.guest.sources import KERNEL_HELP, asked
from vmp.guest.steps import measure, step
from vmp.result.file import load_results, load_run, results_document
from vmp.result.metrics import MODULE_COUNTERS, Metric, sections
from vmp.result.model import Result, Results

TOOL = "bench"
PAGES = REPO / "docs" / "results"
SLOWER = 4  # a busy machine may take so many times the minutes
GUEST_DISK = "/dev/vda"


def installed(package: str) -> bool:
    """Tell if a Debian package is installed."""
    query = ["dpkg-query", "-W", "-f", "${db:Status-Status}", package]
    done = subprocess.run(query, capture_output=True, text=True, check=False)
    return done.stdout == "installed"


def require(experiment: Experiment) -> None:
    """Raise Failure without a package that the experiment needs."""
    missing = [package for package in experiment.needs if not installed(package)]
    if missing:
        raise Failure(
            f"{experiment.name} needs {' and '.join(missing)}: run `tools/setup --bench`, "
            "which installs that without starting a service"
        )


def files(experiment: Experiment, kernel: str | None) -> dict[str, Path]:
    """Return the file that each run's result goes to, below the checkout; makes the directory."""
    out = OUT / time.strftime(f"bench-{experiment.name}-{kernel or 'here'}-%Y%m%d-%H%M%S")
    out.mkdir(parents=True)
    return {run: out.relative_to(REPO) / f"{run}.json" for run in experiment.runs}


def trimmed(result: Result) -> Result:
    """Return a result without counters that no row of its table is made of.

    Most are the module's own, and would be nine tenths of the file. Of one setting twice, only the
    primary figures are looked at.
    """
    what = result.settings
    names = {name for piece in result.slices for name in piece.values()}
    rows = [
        row for title, part in sections(names).items() if title != MODULE_COUNTERS for row in part
    ]
    rows = [row for row in rows if not what.aa or row.key in what.primary]
    needed = {name for row in rows if isinstance(row, Metric) for name in (*row.parts, *row.per)}
    needed.add("memcg.current")  # for the turnover
    slices = tuple(
        replace(piece, counters={k: v for k, v in piece.counters.items() if k in needed})
        for piece in result.slices
    )
    # The workload's command has this machine's paths; its title says what it is.
    return replace(result, settings=replace(what, workload=()), slices=slices)


def words(experiment: Experiment, run: str, out: str, disk: str | None) -> list[str]:
    """Return the command of a run: on this machine with its `disk`, or '' for none; None: guest."""
    where = GUEST_DISK if disk is None else disk
    every = experiment.words(run, disk is not None, out)
    return [word.replace(DISK, where) for word in every]


def save(experiment: Experiment, paths: dict[str, Path], option: str, disk: str | None) -> Path:
    """Put what the pages need of the runs' results in one file; return its path.

    `option` says where they were done, as on the command line.
    """
    runs = {run: trimmed(load_run(REPO / path)) for run, path in paths.items()}
    here, part = disk is not None, ""
    if len(runs) < len(find(experiment.name).runs):
        (part,) = runs
        option = f"{option} --run {part}"
    results = Results(
        experiment=experiment.name,
        command=f"tools/bench run {option} {experiment.name}",
        here=here,
        vm="" if here else experiment.emulated.vm,
        commands={
            run: shlex.join(words(experiment, run, f"{run}.json", disk)) for run in experiment.runs
        },
        runs=runs,
    )
    name = "-".join(filter(None, [results.kernel(), "here" if here else "", part]))
    saved = OUT / TOOL / experiment.name / f"{name}.json"
    saved.parent.mkdir(parents=True, exist_ok=True)
    saved.write_text(json.dumps(results_document(results), separators=(",", ":")) + "\n")
    return saved


def run_here(experiment: Experiment, disk: str) -> Path:
    """Run an experiment on this machine, at the published size."""
    paths = files(experiment, None)
    for run, path in paths.items():
        step(f"{experiment.name}, {run}", words(experiment, run, str(path), disk), tool=TOOL)
    option = f" --disk {disk}" if experiment.needs_disk(True) else ""
    return save(experiment, paths, f"--here{option}", disk)


def run_in_guest(experiment: Experiment, kernel: str) -> Path:
    """Run an experiment in a guest with that kernel."""
    named = ["--kernel", decide(kernel)]
    step(f"{experiment.name}: kernel {kernel}", ["tools/kernel", "module", *named], tool=TOOL)
    paths = files(experiment, Path(kernel).name)
    runs = {
        path: f"{shlex.join(words(experiment, run, str(path), None))} >/dev/null"
        for run, path in paths.items()
    }
    what = f"{experiment.name} on {kernel}, about {experiment.minutes} minutes"
    timeout = SLOWER * 60 * experiment.minutes
    measure(what, [*named, *shlex.split(experiment.emulated.vm)], runs, timeout, TOOL)
    return save(experiment, paths, f"--kernel {kernel}", None)


def show(_args: argparse.Namespace) -> int:
    """Print the experiments."""
    width = max(map(len, names()))
    for name in names():
        experiment = find(name)
        print(f"{name.ljust(width)}  {experiment.title} ({', '.join(experiment.kernels)})")
    return 0


def kernels(experiment: Experiment, args: argparse.Namespace) -> list[str]:
    """Return the kernels of an experiment's guests: one that is asked for, or its own."""
    return list(dict.fromkeys(asked(args.kernel, default) for default in experiment.kernels))


def run_one(experiment: Experiment, args: argparse.Namespace) -> None:
    """Run an experiment, on each kernel that it is about if none is asked for; print its page."""
    if args.here:
        saved = [run_here(experiment, args.disk or "")]
    else:
        saved = [run_in_guest(experiment, kernel) for kernel in kernels(experiment, args)]
    print(render(find(experiment.name), [load_results(path) for path in saved]))
    print("Saved:", *(path.relative_to(REPO) for path in saved), flush=True)


def run_all(args: argparse.Namespace) -> int:
    """Run experiments, all if none is named; one that fails keeps no other from its run."""
    if args.here and args.kernel:
        raise Usage("--kernel is for the guest: leave it out with --here")
    wanted = [find(name) for name in args.name or names()]
    if args.run_name:
        if len(args.name) != 1:
            raise Usage("--run is for one experiment: name that, too")
        wanted = [wanted[0].only(args.run_name)]
    if args.disk and not args.here:
        raise Usage("--disk is for --here: a guest has a disk of its own")
    for experiment in wanted:
        require(experiment)
        if args.here and not args.disk and experiment.needs_disk(True):
            raise Usage(f"{experiment.name} works on a blank disk: name one with --disk")
    if args.here:
        locate()
    failed = []
    for number, experiment in enumerate(wanted, 1):
        if len(wanted) > 1:
            left = sum(each.minutes * len(kernels(each, args)) for each in wanted[number - 1 :])
            told = "" if args.here else f", {to_go(60 * left)}"
            print(f"{TOOL}: {number} of {len(wanted)}{told}: {experiment.name}", file=sys.stderr)
        try:
            run_one(experiment, args)
        except Failure as failure:
            print(f"{TOOL}: {failure}", file=sys.stderr, flush=True)
            failed.append(experiment.name)
    if failed:
        raise Failure(f"{len(failed)} of {len(wanted)} were not measured: {', '.join(failed)}")
    return 0


def make_pages(args: argparse.Namespace) -> int:
    """Write the page of each experiment that the files are of."""
    every: dict[str, list[Results]] = {}
    for path in args.file:
        results = load_results(path)
        every.setdefault(results.experiment, []).append(results)
    for name, all_of_it in every.items():
        page = PAGES / f"{name}.md"
        page.write_text(render(find(name), all_of_it))
        print(page)
    return 0


def arguments(parser: Parser) -> None:
    """Tell the parser what bench takes."""
    commands = parser.add_subparsers(dest="do", metavar="COMMAND", required=True)
    add = commands.add_parser("list", help="list the experiments")
    add.set_defaults(run=show)
    add = commands.add_parser("run", help="run experiments; without a name, all of them")
    add.add_argument("name", metavar="NAME", nargs="*", help="an experiment")
    add.add_argument("--kernel", metavar="V", help=f"{KERNEL_HELP}, for the guest")
    add.add_argument(
        "--here", action="store_true", help="on this machine, at the published size; no guest"
    )
    add.add_argument("--disk", metavar="DEVICE", help="with --here: a blank disk to work on")
    add.add_argument(
        "--run", metavar="RUN", dest="run_name", help="only this run of the experiment"
    )
    add.set_defaults(run=run_all)
    add = commands.add_parser("page", help="write the pages of results to docs/results")
    add.add_argument("file", metavar="FILE", nargs="+", type=Path, help="a file that `run` saved")
    add.set_defaults(run=make_pages)
    parser.epilog = (
        "Real services come from Debian's packages, which `tools/setup --bench` installs: "
        "postgresql, mariadb-server-core, mariadb-client-core, sysbench. An experiment starts "
        "them with data of its own, in its guest, and ends them."
    )


def run(args: argparse.Namespace) -> int:
    """Do the command."""
    status: int = args.run(args)
    return status


COMMAND = Command(
    TOOL,
    "Run the published experiments, and say which of their figures are reproduced.",
    arguments,
    run,
)
