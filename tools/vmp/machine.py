"""What an A/B run sets up on the machine: a memcg, the LRU and zram swap, and takes down again."""

import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vmp.common import Failure, run

LRU_GEN = Path("/sys/kernel/mm/lru_gen/enabled")
LRU_VALUES = {"mglru": "0x0007", "classic": "0"}
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
    lines = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    for root in (Path(fields[1]) for fields in lines if fields[2] == "cgroup2"):
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

    def __init__(self, name: str, limit: int) -> None:
        """Choose the cgroup's name and its memory.max in bytes; nothing is made yet."""
        self.root = cgroup2_root()
        self.path = self.root / name
        self.limit = limit
        self.child: subprocess.Popen | None = None
        self.output = tempfile.TemporaryFile()

    def __enter__(self) -> "Memcg":
        (self.root / "cgroup.subtree_control").write_text("+memory")
        self.path.mkdir()
        return self

    def start(self, command: list[str]) -> None:
        """Start the workload inside the cgroup; its output is kept for the error message."""
        (self.path / "memory.max").write_text(str(self.limit))
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
