# SPDX-License-Identifier: GPL-2.0
"""Which groups of tests a change can break."""

from fnmatch import fnmatch

from vmp.common import REPO, Failure, Words, run

GUESTS = ("slow", "plain", "debug")
# The groups that a path can break; the first pattern that fits counts, and '*' takes '/', too.
RULES = (
    (("module/*", "kunit/*", "Kbuild"), ("static", *GUESTS, "recording", "debian", "install",
     "mutants")),
    (("tools/tests/guest/*",), ("static", *GUESTS, "debian", "mutants")),
    (("tools/vmp/testing/mutants.py",), ("static", "mutants")),
    (("README.md", "docs/tutorial.md", "tools/tests/docs.py", "tools/vmp/testing/docs_tests.py"),
     ("static", "docs")),
    (("tools/vmp/testing/series_tests.py",), ("static", "series", "releases")),
    (("tools/vmp/testing/guest_tests.py",), ("static", *GUESTS, "recording")),
    (("tools/vmp/testing/recording_tests.py",), ("static", "recording")),
    (("tools/vmp/testing/results.py", "tools/vmp/testing/faults.py"), ()),
    (("tools/ab", "tools/vmp/ab/*", "tools/workloads/*", "tools/vmscanctl", "tools/vmp/control/*",
      "tools/record", "tools/vmp/record/*", "tools/vmp/result/*"),
     ("static", "plain", "recording")),
    # The guest test of the trace events reads them with these.
    (("tools/vmp/report/trace.py", "tools/vmp/report/aggregate.py", "tools/vmp/report/match.py"),
     ("static", "plain", "recording")),
    (("tools/report", "tools/vmp/report/*", "tools/shark", "tools/kernelshark/*"),
     ("static", "recording")),
    (("tools/livepatch", "tools/vmp/livepatch/*", "tools/vmp/guest/debian.py",
      "tools/tests/debian/*", "tools/vmp/testing/debian_tests.py",
      "tools/vmp/testing/livepatch_tests.py"),
     ("static", "debian", "install")),
    (("tools/vmp/testing/install_tests.py",), ("static", "install")),
    (("tools/demo", "tools/vmp/demo/*", "tools/vmp/guest/stock.py",
      "tools/vmp/guest/initramfs.py", "tools/vmp/testing/demo_tests.py",
      "tools/vmp/testing/terminal.py"),
     ("static", "demo")),
    (("tools/tests/*", "tools/vmp/testing/*", "tools/bench",
      "tools/vmp/bench/*", "tools/experiments/*"), ("static",)),
    (("tools/debian/*", "tools/vmp/guest/deb.py", "tools/config/deb*.config", "tools/systemd/*"),
     ("static", "install")),
    (("dkms.conf", "tools/ruff.toml", "tools/mypy.ini", "tools/pytest.ini"), ("static",)),
    (("*.md", "docs/*", "tools/man/*", "tools/pictures/*", "COPYING", ".gitignore"), ("static",)),
    (("tools/vm", "tools/vmp/guest/qemu.py", "tools/vmp/guest/log.py"),
     ("static", *GUESTS, "recording")),
    (("tools/vmp/guest/objects.py", "tools/vmp/guest/trial.py", "tools/vmp/guest/porting.py"),
     ("static", "series")),
)  # fmt: skip


def can_break(path: str, offered: set[str]) -> set[str]:
    """Return the groups of those `offered` that a path can break: all, if no rule knows better."""
    for patterns, groups in RULES:
        if any(fnmatch(path, pattern) for pattern in patterns):
            return offered & set(groups or offered)
    return offered


def changed_paths(revision: str) -> list[str]:
    """Return the paths that differ from a git revision, those that git does not know too."""
    git: Words = ["git", "-C", REPO]
    try:
        listed = run([*git, "diff", "--name-only", revision, "--"], "git diff")
    except Failure as failure:
        raise Failure(f"--changed {revision}: give a revision that git knows ({failure})") from None
    listed += run([*git, "ls-files", "--others", "--exclude-standard"], "git ls-files")
    return sorted(set(listed.splitlines()))


def groups(revision: str, offered: set[str]) -> dict[str, list[str]]:
    """Return the groups that what has changed since a revision can break, each with the paths."""
    reasons: dict[str, list[str]] = {}
    for path in changed_paths(revision):
        for group in can_break(path, offered):
            reasons.setdefault(group, []).append(path)
    return reasons
