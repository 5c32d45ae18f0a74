# SPDX-License-Identifier: GPL-2.0
"""On stock kernels of Debian's, booted as Debian boots: the hooks as a livepatch."""

import re
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from vmp.common import OUT, REPO, Failure
from vmp.guest import bpf
from vmp.guest.debian import Installation, copy_checkout, inside, install, run_script
from vmp.guest.kernel import build_kernel
from vmp.guest.qemu import Machine
from vmp.guest.sources import find_version
from vmp.guest.suite import prepare
from vmp.livepatch.image import extract, list_symbols, read_notes
from vmp.programs import compile_workloads
from vmp.testing import livepatch_tests
from vmp.testing.results import Report

SCRIPTS = REPO / "tools" / "tests" / "debian"
PLACE = "root/vmscan-policy"  # of the checkout in the tree
# To build there. A guest is emulated, and compiles for a quarter of an hour what takes half a
# minute here.
BUILD = ("build-essential", "libelf-dev", "pahole", "quilt", "xz-utils")
# For the guest tests.
TOOLS = ("bpftool", "dmsetup", "e2fsprogs", "fio", "mount", "trace-cmd", "xfsprogs")
GUEST_TESTS = "debian-13"  # where these run


class Stock(NamedTuple):
    """A kernel of Debian's."""

    image: str
    headers: str
    rounds: int  # so often the livepatch comes and goes


# By the name of an installation.
KERNELS = {
    "debian-13": Stock("linux-image-cloud-amd64", "linux-headers-cloud-amd64", 10),
    "debian-13-generic": Stock("linux-image-amd64", "linux-headers-amd64", 3),
    "debian-13-backports": Stock(
        "linux-image-cloud-amd64/trixie-backports",
        "linux-headers-cloud-amd64/trixie-backports",
        10,
    ),
}
TIMEOUT = 1500  # seconds
ALONE = Machine(1, "2G", icount=True)  # its clocks count the instructions of one CPU
COST = "cost: "  # how a line with figures begins
Files = livepatch_tests.Files


def build(machine: Installation, described: Path) -> Path:
    """Build a livepatch for a guest in the tree that its disk was made of."""
    place = machine.tree / PLACE
    shutil.rmtree(place, ignore_errors=True)
    copy_checkout(place)
    shutil.copytree(described, place / "described", dirs_exist_ok=True)
    inside(machine.tree, "apt-get", "update")
    built = inside(machine.tree, f"/{PLACE}/tools/livepatch", "build", "--described",
                   f"/{PLACE}/described")  # fmt: skip
    return machine.tree / built.strip().lstrip("/")


def same_symbols(image: Path, described: Path) -> None:
    """Raise Failure where a kernel's image tells other notes or symbols than the running kernel."""
    with tempfile.TemporaryDirectory() as name:
        binary = Path(name) / "vmlinux"
        extract(image, binary)
        told, notes = list_symbols(binary.read_bytes()), read_notes(binary)
    # The kernel may be anywhere; what belongs to a CPU has small numbers, and stays.
    here, there = (
        [(int(at, 16), kind, name) for at, kind, name in map(str.split, text.splitlines())]
        for text in (told, re.sub(r".*\[.*\n", "", (described / "kallsyms").read_text()))
    )
    moved = {b[0] - a[0] for a, b in zip(here, there, strict=False) if a[0] >> 32}
    if (
        notes != (described / "notes").read_bytes()
        or len(moved) != 1
        or [symbol[1:] for symbol in here] != [symbol[1:] for symbol in there]
    ):
        raise Failure(f"{image} tells {len(here)} symbols, and there are {len(there)}")


def modules(paths: Iterable[Path], place: str) -> Files:
    """Return files as a guest gets them, below `place`."""
    return {f"{place}/{path.name}": path for path in paths if path.is_file()}


def come_and_go(name: str, kernel: Stock, program: Path, log: Path) -> tuple[Installation, Files]:
    """Bring the hooks and take them out; returns the guest, and the files of the livepatch.

    The `program` is a policy, which finds its place in the types of any kernel.
    """
    machine = install(name, "trixie", kernel.image, kernel.headers, *BUILD, *TOOLS)
    described = run_script(machine, SCRIPTS / "describe.sh", log, TIMEOUT, {})
    same_symbols(machine.kernel, described)
    built = build(machine, described)
    files = modules(built.iterdir(), f"cache/vmscan-policy/livepatch/{built.name}")
    rounds = OUT / f"{name}.rounds"
    rounds.write_text(f"{kernel.rounds}\n")
    given = {**files, "rounds": rounds, program.name: program}
    run_script(machine, SCRIPTS / "livepatch.sh", log, TIMEOUT, given)
    return machine, files


def measure_cost(report: Report, name: str, machine: Installation, files: Files) -> None:
    """Print what the livepatch costs reclaim while all policies are stock, in instructions."""
    log = OUT / f"test-{name}-cost.log"
    with report.check(f"{name}: the cost of the livepatch is counted"):
        run_script(machine, SCRIPTS / "cost.sh", log, TIMEOUT, files, ALONE)
        told = [line for line in log.read_text().splitlines() if line.startswith(COST)]
        for line in told:
            report.note(f"{name}: {line.removeprefix(COST)}")
        if not told:
            raise Failure(f"no figures were printed: {log}")


def build_faults(machine: Installation) -> Files:
    """Build the faulty modules that guest tests need, against what build() has built."""
    faults = machine.tree / "root" / "faults"
    shutil.rmtree(faults, ignore_errors=True)
    script = (SCRIPTS / "faults.py").relative_to(REPO)
    inside(machine.tree, f"/{PLACE}/{script}", f"/{PLACE}/described", "/root/faults")
    files: Files = {}
    for directory in faults.iterdir():
        files |= modules(directory.glob("*.ko"), f"faults/{directory.name}")
    return files


def run_all(report: Report, _full: bool, kernel: str) -> None:
    """Bring the hooks into each kernel, switch policies under load, and take the hooks out."""
    program = bpf.build_programs(build_kernel(kernel, "bpf"), bpf.SAMPLES) / "half.bpf.o"
    for name, stock in KERNELS.items():
        files: Files = {}
        with report.check(f"{name}: the hooks come and go under load, and leave nothing"):
            machine, files = come_and_go(name, stock, program, OUT / f"test-{name}.log")
        if not files:
            continue
        measure_cost(report, name, machine, files)
        if name == GUEST_TESTS:
            prepare(find_version(kernel))
            compile_workloads()
            livepatch_tests.run_all(report, name, machine, files | build_faults(machine))
