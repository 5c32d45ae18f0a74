# SPDX-License-Identifier: GPL-2.0
"""Tests of the demo's verdicts: when a goal holds, and that a figure that is missing misses it."""

import subprocess
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from vmp.common import Failure
from vmp.demo import large
from vmp.demo.command import commands, counted
from vmp.demo.verdicts import RECLAIM, TITLES, closing, verdict
from vmp.guest.log import STALE_BREAKPOINT
from vmp.guest.offered import only
from vmp.guest.steps import script_of, step

OFFERED = {
    "flush": ["stock", "batch"],
    "scan": ["stock", "budget"],
    "aging": ["stop", "continue", "async"],
    "writeback": ["stock", "feedback"],
    "throttle": ["stock", "memcg", "all"],
}


def report(**changed: dict[str, float | None]) -> dict[str, Any]:
    """Return a report in which all goals hold, but for the rows that are `changed`."""
    rows: dict[str, dict[str, float | None]] = {
        "dirty_flushes_per_pageout": {"before": 0.3, "after": 0.01, "percent": -97},
        "remote_flushes_per_1000_anon": {"before": 300, "after": 20, "percent": -93},
        "reclaim_flushes_per_1000": {"before": 2000, "after": 30, "percent": -98.5},
        "reclaim_ipis_per_1000": {"before": 4000, "after": 60},
        "operations_per_second": {"before": 1000, "after": 2000},
        "stolen_per_second": {"before": 100, "after": 200, "percent": 100, "p": 0.001},
        "flushes_per_call": {"before": None, "after": 1},
        "either_flushes_per_call": {"before": None, "after": 1},
        "deferred_per_call": {"before": None, "after": 40},
        "deferring_calls_per_1000": {"before": None, "after": 20},
        "oom_kills_per_1000": {"before": 0, "after": 0},
        "scanned_per_stolen": {"before": 2, "after": 1.5, "percent": -25, "p": 0.001},
        "refault_file_per_1000": {"before": 900, "after": 800, "percent": -11, "p": 0.001},
        "oom_kill": {"before": 0, "after": 0},
        "ms_per_operation": {"before": 1, "after": 1},
        "stall_p50_ms": {"before": 1, "after": 1},
        "stall_p99_ms": {"before": 1, "after": 1},
        RECLAIM: {"before": 100, "after": 103, "percent": 3, "p": 0.01},
        "instructions_per_1000": {"before": 200, "after": 203},
    }
    for key, values in changed.items():
        rows[key] = rows[key] | values
    return {
        "summary": {"rows": [{"key": key, **row} for key, row in rows.items()]},
        "slices": [],
        "environment": {"kernel": "6.12", "cpus": 4},
    }


def test_each_comparison_has_a_title() -> None:
    assert {*commands(OFFERED), "trace"} == TITLES.keys()
    assert counted(OFFERED).keys() == {"trace"}
    assert counted(OFFERED | dict.fromkeys(large.POINTS, ["stock", "batch"])).keys() > {"trace"}


def test_what_a_kernel_has_not() -> None:
    """Nothing is asked of points that don't exist, and the older loop is compared where it is."""
    there = {name: OFFERED[name] for name in ("flush", "aging", "throttle")}
    there |= {"scan": ["stock", "budget", "v6.12"]}
    runs = commands(there)
    assert "--set flush=batch,scan=budget,aging=async,throttle=all " in counted(there)["trace"]
    assert "--a scan=v6.12 " in runs["scan"]
    assert "--a scan=stock " in commands(OFFERED)["scan"]


def test_existing_points_alone() -> None:
    assert only("flush=batch,unmap=batch,scan=budget", OFFERED) == "flush=batch,scan=budget"
    assert only("unmap=batch", OFFERED) == ""


@pytest.mark.parametrize("name", TITLES)
def test_all_goals_hold(name: str) -> None:
    held, lines = verdict(name, report())
    assert all(held)
    assert "MISSED" not in lines
    assert f"{len(held)} of {len(held)} goals held, 0 missed" in closing(
        {name: report()}, held, True
    )


@pytest.mark.parametrize(
    ("name", "key", "values", "holds"),
    [
        ("mglru", "dirty_flushes_per_pageout", {"after": 0.03}, False),
        ("mglru", "remote_flushes_per_1000_anon", {"percent": -89.9}, False),
        ("threads", "reclaim_flushes_per_1000", {"percent": -97}, True),
        ("threads", "reclaim_flushes_per_1000", {"percent": -96.9}, False),
        ("threads-1g", "reclaim_flushes_per_1000", {"percent": -96.9}, False),
        ("threads-classic", "reclaim_flushes_per_1000", {"percent": -96.9}, True),
        ("threads-classic", "reclaim_flushes_per_1000", {"percent": -94.9}, False),
        ("threads", "stolen_per_second", {"percent": -5, "p": 0.01}, False),
        ("mglru", "stolen_per_second", {"percent": -5, "p": 0.01}, False),
        ("mglru", "stolen_per_second", {"percent": -5, "p": 0.2}, True),
        ("trace", RECLAIM, {"percent": 4.9}, True),
        ("trace", RECLAIM, {"percent": 5}, False),
        ("scan", "scanned_per_stolen", {"percent": -1, "p": 0.2}, False),
        ("scan", "scanned_per_stolen", {"percent": 1, "p": 0.01}, False),
        ("scan", "refault_file_per_1000", {"percent": 3, "p": 0.01}, False),
        ("scan", "refault_file_per_1000", {"percent": 3, "p": 0.3}, True),
        ("scan", "oom_kill", {"after": 1}, False),
    ],
)
def test_one_figure_decides(
    name: str, key: str, values: dict[str, float | None], holds: bool
) -> None:
    held, lines = verdict(name, report(**{key: values}))
    assert held.count(False) == (not holds)
    assert ("MISSED" in lines) == (not holds)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("mglru", "dirty_flushes_per_pageout"),
        ("mglru", "remote_flushes_per_1000_anon"),
        ("threads", "reclaim_flushes_per_1000"),
        ("trace", RECLAIM),
        ("scan", "scanned_per_stolen"),
        ("scan", "oom_kill"),
    ],
)
def test_a_missing_figure_is_a_miss(name: str, key: str) -> None:
    nothing: dict[str, float | None] = {"before": None, "after": None, "percent": None, "p": None}
    held, lines = verdict(name, report(**{key: nothing}))
    assert held.count(False) == 1
    assert "- before, - after" in lines or "- with all events off" in lines


def large_reports(ratio: float | None) -> dict[str, dict[str, Any]]:
    """Return reports in which batch takes so much of what stock takes; None: it has no figure."""
    rows = {goal.key: {"before": 1000.0, "after": ratio and 1000 * ratio} for goal in large.GOALS}
    summary = {"rows": [{"key": key, **row} for key, row in rows.items()]}
    return {run: {"summary": summary} for run in large.COMMANDS}


@pytest.mark.parametrize(
    ("ratio", "number"), [(0.25, len(large.GOALS)), (0.9, 2), (1.0, 0), (None, 0)]
)
def test_large_folios_are_judged_by_the_ratio(ratio: float | None, number: int) -> None:
    held, text = large.table(large_reports(ratio))
    assert sum(held) == number
    assert text.count("MISSED") == len(large.GOALS) - number


def test_each_goal_of_large_folios_has_its_run() -> None:
    assert {goal.run for goal in large.GOALS} == large.COMMANDS.keys()
    for goal in large.GOALS:
        functions = goal.key.split(".")[1]
        assert functions in large.COMMANDS[goal.run].split("--functions ")[1].split(",")


@pytest.mark.parametrize(("lost", "works"), [(0, True), (2, True), (3, False)])
def test_a_lost_guest_is_followed_by_another(tmp_path: Path, lost: int, works: bool) -> None:
    count = tmp_path / "count"
    script = f'echo >>"$0"; [ $(wc -l <"$0") -gt {lost} ] || exit {STALE_BREAKPOINT}'
    command = ["sh", "-c", script, str(count)]
    with nullcontext() if works else pytest.raises(Failure, match=str(STALE_BREAKPOINT)):
        step("measuring", command, guests=3)
    assert len(count.read_text().splitlines()) == min(lost + 1, 3)


def test_what_a_lost_guest_has_done_is_not_done_again(tmp_path: Path) -> None:
    done, left = tmp_path / "done.json", tmp_path / "left.json"
    done.write_text("{}")
    script = script_of({done: "false", left: f"echo [] >{left}"})
    assert subprocess.run(["bash", "-c", script], check=False).returncode == 0
    assert left.exists()
