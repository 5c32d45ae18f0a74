# SPDX-License-Identifier: GPL-2.0
"""Trying the hooks on releases of the kernel that appeared since the last test."""

import argparse
from pathlib import Path

from vmp.common import OUT, Command, Failure, Parser
from vmp.guest import building
from vmp.guest.kernel import build_kernel
from vmp.guest.porting import check, nearest
from vmp.guest.sources import Version, archive_series, find_version, key, versions
from vmp.guest.trial import release_trial
from vmp.testing import support
from vmp.testing.guest_tests import guest_suite
from vmp.testing.results import Report

GROUP = "watch"  # of what is kept
TEST = "kunit"


def tested(*directories: Path) -> set[str]:
    """Return the point releases of which directories keep what tests have found, of amd64."""
    return {path.stem for directory in directories for path in directory.glob("*.json")
            if ":" not in path.stem}  # fmt: skip


def untested(known: set[str]) -> list[Version]:
    """Return the releases that are newer than those `known` of their series, oldest first.

    Of a series for which there are no hooks yet the newest alone.
    """
    found: list[Version] = []
    for series in archive_series():
        offered = versions(series, wide=True)
        last = max(([int(part) for part in point.split(".")] for point in known
                    if point.rpartition(".")[0] == series), default=[])  # fmt: skip
        new = [version for version in offered if key(version) > last]
        found += new if last else new[-1:]
    return found


def try_release(report: Report, version: Version) -> None:
    """Try the hooks of a release's series, or of the nearest: apply, compile, boot, KUnit."""
    series = nearest(version.series)
    name = f"{version.point}: the hooks for {series} apply and compile"
    with report.check(name):
        if not check(version.point, release_trial(version, series)):
            raise Failure("they do not, see above; docs/porting.md says how to go on")
    if report.count().failed:
        return
    if series != version.series:
        report.note(f"{version.point}: {version.series} needs a series of its own to be built")
        return
    kernel = build_kernel(version.package, "plain")
    guest_suite(report, f"{GROUP}-{version.point}", kernel, [TEST], False)


def watch(named: list[Version], only_list: bool) -> int:
    """Try releases, those that are new if none is named; return the exit status."""
    new = named or untested(tested(support.KEPT, support.NEW))
    if not new:
        print("no release has appeared since the last test")
        return 0
    print("to be tried:", ", ".join(version.point for version in new), flush=True)
    if only_list:
        return 0
    report = Report(OUT / "watch.log")
    for version in new:
        with report.group(version.point):
            try_release(report, version)
        counts = {GROUP: report.counts[version.point]}
        support.keep(support.NEW, version.point, False, counts)
    status = report.finish()
    print(support.table(support.NEW))
    return status


def arguments(parser: Parser) -> None:
    """Tell the parser what kernel takes."""
    watch = building.arguments(parser).add_parser(
        "watch", help="try the hooks on releases that nobody has tested"
    )
    watch.add_argument("release", nargs="*", metavar="V",
        help="a release to try (default: each that is newer than those tested)")  # fmt: skip
    watch.add_argument("--list", action="store_true", help="only say which these are")


def run(args: argparse.Namespace) -> int:
    """Run one command."""
    if args.what == "watch":
        return watch([find_version(name, hooked=False) for name in args.release], args.list)
    return building.run(args)


COMMAND = Command(
    "kernel",
    "Build guest kernels with the hook patches, and the module for them.",
    arguments,
    run,
)
