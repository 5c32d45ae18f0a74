# SPDX-License-Identifier: GPL-2.0
"""The demo's experiments: what each run is called, its command, and its goals."""

from vmp.ab.workloads import ALL, STOCK
from vmp.guest.offered import only
from vmp.result.goals import Goal

THREADS = "tools/ab --workload threads --zram 3G --slices 20 --warmup 5"
VM = "tools/ab --zram 512M --memory 64M"
PRESSURE = "tools/ab --workload pressure --lru mglru --stalls --slices 40 --seconds 3"
UNMAP = "try_to_unmap"
LIMIT = "try_to_free_mem_cgroup_pages"
# While all wait for a disk, clocks that count instructions leap ahead, by minutes if it is busy.
MEMORY_DISK = "tools/experiments/memory-disk.sh"
LARGE_POINTS = {"unmap", "young"}  # elsewhere the kernel handles large folios in batches by itself

TITLES = {
    "threads": "batched TLB flush, threads in 64 MiB, multi-gen LRU (MGLRU)",
    "threads-1g": "batched TLB flush, threads in 1 GiB, multi-gen LRU",
    "threads-classic": "batched TLB flush, threads in 64 MiB, classic LRU",
    "mglru": "batched TLB flush, processes of one thread, multi-gen LRU",
    "scan": "reclaim loop with a budget, multi-gen LRU",
    "trace": "cost of the trace events, multi-gen LRU",
    "large-lazyfree": "64 KiB folios after MADV_FREE: instructions",
    "large-anon": "64 KiB folios that are swapped out: instructions",
    "large-file": "64 KiB folios of a file: instructions",
    "large-young": "64 KiB folios of a file at a limit, young: instructions",
    "large-both": "64 KiB folios of a file at a limit, both: instructions",
}
LARGE = tuple(name for name in TITLES if name.startswith("large-"))


def instructions(functions: str, unit: str = "per_1000") -> str:
    """Return the key of the instructions of kernel functions, per 1,000 pages or per call."""
    return f"function.{functions}.instructions_{unit}"


FLUSHES = ("reclaim's own remote TLB flushes / 1,000 pages", "reclaim_flushes_per_1000", "ratio")
STOLEN = ("pages stolen / s", "stolen_per_second", "no lower")
INTERRUPTS = ("reclaim_ipis_per_1000", "remote_flushes_per_1000_anon")  # not where CPUs take none
GOALS = (
    *(
        goal
        for run, limit in (("threads", 0.03), ("threads-1g", 0.03), ("threads-classic", 0.05))
        for goal in (
            Goal(run, *FLUSHES, limit),
            Goal(run, *STOLEN),
            Goal(run, "interrupts of other CPUs / 1,000 pages", "reclaim_ipis_per_1000"),
            Goal(run, "writes / s", "operations_per_second"),
            Goal(run, "OOM kills", "oom_kill"),
        )
    ),
    Goal("mglru", "dirty TLB flushes / pageout", "dirty_flushes_per_pageout", "at most", 0.025),
    Goal("mglru", "remote TLB flushes / 1,000 anon pages", "remote_flushes_per_1000_anon", "ratio",
         0.1),
    Goal("mglru", *STOLEN),
    Goal("mglru", "flushes / deferring call", "flushes_per_call"),
    Goal("mglru", "deferred folios / deferring call", "deferred_per_call"),
    Goal("scan", "pages scanned / page stolen", "scanned_per_stolen", "lower"),
    Goal("scan", "file refaults / 1,000 pages", "refault_file_per_1000", "no higher"),
    Goal("scan", "OOM kills", "oom_kill", "at most", 0),
    Goal("scan", "ms / round", "ms_per_operation"),
    Goal("scan", "ms that a task waits for reclaim, p50", "stall_p50_ms"),
    Goal("scan", "ms that a task waits for reclaim, p99", "stall_p99_ms"),
    Goal("trace", "reclaim's instructions / 1,000 pages", instructions(LIMIT), "ratio", 1.05),
    Goal("trace", "all instructions / 1,000 pages", "instructions_per_1000"),
    Goal("large-lazyfree", "unmap", instructions(UNMAP), "ratio", 0.25),
    Goal("large-lazyfree", "whole MADV_PAGEOUT", instructions("reclaim_pages"), "ratio", 0.40),
    Goal("large-file", "unmap", instructions(UNMAP), "ratio", 0.25),
    Goal("large-anon", "unmap", instructions(UNMAP), "ratio", 0.30),
    Goal("large-anon", "whole MADV_PAGEOUT", instructions("reclaim_pages"), "ratio", 0.90),
    Goal("large-young", "folio_referenced(), a call", instructions("folio_referenced", "per_call"),
         "ratio", 0.70),
    Goal("large-young", "reclaim at a limit", instructions(LIMIT), "ratio", 0.95),
    Goal("large-both", "reclaim at a limit", instructions(LIMIT), "ratio", 0.65),
)  # fmt: skip


def asked(run: str) -> str:
    """Return ab's option for the figures of a run that have a goal."""
    return "--primary " + ",".join(goal.key for goal in GOALS if goal.run == run and goal.kind)


def commands(offered: dict[str, list[str]]) -> dict[str, str]:
    """Return the runs with several CPUs, by name, for a kernel with these points and policies."""
    old = "v6.12" if "v6.12" in offered["scan"] else "stock"
    runs = {
        "threads": f"{THREADS} --lru mglru",
        "threads-1g": f"{THREADS} --lru mglru --memory 1G",
        "threads-classic": f"{THREADS} --lru classic",
        "mglru": f"{VM} --lru mglru --slices 24",
        "scan": f"{PRESSURE} --a scan={old} --b scan=budget,aging=continue",
    }
    return {name: f"{run} {asked(name)}" for name, run in runs.items()}


def large(run: str, workload: str, points: str, functions: str, seconds: float) -> str:
    """Return the command that compares the policies of large folios by instructions."""
    a, b = (",".join(f"{p}={policy}" for p in points.split()) for policy in ("stock", "batch"))
    disk = f"{MEMORY_DISK} " if "file" in workload else ""
    swap = " --zram 512M" if run == "large-anon" else ""
    return (
        f"{disk}tools/ab --workload {workload}{swap} --slices 14 --seconds {seconds} "
        f"--warmup 0.1 --a {a} --b {b} --functions {functions} {asked(run)}"
    )


def counted(offered: dict[str, list[str]]) -> dict[str, str]:
    """Return the runs whose instructions are counted."""
    trace = f"{VM} --lru mglru --a trace=0 --b trace=1 --set {only(ALL, offered)} "
    trace += f"--functions {LIMIT} --slices 20 --seconds 0.4 --warmup 0.5 {asked('trace')}"
    found = {"trace": trace}
    if set(offered) >= LARGE_POINTS:
        for run, workload, points, functions, seconds in (
            ("large-lazyfree", "large-lazyfree", "unmap", f"{UNMAP},reclaim_pages", 0.1),
            ("large-anon", "large-anon", "unmap", f"{UNMAP},reclaim_pages", 0.1),
            ("large-file", "large-file", "unmap", f"{UNMAP},reclaim_pages", 0.3),
            ("large-young", "large-file-limit", "young", f"folio_referenced,{LIMIT}", 0.4),
            ("large-both", "large-file-limit", "unmap young", LIMIT, 0.4),
        ):
            found[run] = large(run, workload, points, functions, seconds)
    return found


def recorded(offered: dict[str, list[str]]) -> str:
    """Return the run to record: shorter, as single events are to be seen, no small differences."""
    sides = f"--a {only(STOCK, offered)} --b {only(ALL, offered)}"
    return f"{VM} --lru mglru {sides} --slices 24 --seconds 1 --stalls"
