# SPDX-License-Identifier: GPL-2.0
"""Trees of Debian's suites, by mmdebstrap."""

from pathlib import Path

from vmp.common import Words, run
from vmp.guest.sources import KEYRING, suite_lines


def bootstrap(
    suite: str, tree: Path, what: str, *options: str | Path, lists: Path | None = None
) -> None:
    """Make the tree of a suite, with options of mmdebstrap's; `what` is what failed if it does.

    Packages come from the suite with security and backports, as a file `lists` is to say;
    without one from where mmdebstrap takes them by itself.
    """
    # What it mounts in the tree is gone with it, even if it is killed.
    words: Words = ["unshare", "--mount", "mmdebstrap", f"--keyring={KEYRING}"]
    words += ['--aptopt=Acquire::Check-Valid-Until "false"', *options, suite, tree]
    if lists:
        lists.write_text("\n".join(suite_lines(suite)) + "\n")
        words.append(lists)
    run(words, what)
