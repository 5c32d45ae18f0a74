# SPDX-License-Identifier: GPL-2.0
"""Which LRU the kernel uses, and holding it at one of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vmp.common import Failure

LRU_GEN = Path("/sys/kernel/mm/lru_gen/enabled")
LRU_VALUES = {"mglru": "0x0007", "classic": "0"}


def current_lru() -> str:
    """Return which LRU the kernel uses: mglru or classic."""
    on = LRU_GEN.exists() and int(LRU_GEN.read_text(), 16) & 1
    return "mglru" if on else "classic"


@contextmanager
def held_lru(choice: str) -> Iterator[None]:
    """Hold the LRU at `choice` (mglru, classic or keep), then restore what was set."""
    if choice == "keep" or (choice == "classic" and not LRU_GEN.exists()):
        yield
        return
    if not LRU_GEN.exists():
        raise Failure("this kernel has no MGLRU: only --lru classic or keep is possible")
    before = LRU_GEN.read_text().strip()
    try:
        LRU_GEN.write_text(LRU_VALUES[choice])
        if current_lru() != choice:
            raise Failure(f"the kernel did not switch its LRU to {choice}")
        yield
    finally:
        LRU_GEN.write_text(before)
