# SPDX-License-Identifier: GPL-2.0
"""`make demo` from nothing, in a Debian that has nothing but apt: how long, and how much."""

import resource
import shutil
from pathlib import Path

from vmp.common import OUT, Failure, run
from vmp.demo.command import PAGE, RESULT, VERDICT
from vmp.guest.bootstrap import bootstrap
from vmp.guest.debian import DEBIAN, copy_checkout, entered
from vmp.result.file import load_run
from vmp.testing.results import Report
from vmp.testing.terminal import record, said, when

SUITES = {"debian-12": "bookworm", "debian-13": "trixie"}
PLACE = "root/vmscan-policy"
FIRST = r"^ +2  flush=batch"  # the line of the second slice: there is something to compare
INTERRUPTED = 130
MIB = 1 << 20


def bare(name: str, suite: str) -> Path:
    """Return a tree of a suite with nothing but apt and what that needs, and the checkout."""
    tree = DEBIAN / name
    shutil.rmtree(tree, ignore_errors=True)
    bootstrap(suite, tree, f"making {name}", "--variant=minbase")
    copy_checkout(tree / PLACE)
    return tree


def received() -> int:
    """Return the bytes that this machine has received."""
    paths = Path("/sys/class/net").glob("[ew]*/statistics/rx_bytes")
    return sum(int(path.read_text()) for path in paths)


def disk_use(tree: Path) -> int:
    """Return what a tree takes on the disk, in MiB."""
    return int(run(["du", "-sxm", tree], "reading the disk's use").split()[0])


def cpu_seconds() -> float:
    """Return what the programs that have ended took."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(tree: Path, number: int) -> Path:
    """Return the directory with what the run of that number has left; checks what is in it."""
    found = sorted((tree / PLACE / "out").glob("demo-*"))
    if len(found) != number:
        raise Failure(f"{len(found)} runs have left something, and not {number}")
    result = load_run(found[-1] / RESULT)
    text = (found[-1] / VERDICT).read_text()
    if "<svg" not in (found[-1] / PAGE).read_text() or f"{result.pairs} pairs" not in text:
        raise Failure(f"{found[-1]} has no picture, or another verdict:\n{text}")
    return found[-1]


def from_nothing(report: Report, name: str, tree: Path) -> None:
    """Do what a newcomer does, and report what it took."""
    cast = OUT / f"{name}.cast"
    script = "apt-get update -q && apt-get install -y -q --no-install-recommends make && "
    script += f"cd /{PLACE} && make demo"
    before, got, used = disk_use(tree), received(), cpu_seconds()
    status = record(entered(tree, "sh", "-c", script), "make demo", cast)
    text = said(cast)
    if status or "Verdict: flush=batch saves" not in text:
        raise Failure("\n".join([f"{cast}: status {status}", *text.splitlines()[-20:]]))
    measured(tree, 1)
    report.note(
        f"{name}: first figure after {when(cast, FIRST):.0f} s, verdict after "
        f"{when(cast, '^Verdict'):.0f} s, {cpu_seconds() - used:.0f} s of CPUs; at most "
        f"{(received() - got) / MIB:.0f} MiB received, {disk_use(tree) - before} MiB on the disk"
    )
    report.say(*text[text.rindex("flush=batch beside") :].splitlines()[:5])


def interrupted(name: str, tree: Path) -> None:
    """Have Ctrl-C end a second run, which leaves what there is."""
    cast = OUT / f"{name}-interrupted.cast"
    command = entered(tree, f"/{PLACE}/tools/demo")
    status = record(command, "tools/demo", cast, stop=r"^ +5  flush=stock")
    left = measured(tree, 2)
    ended = load_run(left / RESULT).ended
    if status != INTERRUPTED or ended not in said(cast) or not ended:
        raise Failure(f"{cast}: status {status}, '{ended}' in {left}")


def run_all(report: Report, _full: bool, _kernel: str) -> None:
    """Run the demo from nothing on each release of Debian, with the kernel that is that's own."""
    OUT.mkdir(exist_ok=True)
    for name, suite in SUITES.items():
        tree = Path()
        with report.check(f"{name}: make demo, from nothing to the verdict"):
            tree = bare(f"{name}-bare", suite)
            from_nothing(report, name, tree)
        with report.check(f"{name}: Ctrl-C leaves what there is"):
            interrupted(name, tree)
        if tree != Path():
            shutil.rmtree(tree)
