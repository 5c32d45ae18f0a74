# SPDX-License-Identifier: GPL-2.0
"""The hook series as text: what they may touch, how much, and how far they differ."""

import difflib
import re

import pytest
from vmp.common import REPO

HOOKS = REPO / "kernel-hooks"
COMMON = HOOKS / "common"
SERIES = sorted(path.parent.name for path in HOOKS.glob("*/series"))
MOST_CHANGED = 250  # lines of existing files, of a series
MOST_DIFFERENT = 60


def patches(series: str) -> list[str]:
    """Return the text of a series' patches, in order."""
    names = (HOOKS / series / "series").read_text().split()
    return [(HOOKS / series / name).read_text() for name in names]


def parts(series: str) -> list[tuple[str, bool, list[str]]]:
    """Return path, newness and changed lines of each file that each patch changes."""
    found = []
    for patch in patches(series):
        for part in re.split(r"^(?=--- )", patch, flags=re.MULTILINE)[1:]:
            old, new, *rest = part.splitlines()
            lines = [line for line in rest if line[:1] in ("+", "-")]
            found.append((new.removeprefix("+++ b/"), old == "--- /dev/null", lines))
    return found


def bodies(series: str) -> list[str]:
    """Return a series' lines, without messages and line numbers."""
    diffs = (patch[patch.index("\n--- ") :] for patch in patches(series))
    return [
        line for diff in diffs for line in diff.splitlines() if not line.startswith(("@@", "---"))
    ]


@pytest.mark.parametrize("series", SERIES)
def test_few_lines_of_existing_files(series: str) -> None:
    """A reviewer reads all that changes; what is new in a series is no existing file later."""
    new = {path for path, is_new, _ in parts(series) if is_new}
    changed = sum(len(lines) for path, _, lines in parts(series) if path not in new)
    assert 0 < changed <= MOST_CHANGED


@pytest.mark.parametrize("series", SERIES)
def test_common_files_are_in_no_patch(series: str) -> None:
    """They would differ between kernels at once."""
    common = {str(path.relative_to(COMMON)) for path in COMMON.rglob("*") if path.is_file()}
    assert common
    assert not common & {path for path, _, _ in parts(series)}


@pytest.mark.parametrize("series", SERIES)
def test_first_patch_says_what_is_the_kernels_own(series: str) -> None:
    """The common files include it, and the first patch brings them."""
    assert "+++ b/mm/vmscan_stock.h\n" in patches(series)[0]


@pytest.mark.parametrize("series", SERIES)
def test_series_lists_all_patches(series: str) -> None:
    """A patch that no series names would be applied by nobody."""
    names = (HOOKS / series / "series").read_text().split()
    assert names == sorted(path.name for path in (HOOKS / series).glob("*.patch"))


def test_newest_series_differ_little() -> None:
    """A port to the next kernel is to stay an afternoon's work."""
    older, newer = sorted(SERIES, key=lambda name: [int(part) for part in name.split(".")])[-2:]
    diff = list(difflib.ndiff(bodies(older), bodies(newer)))
    different = [line for line in diff if line[:2] in ("+ ", "- ")]
    assert len(different) <= MOST_DIFFERENT, "\n".join(different)
