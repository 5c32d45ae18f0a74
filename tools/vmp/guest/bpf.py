# SPDX-License-Identifier: GPL-2.0
"""BPF programs for a built kernel, and the bpftool that makes and loads them.

It is of the kernel's own source: those of older releases look for types in the kernel alone.
"""

import hashlib
import shutil
from pathlib import Path

from vmp.common import CACHE, REPO, Failure, Words, locked, run
from vmp.guest.kernel import kernel_version
from vmp.guest.make import make
from vmp.guest.module import MODULE, build_module, modules_of
from vmp.guest.patched import source
from vmp.guest.sources import Version

SAMPLES = REPO / "tools/samples/bpf"


def build_bpftool(version: Version) -> Path:
    """Return the directory that has bpftool, and libbpf/include; it is built if it isn't there."""
    result = CACHE / "bpftool" / version.package
    with locked(CACHE / "bpftool.lock"):
        if (result / "bpftool").exists():
            return result
        result.mkdir(parents=True, exist_ok=True)
        arguments: Words = ["-C", source(version) / "tools/bpf/bpftool", f"OUTPUT={result}/"]
        with (result / "build.log").open("w") as log:
            make(arguments, log, "building bpftool", None)
    return result


def build_programs(kernel: Path, sources: Path) -> Path:
    """Build the BPF programs of a directory for a built kernel of the variant bpf.

    Return a directory with the object files, and bpftool.
    """
    if not list(sources.glob("*.bpf.c")):
        raise Failure(f"{sources} has no programs: name a directory with NAME.bpf.c")
    tool = build_bpftool(kernel_version(kernel))
    module = build_module(kernel) / "vmscan_policy.ko"
    label = hashlib.sha256(str(sources.resolve()).encode()).hexdigest()[:8]
    result = Path(f"{modules_of(kernel)}-bpf-{label}")
    with locked(MODULE / f"{result.name}.lock"):
        result.mkdir(exist_ok=True)
        run(["rsync", "-c", SAMPLES / "Makefile", *sorted(sources.glob("*.bpf.c")), result],
            "copying the BPF programs")  # fmt: skip
        arguments: Words = ["-B", "-C", result, f"BTF={kernel}/vmlinux", f"MODULE_BTF={module}"]
        arguments += [f"BPFTOOL={tool}/bpftool", f"CPPFLAGS=-I{tool}/libbpf/include"]
        with Path(f"{result}.log").open("w") as log:
            make(arguments, log, "building the BPF programs", None)
        (result / "bpftool").unlink(missing_ok=True)
        (result / "bpftool").symlink_to(tool / "bpftool")
    return result


# Numbers of the helpers that a policy may call, and of those that are tried: each second one, and
# some that write, lock, loop, sleep, or send.
HELPERS = {1, 5, 7, 8, 42, 118, 153, 154, 195}
TRIED = {*range(1, 212, 2), 2, 6, 12, 36, 94, 114, 130, 132, 148, 166, 168} - HELPERS
# What is wrong, and the macros for tests/guest/bpf/wrong.bpf.c; one is right.
WRONG: dict[str, dict[str, object]] = {
    "right": {},
    **{f"helper-{n}": {"HELPER": n} for n in sorted(TRIED)},
    **{f"offset-{n}": {"OFFSET": n} for n in (-4096, -8, -1, 22, 24, 32, 4096, 1 << 20)},
    **{f"written-{name}": {"WRITTEN": name} for name in ("ops", "memcg", "nid")},
    "endless": {"ENDLESS": 1},
    "stack": {"STACK": 520},
    "sleepable": {"SECTION": '"struct_ops.s/flush_group"'},
    **{f"abi-{n}": {"ABI": n} for n in (0, 1, 4294967295)},
    "abi-before": {"ABI": "(VMSCAN_BPF_ABI-1)"},
    "abi-after": {"ABI": "(VMSCAN_BPF_ABI+1)"},
    **{f"name-{n}": {"NAME": f'"{name}"'}
       for n, name in enumerate(("", "Capital", "1st", "a blank", "batch", "stock", "a]", "a,b"))},
    "about": {"ABOUT": '"Two\\nlines."'},
    "none": {"NONE": 1},
    "two": {"TWO": 1},
}  # fmt: skip


def build_test_programs(kernel: Path) -> Path:
    """Build the samples, and the programs that are wrong; return the directory of all."""
    tool = build_bpftool(kernel_version(kernel))
    result = build_programs(kernel, SAMPLES)
    sources = REPO / "tools/tests/guest/bpf"
    shutil.rmtree(result / "wrong", ignore_errors=True)
    (result / "wrong").mkdir()
    common: Words = ["clang", f"-I{result}", f"-I{tool}/libbpf/include", "-g", "-O2",
                     "-target", "bpf", "-D__TARGET_ARCH_x86"]  # fmt: skip
    for name in ("slow", "beyond", "placed"):
        run([*common, "-c", sources / f"{name}.bpf.c", "-o", result / f"{name}.bpf.o"],
            f"building {name}")  # fmt: skip
    for name, macros in WRONG.items():
        words = [f"-D{macro}={value}" for macro, value in macros.items()]
        target = result / "wrong" / f"{name}.bpf.o"
        run([*common, *words, "-c", sources / "wrong.bpf.c", "-o", target], f"building {name}")
    return result
