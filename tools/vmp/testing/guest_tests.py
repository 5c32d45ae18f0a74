# SPDX-License-Identifier: GPL-2.0
"""KUnit and the guest tests, on a plain and on a debug kernel."""

import re
import subprocess
import time
from pathlib import Path

from vmp.common import OUT, Failure, Words, run
from vmp.guest.bpf import build_test_programs
from vmp.guest.kernel import build_kernel, kernel_architecture, kernel_inputs, kernel_version
from vmp.guest.log import STALE_BREAKPOINT
from vmp.guest.module import Edit, build_module, build_samples
from vmp.guest.patched import source
from vmp.guest.suite import (
    DEBUG_SCALE,
    GUEST,
    GUESTS,
    PATIENCE,
    prepare,
    programs_of,
    tail,
    vm,
    vm_once,
)
from vmp.programs import compile_workloads
from vmp.testing.faults import NEEDED
from vmp.testing.results import Report

STARTED = "KTAP version 1"  # what tests/guest/run says first
KTAP = re.compile(r"^(not )?ok \d+ - (.*)$")
KUNIT = ("kunit", "kunit-slow")  # tests whose KUnit cases are judged on the host
SAMPLED = {"plugins", "torture"}  # tests that load modules of tools/samples
# Guests of several nodes: a group of tests that needs them, and options of tools/vm.
SEVERAL = {
    "2 nodes": ("numa", "--numa", "2"),
    "4 nodes": ("numa", "--numa", "4"),
    "slow node": ("demote", "--numa", "2", "--slow-node"),
}


def vm_succeeds(arguments: list[str | Path], log: Path) -> None:
    """Run tools/vm; raise Failure when it fails."""
    status, text = vm(arguments, log)
    if status:
        raise Failure(f"tools/vm ended with status {status}: {log}\n{tail(text)}")


class GuestResults:
    """Reports each test of a guest when it has ended, from the lines that the guest says."""

    def __init__(self, report: Report, label: str) -> None:
        """Begin with a guest."""
        self.report = report
        self.label = label
        self.comments: list[str] = []
        self.ended = self.failed = 0

    def tell(self, line: str) -> None:
        """Take the next line."""
        result = KTAP.match(line)
        if line.startswith("# "):
            self.comments.append(line[2:])
        elif result:
            self.add(result[2], bool(result[1]))
            self.ended += 1
            self.comments = []

    def add(self, name: str, failed: bool) -> None:
        """Report a test that has ended."""
        comments = self.comments
        if name.endswith(" # SKIP"):
            name = name.removesuffix(" # SKIP")
            # the last line is how long it took
            self.report.skip(f"{self.label}: {name}", "; ".join(comments[:-1]))
            return
        self.failed += failed
        last = comments[-1] if comments else ""
        took = re.fullmatch(rf"{re.escape(name)}: (\d+) s", last)
        why = "\n".join(comments) if failed else None
        self.report.add(f"{self.label}: {name}", why, float(took[1]) if took else None)


def names(group: str) -> list[str]:
    """Return the names of the guest tests of a group, or of "all"."""
    return run([GUEST / "run", "--list", group], "listing the guest tests").split()


def kunit_log(label: str, test: str) -> Path:
    """Return the file that gets what KUnit says in a guest test, one of KUNIT."""
    return OUT / f"test-kunit-{label}-{test}.log"


def judge_kunit(kernel: Path, log: Path) -> None:
    """Have the kernel's own parser judge what KUnit has said; raise Failure if a case failed."""
    parser = source(kernel_version(kernel)) / "tools" / "testing" / "kunit" / "kunit.py"
    command = ["python3", str(parser), "parse", str(log)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    counts = re.search(r"Testing complete\. (.*)", done.stdout)
    if done.returncode or not counts or "passed: 0" in counts[1]:
        failed = re.findall(r".*\[FAILED\].*|.*\[ERROR\].*", done.stdout)
        raise Failure("\n".join([f"kunit.py parse {log}", *failed[:20]]))


def settings(kernel: Path, label: str, tests: list[str], full: bool, *edits: Edit) -> list[str]:
    """Return the environment of a guest that runs some tests, as words for env.

    The faulty modules that they need have the `edits`, too.
    """
    programs = programs_of(kernel_architecture(kernel))
    words = [f"VMP_TEST_BIN={programs}", f"VMP_KUNIT_LOG={OUT}/test-kunit-{label}"]
    words += ["VMP_FULL=1"] if full else []
    variant = kernel_inputs(kernel)["variant"]
    words += [f"VMP_SCALE={DEBUG_SCALE}"] if variant.endswith("debug") else []
    words += [f"VMP_SAMPLES={build_samples(kernel)}"] if SAMPLED & {*tests} else []
    words += [f"VMP_BPF={build_test_programs(kernel)}"] if variant == "bpf" else []
    needed = dict.fromkeys(NEEDED[test] for test in tests if test in NEEDED)
    return words + [f"{fault.variable}={build_module(kernel, fault, *edits)}" for fault in needed]


def guest_suite(
    report: Report, label: str, kernel: Path, tests: list[str], full: bool, *options: str
) -> None:
    """Run guest tests in a guest, with further options of tools/vm, and report each.

    Another guest goes on after a test that fails, or that ends the guest. So it does where QEMU
    has lost the guest, at the test that had not ended.
    """
    version = kernel_version(kernel)
    prepare(version)
    compile_workloads(version.architecture.machine)  # a guest would be slow at it
    words = ["VMP_STOP=1", *settings(kernel, label, tests, full)]
    for test in KUNIT:
        kunit_log(label, test).unlink(missing_ok=True)
    words_vm: Words = ["--kernel", kernel, "--cpus", "4", "--disk", "2G:1000", *PATIENCE, *options]
    left = tests
    start = time.monotonic()
    unclean: list[str] = []
    for number in range(1, GUESTS + 1):
        log = OUT / f"test-guest-{label}-{number}.log"
        results = GuestResults(report, label)
        command: Words = [*words_vm, "--", "env", *words, GUEST / "run", *left]
        status, text = vm_once(command, log, results.tell)
        ended, failed = results.ended, results.failed
        reason = f"tools/vm ended with status {status}: {log}\n{tail(text)}"
        if status == STALE_BREAKPOINT:
            left, why = left[ended:] or left[-1:], "QEMU lost the guest"
        elif failed or ended == len(left):
            unclean += [] if status == bool(failed) else [reason]
            left, why = left[ended:], f"{left[ended - 1]} has failed"
        elif STARTED in text:
            report.add(f"{label}: {left[ended]}", reason)
            left, why = left[ended + 1 :], f"{left[ended]} has ended the guest"
            unclean.append(f"{why}: {log}")
        else:
            unclean.append(reason)
            break
        if not left:
            break
        if number < GUESTS:
            report.note(f"{label}: {why} ({log}): another goes on at {left[0]}")
    if left:
        unclean.append(f"these were not run: {', '.join(left)}")
    for test in [test for test in tests if test in KUNIT]:
        with report.check(f"{label}: the KUnit cases of {test}"):
            judge_kunit(kernel, kunit_log(label, test))
    report.add(
        f"{label}: each guest ran to its end with a clean kernel log",
        "\n".join(unclean) or None,
        time.monotonic() - start,
    )


def run_slow(report: Report, full: bool, kernel: str) -> None:
    """Run the guest tests that mostly wait for a disk, on the plain kernel."""
    guest_suite(report, "slow", build_kernel(kernel, "plain"), names("slow"), full)


def run_plain(report: Report, full: bool, kernel: str) -> None:
    """Run KUnit and the other guest tests on the plain kernel, also with several nodes."""
    built = build_kernel(kernel, "plain")
    groups = {"slow", *(group for group, *_ in SEVERAL.values())}
    other = {name for group in groups for name in names(group)}
    tests = [name for name in names("all") if name not in other] if full else names("plain")
    guest_suite(report, "plain", built, tests, full)
    for label, (group, *options) in SEVERAL.items():
        if "--slow-node" in options and not kernel_architecture(built).hmat:
            report.skip(label, "no table of this architecture tells the kernel of slow memory")
            continue
        guest_suite(report, label, built, names(group), full, *options)


def run_debug(report: Report, full: bool, kernel: str) -> None:
    """Run KUnit and guest tests on the kernel with sanitizers and lock checking."""
    tests = names("all" if full else "debug")
    guest_suite(report, "debug", build_kernel(kernel, "debug"), tests, full)


def run_bpf(report: Report, full: bool, kernel: str) -> None:
    """Run the guest tests of policies that are BPF programs, on a kernel that takes them."""
    guest_suite(report, "bpf", build_kernel(kernel, "bpf"), names("bpf"), full)
