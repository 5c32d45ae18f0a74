#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Print what a livepatch costs reclaim while all policies are stock, in instructions.

usage: cost.py BUILT

BUILT is the directory of the livepatch. For a guest with one CPU whose clocks count instructions:
what the kernel takes for a task's time is how many it has run. A memory cgroup gets the same file
pages again and again, and the kernel is asked to take most of them: without the livepatch, with it,
and with the module, too.
"""

import json
import mmap
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROUNDS = 4
FILLED, TAKEN = 64 << 20, 48 << 20  # bytes
CGROUP = Path("/sys/fs/cgroup/cost")
TRACING = Path("/sys/kernel/tracing")
DATA = Path("data")
HOOKS, MODULE = "vmscan_policy_hooks", "vmscan_policy"
LIVEPATCH = "vmscan-policy/tools/livepatch"
# How the pages are taken that reclaim finds: one holds them in its page table, or nobody does.
KINDS = {"read": False, "mapped": True}
# In a round, in this order: what changes slowly meets all of them alike.
UNLOADED, HOOKED, LOADED = "none", "hooks", "hooks and module"
ORDER = (UNLOADED, LOADED, HOOKED, LOADED, UNLOADED)
# Of the kernel's own functions, which lead to the new ones: those have their module behind.
CALL = re.compile(r": (\w+)\S*\+0x\w+/0x\w+ <-")

Measured = dict[str, list[float]]  # by what is loaded, for 1,000 pages


@contextmanager
def filled(mapped: bool) -> Iterator[None]:
    """Have a task of the memory cgroup read the file, and map it meanwhile."""
    ready, tell = os.pipe()
    pid = os.fork()
    if not pid:
        (CGROUP / "cgroup.procs").write_text(str(os.getpid()))
        with DATA.open("rb") as data:
            if mapped:
                pages = mmap.mmap(data.fileno(), FILLED, prot=mmap.PROT_READ)
                pages[:: mmap.PAGESIZE]
            else:
                while data.read(1 << 20):
                    pass
            os.write(tell, b".")
            signal.pause()
    os.close(tell)
    try:
        if not os.read(ready, 1):
            sys.exit("the file can't be read")
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(ready)


def stolen() -> int:
    """Return how many pages reclaim has taken from the memory cgroup."""
    (CGROUP / "cpu.stat").read_text()  # adds up what the CPUs have counted
    found = re.search(r"^pgsteal (\d+)", (CGROUP / "memory.stat").read_text(), re.MULTILINE)
    return int(found[1]) if found else 0


def reclaim(mapped: bool) -> tuple[int, int]:
    """Have pages taken; returns how many, and the instructions."""
    Path("/proc/sys/vm/drop_caches").write_text("3")
    with filled(mapped):
        before = stolen()
        with (CGROUP / "memory.reclaim").open("wb", buffering=0) as file:
            begin = time.thread_time_ns()
            file.write(str(TAKEN).encode())
            took = time.thread_time_ns() - begin
        return stolen() - before, took


def switch(state: str) -> None:
    """Have the livepatch and the module there, or one, or none."""
    hooks, module = (Path("/sys/module", name).exists() for name in (HOOKS, MODULE))
    if state == UNLOADED:
        if hooks:
            subprocess.run([LIVEPATCH, "unload"], check=True)
        return
    if not hooks:
        subprocess.run([LIVEPATCH, "load"], check=True)
        module = True
    if module and state == HOOKED:
        subprocess.run(["rmmod", MODULE], check=True)
    elif not module and state == LOADED:
        subprocess.run(["insmod", Path(sys.argv[1]) / f"{MODULE}.ko"], check=True)


def measure() -> dict[str, Measured]:
    """Return the instructions for 1,000 pages, of each kind and in each state."""
    found: dict[str, Measured] = {kind: {state: [] for state in ORDER} for kind in KINDS}
    for _ in range(ROUNDS):
        for state in ORDER:
            switch(state)
            for kind, mapped in KINDS.items():
                pages, took = reclaim(mapped)
                found[kind][state].append(1000 * took / pages)
    return found


def traced(names: list[str], run: Callable[[], int]) -> tuple[Counter[str], int]:
    """Return how often functions of the kernel's own are called by what runs, and its result."""
    there = {line.split()[0] for line in (TRACING / "available_filter_functions").open()}
    (TRACING / "set_ftrace_filter").write_text("\n".join(there & set(names)))
    (TRACING / "set_ftrace_pid").write_text(str(os.getpid()))
    (TRACING / "options" / "sym-offset").write_text("1")  # and modules
    (TRACING / "buffer_size_kb").write_text("65536")
    (TRACING / "current_tracer").write_text("function")
    (TRACING / "trace").write_text("")
    result = run()
    calls = Counter(CALL.findall((TRACING / "trace").read_text()))
    (TRACING / "current_tracer").write_text("nop")
    return calls, result


def differences(values: Measured, state: str) -> list[float]:
    """Return what a state takes more than without the livepatch, round by round."""
    per_round = ORDER.count(UNLOADED)
    base = values[UNLOADED]
    own = values[state]
    each = ORDER.count(state)
    return [
        statistics.mean(own[i * each : (i + 1) * each])
        - statistics.mean(base[i * per_round : (i + 1) * per_round])
        for i in range(ROUNDS)
    ]


def main() -> None:
    """Measure, count the calls with the livepatch, and print both."""
    changed = json.loads((Path(sys.argv[1]) / "about.json").read_text())["functions"]
    CGROUP.mkdir()
    with DATA.open("wb") as data:
        data.truncate(FILLED)
    measured = measure()
    switch(LOADED)
    for kind, mapped in KINDS.items():
        calls, pages = traced(changed, lambda mapped=mapped: reclaim(mapped)[0])  # type: ignore[misc]
        called = 1000 * calls.total() / pages
        base = statistics.mean(measured[kind][UNLOADED])
        print(f"cost: {kind}: {base:,.0f} instructions for 1,000 pages without the livepatch; "
              f"{called:,.0f} calls of what it changes")  # fmt: skip
        for state in (HOOKED, LOADED):
            more = differences(measured[kind], state)
            mean = statistics.mean(more)
            print(f"cost: {kind}, {state}: {mean:+,.0f} ({min(more):+,.0f} to {max(more):+,.0f}), "
                  f"{100 * mean / base:+.1f} %, {mean / called:+.0f} a call")  # fmt: skip
        print(f"cost: {kind}: {', '.join(f'{n} {count}' for n, count in calls.most_common())}")
    switch(UNLOADED)
    CGROUP.rmdir()


main()
