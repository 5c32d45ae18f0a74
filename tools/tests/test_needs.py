# SPDX-License-Identifier: GPL-2.0
"""Tests of what is said of counters that a kernel lacks."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from vmp.ab.run import OBSERVE, Run
from vmp.control.counters import CPU, IRQ, MEMCG, VMSTAT
from vmp.control.debugfs import Control
from vmp.control.needs import BROADCAST, NEEDS, OBSERVED, REMOTE, lacking, told
from vmp.result.metrics import Metric, sections

# Statistics of a node, which are no events.
ALWAYS = {
    "nr_vmscan_write",
    "nr_isolated_anon",
    "workingset_refault_anon",
    "workingset_refault_file",
}
FILES = {"memcg.current", "memcg.oom_kill"}  # of files of their own
X86 = "x86_64"
# A table without them has no such rows.
OPTIONAL = {"memcg.some_usec", "memcg.full_usec", "folios.split_deferred"}
MACHINE = {f"vmstat.{name}" for name in VMSTAT} | {f"irq.{name}" for name in IRQ}
ALL = MACHINE | set(OBSERVED) | {f"memcg.{name}" for name in MEMCG}


def test_each_counter_of_a_row_has_a_need_or_is_always_there() -> None:
    rows = [row for rows in sections(set()).values() for row in rows if isinstance(row, Metric)]
    used = {name for row in rows for name in row.parts + row.per}
    needed = {name for need in NEEDS for name in need.counters}
    always = {f"vmstat.{name}" for name in ALWAYS} | {f"cpu.{name}" for name in CPU} | FILES
    rest = used - needed - always - {f"memcg.{name}" for name in MEMCG} - {"seconds", "progress"}
    rest -= OPTIONAL
    assert {name for name in rest if not name.startswith("stats.flush.")} == set()
    assert needed <= ALL
    assert {need.source for need in NEEDS} <= used


def test_nothing_is_lacking() -> None:
    assert lacking(ALL, X86) == []


def test_where_no_cpu_is_interrupted_that_is_said_once() -> None:
    counted = {name for name in ALL if "irq." not in name and "interrupts" not in name} - {REMOTE}
    assert told(counted, "aarch64") == (BROADCAST,)
    _, without = told(counted - set(OBSERVED), "aarch64")
    assert "observed_remote_flushes: CONFIG_KPROBES brings them; nothing here" in without


def test_what_is_lacking_is_named_with_what_stands_for_it() -> None:
    (need,) = lacking(ALL - {REMOTE}, X86)
    assert str(need) == (
        "The kernel does not count nr_tlb_remote_flush: CONFIG_DEBUG_TLBFLUSH (x86) brings it; "
        "instead, TLB shootdowns count each CPU that a flush interrupts."
    )


def test_what_is_lacking_itself_stands_for_nothing() -> None:
    found = lacking(ALL - {REMOTE, "irq.TLB", "irq.CAL", *OBSERVED}, X86)
    assert [need.counters for need in found] == [need.counters for need in NEEDS[:3]]
    assert {need.instead for need in found} == {"nothing here counts the like"}


def test_only_what_is_lacking_is_named() -> None:
    (need,) = lacking(ALL - {"vmstat.pswpin", "vmstat.oom_kill"}, X86)
    assert need.names() == "pswpin, oom_kill"


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[[str], Run]:
    """Return what makes a run whose flush/observe is a link to a file."""

    def make(target: str) -> Run:
        point = tmp_path / "flush"
        point.mkdir()
        (point / "policy").write_text("[stock] batch\n")
        (point / "real").write_text("0\n")
        (point / "observe").symlink_to(target)
        given: Any = SimpleNamespace(workload=None, progress=None, progress_command=None)
        return Run(given, Control(tmp_path))

    return make


def test_flushes_are_observed_for_the_run(make_run: Callable[[str], Run]) -> None:
    run = make_run("real")
    counters = {name: 1.0 for name in OBSERVED}
    with ExitStack() as stack:
        run.observe(stack)
        assert run.control.get(OBSERVE) == "1"
        assert run.counted(counters) == counters
    assert run.control.get(OBSERVE) == "0"


def test_a_kernel_that_cannot_observe_has_no_such_counters(
    make_run: Callable[[str], Run],
) -> None:
    run = make_run("/proc/self/uid_map")  # can be written once, which the kernel has done
    with ExitStack() as stack:
        run.observe(stack)
    assert run.counted({OBSERVED[0]: 0.0, REMOTE: 1.0}) == {REMOTE: 1.0}
