# SPDX-License-Identifier: GPL-2.0
"""A file system on a blank disk for the time of a run."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vmp.common import Failure, Words, run


def require_blank(device: Path) -> None:
    """Raise Failure unless `device` is a block device that is not in use and looks empty."""
    try:
        is_block = stat.S_ISBLK(device.stat().st_mode)
    except FileNotFoundError:
        raise Failure(
            f"there is no {device}: name a blank disk with --disk, it will be overwritten "
            "(a guest gets one by `tools/vm --disk 2G:400`)"
        ) from None
    if not is_block:
        raise Failure(f"{device} is no block device: name a blank disk with --disk")
    try:
        os.close(os.open(device, os.O_RDONLY | os.O_EXCL))  # fails while anything uses the device
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        raise Failure(f"{device} is in use: name a blank disk with --disk") from None
    probe: Words = ["wipefs", "--no-act", "--noheadings", "--output", "TYPE", device]
    found = run(probe, f"looking at {device}").split()
    if found:
        raise Failure(
            f"{device} is not blank, it has {', '.join(found)}: name another disk with --disk, "
            f"or run `wipefs --all {device}` if nothing on it is needed"
        )


MKFS: dict[str, Words] = {
    # All is written now: the kernel would go on with that in the background.
    "ext4": ["-q", "-F", "-N", "64", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
    "xfs": ["-q"],  # has large folios
}


@contextmanager
def mounted(system: str, device: Path, directory: Path) -> Iterator[None]:
    """Mount a new file system, of MKFS, on the blank `device`, which is blank again in the end."""
    require_blank(device)
    try:
        run([f"mkfs.{system}", *MKFS[system], device], f"making {system} on {device}")
        run(["mount", "-t", system, device, directory], f"mounting {device}")
        try:
            yield
        finally:
            for path in directory.iterdir():  # dirty pages need not be written any more
                if path.is_file():
                    path.unlink()
            run(["umount", directory], f"unmounting {device}")
    finally:
        run(["wipefs", "--quiet", "--all", device], f"blanking {device}")
