# SPDX-License-Identifier: GPL-2.0
"""Which commit a result or a test was made at."""

import json
import subprocess
from typing import Any

from vmp.common import REPO

COMMIT, DIRTY = "commit", "uncommitted"
PACKAGED = REPO / "tools" / "commit.json"  # what checkout() said where a package was made


def git(*words: str) -> str | None:
    """Return what git says in this checkout; None where it fails or is not there."""
    try:
        done = subprocess.run(["git", "-C", REPO, *words], capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def checkout() -> dict[str, Any]:
    """Return the commit of this checkout and if it has changes; nothing where there is no git.

    In a package it is those of the checkout that it was made of.
    """
    if PACKAGED.exists():
        packaged: dict[str, Any] = json.loads(PACKAGED.read_text())
        return packaged
    commit = git("rev-parse", "HEAD")
    if commit is None:
        return {}
    return {COMMIT: commit, DIRTY: bool(git("status", "--porcelain", "--untracked-files=no"))}
