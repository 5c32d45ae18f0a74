"""Tests of the hook series: it applies, each patch works by itself, and off it costs a branch."""

import os
import re
import struct
import tempfile
from pathlib import Path

from vmp.common import CACHE, OUT, Failure, locked, run
from vmp.guest_tests import GUEST, vm_succeeds
from vmp.kernel import (
    BUILD,
    HOOKS,
    PACKAGE,
    Version,
    apply_patches,
    build_kernel,
    configure,
    fetch,
    hook_patches,
    make,
    versions,
)
from vmp.report import Report

# The static key of each policy point, and the function that the point is in.
POINTS = {
    "vmscan_flush_key": "shrink_folio_list",
    "vmscan_scan_key": "try_to_shrink_lruvec",
    "vmscan_evicted_key": "evict_folios",
    "vmscan_node_key": "shrink_node",
}
# Its two ways, of root reclaim by the multi-gen LRU and of memory cgroups, pass one each.
BRANCHES = {"shrink_node": 2}
JUMP_ENTRY = struct.Struct("<iiq")  # struct jump_entry: code, target, key, each relative to itself


def applies(version: Version) -> None:
    """Apply the series to the files of one release that it may touch; no fuzz is allowed."""
    deb = fetch(version)
    with tempfile.TemporaryDirectory() as tree:
        unpack = (
            'set -o pipefail; dpkg-deb --fsys-tarfile "$1" | tar -xO "./usr/src/$2.tar.xz" '
            '| tar -xJ --strip-components=1 -C "$3" --wildcards "*/mm/*" "*/include/linux/*"'
        )
        run(["bash", "-c", unpack, "unpack", deb, PACKAGE, tree], f"extracting {deb.name}")
        run(
            ["quilt", "--quiltrc", "-", "push", "-a", "--fuzz=0"],
            "quilt",
            cwd=Path(tree),
            env=os.environ | {"QUILT_PATCHES": str(HOOKS), "LC_ALL": "C"},
        )


def compiles(version: Version) -> None:
    """Compile mm/ of one release with the series, and our files with W=1."""
    tree = apply_patches(version, hook_patches(None))
    build = BUILD / version.package / "mm"
    build.mkdir(parents=True, exist_ok=True)
    configure(tree, build, "plain", True)
    base = ["-C", tree, f"O={build}", "LOCALVERSION=", f"-j{os.cpu_count()}"]
    log_path = build.parent / "mm.log"
    with log_path.open("w") as log:
        make([*base, "prepare"], log, f"preparing {version.point}", None)
        make([*base, "mm/"], log, f"compiling mm/ of {version.point}", None)
        make([*base, "W=1", "mm/vmscan_policy.o", "mm/vmscan.o"], log, "compiling with W=1", None)
    warnings = [line for line in log_path.read_text().splitlines() if "warning:" in line]
    if warnings:
        raise Failure("\n".join(warnings))


def boots(kernel: Path) -> None:
    """Boot a kernel and have it reclaim."""
    log = OUT / f"test-boot-{kernel.name}.log"
    vm_succeeds(["--kernel", kernel, "--no-load", "--", GUEST / "reclaim"], log)


def symbols(kernel: Path) -> dict[str, tuple[int, int]]:
    """Return address and size of each symbol of a kernel."""
    listing = run(["nm", "-S", kernel / "vmlinux"], "listing symbols")
    found = re.findall(r"^([0-9a-f]+) (?:([0-9a-f]+) )?\w (\S+)$", listing, re.MULTILINE)
    return {name: (int(address, 16), int(size or "0", 16)) for address, size, name in found}


def jump_sites(kernel: Path, known: dict[str, tuple[int, int]], key: str) -> list[int]:
    """Return the addresses of the static branches on a key."""
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
    sites = []
    for address in range(first, end, JUMP_ENTRY.size):
        code, _, relative_key = JUMP_ENTRY.unpack_from(data, address - start)
        if address + 8 + (relative_key & ~3) == known[key][0]:
            sites.append(address + code)
    return sites


def instructions(kernel: Path, function: str) -> list[str]:
    """Return the disassembly of a function, an instruction a line."""
    command = ["objdump", "-d", "--no-show-raw-insn", f"--disassemble={function}"]
    listing = run([*command, kernel / "vmlinux"], "disassembling")
    return re.findall(r"^\s*([0-9a-f]+:\s+\S.*)$", listing, re.MULTILINE)


def off_cost(on: Path, off: Path, key: str, hot: str, report: Report) -> None:
    """Check what the point of `key` adds to the function `hot` while no policy is in force."""
    known = symbols(on)
    start, size = known[hot]
    sites = jump_sites(on, known, key)
    expected = BRANCHES.get(hot, 1)
    if len(sites) != expected or not all(start <= site < start + size for site in sites):
        where = ", ".join(f"{site:#x}" for site in sites) or "none"
        raise Failure(f"{hot}() is to have all {expected} branches on {key}; they are at: {where}")
    code = instructions(on, hot)
    for site in sites:
        branch = next(line for line in code if line.startswith(f"{site:x}:"))
        if "nop" not in branch:
            raise Failure(f"the branch is no nop while it is off: {branch}")
    ours = [
        line
        for line in code
        if re.search(r"<(vmscan_(policy|flush|scan|evicted|node)_|__srcu)", line)
    ]
    if ours:
        raise Failure("code of the policies beside the branch:\n" + "\n".join(ours))
    report.note(
        f"{hot}(): {len(code)} instructions with the option on, {expected} of them branches, "
        f"{len(instructions(off, hot))} with it off"
    )


def changed_lines() -> int:
    """Return how many lines the series adds to or takes from existing files in mm/."""
    text = "".join(patch.read_text() for patch in hook_patches(None))
    files = re.split(r"^(?=--- )", text, flags=re.MULTILINE)
    existing = [part for part in files if re.match(r"--- a/mm/", part)]
    new = {"a/mm/vmscan_policy.c", "a/mm/vmscan_policy.h"}
    return sum(
        len(re.findall(r"^[+-](?![+-])", part, re.MULTILINE))
        for part in existing
        if part.split()[1] not in new
    )


def run_all(report: Report) -> None:
    """Run the tests of the series."""
    offered = versions()
    report.note(f"the series changes {changed_lines()} lines of existing files in mm/")
    for version in offered:
        with report.check(f"the series applies to {version.point}"):
            applies(version)
    for version in (offered[0], offered[-1]):
        with report.check(f"mm/ of {version.point} compiles without a warning"):
            with locked(CACHE / "lock"):
                compiles(version)
    for count in range(1, len(hook_patches(None))):
        with report.check(f"the series builds and boots up to patch {count}"):
            boots(build_kernel(None, "plain", count))
    on, off = build_kernel(None, "plain"), build_kernel(None, "off")
    with report.check("the whole series boots"):
        boots(on)
    with report.check("the series boots with the option off"):
        boots(off)
    for key, hot in POINTS.items():
        with report.check(f"off, the point in {hot}() is nothing but its static branch"):
            off_cost(on, off, key, hot, report)
