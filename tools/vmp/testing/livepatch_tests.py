# SPDX-License-Identifier: GPL-2.0
"""The guest tests on a stock kernel with the hooks as a livepatch.

Which guest tests a stock kernel has all for is what the last run has kept: a table in the docs.
"""

import json
import re
import tempfile
from pathlib import Path

from vmp.common import OUT, REPO, Failure
from vmp.guest.architecture import own
from vmp.guest.debian import Installation, console, run_script
from vmp.guest.log import find_splat, read_log
from vmp.guest.qemu import Machine
from vmp.guest.suite import programs_of
from vmp.testing.guest_tests import GuestResults, names
from vmp.testing.results import Report

SCRIPTS = REPO / "tools" / "tests" / "debian"
GROUP = "debian"  # of the guest tests that have to be run here
TIMEOUT = 5400  # seconds
NEW = OUT / "livepatch.json"  # what a run writes
KEPT = REPO / "docs" / "results" / "livepatch.json"  # what the table is of
RESULT = re.compile(r"^(not )?ok \d+ - (\S+)( # SKIP)?$")
ABSENT = "# not there: "
# What becomes of a test, for the table; or what it has not found.
PASSED, FAILED, LATER = "pass", "fail", "not run so far"
# The machine for most guest tests, and those for groups of others.
USUAL = Machine(4, "3G", disks=("2G:1000",))
OTHERS = {"numa": Machine(4, "3G", nodes=2)}
Files = dict[str, Path]  # what a guest gets, by name


def reasons(text: str) -> dict[str, str]:
    """Return what became of each test of a guest's output, or what it has not found."""
    found: dict[str, str] = {}
    reason = ""
    for line in text.splitlines():
        if line.startswith(ABSENT):
            reason = line.removeprefix(ABSENT)
        elif result := RESULT.match(line):
            ran = FAILED if result[1] else PASSED
            found[result[2]] = reason if result[3] else ran
            reason = ""
    return found


def table(kept: dict[str, str]) -> str:
    """Return the Markdown table of the tests that are run, and of what the others need."""
    by_reason: dict[str, list[str]] = {PASSED: []}
    for name, reason in kept.items():
        by_reason.setdefault(reason, []).append(name)
    rows = ["| guest tests | under the livepatch |", "|---|---|"]
    for reason, tests in by_reason.items():
        shown = reason if reason in (PASSED, FAILED, LATER) else f"not there: {reason}"
        rows.append(f"| {', '.join(tests)} | {shown} |")
    return "\n".join(rows)


def run_all(report: Report, label: str, machine: Installation, files: Files) -> None:
    """Run the guest tests that there is all for; their programs are there."""
    alone = {test for group in OTHERS for test in names(group)}
    usual = [test for test in names("all") if test not in alone]
    found = run_on(report, label, machine, files, usual, USUAL)
    for group, hardware in OTHERS.items():
        found |= run_on(report, f"{label} {group}", machine, files, names(group), hardware)
    with report.check(f"{label}: the guest tests that are run are those of the group {GROUP}"):
        ran = {test for test, reason in found.items() if reason in (PASSED, FAILED)}
        wanted = set(names(GROUP))
        if ran != wanted:
            lost, more = (", ".join(sorted(tests)) for tests in (wanted - ran, ran - wanted))
            raise Failure(f"not run: {lost or 'none'}; not of the group: {more or 'none'}")
    kept = {test: found.get(test, LATER) for test in names("all")}
    NEW.write_text(json.dumps(kept, indent=1) + "\n")
    report.say(*table(kept).splitlines())


def run_on(
    report: Report, label: str, machine: Installation, files: Files, tests: list[str], on: Machine
) -> dict[str, str]:
    """Run guest tests in one guest, and report each; returns what each has not found."""
    log = OUT / f"test-{label.replace(' ', '-')}-guest.log"
    log.unlink(missing_ok=True)
    failure = None
    with tempfile.TemporaryDirectory(dir=OUT) as name:
        listed = Path(name) / "tests"
        listed.write_text(" ".join(tests))
        more = {**files, "programs": programs_of(own()), "tests": listed}
        try:
            run_script(machine, SCRIPTS / "guest.sh", log, TIMEOUT, more, on)
        except Failure as reason:
            failure = str(reason)
    text = log.read_text(errors="replace") if log.exists() else ""
    results = GuestResults(report, label)
    for line in text.splitlines():
        results.tell(line)
    if results.failed and results.ended == len(tests):
        failure = None  # it has been told
    splat = find_splat(read_log(console(log))) if console(log).exists() else []
    report.add(f"{label}: the guest ran to its end with a clean log", "\n".join(splat) or failure)
    return reasons(text)
