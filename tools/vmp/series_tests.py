"""Tests of the hook series: it applies, each patch works by itself, and off it costs a branch."""

import os
import re
import struct
import tempfile
from pathlib import Path

from vmp import faults
from vmp.common import CACHE, OUT, Failure, locked, run
from vmp.guest_tests import GUEST, guest_suite, tail, vm, vm_succeeds
from vmp.kernel import (
    HOOKS,
    PACKAGE,
    Version,
    apply_patches,
    build_kernel,
    build_module,
    configure,
    copied_build,
    fetch,
    hook_patches,
    make_targets,
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


def compiles(version: Version, variant: str, count: int | None, *targets: str) -> Path:
    """Compile a release with the first `count` patches or all, without a warning.

    Returns the build tree, which the next call uses, too.
    """
    with locked(CACHE / "lock"):
        tree = apply_patches(version, hook_patches(count))
        build = copied_build(version, "steps")
        configure(tree, build, variant, True)
        log = make_targets(version, build, *targets)
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


def instructions(binary: Path, function: str) -> list[str]:
    """Return the disassembly of a function, an instruction a line."""
    command = ["objdump", "-d", "--no-show-raw-insn", f"--disassemble={function}"]
    listing = run([*command, binary], "disassembling")
    return re.findall(r"^\s*([0-9a-f]+:\s+\S.*)$", listing, re.MULTILINE)


def off_cost(on: Path, off: Path, key: str, hot: str, report: Report) -> None:
    """Check what the point of `key` adds to the function `hot` while no policy is in force.

    `on` is a built kernel, `off` an object file of a build with the option off.
    """
    known = symbols(on)
    start, size = known[hot]
    sites = jump_sites(on, known, key)
    expected = BRANCHES.get(hot, 1)
    if len(sites) != expected or not all(start <= site < start + size for site in sites):
        where = ", ".join(f"{site:#x}" for site in sites) or "none"
        raise Failure(f"{hot}() is to have all {expected} branches on {key}; they are at: {where}")
    code = instructions(on / "vmlinux", hot)
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
    offered = versions()
    newest = offered[-1]
    on = build_kernel(None, "plain")
    report.note(f"the series changes {changed_lines()} lines of existing files in mm/")
    for version in offered if full else (offered[0], newest):
        with report.check(f"the series applies to {version.point}"):
            applies(version)
    for count in range(1, len(hook_patches(None)) + 1):
        with report.check(f"mm/ compiles without a warning up to patch {count}"):
            compiles(newest, "plain", count, "mm/")
    with report.check("vmscan.c and the registry compile with W=1"):
        compiles(newest, "plain", None, "W=1", "mm/vmscan.o", "mm/vmscan_policy.o")
    with report.check("vmscan.c compiles with the option off"):
        off = compiles(newest, "off", None, "mm/vmscan.o") / "mm" / "vmscan.o"
        for key, hot in POINTS.items():
            with report.check(f"off, the point in {hot}() is nothing but its static branch"):
                off_cost(on, off, key, hot, report)


def run_releases(report: Report, _full: bool) -> None:
    """Boot the oldest release, each part of the series, and a kernel with the option off."""
    oldest = versions()[0]
    kernel = build_kernel(oldest.point, "plain")
    with report.check(f"mm/ of {oldest.point} compiles without a warning"):
        compiles(oldest, "plain", None, "mm/")
        compiles(oldest, "plain", None, "W=1", "mm/vmscan.o", "mm/vmscan_policy.o")
    guest_suite(report, oldest.point, kernel, ["reclaim-exact", "slow-disk"], False)
    for count in range(1, len(hook_patches(None))):
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
