# SPDX-License-Identifier: GPL-2.0
"""cgroups-race.py SECONDS CGROUPS TOP SETTINGS FILES SEED: cgroups and settings, all at once.

Workers make memory cgroups below TOP, fill them, give them settings in SETTINGS (the module's
cgroups/), change these, set limits, reclaim, age, take the settings away and remove them, at random
by the number SEED and each the same ones. Meanwhile the settings of the machine change. Prints how
often each was done.
"""

import mmap
import os
import random
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

SECONDS, NUMBER = float(sys.argv[1]), int(sys.argv[2])
TOP, SETTINGS, FILES = map(Path, sys.argv[3:6])
SEED = int(sys.argv[6])
WORKERS = 4
# As often as they are here.
ACTIONS = (
    "make make fill fill add add set set set set limit reclaim age forget remove machine"
).split()
SIZE = 1 << 20  # bytes of memory, and of files, that a cgroup has at first
POLICIES = {
    "profile": ("stock", "recommended", "max"),
    "flush/policy": ("stock", "batch"),
    "flush/max_folios": ("1", "8", "64", "4096"),
    "flush/span": ("0", "1"),
    "scan/policy": ("stock", "budget"),
    "scan/batch": ("1", "64", "4096"),
    "scan/floor": ("0", "256", "4096"),
    "aging/policy": ("stop", "continue"),
    "writeback/policy": ("stock", "feedback"),
    "throttle/policy": ("stock", "memcg", "all"),
    "unmap/policy": ("stock", "batch"),
    "young/policy": ("stock", "batch"),
}
done: dict[str, int] = {}
end = time.monotonic() + SECONDS


def write(path: Path, text: str) -> bool:
    """Write to a file that may have gone, or refuse."""
    try:
        path.write_text(text)
    except OSError:
        return False
    return True


def fill(cgroup: Path) -> bool:
    """Leave memory of a file in a cgroup, and have memory of a process reclaimed with it."""
    pid = os.fork()
    if pid:
        return os.waitpid(pid, 0)[1] == 0
    with suppress(OSError):
        (cgroup / "cgroup.procs").write_text("0")
        memory = mmap.mmap(-1, SIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory.write(b"x" * SIZE)
        with open(FILES / cgroup.name, "wb", 0) as file:
            file.write(memory)
        (cgroup / "memory.reclaim").write_text(str(SIZE))
    os._exit(0)


def age(cgroup: Path) -> bool:
    """Make a generation."""
    name = f"/{cgroup.relative_to('/sys/fs/cgroup')}"
    lines = Path("/sys/kernel/debug/lru_gen").read_text().split("memcg")
    for line in lines:
        words = line.split()
        if len(words) > 4 and words[1] == name:
            newest = [word.split()[0] for word in line.splitlines()[2:] if word.strip()][-1]
            return write(Path("/sys/kernel/debug/lru_gen"), f"+ {words[0]} 0 {newest}")
    return False


def remove(cgroup: Path) -> bool:
    """Remove a cgroup, and its file."""
    try:
        cgroup.rmdir()
    except OSError:
        return False
    with suppress(OSError):
        (FILES / cgroup.name).unlink()
    return True


def make(cgroup: Path) -> bool:
    """Make a cgroup."""
    try:
        cgroup.mkdir()
    except OSError:
        return False
    return True


def act(choose: random.Random, cgroup: Path) -> None:
    """Do one thing with a cgroup."""
    name = choose.choice(ACTIONS)
    try:
        number = str(cgroup.stat().st_ino)
    except OSError:
        name = "make" if name != "machine" else name
        number = "0"
    file, values = choose.choice(list(POLICIES.items()))
    value = choose.choice(values)
    actions: dict[str, Callable[[], bool]] = {
        "make": lambda: make(cgroup),
        "fill": lambda: fill(cgroup),
        "add": lambda: write(SETTINGS / "add", number),
        "set": lambda: write(SETTINGS / number / file, value),
        "limit": lambda: write(cgroup / "memory.max", choose.choice(("256K", "2M", "max"))),
        # seldom as much as that
        "reclaim": lambda: write(cgroup / "memory.reclaim", "512K") or True,
        "age": lambda: age(cgroup),
        "forget": lambda: write(SETTINGS / "remove", number),
        "remove": lambda: remove(cgroup),
        "machine": lambda: write(SETTINGS.parent / file, value),
    }
    done[name] = done.get(name, 0) + actions[name]()


def work(seed: int) -> None:
    """Do things at random, until the end."""
    choose = random.Random(seed)
    while time.monotonic() < end:
        act(choose, TOP / f"race-{choose.randrange(NUMBER)}")


workers = []
for worker in range(WORKERS):
    workers.append(os.fork())
    if not workers[-1]:
        work(SEED * WORKERS + worker)
        print(*(f"{name} {count}" for name, count in sorted(done.items())), sep=", ", flush=True)
        os._exit(0)
failed = sum(os.waitpid(pid, 0)[1] != 0 for pid in workers)
sys.exit(bool(failed))
