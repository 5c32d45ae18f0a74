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
from typing import Any

from vmp.bench import plan
from vmp.bench.experiment import DISK, PAGES, Experiment, find, names
from vmp.bench.measured import counting
from vmp.bench.page import render
from vmp.bench.registered import check, registered
from vmp.checkout import DIRTY, checkout
from vmp.common import INSTALLED, OUT, REPO, Command, Failure, Parser, Usage, libraries
from vmp.control.debugfs import locate
from vmp.form import to_go
from vmp.guest.kernel import decide
from vmp.guest.sources import add_kernel, asked
from vmp.guest.steps import measure, step
from vmp.result.file import load_results, load_run, results_document, write
from vmp.result.metrics import MODULE_COUNTERS, Metric, sections
from vmp.result.model import Result, Results

TOOL = "bench"
SLOWER = 8  # a busy machine may take so many times the minutes
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
            f"{experiment.name} needs {' and '.join(missing)}: "
            + ("install that" if INSTALLED else "run `tools/setup --bench`, which installs that")
            + " without starting a service"
        )


def files(experiment: Experiment, kernel: str | None, boot: int = 1) -> dict[str, Path]:
    """Return the file that each run's result goes to; makes the directory.

    For a guest that is below the checkout, of which it knows the rest.
    """
    name = f"bench-{experiment.name}-{kernel or 'here'}-%Y%m%d-%H%M%S-{boot}"
    out = OUT / time.strftime(name)
    out.mkdir(parents=True)
    out = out.relative_to(REPO) if kernel else out.absolute()
    return {run: out / f"{run}.json" for run in experiment.runs}


def trimmed(result: Result) -> Result:
    """Return a result without counters that no row of its table is made of.

    Most are the module's own, and would be nine tenths of the file. Of one setting twice, only the
    primary figures are looked at.
    """
    what = result.settings
    names = {name for piece in result.slices for name in piece.values()}
    rows = [
        row for title, part in sections(names).items() for row in part
        if row.key in what.primary or not (what.aa or title == MODULE_COUNTERS)
    ]  # fmt: skip
    needed = {name for row in rows if isinstance(row, Metric) for name in (*row.parts, *row.per)}
    needed |= {"memcg.current", "stats.scan.passes"}  # for the turnover, and the passes of a wait
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


def save(
    experiment: Experiment,
    paths: dict[str, Path],
    option: str,
    disk: str | None,
    directory: Path,
    made: dict[str, Any],
    before: Results | None = None,
) -> Path:
    """Put what the pages need of a boot's results in one file, with those of `before`; return it.

    `option` says where they were done, as on the command line; `made` is the checkout() of then.
    """
    each = {run: trimmed(load_run(REPO / path)) for run, path in paths.items()}
    runs = {
        run: (
            *(before.runs[run] if before else ()),
            replace(boot, environment=boot.environment | made),
        )
        for run, boot in each.items()
    }
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
    if before and before.kernel() != results.every()[-1].kernel():
        raise Failure(f"{experiment.name}: a boot was on another kernel than the ones before")
    kernel = results.kernel().replace(":", "_")
    name = "-".join(filter(None, [kernel, "here" if here else "", part]))
    saved = directory / experiment.name / f"{name}.json"
    saved.parent.mkdir(parents=True, exist_ok=True)
    document = json.dumps(results_document(results), separators=(",", ":"))
    write({saved: document + "\n"})
    return saved


def run_here(experiment: Experiment, disk: str, directory: Path) -> Path:
    """Run an experiment on this machine, at the published size."""
    paths, made = files(experiment, None), checkout()
    for run, path in paths.items():
        step(f"{experiment.name}, {run}", words(experiment, run, str(path), disk), tool=TOOL)
    option = f" --disk {disk}" if experiment.needs_disk(True) else ""
    return save(experiment, paths, f"--here{option}", disk, directory, made)


def run_in_guests(
    experiment: Experiment, kernel: str, boots: int, directory: Path, before: Results | None
) -> Path | None:
    """Run an experiment in so many fresh guests with that kernel, those of `before` included.

    Of a series it is the release that these had, else the newest. The file has each boot as soon as
    it is over. Returns its path; None with nothing to do.
    """
    named = ["--kernel", decide(before.kernel() if before else kernel)]
    step(f"{experiment.name}: kernel {kernel}", ["tools/kernel", "module", *named], tool=TOOL)
    option = f"--kernel {kernel}" + (f" --boots {boots}" if boots > 1 else "")
    saved = None
    for boot in range(before.boots() + 1 if before else 1, boots + 1):
        paths, made = files(experiment, Path(kernel).name, boot), checkout()
        runs = {
            path: f"{shlex.join(words(experiment, run, str(path), None))} >/dev/null"
            for run, path in paths.items()
        }
        what = f"{experiment.name} on {kernel}, about {experiment.minutes} minutes"
        if boots > 1:
            what = f"{what}, boot {boot} of {boots}"
        timeout = SLOWER * 60 * experiment.minutes
        measure(what, [*named, *shlex.split(experiment.emulated.vm)], runs, timeout, TOOL)
        saved = save(experiment, paths, option, None, directory, made, before)
        before = load_results(saved)
    return saved


def show(_args: argparse.Namespace) -> int:
    """Print the experiments."""
    width = max(map(len, names()))
    for name in names():
        experiment = find(name)
        print(f"{name.ljust(width)}  {experiment.title} ({', '.join(experiment.kernels)})")
    return 0


def kernels(experiment: Experiment, args: argparse.Namespace) -> list[str]:
    """Return the kernels of an experiment's guests: one that is asked for, or its own."""
    return list(dict.fromkeys(asked(args, default) for default in experiment.kernels))


def tell_unregistered(experiment: Experiment, here: bool) -> None:
    """Say of an experiment whose figures are in no commit that its results are for no page.

    It may be one run of an experiment: what is in a commit is all of it.
    """
    made, what = checkout(), ""
    if made and not INSTALLED and registered(find(experiment.name), here) is None:
        what = "figures or sizes"
    elif made.get(DIRTY):
        what = "changes in the checkout"
    if what:
        print(
            f"{TOOL}: {experiment.name}: {what} are in no commit yet, so `page` will not take "
            "these results",
            file=sys.stderr,
        )


def run_one(experiment: Experiment, kernel: str | None, boots: int, args: Any) -> None:
    """Run an experiment with a kernel, or here with None; print its page."""
    saved: Path | None
    if kernel is None:
        saved = run_here(experiment, args.disk or "", args.directory)
    else:
        before = plan.latest(experiment, kernel, args.directory) if args.resume else None
        saved = run_in_guests(experiment, kernel, boots, args.directory, before)
    if saved:
        print(render(find(experiment.name), [load_results(saved)]))
        print("Saved:", saved, flush=True)


def check_run(args: argparse.Namespace) -> None:
    """Raise Usage for options that do not go together."""
    if args.here and args.kernel:
        raise Usage("--kernel is for the guest: leave it out with --here")
    if args.run_name and len(args.name) != 1:
        raise Usage("--run is for one experiment: name that, too")
    if args.disk and not args.here:
        raise Usage("--disk is for --here: a guest has a disk of its own")
    if args.plan and (args.name or args.here or args.kernel or args.run_name or args.boots):
        raise Usage("--plan says what to run: leave names, --kernel, --boots, --here and --run out")
    if args.boots is not None and args.boots < 1:
        raise Usage("--boots takes a number from 1 on")
    if args.here and (args.boots or args.resume):
        raise Usage("--boots and --resume are for guests: leave them out with --here")
    if args.resume and args.run_name:
        raise Usage("--resume goes on with all runs of an experiment: leave --run out")
    try:
        args.directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Usage(f"--directory {args.directory}: {error.strerror}") from None


def wanted(args: argparse.Namespace) -> list[tuple[Experiment, str | None, int]]:
    """Return what is to be run: experiments, kernels, None for this machine, and boots."""
    if args.plan:
        rows = plan.read()
        if args.resume:
            rows = [row.enough(row.saved(args.directory)) for row in rows]
        return [(row.found(), row.kernel, row.boots) for row in rows]
    every = [find(name) for name in args.name or names()]
    if args.run_name:
        every = [every[0].only(args.run_name)]
    if args.here:
        return [(experiment, None, 1) for experiment in every]
    return [(experiment, kernel, args.boots or 1)
            for experiment in every for kernel in kernels(experiment, args)]  # fmt: skip


def to_do(work: list[tuple[Experiment, str | None, int]], args: argparse.Namespace) -> list[int]:
    """Return how many boots of each there are still to do."""
    if not args.resume:
        return [boots for _, _, boots in work]
    return [plan.Planned(experiment.name, kernel or "", boots).left(args.directory)
            for experiment, kernel, boots in work]  # fmt: skip


def run_all(args: argparse.Namespace) -> int:
    """Run experiments, all if none is named; one that fails keeps no other from its run."""
    check_run(args)
    work = wanted(args)
    for experiment in {experiment.name: experiment for experiment, _, _ in work}.values():
        experiment.check(args.here)
        require(experiment)
        if args.here and not args.disk and experiment.needs_disk(True):
            raise Usage(f"{experiment.name} works on a blank disk: name one with --disk")
        tell_unregistered(experiment, args.here)
    if args.here:
        locate()
    left, failed = to_do(work, args), []
    for number, (experiment, kernel, boots) in enumerate(work):
        if not left[number]:
            continue
        if len(work) > 1 or boots > 1:
            rest = zip(work[number:], left[number:], strict=True)
            minutes = sum(each.minutes * count for (each, _, _), count in rest)
            told = "" if args.here else f", {to_go(60 * minutes)}"
            print(f"{TOOL}: {number + 1} of {len(work)}{told}: {experiment.name}", file=sys.stderr)
        try:
            run_one(experiment, kernel, boots, args)
        except (Failure, OSError) as failure:
            print(f"{TOOL}: {failure}", file=sys.stderr, flush=True)
            failed.append(experiment.name)
    if failed:
        again = ": what is missing goes on with --resume" if args.plan else ""
        raise Failure(f"{len(failed)} of {len(work)} were not measured: {', '.join(failed)}{again}")
    return 0


def show_plan(args: argparse.Namespace) -> int:
    """Print what is planned, and what of it is left."""
    print(plan.told(plan.read(), args.directory))
    return 0


def make_pages(args: argparse.Namespace) -> int:
    """Write the page of each experiment that the files are of, all or none."""
    every: dict[str, list[Results]] = {}
    named = {path.resolve(): path for path in args.file}
    for path in named.values():
        results = load_results(path)
        every.setdefault(results.experiment, []).append(results)
    pages = {}
    for name, all_of_it in every.items():
        experiment = find(name)
        there = {path.resolve() for path in (PAGES / name).glob("*.json")}
        if left_out := sorted(there - named.keys()):
            raise Failure(
                f"{left_out[0]} is left out: a page has all results of its experiment; say in the "
                "file why it is superseded"
            )
        for results in all_of_it:
            check(experiment, results)
        pages[PAGES / f"{name}.md"] = render(experiment, all_of_it)
        if experiment.curve and (counts := counting(all_of_it)):
            with libraries():
                from vmp.bench.picture import picture  # noqa: PLC0415 - the rest has no plots

            pages[PAGES / f"{name}.svg"] = picture(experiment, experiment.curve, counts[0])
    write(pages)
    print(*pages, sep="\n")
    return 0


def arguments(parser: Parser) -> None:
    """Tell the parser what bench takes."""
    commands = parser.add_subparsers(dest="do", metavar="COMMAND", required=True)
    add = commands.add_parser("list", help="list the experiments")
    add.set_defaults(run=show)
    add = commands.add_parser("run", help="run experiments; without a name, all of them")
    add.add_argument("name", metavar="NAME", nargs="*", help="an experiment")
    add_kernel(add.add_argument, ", for the guest")
    add.add_argument("--boots", metavar="N", type=int, help="in so many fresh guests (1)")
    add.add_argument("--plan", action="store_true", help="run what `plan` lists")
    add.add_argument("--resume", action="store_true", help="keep the boots that there are, go on")
    add.add_argument(
        "--here", action="store_true", help="on this machine, at the published size; no guest"
    )
    add.add_argument(
        "--disk", metavar="DEVICE", help="with --here: a blank disk to work on, or A,B for twins"
    )
    add.add_argument(
        "--run", metavar="RUN", dest="run_name", help="only this run of the experiment"
    )
    add.set_defaults(run=run_all)
    listed = commands.add_parser("plan", help="print what is to be measured, and what is left")
    listed.set_defaults(run=show_plan)
    for each in (add, listed):
        each.add_argument("--directory", metavar="DIR", type=Path, default=OUT / TOOL,
                          help="where results are saved (out/bench)")  # fmt: skip
    add = commands.add_parser("page", help="write the pages of results to docs/results")
    add.add_argument("file", metavar="FILE", nargs="+", type=Path, help="a file that `run` saved")
    add.set_defaults(run=make_pages)
    parser.epilog = (
        "Real services come from Debian's packages, which `tools/setup --bench` installs: "
        "postgresql, mariadb-server-core, mariadb-client-core, sysbench. An experiment starts "
        "them with data of its own, in its guest, and ends them."
    )


def run(args: argparse.Namespace) -> int:
    """Do the command; raise Usage for one that a package can't do."""
    if INSTALLED and args.run is not show and not getattr(args, "here", False):
        raise Usage("a package has `list` and `run --here`; the rest takes a checkout")
    status: int = args.run(args)
    return status


COMMAND = Command(
    TOOL,
    "Run the published experiments, and say which of their figures are reproduced.",
    arguments,
    run,
)
