# SPDX-License-Identifier: GPL-2.0
"""Debian packages of a kernel with the hooks, by the kernel's own bindeb-pkg."""

import os
import platform
import re
import shutil
from pathlib import Path

from vmp.common import CACHE, OUT, Failure, Usage, locked
from vmp.guest.architecture import Architecture
from vmp.guest.configuration import CONFIG, OPTION, merge_config
from vmp.guest.hooks import COMMON, hook_patches
from vmp.guest.make import Progress, make
from vmp.guest.patched import BUILD, apply_patches
from vmp.guest.sources import find_version

# linux-libc-dev would replace the distribution's, which nothing here needs.
PACKAGES = ("linux-image-*.deb", "linux-headers-*.deb")


def own_config() -> Path:
    """Return where the running kernel's configuration is."""
    return Path("/boot") / f"config-{platform.release()}"


def suffix() -> str:
    """Return what the hooks add to the kernel's release: their ABI."""
    header = COMMON / "include" / "linux" / "vmscan_policy.h"
    found = re.search(r"^#define VMSCAN_POLICY_ABI\s+(\d+)$", header.read_text(), re.MULTILINE)
    if not found:
        raise Failure(f"there is no VMSCAN_POLICY_ABI in {header}")
    return f"-vmp{found[1]}"


def lacking(said: str, architecture: Architecture) -> str:
    """Return what to do about the packages that bindeb-pkg said it needs; '' if it said none.

    The headers have programs for the packages' architecture, which need libraries of that.
    """
    found = re.search(r"Unmet build dependencies: (.*)", said)
    if not found:
        return ""
    names = re.sub(r" \([^)]*\)", "", found[1]).split()  # without their versions
    foreign = "" if architecture.native else f":{architecture.name}"
    own = [name.removesuffix(":native") for name in names if name.endswith(":native")]
    others = [f"{name}{foreign}" for name in names if not name.endswith(":native")]
    todo = f"apt-get install {' '.join(own + others)}"
    if foreign and others:
        todo = f"dpkg --add-architecture {architecture.name} && apt-get update && {todo}"
    return f"the packages of a kernel need others: {todo}"


def build_packages(name: str, config: Path) -> list[Path]:
    """Build the packages of a kernel that has a distribution's configuration; return them.

    `name` is what find_version() takes.
    """
    if not config.is_file() or "\nCONFIG_" not in config.read_text(errors="replace"):
        raise Usage(f"there is no kernel configuration {config}: name one, as /boot/config-* are")
    version = find_version(name)
    with locked(CACHE / "lock"):
        tree = apply_patches(version, hook_patches(version.series))
        packages = BUILD / version.builds / "deb"
        build = packages / "build"  # bindeb-pkg leaves packages beside it
        build.mkdir(parents=True, exist_ok=True)
        for old in packages.glob("*.deb"):
            old.unlink()
        merge_config(tree, build, version.architecture, [config.absolute(), CONFIG / "deb.config"])
        if f"{OPTION}=y\n" not in (build / ".config").read_text():
            raise Failure(f"with {config} the kernel refuses {OPTION}=y")
        what = f"building packages of {version.label}{suffix()}"
        progress = Progress(what, "deb", build)
        with (packages / "log").open("w", buffering=1) as log:
            settings = [f"LOCALVERSION={suffix()}", "KDEB_CHANGELOG_DIST=unstable"]
            jobs = f"-j{os.cpu_count()}"
            command: list[str | Path] = ["-C", tree, f"O={build}", *settings, jobs, "bindeb-pkg"]
            command += version.architecture.words
            try:
                make(command, log, what, progress)
            except Failure as failure:
                said = Path(log.name).read_text(errors="replace")
                raise Failure(lacking(said, version.architecture) or str(failure)) from None
        progress.finish()
        OUT.mkdir(exist_ok=True)
        found = sorted(path for pattern in PACKAGES for path in packages.glob(pattern))
        return [Path(shutil.move(path, OUT / path.name)) for path in found]
