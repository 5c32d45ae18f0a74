# SPDX-License-Identifier: GPL-2.0
"""The source of a kernel, with the hook patches applied or some of them."""

import hashlib
import json
import os
import re
import shutil
import time
from pathlib import Path

from vmp.common import CACHE, Failure, locked, run
from vmp.guest.sources import Version, say, unpack

SOURCE, BUILD = CACHE / "source", CACHE / "build"


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def extract(version: Version) -> Path:
    """Return the source tree of a point release, extracted if it isn't there."""
    tree = SOURCE / version.package
    if not tree.exists():
        say(f"extracting the source of {version.point}")
        unpack(version, tree)
    return tree


def source(version: Version) -> Path:
    """Return the source tree of a point release, with any patches applied or none."""
    tree = SOURCE / version.package
    if tree.exists():
        return tree  # without the lock, which a build holds
    with locked(CACHE / "lock"):
        return extract(version)


def patched_files(tree: Path) -> set[str]:
    """Return the files that the patches applied to `tree` touch, relative to it."""
    backups = tree / ".pc"
    return {
        str(path.relative_to(backups / patch.name))
        for patch in (backups.iterdir() if backups.is_dir() else [])
        if patch.is_dir()
        for path in patch.rglob("*")
        if path.is_file() and path.name != ".timestamp"
    }


def file_states(tree: Path, names: set[str]) -> dict[str, tuple[str, int]]:
    """Return digest and modification time (ns) of those `names` that exist in `tree`."""
    paths = {name: tree / name for name in names}
    return {
        name: (file_digest(path), path.stat().st_mtime_ns)
        for name, path in paths.items()
        if path.is_file()
    }


def apply_patches(version: Version, patches: list[Path]) -> Path:
    """Bring the source tree to exactly `patches` and return it.

    A file whose content stays keeps its modification time, and one whose content
    changes gets a new one, so that the next build compiles what changed and no more.
    """
    stamp = SOURCE / f"{version.package}.patches"
    wanted = json.dumps([[path.name, file_digest(path)] for path in patches])
    tree = SOURCE / version.package
    if not stamp.exists() and (tree / ".pc").exists():
        # Nobody knows which state the objects were built from.
        say("an interrupted run left the source half patched: starting anew")
        shutil.rmtree(tree)
        shutil.rmtree(BUILD / version.builds, ignore_errors=True)
    tree = extract(version)
    if stamp.exists() and stamp.read_text() == wanted:
        return tree
    names = patched_files(tree)
    for path in patches:
        names |= set(re.findall(r"^\+\+\+ [^/\s]+/(\S+)", path.read_text(), re.MULTILINE))
    before = file_states(tree, names)
    stamp.unlink(missing_ok=True)
    pop(tree)
    failure = None
    try:
        if patches:
            say(f"applying hook patches to {version.point}: {len(patches)}")
            push(tree, patches)
    except Failure as error:
        failure, wanted = error, "[]"
        pop(tree)
    now = time.time_ns()
    for name, (digest, _) in file_states(tree, names).items():
        same = name in before and before[name][0] == digest
        os.utime(tree / name, ns=(now, before[name][1] if same else now))
    stamp.write_text(wanted)
    if failure:
        raise Failure(f"the hooks don't apply to {version.point}: {failure}")
    return tree


def quilt(tree: Path, command: str, *arguments: str, patches: Path | None = None) -> None:
    """Push patches of a directory onto a tree, never with fuzz, or pop those that are applied."""
    environment = os.environ | {"LC_ALL": "C"}
    if patches:
        environment["QUILT_PATCHES"] = str(patches)
    words = ["quilt", "--quiltrc", "-", command, "-q", *arguments]
    run(words, f"quilt {command}", cwd=tree, env=environment)


def push(tree: Path, patches: list[Path]) -> None:
    """Apply patches, the first ones of their directory."""
    quilt(tree, "push", "--fuzz=0", str(len(patches)), patches=patches[0].parent)


def pop(tree: Path) -> None:
    """Take back all patches."""
    state = tree / ".pc"
    applied = state / "applied-patches"
    if applied.exists() and applied.read_text():
        quilt(tree, "pop", "-a", "-f")
    shutil.rmtree(state, ignore_errors=True)
