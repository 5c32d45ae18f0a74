# SPDX-License-Identifier: GPL-2.0
"""What the demo's tables say: which goals held, and the figures that tell."""

from typing import Any

from vmp.ab.significance import SIGNIFICANT

TITLES = {
    "threads": "batched TLB flush, threads in 64 MiB, multi-gen LRU (MGLRU)",
    "threads-1g": "batched TLB flush, threads in 1 GiB, multi-gen LRU",
    "threads-classic": "batched TLB flush, threads in 64 MiB, classic LRU",
    "mglru": "batched TLB flush, processes of one thread, multi-gen LRU",
    "scan": "reclaim loop with a budget, multi-gen LRU",
    "trace": "cost of the trace events, multi-gen LRU",
}
OWN_DOWN = {"threads": 97, "threads-1g": 97, "threads-classic": 95}  # percent, reclaim's own
FLUSHES_AT_MOST = 0.025  # dirty TLB flushes per pageout
REMOTE_DOWN = 90  # percent, per 1,000 stolen anon pages
TRACE_COST = 5  # percent of the instructions of reclaim, at most
RECLAIM = "function.try_to_free_mem_cgroup_pages.instructions_per_1000"


def find(report: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the report's row `key`."""
    every = (row for rows in report["summary"].values() for row in rows)
    found: dict[str, Any] = next(row for row in every if row["key"] == key)
    return found


def figure(value: float | None, form: str) -> str:
    """Format a figure, '-' for one that could not be had."""
    return "-" if value is None else format(value, form)


def no_higher(report: dict[str, Any], key: str, what: str) -> tuple[bool, str]:
    """Return whether the row `key` did not rise beyond the noise, and its figures."""
    row = find(report, key)
    higher = row["percent"] is None or row["percent"] > 0
    significant = row["p"] is None or row["p"] < SIGNIFICANT
    noise = " (higher, but within the noise)" if higher and not significant else ""
    return (
        row["after"] is not None and not (higher and significant),
        f"{what}: {figure(row['before'], '.4g')} before, {figure(row['after'], '.4g')} after, "
        f"{figure(row['percent'], '+.1f')} %, p = {figure(row['p'], '.2g')}{noise}; "
        "goal: no higher",
    )


def scan_goals(report: dict[str, Any]) -> list[tuple[bool, str]]:
    """Return for each goal of the reclaim loop whether it held, and the figures."""
    scanned, kills = find(report, "scanned_per_stolen"), find(report, "oom_kill")
    lower = scanned["percent"] is not None and scanned["percent"] < 0
    significant = scanned["p"] is not None and scanned["p"] < SIGNIFICANT
    noise = " (lower, but within the noise)" if lower and not significant else ""
    return [
        (
            lower and significant,
            f"pages scanned per page stolen: {figure(scanned['before'], '.3f')} before, "
            f"{figure(scanned['after'], '.3f')} after, {figure(scanned['percent'], '+.1f')} %, "
            f"p = {figure(scanned['p'], '.2g')}{noise}; goal: lower",
        ),
        no_higher(report, "refault_file_per_1000", "file refaults per 1,000 stolen pages"),
        (
            kills["after"] == 0,
            f"OOM kills: {figure(kills['before'], '.0f')} before, "
            f"{figure(kills['after'], '.0f')} after; goal: none",
        ),
    ]


def scan_remark(report: dict[str, Any]) -> str:
    """Return the figures of the reclaim loop that have no goal."""
    rows = {key: find(report, key) for key in ("ms_per_operation", "stall_p50_ms", "stall_p99_ms")}
    shown = [
        f"{figure(row['before'], '.3g')} -> {figure(row['after'], '.3g')} ms"
        for row in rows.values()
    ]
    return f"time per round {shown[0]}; a task waits for reclaim {shown[1]} (p50), {shown[2]} (p99)"


def down(report: dict[str, Any], key: str, what: str, least: float) -> tuple[bool, str]:
    """Return whether the row `key` fell by so many percent, and its figures."""
    row = find(report, key)
    return (
        row["percent"] is not None and row["percent"] <= -least,
        f"{what}: {figure(row['before'], '.1f')} before, {figure(row['after'], '.1f')} after, "
        f"{figure(row['percent'], '+.1f')} %; goal: down by {least} % or more",
    )


def no_slower(report: dict[str, Any]) -> tuple[bool, str]:
    """Return whether no fewer pages were stolen, beyond the noise, and the figures."""
    stolen = find(report, "stolen_per_second")
    slower = stolen["percent"] is None or stolen["percent"] < 0
    significant = stolen["p"] is None or stolen["p"] < SIGNIFICANT
    noise = " (lower, but within the noise)" if slower and not significant else ""
    return (
        not (slower and significant),
        f"pages stolen per second: {figure(stolen['before'], '.0f')} before, "
        f"{figure(stolen['after'], '.0f')} after, {figure(stolen['percent'], '+.1f')} %, "
        f"p = {figure(stolen['p'], '.2g')}{noise}; goal: no lower",
    )


def threads_goals(name: str, report: dict[str, Any]) -> list[tuple[bool, str]]:
    """Return for each goal of the flush under threads whether it held, and the figures."""
    what = "reclaim's own remote TLB flushes per 1,000 stolen pages"
    return [down(report, "reclaim_flushes_per_1000", what, OWN_DOWN[name]), no_slower(report)]


def flush_goals(report: dict[str, Any]) -> list[tuple[bool, str]]:
    """Return for each goal of the flush under processes whether it held, and the figures."""
    flushes = find(report, "dirty_flushes_per_pageout")
    what = "remote TLB flushes per 1,000 stolen anon pages"
    return [
        (
            flushes["after"] is not None and flushes["after"] <= FLUSHES_AT_MOST,
            f"dirty TLB flushes per pageout: {figure(flushes['before'], '.3f')} before, "
            f"{figure(flushes['after'], '.4f')} after; goal: at most {FLUSHES_AT_MOST}",
        ),
        down(report, "remote_flushes_per_1000_anon", what, REMOTE_DOWN),
        no_slower(report),
    ]


def trace_goals(report: dict[str, Any]) -> list[tuple[bool, str]]:
    """Return whether the events cost little enough, and the figures."""
    cost = find(report, RECLAIM)
    return [
        (
            cost["percent"] is not None and cost["percent"] < TRACE_COST,
            f"instructions of reclaim per 1,000 stolen pages: {figure(cost['before'], '.0f')} with "
            f"all events off, {figure(cost['after'], '.0f')} with all on, "
            f"{figure(cost['percent'], '+.1f')} %, p = {figure(cost['p'], '.2g')}; goal: up by "
            f"less than {TRACE_COST} %",
        )
    ]


def trace_remark(report: dict[str, Any]) -> str:
    """Return what else the events may cost."""
    every = find(report, "instructions_per_1000")
    return (
        f"all instructions of the load per 1,000 stolen pages {figure(every['before'], '.0f')} -> "
        f"{figure(every['after'], '.0f')}; one CPU, so no event waits for another one"
    )


def threads_remark(report: dict[str, Any]) -> str:
    """Return the figures of the flush under threads that have no goal."""
    interrupts, writes, kills = (
        find(report, key) for key in ("reclaim_ipis_per_1000", "operations_per_second", "oom_kill")
    )
    return (
        f"other CPUs interrupted {figure(interrupts['before'], '.0f')} -> "
        f"{figure(interrupts['after'], '.1f')} times per 1,000 stolen pages; "
        f"writes per second {figure(writes['before'], '.0f')} -> {figure(writes['after'], '.0f')}; "
        f"OOM kills {figure(kills['before'], '.0f')} -> {figure(kills['after'], '.0f')}"
    )


def flush_remark(report: dict[str, Any]) -> str:
    """Return the figures of the flush that have no goal."""
    own, either, deferred, calls, kills = (
        find(report, key)
        for key in (
            "flushes_per_call",
            "either_flushes_per_call",
            "deferred_per_call",
            "deferring_calls_per_1000",
            "oom_kills_per_1000",
        )
    )
    flushed = [
        piece["counters"]["stats.flush.observed_dirty_flushes"]
        / piece["counters"]["vmstat.nr_vmscan_write"]
        for piece in report["slices"]
        if piece["side"] == "A" and piece["counters"]["vmstat.nr_vmscan_write"]
    ]
    return (
        f"batch issued {figure(own['after'], '.3f')} flushes per shrink_folio_list() call that "
        f"deferred something, for {figure(deferred['after'], '.1f')} folios;\n"
        f"  {figure(either['after'], '.2f')} with those of clean pages, where one per call is the "
        f"limit; there were {figure(calls['after'], '.1f')} such calls per 1,000 stolen pages\n"
        f"  stock flushed before {min(flushed, default=0):.2f} to {max(flushed, default=0):.2f} "
        "of the pageouts of a slice; OOM kills per 1,000 stolen pages: "
        f"{figure(kills['before'], '.4f')} before, {figure(kills['after'], '.4f')} after"
    )


def verdict(name: str, report: dict[str, Any]) -> tuple[list[bool], str]:
    """Return which goals held, and the lines that say so; a missing figure is a miss."""
    if name == "scan":
        results, remark = scan_goals(report), scan_remark(report)
    elif name == "trace":
        results, remark = trace_goals(report), trace_remark(report)
    elif name in OWN_DOWN:
        results, remark = threads_goals(name, report), threads_remark(report)
    else:
        results, remark = flush_goals(report), flush_remark(report)
    lines = [f"{TITLES[name]}:"]
    lines += [f"  goal {'held' if held else 'MISSED'}: {text}" for held, text in results]
    return [held for held, _ in results], "\n".join([*lines, f"  {remark}"])


LARGE = "And what reclaim of large folios takes page by page and in batches.\n"


def closing(reports: dict[str, dict[str, Any]], held: list[bool], large: bool) -> str:
    """Return the plain sentences at the end; `large` folios were measured, too."""
    where = next(iter(reports.values()))["environment"]
    return (
        "Measured: first the flushes of other CPUs' TLBs that page reclaim causes while eight\n"
        "threads of one process write at random to twice the memory that their cgroup has, and\n"
        "so swap all the time. Stock reclaim flushes before the pageout of each page that another\n"
        "CPU could still write to; the batch policy flushes once for many. The same under the\n"
        "processes of stress-ng, which share no memory, so that stock needs fewer flushes.\n"
        "Then how much the multi-gen LRU scans for what it takes, while eight processes read a\n"
        "file and eight threads fill memory, more than fits. The loop of Linux 6.12 settles how\n"
        "much to scan again and again; the budget policy settles it once a pass, and ends when it\n"
        "has enough. Last, in a guest that counts instructions, what all trace events cost.\n"
        f"{LARGE if large else ''}"
        f"All on Linux {where['kernel']}, guests with {where['cpus']} CPUs, instructions on one.\n"
        "Each workload was started once, and ran on while its policy was switched.\n"
        f"{sum(held)} of {len(held)} goals held, {len(held) - sum(held)} missed."
    )
