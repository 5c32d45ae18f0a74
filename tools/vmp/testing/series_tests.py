# SPDX-License-Identifier: GPL-2.0
"""Tests of the hook series: it applies, each patch works by itself, and off it costs a branch."""

import re
from pathlib import Path

from vmp.common import CACHE, OUT, Failure, locked, run
from vmp.guest import objects
from vmp.guest.architecture import ALL
from vmp.guest.configuration import configure, fragments
from vmp.guest.hooks import hook_patches, series_names
from vmp.guest.kernel import build_kernel, copied_build
from vmp.guest.make import make_targets
from vmp.guest.module import build_module
from vmp.guest.patched import apply_patches
from vmp.guest.porting import compare
from vmp.guest.sources import Version, find_version, versions
from vmp.guest.suite import GUEST, tail, vm
from vmp.guest.trial import OFF, ON, STOCK, applies, compile_foreign, release_objects
from vmp.testing.faults import FAULTS
from vmp.testing.guest_tests import guest_suite, vm_succeeds
from vmp.testing.results import Report

# The static key of each policy point, and how many branches on it the functions have that ask,
# with what the compiler inlines into them.
Branches = dict[str, dict[str, int]]
NEWEST: Branches = {
    "vmscan_flush_key": {"shrink_folio_list": 3, "shrink_node": 1},
    "vmscan_scan_key": {"try_to_shrink_lruvec": 1, "isolate_folios": 3},
    "vmscan_throttle_key": {"shrink_node": 2},
    "vmscan_unmap_key": {"try_to_unmap_one": 2},
}
# Where stock does less by itself, there are more points.
BRANCHES: dict[str, Branches] = {
    "6.12": NEWEST
    | {
        "vmscan_evicted_key": {"isolate_folios": 2, "evict_folios": 4},
        "vmscan_unmap_key": {"try_to_unmap_one": 1},
        "vmscan_young_key": {"folio_referenced_one": 1},
    },
}
# Called where folios wait, or entries were cleared together, which nothing but a policy has them
# do, and not behind a branch: that may go off meanwhile.
UNBRANCHED = ("vmscan_flush_next", "vmscan_span_over", "vmscan_unmap_swap")
OURS = re.compile(
    r"\bcall\b.*\b((?:policy_|vmscan_(?:flush|span|scan|shrink|throttle|unmap|young)|(?:ask|tell)_evict)\w*)"
)
# What a reviewer is asked to read, in lines, and the growth of vmscan.o, in percent.
MOST_CHANGED, MOST_NEW, MOST_GROWTH = 150, 1850, 6.0


def compiles(version: Version, variant: str, count: int | None, *targets: str) -> Path:
    """Compile a release with the first `count` patches or all, without a warning.

    Returns the build tree, which the next call uses, too.
    """
    with locked(CACHE / "lock"):
        tree = apply_patches(version, hook_patches(version.series, count))
        build = copied_build(version, "steps")
        architecture = version.architecture
        parts = fragments(version.series, architecture, variant)
        configure(tree, build, architecture, parts, count != 0)
        log = make_targets(tree, build, architecture, version.label, *targets)
    warnings = [line for line in log.read_text().splitlines() if "warning:" in line]
    if warnings:
        raise Failure("\n".join(warnings))
    return build


def boots(kernel: Path) -> None:
    """Boot a kernel and have it reclaim."""
    log = OUT / f"test-boot-{kernel.name}.log"
    vm_succeeds(["--kernel", kernel, "--no-load", "--", GUEST / "reclaim"], log)


def expected(series: str) -> Branches:
    """Return the branches that a series is to have."""
    return BRANCHES.get(series, NEWEST)


def functions(directory: Path) -> dict[str, list[objects.Instruction]]:
    """Return the instructions of all functions of the objects in a directory."""
    return {
        name: code
        for binary in sorted(directory.glob("*.o"))
        for name, code in objects.functions(binary).items()
    }


def sites(directory: Path) -> dict[str, dict[str, dict[objects.Place, objects.Place]]]:
    """Return the branches on the keys of points by key and function, and where they lead."""
    found: dict[str, dict[str, dict[objects.Place, objects.Place]]] = {}
    for binary in sorted(directory.glob("*.o")):
        owner = {item.place: name for name, code in objects.functions(binary).items()
                 for item in code}  # fmt: skip
        for key, places in objects.branches(binary).items():
            for place, target in places.items():
                if key.startswith("vmscan_"):
                    found.setdefault(key, {}).setdefault(owner[place], {})[place] = target
    return found


def counts(directory: Path) -> Branches:
    """Return how many branches on each key the functions have."""
    return {
        key: {name: len(places) for name, places in owners.items()}
        for key, owners in sites(directory).items()
    }


def stretch(code: list[objects.Instruction], begin: objects.Place) -> set[objects.Place]:
    """Return the places of the instructions from one on to the next that always jumps."""
    found = set()
    for item in sorted(code, key=lambda item: item.place):
        if item.place[0] == begin[0] and item.place >= begin:
            found.add(item.place)
            if re.match(r"jmp|ret", item.text):
                break
    return found


def off_cost(on: Path, hot: str) -> str:
    """Check what the points in the function `hot` add to it while no policy is in force.

    Each branch is a nop, and all calls to code of policies are where a branch leads. Returns how
    much that is.
    """
    code = functions(on)[hot]
    text = {item.place: item.text for item in code}
    behind: set[objects.Place] = set()
    branches = 0
    for owners in sites(on).values():
        for place, target in owners.get(hot, {}).items():
            branches += 1
            if not re.match(r"nop|xchg +%ax,%ax", text[place]):
                raise Failure(f"the branch is no nop while it is off: {place}: {text[place]}")
            behind |= stretch(code, target)
    for item in code:
        called = OURS.search(item.code)
        if called and called[1] not in UNBRANCHED and item.place not in behind:
            raise Failure(f"it is called without a branch: {item.place}: {item.code}")
    return f"{len(code)} instructions with the option on, {branches} of them branches"


def calls_nothing(off: Path) -> None:
    """Check that no object of a build with the option off needs one of the new functions."""
    listing = run(["nm", "-u", *sorted(off.glob("*.o"))], "listing undefined symbols")
    if needed := re.findall(r" U (vmscan_\w+)", listing):
        raise Failure(f"a kernel with the option off doesn't link: {', '.join(needed)}")


def changed_lines(series: str) -> tuple[int, int]:
    """Return the lines that the series changes in existing files, and those of its new ones."""
    text = "".join(patch.read_text() for patch in hook_patches(series))
    files = re.split(r"^(?=--- )", text, flags=re.MULTILINE)[1:]
    new = {part.split()[3] for part in files if part.startswith("--- /dev/null")}
    changed = made = 0
    for part in files:
        lines = re.findall(r"^([+-])(?![+-])", part, re.MULTILINE)
        if part.split()[3] in new:
            made += lines.count("+") - lines.count("-")
        else:
            changed += len(lines)
    return changed, made


def stays_small(series: str, on: Path, off: Path, report: Report) -> None:
    """Check the size of the series, in lines and in what it adds to vmscan.o."""
    changed, made = changed_lines(series)
    growth = 100 * (objects.text_size(on / "vmscan.o") / objects.text_size(off / "vmscan.o") - 1)
    report.note(
        f"{series}: changes {changed} lines of existing files and brings {made} in new ones; "
        f"the text of vmscan.o grows by {growth:.1f} %"
    )
    if changed > MOST_CHANGED or made > MOST_NEW or growth > MOST_GROWTH:
        raise Failure(f"it may have {MOST_CHANGED} and {MOST_NEW} lines, and {MOST_GROWTH} %")


def refused(kernel: Path, module: Path, message: str, log: Path) -> None:
    """Check that a module does not load into a kernel, and that the kernel's log says why."""
    script = f'insmod "{module}/vmscan_policy.ko" && echo loaded; dmesg'
    status, text = vm(["--kernel", kernel, "--no-load", "--", "sh", "-c", script], log)
    if status or message not in text or re.search(r"^loaded$", text, re.MULTILINE):
        raise Failure(f"expected a refusal with '{message}' (status {status}): {log}\n{tail(text)}")


def build_refused(kernel: Path) -> None:
    """Check that a build against a kernel without the hooks stops with one #error."""
    try:
        build_module(kernel)
    except Failure as failure:
        errors = re.findall(r"error: #error .*", str(failure))
        if len(errors) == 1 and "CONFIG_VMSCAN_POLICY" in errors[0]:
            return
        raise Failure(f"expected one #error that names the option, got:\n{failure}") from None
    raise Failure("the module was built for a kernel without the hooks")


def run_series(report: Report, version: Version) -> Branches:
    """Check what a series is in the objects that it touches; return the branches that it has."""
    series = version.series
    found: Branches = {}
    with report.check(f"{series}: the files that it touches compile, option on and off, W=1"):
        stock, off, on = (release_objects(version, state) for state in (STOCK, OFF, ON))
        found = counts(on)
        with report.check(f"{series}: the branches are where they are expected"):
            if found != expected(series):
                raise Failure(f"expected {expected(series)}\nfound {found}")
        with report.check(f"{series}: off, nothing calls code that is compiled out"):
            calls_nothing(off)
        for hot in dict.fromkeys(name for owners in found.values() for name in owners):
            with report.check(f"{series}: off, the points in {hot}() are nops"):
                report.note(f"{hot}(): {off_cost(on, hot)}")
        with report.check(f"{series}: it stays small"):
            stays_small(series, on, off, report)
        for binary in sorted(stock.glob("*.o")):
            for name, count, differ in compare(binary, off / binary.name):
                report.note(
                    f"{series}: {name}(): {count} instructions without the series, with the "
                    f"option off {f'{differ} differ' if differ else 'the same'}"
                )
    return found


def table(found: dict[str, Branches], report: Report) -> None:
    """Note how many branches on each point's key each series has."""
    keys = sorted({key for branches in found.values() for key in branches})
    report.note(f"{'branches':12}" + "".join(f"{series:>6}" for series in found))
    for key in keys:
        numbers = (sum(branches.get(key, {}).values()) for branches in found.values())
        name = key.removeprefix("vmscan_").removesuffix("_key")
        report.note(f"{name:12}" + "".join(f"{number:6}" for number in numbers))


def run_steps(report: Report, version: Version) -> None:
    """Check that a release compiles after each patch of its series."""
    for count in range(1, len(hook_patches(version.series)) + 1):
        with report.check(f"mm/ of {version.point} compiles without a warning up to patch {count}"):
            compiles(version, "plain", count, "mm/")


def run_all(report: Report, full: bool, kernel: str) -> None:
    """Check that each series applies and compiles, and what it costs when off.

    Patch by patch for the default one, or for all.
    """
    default = find_version(kernel)
    found: dict[str, Branches] = {}
    for series in series_names():
        newest = default if series == default.series else find_version(series)
        offered = versions(series)
        first = [offered[0]] if series == default.series else []
        for version in offered if full else dict.fromkeys([*first, newest]):
            with report.check(f"the series applies to {version.point}"):
                applies(version)
        found[series] = run_series(report, newest)
        for name, architecture in ALL.items():
            if not architecture.native:
                with report.check(f"{series}: the files that it touches compile for {name}"):
                    compile_foreign(newest, architecture)
        if full or series == default.series:
            run_steps(report, newest)
    table(found, report)


def run_releases(report: Report, _full: bool, kernel: str) -> None:
    """Boot the oldest release, each part of the series, and a kernel with the option off."""
    newest = find_version(kernel)
    oldest = versions(newest.series)[0]
    built = build_kernel(oldest.point, "plain")
    with report.check(f"mm/ of {oldest.point} compiles without a warning"):
        compiles(oldest, "plain", None, "mm/")
    guest_suite(report, oldest.point, built, ["reclaim-exact", "slow-disk"], False)
    for count in range(1, len(hook_patches(newest.series))):
        with report.check(f"the series builds and boots up to patch {count}"):
            boots(build_kernel(kernel, "plain", count))
    plain, off = build_kernel(kernel, "plain"), build_kernel(kernel, "off")
    with report.check("the whole series boots"):
        boots(plain)
    with report.check("the series boots with the option off"):
        boots(off)
    with report.check("insmod into a kernel without the hooks says so"):
        module = build_module(plain)
        refused(off, module, "this kernel has no reclaim policy hooks", OUT / "test-off.log")
    with report.check("a build against a kernel without the hooks says so"):
        build_refused(off)
    with report.check("insmod of a module for another hook ABI says so"):
        module = build_module(plain, FAULTS["other-abi"])
        refused(plain, module, "was built for hook ABI", OUT / "test-abi.log")
