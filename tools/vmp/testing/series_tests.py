# SPDX-License-Identifier: GPL-2.0
"""Tests of the hook series: it applies, each patch works by itself, and off it costs a branch."""

import re
import shutil
import struct
import tempfile
from pathlib import Path

from vmp.common import CACHE, OUT, Failure, Words, locked, run
from vmp.guest.hooks import hook_patches
from vmp.guest.kernel import (
    apply_patches,
    build_kernel,
    build_module,
    configure,
    copied_build,
    fragments,
    make_targets,
    push,
)
from vmp.guest.sources import Version, fetch, find_version, versions
from vmp.testing import faults
from vmp.testing.guest_tests import GUEST, guest_suite, tail, vm, vm_succeeds
from vmp.testing.results import Report

# The static key of each policy point, and how many branches on it the functions have that ask,
# with what the compiler inlines into them.
POINTS = {
    "vmscan_flush_key": {"shrink_folio_list": 4},
    "vmscan_scan_key": {"try_to_shrink_lruvec": 1, "isolate_folios": 4},
    "vmscan_evicted_key": {"isolate_folios": 2, "evict_folios": 4},
    "vmscan_throttle_key": {"shrink_node": 2},
    "vmscan_unmap_key": {"shrink_folio_list": 1},
    "vmscan_young_key": {"folio_referenced": 1},
}
# Where a function is that is not in vmscan.c; and what has to stay as it is, instruction by
# instruction.
ELSEWHERE = {"folio_referenced": "rmap"}
UNCHANGED = ("try_to_unmap_one", "folio_referenced_one")
TOUCHED = ("vmscan", "rmap", "swapfile")
# Called where folios wait, which nothing but a policy has them do, and not behind a branch: that
# may go off meanwhile.
UNBRANCHED = "vmscan_flush_next"
OURS = re.compile(
    r"\bcall.*<((?:policy_|vmscan_(?:flush|scan|shrink|evicted|throttle|unmap|young))\w*)"
)
# What a reviewer is asked to read, in lines, and the growth of vmscan.o, in percent.
MOST_CHANGED, MOST_NEW, MOST_GROWTH = 250, 1500, 4
NEW_WARNINGS = ("W=1", "mm/vmscan.o", "mm/vmscan_policy.o", "mm/vmscan_rmap.o")
JUMP_ENTRY = struct.Struct("<iiq")  # struct jump_entry: code, target, key, each relative to itself


def applies(version: Version) -> None:
    """Apply the series to the files of one release that it may touch; no fuzz is allowed."""
    deb = fetch(version)
    with tempfile.TemporaryDirectory() as tree:
        unpack = (
            'set -o pipefail; dpkg-deb --fsys-tarfile "$1" | tar -xO "./usr/src/$2.tar.xz" '
            '| tar -xJ --strip-components=1 -C "$3" --wildcards "*/mm/*" "*/include/linux/*"'
        )
        run(["bash", "-c", unpack, "unpack", deb, version.name, tree], f"extracting {deb.name}")
        push(Path(tree), hook_patches(version.series))


def compiles(version: Version, variant: str, count: int | None, *targets: str) -> Path:
    """Compile a release with the first `count` patches or all, without a warning.

    Returns the build tree, which the next call uses, too.
    """
    with locked(CACHE / "lock"):
        tree = apply_patches(version, hook_patches(version.series, count))
        build = copied_build(version, "steps")
        configure(tree, build, fragments(version.series, variant), count != 0)
        log = make_targets(tree, build, version.point, *targets)
    warnings = [line for line in log.read_text().splitlines() if "warning:" in line]
    if warnings:
        raise Failure("\n".join(warnings))
    return build


def boots(kernel: Path) -> None:
    """Boot a kernel and have it reclaim."""
    log = OUT / f"test-boot-{kernel.name}.log"
    vm_succeeds(["--kernel", kernel, "--no-load", "--", GUEST / "reclaim"], log)


def symbols(kernel: Path) -> dict[str, tuple[int, int]]:
    """Return address and size of each symbol of a kernel."""
    listing = run(["nm", "-S", kernel / "vmlinux"], "listing symbols")
    found = re.findall(r"^([0-9a-f]+) (?:([0-9a-f]+) )?\w (\S+)$", listing, re.MULTILINE)
    return {name: (int(address, 16), int(size or "0", 16)) for address, size, name in found}


def jump_sites(kernel: Path, known: dict[str, tuple[int, int]], key: str) -> dict[int, int]:
    """Return the addresses of the static branches on a key, and where each of them leads."""
    headers = run(["objdump", "-h", kernel / "vmlinux"], "listing sections")
    section = re.search(r" \.rodata\s+[0-9a-f]+\s+([0-9a-f]+)", headers)
    if not section:
        raise Failure("the kernel has no .rodata, where the jump table is")
    start = int(section[1], 16)
    with tempfile.NamedTemporaryFile() as dump:
        command = ["objcopy", "-O", "binary", "--only-section=.rodata"]
        run([*command, kernel / "vmlinux", dump.name], "reading the jump table")
        data = Path(dump.name).read_bytes()
    first, end = (known[f"__{edge}___jump_table"][0] for edge in ("start", "stop"))
    sites = {}
    for address in range(first, end, JUMP_ENTRY.size):
        code, target, relative_key = JUMP_ENTRY.unpack_from(data, address - start)
        if address + 8 + (relative_key & ~3) == known[key][0]:
            sites[address + code] = address + 4 + target
    return sites


def instructions(binary: Path, function: str) -> dict[int, str]:
    """Return the disassembly of a function and its cold part, by address."""
    code: dict[int, str] = {}
    for name in (function, f"{function}.cold"):
        command = ["objdump", "-d", "--no-show-raw-insn", f"--disassemble={name}"]
        listing = run([*command, binary], "disassembling")
        found = re.findall(r"^\s*([0-9a-f]+):\s+(\S.*)$", listing, re.MULTILINE)
        code |= {int(address, 16): text for address, text in found}
    return code


def stretch(code: dict[int, str], begin: int) -> set[int]:
    """Return the addresses of the instructions from one on to the next that always jumps."""
    found = set()
    for address in sorted(address for address in code if address >= begin):
        found.add(address)
        if re.match(r"jmp|ret", code[address]):
            break
    return found


def off_cost(on: Path, off: Path, hot: str, report: Report) -> None:
    """Check what the points in the function `hot` add to it while no policy is in force.

    `on` is a built kernel, `off` an object file of a build with the option off. Each branch is
    a nop, and all calls to code of policies are where a branch leads.
    """
    known = symbols(on)
    code = instructions(on / "vmlinux", hot)
    behind: set[int] = set()
    branches = 0
    for key, functions in POINTS.items():
        if hot not in functions:
            continue
        sites = {site: to for site, to in jump_sites(on, known, key).items() if site in code}
        if len(sites) != functions[hot]:
            raise Failure(f"{hot}() has {len(sites)} branches on {key}, not {functions[hot]}")
        branches += len(sites)
        for site, target in sites.items():
            if not re.match(r"nop|xchg +%ax,%ax", code[site]):
                raise Failure(f"the branch is no nop while it is off: {site:x}: {code[site]}")
            behind |= stretch(code, target)
    for address, text in code.items():
        called = OURS.search(text)
        if called and called[1] != UNBRANCHED and address not in behind:
            raise Failure(f"it is called without a branch: {address:x}: {text}")
    report.note(
        f"{hot}(): {len(code)} instructions with the option on, {branches} of them branches, "
        f"{len(instructions(off, hot))} with it off"
    )


def calls_nothing(mm: Path) -> None:
    """Check that no object file of a build with the option off needs one of the new functions."""
    objects = [mm / f"{name}.o" for name in TOUCHED]
    listing = run(["nm", "-u", *objects], "listing undefined symbols")
    if needed := re.findall(r" U (vmscan_\w+)", listing):
        raise Failure(f"a kernel with the option off doesn't link: {', '.join(needed)}")


def code_of(binary: Path, function: str) -> list[str]:
    """Return the instructions of a function in an object file, without addresses."""
    command: Words = ["objdump", "-dr", "--no-show-raw-insn", f"--disassemble={function}", binary]
    listing = run(command, "disassembling")
    code = re.findall(r"^\s*[0-9a-f]+:\s+(?!R_)(\S.*)$", listing, re.MULTILINE)
    return [re.sub(r"\b[0-9a-f]+ <([\w.]+)(\+0x[0-9a-f]+)?>", r"\1\2", text) for text in code]


def stays_the_same(hooked: Path, unpatched: Path, report: Report) -> None:
    """Check that what stock does entry by entry is the code of a kernel without the series."""
    for function in UNCHANGED:
        code = code_of(unpatched, function)
        if not code or code_of(hooked, function) != code:
            raise Failure(f"{function}() is not what it is without the series")
        report.note(f"{function}(): {len(code)} instructions, with the series and without")


def all_branches(on: Path) -> None:
    """Check that no function but those named has a branch on one of the keys."""
    known = symbols(on)
    for key, functions in POINTS.items():
        sites = jump_sites(on, known, key)
        if len(sites) != sum(functions.values()):
            raise Failure(f"the kernel has {len(sites)} branches on {key}, {functions} expected")


def changed_lines() -> tuple[int, int]:
    """Return the lines that the series changes in existing files, and those of its new ones."""
    text = "".join(patch.read_text() for patch in hook_patches(find_version(None).series))
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


def text_size(binary: Path) -> int:
    """Return the size of an object file's text in bytes."""
    listing = run(["size", binary], f"asking for the size of {binary.name}")
    return int(listing.splitlines()[1].split()[0])


def stays_small(on: Path, off: Path, report: Report) -> None:
    """Check the size of the series, in lines and in what it adds to vmscan.o."""
    changed, made = changed_lines()
    growth = 100 * (text_size(on) / text_size(off) - 1)
    report.note(
        f"the series changes {changed} lines of existing files and brings {made} in new ones; "
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


def run_all(report: Report, full: bool) -> None:
    """Check that the series applies and compiles patch by patch, and what it costs when off."""
    offered = versions(find_version(None).series)
    newest = offered[-1]
    on = build_kernel(None, "plain")
    for version in offered if full else (offered[0], newest):
        with report.check(f"the series applies to {version.point}"):
            applies(version)
    for count in range(1, len(hook_patches(find_version(None).series)) + 1):
        with report.check(f"mm/ compiles without a warning up to patch {count}"):
            compiles(newest, "plain", count, "mm/")
    with report.check("vmscan.c and the new files compile with W=1"):
        compiles(newest, "plain", None, *NEW_WARNINGS)
        mm = copied_build(newest, "steps") / "mm"
        shutil.copy(mm / "vmscan.o", OUT / "test-vmscan-on.o")
        shutil.copy(mm / "rmap.o", OUT / "test-rmap-on.o")
    with report.check("stock's loops over entries stay as they are"):
        mm = compiles(newest, "plain", 0, "mm/rmap.o") / "mm"
        stays_the_same(OUT / "test-rmap-on.o", mm / "rmap.o", report)
    with report.check("what is touched compiles with the option off"):
        mm = compiles(newest, "off", None, *(f"mm/{name}.o" for name in TOUCHED)) / "mm"
        with report.check("off, nothing calls what is compiled out"):
            calls_nothing(mm)
        for hot in dict.fromkeys(name for functions in POINTS.values() for name in functions):
            with report.check(f"off, the points in {hot}() are nops"):
                off_cost(on, mm / f"{ELSEWHERE.get(hot, 'vmscan')}.o", hot, report)
        with report.check("the series stays small"):
            stays_small(OUT / "test-vmscan-on.o", mm / "vmscan.o", report)
        with report.check("no other function has a branch on a policy"):
            all_branches(on)


def run_releases(report: Report, _full: bool) -> None:
    """Boot the oldest release, each part of the series, and a kernel with the option off."""
    oldest = versions(find_version(None).series)[0]
    kernel = build_kernel(oldest.point, "plain")
    with report.check(f"mm/ of {oldest.point} compiles without a warning"):
        compiles(oldest, "plain", None, "mm/")
        compiles(oldest, "plain", None, *NEW_WARNINGS)
    guest_suite(report, oldest.point, kernel, ["reclaim-exact", "slow-disk"], False)
    for count in range(1, len(hook_patches(find_version(None).series))):
        with report.check(f"the series builds and boots up to patch {count}"):
            boots(build_kernel(None, "plain", count))
    with report.check("the whole series boots"):
        boots(build_kernel(None, "plain"))
    off = build_kernel(None, "off")
    with report.check("the series boots with the option off"):
        boots(off)
    with report.check("insmod into a kernel without the hooks says so"):
        module = build_module(build_kernel(None, "plain"))
        refused(off, module, "this kernel has no reclaim policy hooks", OUT / "test-off.log")
    with report.check("a build against a kernel without the hooks says so"):
        build_refused(off)
    with report.check("insmod of a module for another hook ABI says so"):
        kernel = build_kernel(None, "plain")
        module = build_module(kernel, faults.OTHER_ABI)
        refused(kernel, module, "was built for hook ABI", OUT / "test-abi.log")
