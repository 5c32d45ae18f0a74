# SPDX-License-Identifier: GPL-2.0
"""Swap areas, and one of zram for the time of a run."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vmp.common import run


def swap_areas() -> list[str]:
    """Return the swap devices and files in use."""
    return [line.split()[0] for line in Path("/proc/swaps").read_text().splitlines()[1:]]


@contextmanager
def zram(size: int) -> Iterator[None]:
    """Add a zram device of `size` bytes as the preferred swap, then remove it again."""
    hot_add = Path("/sys/class/zram-control/hot_add")
    if not hot_add.exists():
        run(["modprobe", "zram"], "loading zram")
    device_id = hot_add.read_text().strip()
    device = f"/dev/zram{device_id}"
    try:
        Path(f"/sys/block/zram{device_id}/disksize").write_text(str(size))
        run(["mkswap", device], "making swap on zram")
        run(["swapon", "--priority", "32767", device], "swapping to zram")
        yield
    finally:
        if device in swap_areas():
            run(["swapoff", device], "ending swap to zram")
        Path("/sys/class/zram-control/hot_remove").write_text(device_id)
