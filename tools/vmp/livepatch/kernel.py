# SPDX-License-Identifier: GPL-2.0
"""A kernel of Debian's: what it was built from and with, and whether it can be livepatched."""

import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from vmp.common import Failure, run
from vmp.guest.configuration import OPTION
from vmp.guest.sources import Version, find_version
from vmp.guest.stock import Stock
from vmp.livepatch.image import extract, list_symbols, read_notes
from vmp.livepatch.names import NOTES

NEEDED = ("LIVEPATCH", "KALLSYMS_ALL", "LRU_GEN", "ARCH_WANT_BATCHED_UNMAP_TLB_FLUSH")
KALLSYMS = Path("/proc/kallsyms")
RELEASE = "release"


@dataclass(frozen=True)
class Target:
    """The kernel that a livepatch is for, and what it was made of."""

    release: str
    build_id: str  # all ELF notes, in hexadecimal
    symbols: str  # as in /proc/kallsyms
    headers: Path
    compiler: str
    version: Version


def configuration(headers: Path) -> dict[str, str]:
    """Return the options that are set, as the kernel's headers have them."""
    text = (headers / ".config").read_text()
    return dict(re.findall(r"^(CONFIG_\w+)=(.*)$", text, re.MULTILINE))


def find_headers(release: str) -> Path:
    """Return where the headers are."""
    headers = Path(f"/lib/modules/{release}/build")
    if not (headers / ".config").exists():
        raise Failure(
            f"the headers of {release} are missing: `apt-get install linux-headers-{release}`"
        )
    return headers


def check_options(release: str, options: dict[str, str]) -> None:
    """Raise Failure if a kernel has the hooks, or can't be livepatched with them."""
    if options.get(OPTION) == "y":
        raise Failure(f"{release} has the hooks built in: policies need the module alone")
    lacks = [f"CONFIG_{name}" for name in NEEDED if options.get(f"CONFIG_{name}") != "y"]
    if lacks:
        what = ", ".join(lacks)
        raise Failure(f"{release} was built without {what}: policies need one with the hooks")


def find_compiler(release: str, options: dict[str, str]) -> str:
    """Return the compiler that the kernel was built with; raise Failure if it isn't here."""
    wanted = options["CONFIG_CC_VERSION_TEXT"].strip('"')
    name = wanted.split()[0]
    if not shutil.which(name):
        raise Failure(f"{release} was built by {wanted}, which is not installed: install it")
    found = run([name, "--version"], f"asking {name} for its version").splitlines()[0]
    if found != wanted:
        raise Failure(f"{release} was built by {wanted}, and here is {found}: install the former")
    return wanted


def package_version(release: str) -> str:
    """Return the version of the package that the headers came in: the kernel's."""
    name = f"linux-headers-{release}"
    failure = f"{release} is no kernel of Debian's: no package {name} is installed"
    try:
        found = run(["dpkg-query", "-W", "-f", "${Version}", name], failure).strip()
    except Failure:
        raise Failure(failure) from None
    if not found:
        raise Failure(failure)
    return found


def find_target(described: Path | None = None) -> Target:
    """Return the running kernel, or that of a machine which `describe` was run on.

    Raises Failure if no livepatch can be built for it.
    """
    notes, symbols = (described / p.name if described else p for p in (NOTES, KALLSYMS))
    release = (described / RELEASE).read_text().strip() if described else os.uname().release
    headers = find_headers(release)
    options = configuration(headers)
    check_options(release, options)
    compiler = find_compiler(release, options)
    version = find_version(package_version(release))
    build_id = notes.read_bytes().hex()
    return Target(release, build_id, symbols.read_text(), headers, compiler, version)


def unpacked_target(kernel: Stock) -> Target:
    """Return a kernel that is unpacked, and that runs nowhere yet.

    Raises Failure if no livepatch can be built for it.
    """
    options = configuration(kernel.headers)
    check_options(kernel.release, options)
    compiler = find_compiler(kernel.release, options)
    with tempfile.TemporaryDirectory() as name:
        binary = Path(name) / "vmlinux"
        extract(kernel.image, binary)
        build_id = read_notes(binary).hex()
        symbols = list_symbols(binary.read_bytes())
    return Target(kernel.release, build_id, symbols, kernel.headers, compiler, kernel.version)


def describe(directory: Path) -> None:
    """Write what find_target() has to know of the running kernel into a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    for path in (NOTES, KALLSYMS):
        (directory / path.name).write_bytes(path.read_bytes())
    (directory / RELEASE).write_text(f"{os.uname().release}\n")
