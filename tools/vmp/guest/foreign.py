# SPDX-License-Identifier: GPL-2.0
"""Debian's programs of another architecture, for a guest that can't run this machine's."""

import os
import shlex
import shutil
from pathlib import Path

from vmp.common import CACHE, REPO, Failure, Words, locked
from vmp.guest.architecture import Architecture
from vmp.guest.bootstrap import bootstrap
from vmp.guest.sources import say

SUITE = "bookworm"
MERGED = "/usr/share/mmdebstrap/hooks/merged-usr"  # bin is a link to usr/bin
# What guests use, as tools/setup installs it here.
PACKAGES = (
    "base-files", "base-passwd", "bash", "bsdutils", "coreutils", "dash", "diffutils", "findutils",
    "grep", "hostname", "kmod", "make", "mawk", "mount", "procps", "python3", "sed", "udev",
    "util-linux",
    "dmsetup", "e2fsprogs", "fio", "numactl", "stress-ng", "sysvinit-core", "trace-cmd", "xfsprogs",
)  # fmt: skip
# No script of a package runs, as this machine can't run it; what these would make:
MADE = (
    'cp "$1/usr/share/base-passwd/passwd.master" "$1/etc/passwd"',
    'cp "$1/usr/share/base-passwd/group.master" "$1/etc/group"',
    'ln -s mawk "$1/usr/bin/awk"',
    'touch "$1/etc/fstab" "$1/etc/hosts" "$1/etc/shadow"',
    'python3 -m compileall -q -s "$1" "$1"/usr/lib/python3*',  # of use if it is the same version
)


def make_root(architecture: Architecture) -> Path:
    """Return the directory with the programs, made if it isn't there."""
    root = CACHE / "root" / architecture.name
    chosen = " ".join([SUITE, *PACKAGES, *MADE])
    known = root.with_suffix(".packages")
    root.parent.mkdir(parents=True, exist_ok=True)
    with locked(root.with_suffix(".lock")):
        if known.exists() and known.read_text() == chosen:
            return root
        if os.geteuid():
            raise Failure(f"programs of {architecture.name} can be unpacked by root alone")
        say(f"unpacking programs of {architecture.name} for the guest")
        known.unlink(missing_ok=True)
        shutil.rmtree(root, ignore_errors=True)
        options = ["--variant=extract", f"--architectures={architecture.name}"]
        options += [f"--include={','.join(PACKAGES)}", f"--hook-dir={MERGED}"]
        options += [f"--extract-hook={hook}" for hook in MADE]
        what = f"unpacking programs of {architecture.name}"
        bootstrap(SUITE, root, what, *options, lists=root.with_suffix(".list"))
        known.write_text(chosen)
    return root


def inside(root: Path) -> list[str]:
    """Return what begins a command that sees the checkout and the cache in the programs' root, too.

    It can't write to the root: where virtme-ng can, it leaves there what the guest's init is to do,
    and has taken it away before the guest begins.
    """
    mounts: list[Words] = [["mount", "-o", "bind,ro", root, root]]
    for place in (REPO, CACHE):
        target = Path(f"{root}{place}")
        target.mkdir(parents=True, exist_ok=True)
        mounts.append(["mount", "--bind", place, target])
    script = " && ".join(shlex.join(map(str, words)) for words in mounts)
    return ["unshare", "--mount", "sh", "-c", f'{script} && exec "$@"', "sh"]
