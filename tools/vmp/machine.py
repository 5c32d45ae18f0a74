"""What an A/B run sets up on the machine and takes down again: a memcg, the LRU, zram, a disk."""

import errno
import os
import re
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vmp.common import Failure, Words, mount_points, run

LRU_GEN = Path("/sys/kernel/mm/lru_gen/enabled")
LRU_VALUES = {"mglru": "0x0007", "classic": "0"}
FREEZE_TIMEOUT = 30  # seconds
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parse_size(text: str) -> int:
    """Return a size such as 64M in bytes; raise ValueError for another form or 0."""
    match = re.fullmatch(r"(\d+)([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    size = int(match[1]) * UNITS[match[2].upper()] if match else 0
    if not size:
        raise ValueError(f"'{text}' is no size: write a number with K, M or G, as in 64M")
    return size


def cgroup2_root() -> Path:
    """Return where cgroup2 with the memory controller is mounted."""
    for root in mount_points("cgroup2"):
        if "memory" in (root / "cgroup.controllers").read_text().split():
            return root
    raise Failure(
        "there is no cgroup2 with the memory controller: mount one with "
        "`mount -t cgroup2 none /sys/fs/cgroup`, on a system without cgroup v1 memory"
    )


class Memcg:
    """A fresh memory cgroup with a limit, and the workload in it.

    As a context it removes the cgroup at the end, and kills all that runs in it before.
    """

    def __init__(self, name: str, limit: int, swap: bool) -> None:
        """Choose the cgroup's name, its memory.max in bytes and if it may swap; make nothing."""
        self.root = cgroup2_root()
        self.path = self.root / name
        self.limit = limit
        self.swap = swap
        self.child: subprocess.Popen[bytes] | None = None
        self.output = tempfile.TemporaryFile()

    def __enter__(self) -> "Memcg":
        (self.root / "cgroup.subtree_control").write_text("+memory")
        self.path.mkdir()
        return self

    def start(self, command: list[str]) -> None:
        """Start the workload inside the cgroup; its output is kept for the error message."""
        (self.path / "memory.max").write_text(str(self.limit))
        swap_max = self.path / "memory.swap.max"
        if not self.swap and swap_max.exists():  # a kernel without swap has no such file
            swap_max.write_text("0")
        procs = self.path / "cgroup.procs"
        try:
            self.child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self.output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=lambda: procs.write_text("0"),
            )
        except OSError as error:
            raise Failure(
                f"cannot start the workload '{command[0]}': {(error.strerror or '').lower()}"
            ) from None

    def require_alive(self) -> None:
        """Raise Failure when the workload has ended."""
        status = self.child.poll() if self.child else None
        if status is None:
            return
        self.output.seek(0)
        last = self.output.read().decode(errors="replace").strip().rpartition("\n")[2]
        raise Failure(
            f"the workload ended with status {status} during the run; it has to run until it is "
            f"killed" + (f"; its last line was: {last}" if last else "")
        )

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop all tasks in the cgroup, as soon as each leaves the kernel, and let them go on."""
        freezer = self.path / "cgroup.freeze"
        freezer.write_text("1")
        try:
            deadline = time.monotonic() + FREEZE_TIMEOUT
            while "frozen 1" not in (self.path / "cgroup.events").read_text():
                if time.monotonic() > deadline:
                    raise Failure(f"the workload's tasks don't stop within {FREEZE_TIMEOUT} s")
                time.sleep(0.01)
            yield
        finally:
            freezer.write_text("0")

    def stolen(self) -> int:
        """Return the pages that reclaim has taken from the cgroup."""
        text = (self.path / "memory.stat").read_text()
        found = re.search(r"^pgsteal (\d+)$", text, re.MULTILINE)
        return int(found[1]) if found else 0

    def __exit__(self, *_: object) -> None:
        if self.path.exists():
            (self.path / "cgroup.kill").write_text("1")
            if self.child:
                self.child.wait()
            deadline = time.monotonic() + 60
            while "populated 1" in (self.path / "cgroup.events").read_text():
                if time.monotonic() > deadline:
                    raise Failure(f"tasks in {self.path} do not end: look at them and rmdir it")
                time.sleep(0.05)
            self.path.rmdir()
        self.output.close()


def current_lru() -> str:
    """Return which LRU the kernel uses: mglru or classic."""
    on = LRU_GEN.exists() and int(LRU_GEN.read_text(), 16) & 1
    return "mglru" if on else "classic"


@contextmanager
def lru(choice: str) -> Iterator[None]:
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


def require_blank(device: Path) -> None:
    """Raise Failure unless `device` is a block device that is not in use and looks empty."""
    try:
        is_block = stat.S_ISBLK(device.stat().st_mode)
    except FileNotFoundError:
        raise Failure(
            f"there is no {device}: name a blank disk with --disk, it will be overwritten "
            "(a guest gets one by `tools/vm --disk 2G:400`)"
        ) from None
    if not is_block:
        raise Failure(f"{device} is no block device: name a blank disk with --disk")
    try:
        os.close(os.open(device, os.O_RDONLY | os.O_EXCL))  # fails while anything uses the device
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        raise Failure(f"{device} is in use: name a blank disk with --disk") from None
    probe: Words = ["wipefs", "--no-act", "--noheadings", "--output", "TYPE", device]
    found = run(probe, f"looking at {device}").split()
    if found:
        raise Failure(
            f"{device} is not blank, it has {', '.join(found)}: name another disk with --disk, "
            f"or run `wipefs --all {device}` if nothing on it is needed"
        )


@contextmanager
def ext4(device: Path, directory: Path) -> Iterator[None]:
    """Make ext4 on the blank `device` and mount it on `directory`; blank the device in the end."""
    require_blank(device)
    # All is written now: the kernel would go on with that in the background.
    options = ["-q", "-F", "-N", "64", "-E", "lazy_itable_init=0,lazy_journal_init=0"]
    try:
        run(["mkfs.ext4", *options, device], f"making ext4 on {device}")
        run(["mount", "-t", "ext4", device, directory], f"mounting {device}")
        try:
            yield
        finally:
            for path in directory.iterdir():  # dirty pages need not be written any more
                if path.is_file():
                    path.unlink()
            run(["umount", directory], f"unmounting {device}")
    finally:
        run(["wipefs", "--quiet", "--all", device], f"blanking {device}")
