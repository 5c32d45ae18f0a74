# SPDX-License-Identifier: GPL-2.0
"""Builds with one thing left out or wrong at a time: a test has to catch each."""

import re
import time
import tomllib
from collections.abc import Collection
from dataclasses import dataclass
from fnmatch import fnmatchcase

from vmp.common import OUT, REPO, Failure, Usage, Words
from vmp.guest.command import SPLAT
from vmp.guest.hooks import hook_patches
from vmp.guest.kernel import build_kernel
from vmp.guest.log import STALE_BREAKPOINT
from vmp.guest.module import Edit, build_edited_kernel, build_module
from vmp.guest.offered import policies
from vmp.guest.sources import Version, find_version
from vmp.guest.suite import GUEST, PATIENCE, prepare, vm
from vmp.programs import compile_workloads
from vmp.testing.guest_tests import KUNIT, SEVERAL, judge_kunit, kunit_log, names, settings
from vmp.testing.results import Report


@dataclass(frozen=True)
class Mutant(Edit):
    """An edit of the module, or of a patched file of the kernel, that `test` has to catch."""

    test: str = "kunit"
    debug: bool = False  # on the debug kernel
    series: str = ""  # the only one on which it has an effect
    machine: str = ""  # likewise, as uname names it

    @property
    def variant(self) -> str:
        """Return that of the kernel which its test needs."""
        return "bpf" if self.test in names("bpf") else "debug" if self.debug else "plain"

    @property
    def in_kernel(self) -> bool:
        """Tell if the kernel has to be built for it, not the module alone."""
        return self.path.startswith("mm/")


# Files whose code runs only where a kernel has the point.
OF_POINT = {"module/writeback.c": "writeback"}
FILE = REPO / "tools" / "tests" / "mutants.toml"
MUTANTS = [Mutant(**table) for table in tomllib.loads(FILE.read_text())["mutant"]]


def kunit_case(text: str) -> str:
    """Return the suite or case that failed last in the parser's words: the outermost.

    Raises Failure when none did: then it had nothing to judge, and has caught nothing.
    """
    found = re.findall(r"\[FAILED\] (.*)", text)
    if not found:
        raise Failure(text)
    return str(found[-1]).strip()


def several(test: str) -> list[str]:
    """Return what a guest with several nodes is started with, [] for a test that has one."""
    return next((options for group, *options in SEVERAL.values() if test in names(group)), [])


def caught_by(mutant: Mutant, name: str) -> str:
    """Build a mutant of a kernel and run its test; return what caught it, '' if nothing has."""
    kernel = build_kernel(name, mutant.variant)
    edits = () if mutant.in_kernel else (mutant,)
    module = build_module(kernel, *edits)
    words = settings(kernel, "mutant", [mutant.test], False, *edits)
    booted = build_edited_kernel(kernel, mutant) if mutant.in_kernel else kernel
    options: Words = ["--kernel", booted, "--module", module, "--disk", "2G:1000", *PATIENCE]
    options += several(mutant.test)
    said = kunit_log("mutant", mutant.test)
    said.unlink(missing_ok=True)
    log = OUT / f"test-mutant-{mutant.name}.log"
    status, text = vm([*options, "--", "env", *words, GUEST / "run", mutant.test], log)
    if skipped := re.search(r"^ok 1 - \S+ # SKIP.*", text, re.MULTILINE):
        raise Failure(skipped[0])
    if re.search(rf"^not ok 1 - {mutant.test}$", text, re.MULTILINE):
        return mutant.test
    if status == SPLAT:
        return f"the kernel's log in {mutant.test}"
    if mutant.test in KUNIT and not status:
        try:
            judge_kunit(kernel, said)
        except Failure as failure:
            return f"{mutant.test}: {kunit_case(str(failure))}"
    if status == STALE_BREAKPOINT or not re.search(r"^ok 1 - ", text, re.MULTILINE):
        raise Failure(f"tools/vm ended with status {status}: {log}")
    return ""


def named(pattern: str) -> list[Mutant]:
    """Return the mutants whose names a shell's pattern matches; raises Usage if none does."""
    found = [mutant for mutant in MUTANTS if fnmatchcase(mutant.name, pattern)]
    if not found:
        raise Usage(f"no mutant is called '{pattern}': {FILE.relative_to(REPO)} has them all")
    return found


def useless(mutant: Mutant, version: Version, offered: Collection[str], patches: str) -> str:
    """Return why no test can catch a mutant on a kernel, which has these points; '' if one can."""
    architecture = version.architecture
    point = OF_POINT.get(mutant.path)
    if point and point not in offered:
        return f"this kernel has no {point} point"
    if mutant.in_kernel and f"+++ b/{mutant.path}\n" not in patches:
        return f"the series has no {mutant.path}"
    if mutant.series and mutant.series != version.series:
        return f"only {mutant.series} needs what it leaves out"
    if mutant.machine and mutant.machine != architecture.machine:
        return f"only guests of {mutant.machine} show what it does"
    if mutant.variant == "bpf" and not architecture.native:
        return "bpftool is this machine's"
    if "--slow-node" in several(mutant.test) and not architecture.hmat:
        return "no table of this architecture tells the kernel of slow memory"
    return ""


def run_all(report: Report, _full: bool, kernel: str) -> None:
    """Check that each mutant is caught, and print the table."""
    run_some(report, kernel, MUTANTS)


def run_some(report: Report, kernel: str, mutants: list[Mutant]) -> None:
    """Check that each of some mutants is caught, and print the table."""
    version = find_version(kernel)
    prepare(version)
    compile_workloads(version.architecture.machine)
    offered = policies("--kernel", kernel)
    patches = "".join(patch.read_text() for patch in hook_patches(version.series))
    rows = []
    for mutant in mutants:
        if why := useless(mutant, version, offered, patches):
            report.skip(f"mutant {mutant.name}", why)
            continue
        start = time.monotonic()
        by = ""
        with report.check(f"mutant {mutant.name}"):
            by = caught_by(mutant, kernel)
            if not by:
                raise Failure(f"it survives {mutant.test}")
        rows.append((mutant.name, by or "-", f"{time.monotonic() - start:.0f}"))
    width = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
    report.note(f"{'mutant':{width[0]}}  {'caught by':{width[1]}}  seconds")
    for name, by, seconds in rows:
        report.note(f"{name:{width[0]}}  {by:{width[1]}}  {seconds:>7}")
