# SPDX-License-Identifier: GPL-2.0
"""The demo: in one guest, each policy against stock under one workload."""

import argparse
import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from vmp.ab.table import render
from vmp.ab.workloads import ALL, STOCK
from vmp.common import OUT, REPO, Command, Parser
from vmp.demo import large
from vmp.demo.verdicts import TITLES, closing, verdict
from vmp.guest.kernel import name_kernel
from vmp.guest.offered import only, policies
from vmp.guest.sources import KERNEL_HELP
from vmp.guest.steps import measure, step

THREADS = "tools/ab --workload threads --zram 3G --slices 20 --warmup 5"
VM = "tools/ab --zram 512M --memory 64M"
PRESSURE = "tools/ab --workload pressure --lru mglru --stalls --slices 40 --seconds 3"
DISK = "2G:2000"  # what pressure keeps its file on
GUEST_TIMEOUT = 1500  # seconds
COUNTED_TIMEOUT = 900


def commands(offered: dict[str, list[str]]) -> dict[str, str]:
    """Return the runs with several CPUs, by name, for a kernel with these points and policies."""
    old = "v6.12" if "v6.12" in offered["scan"] else "stock"
    return {
        "threads": f"{THREADS} --lru mglru",
        "threads-1g": f"{THREADS} --lru mglru --memory 1G",
        "threads-classic": f"{THREADS} --lru classic",
        "mglru": f"{VM} --lru mglru --slices 24",
        "scan": f"{PRESSURE} --a scan={old} --b scan=budget,aging=continue",
    }


def counted(offered: dict[str, list[str]]) -> dict[str, str]:
    """Return the runs whose instructions are counted."""
    trace = f"{VM} --lru mglru --a trace=0 --b trace=1 --set {only(ALL, offered)} "
    trace += f"--functions {large.LIMIT} --slices 20 --seconds 0.4 --warmup 0.5"
    # Elsewhere the kernel handles large folios in batches by itself.
    return {"trace": trace} | (large.COMMANDS if large.POINTS <= set(offered) else {})


def recorded(offered: dict[str, list[str]]) -> str:
    """Return the run to record: shorter, as single events are to be seen, no small differences."""
    sides = f"--a {only(STOCK, offered)} --b {only(ALL, offered)}"
    return f"{VM} --lru mglru {sides} --slices 24 --seconds 1 --stalls"


def where(shown: Path) -> str:
    """Return what is left behind, and how to look at it."""
    return (
        f"Saved in {shown}/: the tables and their JSON, and of a run of its own\n"
        f"  {shown}/report.html  the figures as plots: open it in a browser\n"
        f"  {shown}/trace.dat    every event: tools/shark {shown}/trace.dat, or\n"
        f"  {' ' * len(str(shown))}              trace-cmd report {shown}/trace.dat"
    )


def arguments(parser: Parser) -> None:
    """Tell the parser what it takes, and how long."""
    parser.add_argument(
        "--kernel", metavar="V", help=f"{KERNEL_HELP}, or a built kernel's directory"
    )
    parser.epilog = "Takes about fifteen minutes once the kernel is built."


def saved(directory: Path, runs: Mapping[str, str]) -> dict[Path, str]:
    """Return commands of ab by the file that each is to save its result in."""
    files = {directory / f"{name}.json": run for name, run in runs.items()}
    return {path: f"{run} --json {path} >/dev/null" for path, run in files.items()}


def load(out: Path, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the reports of runs, by name."""
    return {name: json.loads((out / f"{name}.json").read_text()) for name in names}


def run(args: argparse.Namespace) -> int:
    """Build, run the guest, print the tables and the verdict."""
    name_kernel(args.kernel)
    out = OUT / time.strftime("demo-%Y%m%d-%H%M%S")
    out.mkdir(parents=True)
    shown = out.relative_to(REPO)
    step("building kernel and module (some minutes the first time)", ["tools/kernel", "module"])
    offered = policies()
    runs = saved(shown, commands(offered)) | saved(shown, {"recorded": recorded(offered)})
    last = shown / "recorded.json"
    runs[last] = f"tools/record -o {shown}/trace.dat -- {runs[last]}"
    guest = ["--cpus", "4", "--memory", "2G", "--disk", DISK]
    measure("measuring and recording in a guest, ten minutes", guest, runs, GUEST_TIMEOUT)
    guest = ["--icount", "--cpus", "1"]
    runs = saved(shown, counted(offered))
    measure("counting instructions in a guest, three minutes", guest, runs, COUNTED_TIMEOUT)
    reports = load(out, TITLES)
    held, verdicts = [], []
    for name, report in reports.items():
        text = render(report)
        (out / f"{name}.txt").write_text(text + "\n")
        print(f"== {TITLES[name]} ==\n{text}\n")
        results, lines = verdict(name, report)
        held += results
        verdicts.append(lines)
    if large_too := large.POINTS <= set(offered):
        results, lines = large.table(load(out, large.COMMANDS))
        held += results
        verdicts.append(lines)
    summary = "\n".join([*verdicts, "", closing(reports, held, large_too)])
    (out / "summary.txt").write_text(summary + "\n")
    page = [f"{shown}/{name}" for name in ("trace.dat", *(f"{n}.json" for n in TITLES))]
    page.append(f"{shown}/recorded.json")
    step("making the report", ["tools/report", "-o", f"{shown}/report.html", *page])
    print(f"{summary}\n\n{where(shown)}", flush=True)
    return 0


COMMAND = Command(
    "demo",
    "Show what the policies cost and save: in one guest, each against stock under one workload.",
    arguments,
    run,
)
