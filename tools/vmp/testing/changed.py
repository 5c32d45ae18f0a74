# SPDX-License-Identifier: GPL-2.0
"""Which groups of tests a change can break."""

import tomllib
from fnmatch import fnmatch

from vmp.common import REPO, Failure, Usage, Words, run

RULES = tomllib.loads((REPO / "tools/tests/changes.toml").read_text())["rule"]


def can_break(path: str, offered: set[str]) -> set[str]:
    """Return the groups of those `offered` that a path can break: all, if no rule knows better."""
    for rule in RULES:
        if any(fnmatch(path, pattern) for pattern in rule["paths"]):
            return offered & set(rule["groups"] or offered)
    return offered


def changed_paths(revision: str) -> list[str]:
    """Return the paths that differ from a git revision, those that git does not know too."""
    git: Words = ["git", "-C", REPO]
    try:
        named = [*git, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}"]
        commit = run(named, "git rev-parse").strip()
    except Failure as failure:
        raise Usage(f"--changed {revision}: give a revision that git knows ({failure})") from None
    listed = run([*git, "diff", "--name-only", commit, "--"], "git diff")
    listed += run([*git, "ls-files", "--others", "--exclude-standard"], "git ls-files")
    return sorted(set(listed.splitlines()))


def groups(revision: str, offered: set[str]) -> dict[str, list[str]]:
    """Return the groups that what has changed since a revision can break, each with the paths."""
    reasons: dict[str, list[str]] = {}
    for path in changed_paths(revision):
        for group in can_break(path, offered):
            reasons.setdefault(group, []).append(path)
    return reasons
