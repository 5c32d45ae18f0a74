# SPDX-License-Identifier: GPL-2.0
"""What torture does to the kernel and to the module, while data are checked.

An action does one thing by a random number generator of its own and returns whether it was done;
it may also raise OSError when it was refused. Those of a lane are done one after the other, by a
process of the lane's own.
"""

import ctypes
import errno
import mmap
import os
import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from vmp.common import Failure, emulated
from vmp.livepatch.symbols import read_kernel
from vmp.torture.forms import WORDS
from vmp.torture.place import (
    CPUS,
    DEBUG,
    FAULTS,
    KSM,
    LRU_GEN,
    THP,
    Place,
    child,
    command,
    done,
    read,
    settings,
    value_for,
    write,
)

MIB = 1 << 20
# Seconds from one action of a lane to the next, on average.
LANES = {"settings": 0.001, "cgroups": 0.02, "kernel": 0.2, "module": 5, "pages": 0.01}
Run = Callable[[Place, random.Random], bool]
ALLOCATION_FAULTS = 1000  # at a time
AWAY = 0.1  # seconds
PINS = Path("/sys/fs/bpf/torture")
CHILD = 60  # seconds of a child: where memory.high is low, each few pages cost a sleep


@dataclass(frozen=True)
class Action:
    """One of a lane; `lacks` returns why it can't be done here, else ''."""

    lane: str
    run: Run | None  # None: an operation that the checkers' program does
    lacks: Callable[[Place], str] = lambda _: ""
    weight: int = 1
    rest: int = 0  # so many times as long as it took, its lane does nothing after it


# A probe is put into code that runs: see docs/design.md, Limits.
LEFT_OUT = ("flush/observe",) if emulated() else ()  # ends of paths


@lru_cache(maxsize=16)
def files_then(root: Path, _minute: int) -> list[Path]:
    """Return the files below a directory that can be written to; raise OSError if there are none.

    To look at them takes a slow machine a second.
    """
    if found := [path for path in settings(root) if not str(path).endswith(LEFT_OUT)]:
        return found
    # The module, or the cgroup, is not there, for a moment: to fail faster than others are
    # done would make the most of the writes such.
    time.sleep(AWAY)
    raise FileNotFoundError


def all_roots(place: Place) -> list[Path]:
    """Return the directories of the machine's settings and of cgroups'."""
    return [place.policy, *place.policy.glob("cgroups/[0-9]*")]


def any_root(place: Place, rng: random.Random) -> Path:
    """Return one of them."""
    index, roots = rng.randrange(1 << 16), all_roots(place)
    return roots[index % len(roots)]


def any_file(place: Place, rng: random.Random) -> Path:
    """Return one of the module's files, the machine's or a cgroup's, that can be written to."""
    root, index = any_root(place, rng), rng.randrange(1 << 16)
    files = files_then(root, int(time.monotonic() / 60))
    return files[index % len(files)]


def write_setting(place: Place, rng: random.Random) -> bool:
    """Write to one of the module's files."""
    path = any_file(place, rng)
    if path.parent.name == "cgroups":
        return write(path, place.any_id(rng))
    return write(path, value_for(read(path), rng))


def fuzz(place: Place, rng: random.Random) -> bool:
    """Write nonsense to one of the module's files."""
    return write(any_file(place, rng), rng.choice(WORDS))


def profile(place: Place, rng: random.Random) -> bool:
    """Set a profile, of the machine or of a cgroup."""
    path = any_root(place, rng) / "profile"
    return write(path, value_for(read(path), rng))


HOLD = 2  # seconds
held = [0.0]  # when that ended last


def hold(place: Place, rng: random.Random) -> bool:
    """Put policies in force, and leave settings alone as long as they have changed by now.

    What takes longer to go wrong has to have that time.
    """
    chosen = rng.choice(("recommended", "max", "max"))
    guard = rng.choice(("off", "armed"))  # tasks are killed all the time
    if time.monotonic() < held[0] + HOLD:
        return False
    values = {"guard/state": guard, "guard/clear": "1", "bypass": "0", "profile": chosen}
    for name, value in values.items():
        write(place.policy / name, value)
    time.sleep(HOLD)
    held[0] = time.monotonic()
    return True


def add_settings(place: Place, rng: random.Random) -> bool:
    """Give a cgroup settings of its own."""
    return write(place.policy / "cgroups/add", place.any_id(rng))


def remove_settings(place: Place, rng: random.Random) -> bool:
    """Take them away."""
    return write(place.policy / "cgroups/remove", place.any_id(rng))


def make_cgroup(place: Place, rng: random.Random) -> bool:
    """Make a memory cgroup."""
    place.cgroup(rng).mkdir()
    return True


def remove_cgroup(place: Place, rng: random.Random) -> bool:
    """End what runs in a memory cgroup, and remove it."""
    cgroup = place.cgroup(rng)
    write(cgroup / "cgroup.kill", "1")
    for _ in range(100):
        with suppress(OSError):
            cgroup.rmdir()
            return True
        time.sleep(0.01)
    return False


def load(place: Place, rng: random.Random) -> bool:
    """Have memory of a process and of a file used in a cgroup, and some of it reclaimed."""
    cgroup, size = place.cgroup(rng), rng.randrange(1, 9) * MIB
    name = place.files / f"load-{rng.randrange(4)}"

    def work() -> None:
        write(cgroup / "cgroup.procs", "0")
        memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory.write(b"x" * size)
        with open(name, "wb", 0) as file:
            file.write(memory[: size // 2])
        for _ in range(20):
            memory.seek(0)
            memory.write(b"y" * size)

    return done(child(work, CHILD))


def move(place: Place, rng: random.Random) -> bool:
    """Move a process that uses memory from one cgroup to another."""
    source, target = place.cgroup(rng), place.cgroup(rng)

    def work() -> None:
        memory = mmap.mmap(-1, 2 * MIB, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        for cgroup in (source, target, source, target):
            with suppress(OSError):
                write(cgroup / "cgroup.procs", "0")
            memory.seek(0)
            memory.write(b"x" * len(memory))

    return done(child(work, CHILD))


def limit(place: Place, rng: random.Random) -> bool:
    """Change a limit or a protection; the checkers get none that an OOM kill may follow."""
    cgroup = place.any_cgroup(rng)
    name = rng.choice(("memory.high", "memory.max", "memory.low", "memory.min"))
    value = rng.choice(("max", "0", str(rng.randrange(1, 64) * MIB)))
    if cgroup == place.checked and name in ("memory.high", "memory.max"):
        name, value = "memory.high", rng.choice(("max", "max", "64M"))
    if name in ("memory.low", "memory.min") and value == "max":
        value = "0"
    return write(cgroup / name, value)


def reclaim(place: Place, rng: random.Random) -> bool:
    """Reclaim from a cgroup, from all of them, or a little from the machine."""
    cgroup = rng.choice((place.checked, place.checked, place.cgroup(rng), place.top))
    size = rng.randrange(1, 16) * MIB
    if not rng.randrange(20):
        cgroup, size = place.top.parent, MIB // 4
    return write(cgroup / "memory.reclaim", str(size))


def age(place: Place, rng: random.Random) -> bool:
    """Make a generation, in a cgroup."""
    wanted = f"/{place.any_cgroup(rng).relative_to('/sys/fs/cgroup')}"
    for part in read(DEBUG / "lru_gen").split("memcg")[1:]:
        words = part.split()
        if len(words) > 4 and words[1] == wanted:
            node, *generations = part.split(" node ")[1].strip().splitlines()
            newest = generations[-1].split()[0]
            return write(DEBUG / "lru_gen", f"+ {words[0]} {node} {newest}")
    return False


def plug_in(place: Place, rng: random.Random) -> bool:
    """Load a module with another policy and choose that, or unload the module."""
    root = any_root(place, rng)
    if rng.random() < 0.3:
        return unplug(place)
    command("insmod", place.plugin)
    return write(root / "flush/policy", Path(place.plugin).stem)


def unplug(place: Place) -> bool:
    """Choose that policy nowhere, and unload its module."""
    for root in all_roots(place):
        with suppress(OSError):
            write(root / "flush/policy", "stock")
    return command("rmmod", Path(place.plugin).stem)


def load_program(place: Place, rng: random.Random) -> bool:
    """Load a BPF program that is a policy and choose that, or unload it; a loader may die."""
    root, draw, life = any_root(place, rng), rng.random(), f"{3 * rng.random():.3f}"
    if draw < 0.3:
        return unload_program()
    loader = f"{place.bpf}/bpftool", "struct_ops", "register", f"{place.bpf}/half.bpf.o", PINS
    if draw < 0.6:
        return command("timeout", "--signal", "KILL", life, *loader)
    command(*loader)
    return write(root / "flush/policy", "bpf-half")


def unload_program() -> bool:
    """Unload it."""
    for link in PINS.glob("*"):
        with suppress(OSError):
            link.unlink()
    return True


def remove_module(place: Place) -> bool:
    """Remove the module; before it what needs it."""
    if command("rmmod", "vmscan_policy"):
        return True
    unload_program()
    return bool(place.plugin) and unplug(place) and command("rmmod", "vmscan_policy")


def reload(place: Place, rng: random.Random) -> bool:
    """Remove the module, load it again, and set a profile."""
    pause, chosen = rng.random() / 10, rng.choice(("recommended", "max", "stock"))
    end = time.monotonic() + 60
    # Somebody may have a file of it open for a moment.
    while not remove_module(place):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    time.sleep(pause)
    if not command("insmod", place.module):
        raise Failure("the module can't be loaded again")
    # Else all were stock, for as long as it takes until each point is come to.
    return write(place.policy / "profile", chosen)


def cpu(_: Place, rng: random.Random) -> bool:
    """Take a CPU away, and bring it back."""
    switches = sorted(CPUS.glob("cpu[0-9]*/online"))
    switch = switches[rng.randrange(1 << 16) % len(switches)]
    write(switch, "0")
    time.sleep(rng.random())
    return write(switch, "1")


def swap(place: Place, _: random.Random) -> bool:
    """Bring back all that was swapped out, and go on swapping."""
    off = command("swapoff", place.swap)
    return command("swapon", place.swap) and off


def swap_faults(place: Place, rng: random.Random) -> bool:
    """Swap to a device whose writes fail now and then, for a while."""
    if not command("swapon", "--priority", "100", place.faulty_swap):
        return False
    time.sleep(1 + rng.random() * 3)
    return command("swapoff", place.faulty_swap)


def disk_faults(place: Place, rng: random.Random) -> bool:
    """Write to a disk whose writes fail now and then; done when one has failed."""
    offset = rng.randrange(8) * MIB
    descriptor = os.open(place.faulty_disk, os.O_RDWR)
    try:
        os.pwrite(descriptor, b"z" * MIB, offset)
        os.fsync(descriptor)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


# Of the guest's own file system. Where 9p has no memory for a request, as to forget a file that
# reclaim has put out of memory, it gives the file's number, which the server still knows, to the
# next: that one is EINVAL, time and again.
SPARED = "p9_client_prepare_req"


@lru_cache(maxsize=1)
def spared() -> dict[str, str]:
    """Return what injected faults have to be told to spare that function, if it is there."""
    kernel = read_kernel(read(Path("/proc/kallsyms")))
    if SPARED not in kernel.addresses:
        return {}
    start = kernel.addresses[SPARED][0]
    end = next(address for address, *_ in kernel.entries if address > start)
    return {"reject-start": f"{start:#x}", "reject-end": f"{end:#x}"}


def allocation_faults(place: Place, rng: random.Random) -> bool:
    """Have allocations of one process fail that writes settings and reclaims."""
    fault = rng.choice(FAULTS)
    values = {**spared(), "task-filter": "Y", "ignore-gfp-wait": "N", "verbose": "0",
              "interval": "1", "min-order": "0", "times": str(ALLOCATION_FAULTS),
              "probability": str(rng.choice((1, 5, 20)))}  # fmt: skip
    for name, value in values.items():
        if (fault / name).exists():
            write(fault / name, value)
    seed = rng.random()

    def work() -> None:
        own = random.Random(seed)
        write(Path("/proc/self/make-it-fail"), "1")
        for _ in range(20):
            with suppress(OSError, MemoryError):
                (write_setting, write_setting, add_settings, reclaim)[own.randrange(4)](place, own)

    pid = child(work, CHILD)
    done(pid)
    write(fault / "probability", "0")
    return read(fault / "times").strip() != str(ALLOCATION_FAULTS)


def compact(_: Place, _rng: random.Random) -> bool:
    """Compact all memory."""
    return write(Path("/proc/sys/vm/compact_memory"), "1")


def drop_caches(_: Place, rng: random.Random) -> bool:
    """Drop clean pages and inodes."""
    return write(Path("/proc/sys/vm/drop_caches"), rng.choice("123"))


def thp(_: Place, rng: random.Random) -> bool:
    """Change which sizes of huge pages there are, and for whom."""
    files = [THP / "enabled", THP / "shmem_enabled", THP / "defrag"]
    files += sorted(THP.glob("hugepages-*/*enabled"))
    path = files[rng.randrange(1 << 16) % len(files)]
    names = read(path).replace("[", " ").replace("]", " ").split()
    # "force" and "deny" are for all of shmem at once, of which there is more than ours.
    words = [name for name in names if name not in ("force", "deny")]
    return bool(words) and write(path, rng.choice(words))


def khugepaged(_: Place, rng: random.Random) -> bool:
    """Have it look for what can be a huge page all the time, or seldom."""
    write(THP / "khugepaged/alloc_sleep_millisecs", "0")
    write(THP / "khugepaged/pages_to_scan", str(rng.choice((64, 4096))))
    return write(THP / "khugepaged/scan_sleep_millisecs", str(rng.choice((0, 10, 10000))))


def ksm(_: Place, rng: random.Random) -> bool:
    """Have it merge pages, stop, or take them apart again."""
    write(KSM / "pages_to_scan", "1000")
    return write(KSM / "run", rng.choice("012"))


def lru(_: Place, rng: random.Random) -> bool:
    """Go over to the other LRU, or to a part of the multi-gen one."""
    return write(LRU_GEN, rng.choice(("n", "y", "1", "5", "7")))


def forks(place: Place, rng: random.Random) -> bool:
    """Fork many processes at once that write to memory that they share until then."""
    number = rng.randrange(8, 32)
    memory = mmap.mmap(-1, MIB, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.write(b"x" * MIB)

    def work() -> None:
        with suppress(OSError):
            write(place.cgroup(rng) / "cgroup.procs", "0")
        memory.seek(0)
        memory.write(b"y" * MIB)

    return all([done(pid) for pid in [child(work, CHILD) for _ in range(number)]])


def lacks_cross_memory(_: Place) -> str:
    """Return why a process can't read another's memory in one call."""
    nowhere = ctypes.CDLL(None, use_errno=True).process_vm_readv(os.getpid(), 0, 0, 0, 0, 0)
    lacks = nowhere < 0 and ctypes.get_errno() == errno.ENOSYS
    return "CONFIG_CROSS_MEMORY_ATTACH" if lacks else ""


def needs(path: Path | str, what: str) -> Callable[[Place], str]:
    """Return a `lacks` for what is there with a path."""
    return lambda _: "" if Path(path).exists() else what


def lacks_nodes(_: Place) -> str:
    """Return why pages can't be migrated to another node."""
    nodes = list(Path("/sys/devices/system/node").glob("node[0-9]*"))
    return "" if len(nodes) > 1 else "a second node (vm --numa 2)"


def operation(weight: int = 1, lacks: Callable[[Place], str] = lambda _: "") -> Action:
    """Return an operation on pages that are checked."""
    return Action("pages", None, lacks, weight)


NO_FAULTS = (
    "CONFIG_FAILSLAB, CONFIG_FAIL_PAGE_ALLOC, CONFIG_FAULT_INJECTION_DEBUG_FS and "
    "CONFIG_FAULT_INJECTION_STACKTRACE_FILTER"
)
ACTIONS = {
    "write": Action("settings", write_setting, weight=20),
    "fuzz": Action("settings", fuzz, weight=2),
    "profile": Action("settings", profile, weight=5),
    "hold": Action("settings", hold, weight=4),
    "settings-add": Action("cgroups", add_settings, weight=2),
    "settings-remove": Action("cgroups", remove_settings),
    "cgroup-make": Action("cgroups", make_cgroup, weight=2),
    "cgroup-remove": Action("cgroups", remove_cgroup),
    "load": Action("cgroups", load, weight=2),
    "move-task": Action("cgroups", move),
    "limit": Action("cgroups", limit, weight=2),
    "reclaim": Action("cgroups", reclaim, weight=4),
    "age": Action("cgroups", age, needs(DEBUG / "lru_gen", "the multi-gen LRU")),
    "forks": Action("cgroups", forks),
    "module": Action("module", reload, rest=3),
    "cpu": Action("kernel", cpu, needs(CPUS / "cpu1/online", "a CPU that can go")),
    "swap": Action("kernel", swap),
    "swap-faults": Action("kernel", swap_faults,
                          lambda place: "" if place.faulty_swap else "dm-flakey"),
    "disk-faults": Action("kernel", disk_faults,
                          lambda place: "" if place.faulty_disk else "dm-flakey"),
    "allocation-faults": Action("kernel", allocation_faults,
                                needs(FAULTS[0] / "reject-start", NO_FAULTS)),
    "program": Action("kernel", load_program,
                      lambda place: "" if place.bpf else "BPF programs, built: --bpf",
                      weight=4),
    "plug-in": Action("kernel", plug_in,
                      lambda place: "" if place.plugin else "tools/samples, built",
                      weight=2),
    "compact": Action("kernel", compact),
    "drop-caches": Action("kernel", drop_caches),
    "thp": Action("kernel", thp, needs(THP, "huge pages")),
    "khugepaged": Action("kernel", khugepaged, needs(THP / "khugepaged", "khugepaged")),
    "ksm": Action("kernel", ksm, needs(KSM, "CONFIG_KSM")),
    "lru": Action("kernel", lru, needs(LRU_GEN, "the multi-gen LRU")),
    "pageout": operation(6),
    "cold": operation(),
    "free": operation(2),
    "dontneed": operation(),
    "punch": operation(),
    "mlock": operation(2),
    "protect": operation(),
    "remap": operation(),
    "move": operation(2),
    "vmread": operation(1, lacks_cross_memory),
    "vmwrite": operation(1, lacks_cross_memory),
    "ptrace": operation(),
    "odirect": operation(2),
    "fork": operation(2),
    "sync": operation(),
    "split": operation(1, needs(DEBUG / "split_huge_pages", "split_huge_pages in debugfs")),
    "collapse": operation(1, needs(THP, "huge pages")),
    "merge": operation(1, needs(KSM, "CONFIG_KSM")),
    "migrate": operation(1, lacks_nodes),
}  # fmt: skip
# No kernel's fault: the checkers find a write that never was. To try the tool itself.
SPOIL = "spoil"
KNOWN = {**ACTIONS, SPOIL: operation()}
