# SPDX-License-Identifier: GPL-2.0
"""A recording of a run in the guest: what the report makes of it agrees with the counters."""

import json
from pathlib import Path
from typing import Any

from vmp.ab.workloads import ALL, STOCK
from vmp.common import OUT, REPO, Failure, run
from vmp.guest.kernel import build_kernel
from vmp.guest.offered import only, policies
from vmp.testing.guest_tests import vm_succeeds
from vmp.testing.results import Report

TOOLS = REPO / "tools"
# Slices long enough for what goes on while ab reads its counters at their ends to be little.
RUN = "tools/ab --zram 512M --memory 64M --lru mglru --slices 4 --seconds 12 --primary="
LARGE = 1000  # what a difference of 1 % is a whole number of
# One pass may be of thousands of pages, and end while ab reads its counters.
LUMPS = ("scan.budget", "scan.scanned", "writeback.taken")
MARGIN = 1  # percent: ab reads its counters one after another while reclaim goes on


def record(kernel: Path) -> tuple[Path, Path]:
    """Record a run of tools/ab in the guest; return the recording and ab's JSON."""
    trace, ab = OUT / "test-trace.dat", OUT / "test-ab.json"
    for path in (trace, ab):
        path.unlink(missing_ok=True)
    command = ["tools/record", "--strict", "--buffer", "32M", "-o", str(trace.relative_to(REPO))]
    offered = policies("--kernel", str(kernel))
    sides = ["--a", only(STOCK, offered), "--b", only(ALL, offered)]
    command += ["--", *RUN.split(), *sides, "--json", str(ab.relative_to(REPO))]
    vm_succeeds(["--kernel", kernel, "--cpus", "4", "--", *command], OUT / "test-record.log")
    return trace, ab


def report_on(trace: Path, ab: Path) -> dict[str, Any]:
    """Return the figures that tools/report computes from the two."""
    figures = OUT / "test-figures.json"
    page = OUT / "test-report.html"
    run([TOOLS / "report", "-o", page, "--json", figures, trace, ab], "making the report")
    found: dict[str, Any] = json.loads(figures.read_text())
    return found


def compare(figures: dict[str, Any]) -> None:
    """Raise Failure where the recording disagrees with the module's or with ab's counters."""
    recording = figures["recording"]
    if recording["lost_events"] or recording["gaps_of_unknown_size"]:
        raise Failure("events were lost: there is nothing to compare with")
    wrong = [
        f"{row['figure']}: recorded {row['trace']}, the module counted {row['counted']}"
        for row in recording["compared"]
        if row["trace"] != row["counted"]
    ]
    for side, rows in figures["runs"][0]["compared"].items():
        wrong += [
            f"{row['figure']}, slices of {side}: recorded {row['trace']}, ab has {row['counted']}"
            for row in rows
            if row["counted"] >= LARGE
            and row["figure"] not in LUMPS
            and abs(row["percent"]) > MARGIN
            and abs(row["trace"] - row["counted"]) > row["edges"]
        ]
    compared = {row["figure"] for row in recording["compared"]}
    wrong += [f"no {name} was compared" for name in ("flush.deferred", "scan.scanned")
              if name not in compared]  # fmt: skip
    if wrong:
        raise Failure("\n".join(wrong))


def count_spans(trace: Path, figures: dict[str, Any]) -> None:
    """Raise Failure where KernelShark's plugin pairs other spans than there are."""
    built = OUT / "kernelshark"
    run(["make", "-s", "-C", TOOLS / "kernelshark", f"OUT={built}"], "building the plugin")
    text = run([built / "count", built / "plugin-vmscan_policy.so", trace], "counting spans")
    whole = figures["recording"]["whole"]
    agings = sum(whole.get(f"aging.{name}", 0) for name in ("sync", "failed"))
    wanted = {"flush_batch": whole["flush.batches"], "scan": whole["scan.passes"], "aging": agings}
    for kind, number in wanted.items():
        if f"{kind} {number} spans, 0 open, 0 without begin" not in text:
            raise Failure(f"not {number} spans of {kind}, all closed:\n{text}")


def run_all(report: Report, _full: bool, kernel: str) -> None:
    """Record a run, and compare the figures of the report and the spans of the plugin."""
    trace, ab = record(build_kernel(kernel, "plain"))
    figures = report_on(trace, ab)
    with report.check("the recording agrees with the module's counters and with ab's"):
        compare(figures)
    with report.check("KernelShark's plugin finds each span"):
        count_spans(trace, figures)
