# SPDX-License-Identifier: GPL-2.0
"""Tests of what the guest test of the trace events reads from a trace instance."""

import subprocess
import sys
from pathlib import Path

import pytest

TRACED = Path(__file__).parent / "guest" / "traced.py"
OWN = "set=3 cgroup=57 nid=0"
# As the file `trace` of an instance has them.
TRACE = f"""\
# tracer: nop
#
# entries-in-buffer/entries-written: 13/13   #P:4
#
#                                _-----=> irqs-off/BH-disabled
#                               / _----=> need-resched
#                              | / _---=> hardirq/softirq
#                              || / _--=> preempt-depth
#                              ||| / _-=> migrate-disable
#                              |||| /     delay
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
           trace-101     [000] .....   100.000001: policy_switch: policy=batch {OWN} point=flush from=stock to=batch pid=101
    stress-ng-vm-158     [003] d..1.   121.000001: scan_begin: policy=budget {OWN} id=4097 budget=64 priority=12
    stress-ng-vm-158     [003] .....   121.000002: flush_batch_begin: policy=batch {OWN} id=4098 folios=44 pages=44
           a [b]-159     [001] .....   121.000003: throttle_begin: policy=all {OWN} id=8193 reason=writeback
    stress-ng-vm-158     [003] .....   121.000302: flush_batch_end: policy=batch {OWN} id=4098 folios=44 pages=44 mapped=1 gone=0 flushed=1
    stress-ng-vm-158     [003] .....   121.000302: unmap_folio: policy=batch {OWN} kind=lazyfree pages=16 ptes=15 batches=2 left=1 kept=1
    stress-ng-vm-158     [003] .....   121.000303: scan_end: policy=budget {OWN} id=4097 budget=64 scanned=60 reclaimed=43 priority=12 reason=enough
    stress-ng-vm-158     [003] .....   121.000304: aging_begin: policy=continue {OWN} id=1 before=5
    stress-ng-vm-158     [003] .....   121.000400: aging_end: policy=continue {OWN} id=1 before=5 after=6
    stress-ng-vm-158     [003] .....   121.000401: writeback_feedback: policy=feedback {OWN} taken=64 dirty=64 unqueued=64 congested=0 writeback=0 immediate=0 woken=1 waited=0
           a [b]-159     [001] .....   121.001503: throttle_end: policy=all {OWN} id=8193 reason=writeback us=1500
           a [b]-159     [001] .....   121.001504: throttle_begin: policy=all {OWN} id=8194 reason=congested
"""  # noqa: E501
GROWN = {
    "flush.calls": 1, "flush.batches": 1, "flush.deferred": 44,
    "flush.bounce_mapped": 1, "flush.bounce_gone": 0, "flush.flushes": 1, "scan.passes": 1,
    "scan.budget": 64, "scan.scanned": 60, "scan.reclaimed": 43, "scan.end_enough": 1,
    "aging.waited": 1, "aging.sync": 1, "writeback.batches": 1, "writeback.taken": 64,
    "writeback.dirty": 64, "writeback.flusher_wakeups": 1, "throttle.writeback": 1,
    "throttle.writeback_us": 1500, "throttle.congested": 0,
    "unmap.folios": 1, "unmap.pages": 16, "unmap.ptes": 15, "unmap.batches": 2, "unmap.left": 1,
    "unmap.kept": 1,
}  # fmt: skip


def traced(place: Path, text: str, grown: dict[str, int]) -> tuple[int, str, str]:
    """Run the program over a trace, between counters of 7 and those grown by so much."""
    (place / "trace").write_text(text)
    (place / "before").write_text("".join(f"{name} 7\n" for name in grown))
    (place / "after").write_text("".join(f"{name} {7 + by}\n" for name, by in grown.items()))
    files = [place / name for name in ("trace", "before", "after")]
    words = [sys.executable, "-B", str(TRACED), *map(str, files)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_what_adds_up(tmp_path: Path) -> None:
    status, figures, errors = traced(tmp_path, TRACE, GROWN)
    assert (status, errors) == (0, "")
    found = dict(line.split() for line in figures.splitlines())
    untraced = ("flush.calls", "aging.waited")
    wanted = {name: str(n) for name, n in GROWN.items() if n and name not in untraced}
    assert found == wanted


@pytest.mark.parametrize(
    ("name", "counted", "shown"),
    [
        ("flush.deferred", 42, "traced 44, counted 42"),
        ("scan.end_budget", 1, "traced 0, counted 1"),
        ("aging.sync", 0, "traced 1, counted 0"),
    ],
)
def test_what_does_not(tmp_path: Path, name: str, counted: int, shown: str) -> None:
    status, _, errors = traced(tmp_path, TRACE, GROWN | {name: counted})
    assert (status, errors) == (1, f"traced: {name}: {shown}\n")


@pytest.mark.parametrize(
    ("old", "new", "alone"),
    [
        ("aging_end: ", "other: ", "aging_begin id=1"),
        ("throttle_begin: ", "other: ", "throttle_end id=8193"),
        ("scan_end: ", "aging_end: before=5 after=5 ", "aging_end id=4097"),
        (" id=4098", " id=4097", "flush_batch_begin id=4097, scan_end id=4097"),
        (" id=8194", " id=0", "throttle_begin id=0"),
    ],
)
def test_events_alone(tmp_path: Path, old: str, new: str, alone: str) -> None:
    status, _, errors = traced(tmp_path, TRACE.replace(old, new), GROWN)
    assert status == 1
    assert "have no beginning or no end: " in errors
    assert errors.endswith(f": {alone}\n")


def test_an_event_of_another_form(tmp_path: Path) -> None:
    status, _, errors = traced(tmp_path, TRACE.replace(" folios=44", ""), GROWN)
    assert status == 1
    assert "an event flush_batch_end of another form" in errors
