# SPDX-License-Identifier: GPL-2.0
"""What the kernel has that a module leaves behind if it forgets: compared before and after."""

import mmap
import os
import re
from collections import Counter
from contextlib import suppress
from pathlib import Path

from vmp.common import Failure
from vmp.control.counters import parse_pairs
from vmp.torture.place import DEBUG, Place, child, done, read, write

TRACING = Path("/sys/kernel/tracing")
INSTANCE = TRACING / "instances/vmp-torture"
KERNEL_THREAD = 0x200000  # PF_KTHREAD
# Workers come and go, and so do threads of disks.
PASSING = re.compile(r"kworker/[u\d]|loop\d|xfs|jbd2|dm|kdmflush|kcopyd|kmpath|cpuhp|migration")
SIZE = 8 << 20


def threads() -> set[str]:
    """Return the names of the kernel's threads that stay; others of a name are numbered."""
    found = Counter[str]()
    for path in Path("/proc").glob("[0-9]*/stat"):
        name, _, rest = read(path).partition("(")[2].rpartition(")")
        fields = rest.split()
        if len(fields) > 6 and int(fields[6]) & KERNEL_THREAD and not PASSING.match(name):
            found[name] += 1
    return {f"{name} {number}" for name, count in found.items() for number in range(1, count + 1)}


def scanned(cgroup: Path) -> int:
    """Return how many pages of a memory cgroup reclaim has looked at."""
    return parse_pairs(read(cgroup / "memory.stat"), ["pgscan"]).get("pgscan", 0)


def functions(place: Place) -> set[str]:
    """Return the hooks' functions that reclaim calls: none of a branch that is off."""
    with suppress(FileExistsError):
        INSTANCE.mkdir()
    try:
        write(INSTANCE / "set_ftrace_filter", "vmscan_*")
        write(INSTANCE / "current_tracer", "function")

        def work() -> None:
            write(place.checked / "cgroup.procs", "0")
            memory = mmap.mmap(-1, SIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            memory.write(b"x" * SIZE)
            with suppress(BlockingIOError):  # it got less, as where writes to swap fail
                write(place.checked / "memory.reclaim", str(SIZE // 2))

        before = scanned(place.checked)
        if not done(child(work)) or scanned(place.checked) == before:
            raise Failure("nothing is reclaimed to see which functions are called")
        called = re.findall(r": (vmscan_\w+) <-", read(INSTANCE / "trace"))
        write(INSTANCE / "current_tracer", "nop")
    finally:
        INSTANCE.rmdir()
    return set(called)


def state(place: Place) -> dict[str, set[str]]:
    """Return what there is now, by what it is called in a message."""
    found = {
        "threads": threads(),
        "files in debugfs": set(os.listdir(DEBUG)),
        "probes": {line.split()[-1] for line in read(DEBUG / "kprobes/list").splitlines()},
        "modules": {line.split()[0] for line in read(Path("/proc/modules")).splitlines()},
        "trace events": set(os.listdir(TRACING / "events")),
        "traced functions": set(read(TRACING / "enabled_functions").split("\n")),
    }
    if "vmscan_" in read(TRACING / "available_filter_functions"):
        found["branches that are on, by functions called"] = functions(place)
    return found


def left(before: dict[str, set[str]], after: dict[str, set[str]]) -> str:
    """Return what is there after that was not before, as a sentence; '' for nothing."""
    more = {name: after[name] - old for name, old in before.items()}
    return "; ".join(f"{name}: {', '.join(sorted(new))}" for name, new in more.items() if new)
