# SPDX-License-Identifier: GPL-2.0
"""All policies, each against stock under one workload, in one guest with a kernel built here."""

import time
from collections.abc import Mapping
from pathlib import Path
from textwrap import fill

from vmp.common import OUT, REPO
from vmp.control.needs import BROADCAST
from vmp.demo.goals import (
    GOALS,
    INTERRUPTS,
    LARGE,
    LARGE_POINTS,
    TITLES,
    commands,
    counted,
    recorded,
)
from vmp.guest.kernel import decide
from vmp.guest.offered import policies
from vmp.guest.steps import measure, step
from vmp.result.file import load_run
from vmp.result.model import Result
from vmp.result.table import render

DISK = "2G:2000"  # what pressure keeps its file on
GUEST_TIMEOUT = 1500  # seconds
COUNTED_TIMEOUT = 900


def where(shown: Path) -> str:
    """Return what is left behind, and how to look at it."""
    return (
        f"Saved in {shown}/: the tables and their JSON, and of a run of its own\n"
        f"  {shown}/report.html  the figures as plots: open it in a browser\n"
        f"  {shown}/trace.dat    every event: tools/shark {shown}/trace.dat, or\n"
        f"  {' ' * len(str(shown))}              trace-cmd report {shown}/trace.dat"
    )


def saved(directory: Path, runs: Mapping[str, str]) -> dict[Path, str]:
    """Return commands of ab by the file that each is to save its result in."""
    files = {directory / f"{name}.json": run for name, run in runs.items()}
    return {path: f"{run} --json {path} >/dev/null" for path, run in files.items()}


def judged(name: str, result: Result) -> tuple[list[bool], str]:
    """Return which goals of a run hold, and the lines that say so.

    Where no CPU is interrupted for a flush, there is nothing to say of interrupts.
    """
    none = INTERRUPTS if BROADCAST in result.lacks else ()
    goals = [goal for goal in GOALS if goal.run == name and goal.key not in none]
    rows = [result.row(goal.key) for goal in goals]
    lines = [goal.told(row) for goal, row in zip(goals, rows, strict=True)]
    held = [goal.holds(row) for goal, row in zip(goals, rows, strict=True) if goal.kind]
    return held, "\n".join([f"{TITLES[name]}:", *lines])


def closing(held: list[bool], first: Result, *, large: bool) -> str:
    """Return the sentences at the end; `large` folios were measured, too."""
    more = "Reclaim of large folios was measured page by page and in batches. " if large else ""
    more += f"{BROADCAST} " if BROADCAST in first.lacks else ""
    text = (
        "Eight threads of one process write at random to twice the memory that their cgroup has, "
        "and so swap all the time. Stock reclaim flushes other CPUs' TLBs before the pageout of "
        "each page that another CPU could still write to; the batch policy flushes once for many. "
        "The processes of stress-ng share no memory, so that stock needs fewer flushes. The budget "
        "policy settles once a pass how much to scan, and ends when it has enough. "
        f"{more}Instructions are counted on one CPU: cache misses and interrupts to others are "
        f"not in them. All on Linux {first.kernel()}, guests with "
        f"{first.environment['cpus']} CPUs. Each workload was started once, and ran on while its "
        "policy was switched."
    )
    return f"{fill(text, 100)}\n{sum(held)} of {len(held)} goals reached, {held.count(False)} not."


def run(name: str) -> int:
    """Build, run the guest, print the tables and the verdict."""
    kernel = ["--kernel", decide(name)]
    out = OUT / time.strftime("demo-all-%Y%m%d-%H%M%S")
    out.mkdir(parents=True)
    shown = out.relative_to(REPO)
    step(
        "building kernel and module (some minutes the first time)",
        ["tools/kernel", "module", *kernel],
    )
    offered = policies(*kernel)
    runs = saved(shown, commands(offered)) | saved(shown, {"recorded": recorded(offered)})
    last = shown / "recorded.json"
    runs[last] = f"tools/record -o {shown}/trace.dat -- {runs[last]}"
    guest = [*kernel, "--cpus", "4", "--memory", "2G", "--disk", DISK]
    measure("measuring and recording in a guest, ten minutes", guest, runs, GUEST_TIMEOUT)
    guest = [*kernel, "--icount", "--cpus", "1"]
    runs = saved(shown, counted(offered))
    measure("counting instructions in a guest, three minutes", guest, runs, COUNTED_TIMEOUT)
    large = set(offered) >= LARGE_POINTS
    results = {
        name: load_run(out / f"{name}.json") for name in TITLES if large or name not in LARGE
    }
    held, verdicts = [], []
    for name, result in results.items():
        text = render(result)
        (out / f"{name}.txt").write_text(text + "\n")
        print(f"== {TITLES[name]} ==\n{text}\n")
        goals, lines = judged(name, result)
        held += goals
        verdicts.append(lines)
    summary = "\n".join([*verdicts, "", closing(held, results["threads"], large=large)])
    (out / "summary.txt").write_text(summary + "\n")
    page = [
        f"{shown}/{name}"
        for name in ("trace.dat", *(f"{n}.json" for n in results if n not in LARGE))
    ]
    page.append(f"{shown}/recorded.json")
    step("making the report", ["tools/report", "-o", f"{shown}/report.html", *page])
    print(f"{summary}\n\n{where(shown)}", flush=True)
    return 0
