# SPDX-License-Identifier: GPL-2.0
"""kpatch's object tools, built from the source package: they find out which functions differ."""

from dataclasses import dataclass
from pathlib import Path

from vmp.common import CACHE, Failure, appearing, locked, run
from vmp.guest.sources import download_source

KPATCH = CACHE / "kpatch"
TOOLS = ("create-diff-object", "create-klp-module")


@dataclass(frozen=True)
class Kpatch:
    """Where the tools are, and the sources of what a livepatch begins with."""

    tools: Path
    glue: Path


def find_kpatch() -> Kpatch:
    """Return kpatch's tools; fetches and builds them if they aren't there."""
    tree = KPATCH / "source"
    found = Kpatch(tree / "kpatch-build", tree / "kmod" / "patch")
    with locked(KPATCH / ".lock"):
        if tree.exists():
            return found
        with appearing(tree) as part:
            download_source("kpatch", part)
            tars = list(part.glob("kpatch_*.orig.tar.*"))
            if len(tars) != 1:
                raise Failure("downloading the source of kpatch: apt-get has left no archive")
            run(["tar", "xf", tars[0], "-C", part, "--strip-components=1"], "extracting kpatch")
            run(["make", "-C", part / "kpatch-build", *TOOLS], "building kpatch's object tools")
    return found
