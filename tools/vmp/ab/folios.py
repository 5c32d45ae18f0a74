# SPDX-License-Identifier: GPL-2.0
"""Having the kernel make anonymous folios of one size, as far as it can."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vmp.common import Failure
from vmp.control.counters import THP
from vmp.control.debugfs import parse_choices

DEFAULT_SIZE = "64K"
PAGE_KIB = os.sysconf("SC_PAGE_SIZE") >> 10
CHOSEN = "always"


def sizes() -> dict[int, Path]:
    """Return the files that hold when the kernel makes folios of a size, by the size in KiB."""
    files = THP.glob("hugepages-*kB/enabled")
    return {int(path.parent.name.removeprefix("hugepages-")[:-2]): path for path in files}


@contextmanager
def held_folios(kib: int) -> Iterator[None]:
    """Have folios of `kib` KiB and no others but single pages; then restore what was set.

    With the size of a page there are none but these.
    """
    found = sizes()
    if kib not in (*found, PAGE_KIB):
        offered = ", ".join(f"{size}K" for size in sorted({PAGE_KIB, *found}))
        lacks = "" if found else ", for it lacks transparent huge pages"
        raise Failure(f"this kernel makes no folios of {kib} KiB: --folio takes {offered}{lacks}")
    before = {path: parse_choices(path.read_text())[0] or "never" for path in found.values()}
    try:
        for path in found.values():
            path.write_text("never")
        if kib in found:
            found[kib].write_text(CHOSEN)
        yield
    finally:
        for path, word in before.items():
            path.write_text(word)
