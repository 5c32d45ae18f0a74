# SPDX-License-Identifier: GPL-2.0
"""The hook patches: a series for each kernel, and the files that are the same on all."""

import hashlib
import re
from pathlib import Path

from vmp.common import CACHE, REPO, Failure, appearing, locked

HOOKS = REPO / "kernel-hooks"
COMMON = HOOKS / "common"
PATCHES = CACHE / "patches"
# The first release that a series is for, where the archive has older ones.
FIRST = {"6.12": 107}


def order(series: str) -> list[int]:
    """Return what series are ordered by."""
    return [int(part) for part in series.split(".")]


def series_names() -> list[str]:
    """Return the series that there are hooks for, oldest first."""
    names = (path.parent.name for path in HOOKS.glob("*/series"))
    return sorted((name for name in names if re.fullmatch(r"\d+\.\d+", name)), key=order)


def patch_names(directory: Path) -> list[str]:
    """Return the names of a directory's patches, in order."""
    lines = (line.strip() for line in (directory / "series").read_text().splitlines())
    return [line.split()[0] for line in lines if line and not line.startswith("#")]


def new_file(path: str, text: str) -> str:
    """Return the diff that makes a file."""
    lines = text.splitlines()
    added = "".join(f"+{line}\n" for line in lines)
    return f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{len(lines)} @@\n{added}"


def common_files() -> dict[str, str]:
    """Return the files that are the same on all kernels, by their path in a kernel tree."""
    paths = sorted(path for path in COMMON.rglob("*") if path.is_file())
    return {str(path.relative_to(COMMON)): path.read_text() for path in paths}


def texts(series: str) -> dict[str, str]:
    """Return the patches of a series by name, in order; the first brings the common files, too."""
    directory = HOOKS / series
    if not (directory / "series").exists():
        raise Failure(
            f"there are no hooks for {series}: kernel-hooks has {', '.join(series_names())}"
        )
    patches = {name: (directory / name).read_text() for name in patch_names(directory)}
    if patches:
        first = next(iter(patches))
        patches[first] += "".join(new_file(path, text) for path, text in common_files().items())
    return patches


def write_series(series: str, directory: Path) -> None:
    """Write the patches of a series, and quilt's list of them, into a directory."""
    patches = texts(series)
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in patches.items():
        (directory / name).write_text(text)
    (directory / "series").write_text("".join(f"{name}\n" for name in patches))


def compose(series: str) -> Path:
    """Return the directory with the patches of a series as they are applied."""
    digest = hashlib.sha256(repr(texts(series)).encode()).hexdigest()[:12]
    directory = PATCHES / f"{series}-{digest}"
    with locked(PATCHES / ".lock"):
        if not directory.exists():
            with appearing(directory) as part:
                write_series(series, part)
    return directory


def hook_patches(series: str, limit: int | None = None) -> list[Path]:
    """Return the first `limit` patches of a series in order, or all of them."""
    directory = compose(series)
    names = patch_names(directory)
    if limit is not None and not 0 <= limit <= len(names):
        raise Failure(f"--patches {limit}: the series has {len(names)} patches, give 0 to that")
    return [directory / name for name in names[:limit]]
