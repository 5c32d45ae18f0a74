# SPDX-License-Identifier: GPL-2.0
"""Tests of the demo's verdicts: when a goal holds, and that a figure that is missing misses it."""

import subprocess
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from vmp.common import Failure
from vmp.control.needs import BROADCAST
from vmp.demo.goals import GOALS, LARGE, LARGE_POINTS, TITLES, commands, counted
from vmp.demo.suite import closing, judged
from vmp.guest.log import STALE_BREAKPOINT
from vmp.guest.offered import only
from vmp.guest.steps import script_of, step
from vmp.result.model import Result, Settings

OFFERED = {
    "flush": ["stock", "batch"],
    "scan": ["stock", "budget"],
    "aging": ["stop", "continue"],
    "writeback": ["stock", "feedback"],
    "throttle": ["stock", "memcg", "all"],
}


def test_each_comparison_has_a_title() -> None:
    assert {*commands(OFFERED), "trace", *LARGE} == TITLES.keys()
    assert counted(OFFERED).keys() == {"trace"}
    assert counted(OFFERED | dict.fromkeys(LARGE_POINTS, ["stock", "batch"])).keys() == {
        "trace",
        *LARGE,
    }


def test_what_a_kernel_has_not() -> None:
    """Nothing is asked of points that don't exist, and the older loop is compared where it is."""
    there = {name: OFFERED[name] for name in ("flush", "aging", "throttle")}
    there |= {"scan": ["stock", "budget", "v6.12"]}
    runs = commands(there)
    assert "--set flush=batch,scan=budget,aging=continue,throttle=all " in counted(there)["trace"]
    assert "--a scan=v6.12 " in runs["scan"]
    assert "--a scan=stock " in commands(OFFERED)["scan"]


def test_existing_points_alone() -> None:
    assert only("flush=batch,unmap=batch,scan=budget", OFFERED) == "flush=batch,scan=budget"
    assert only("unmap=batch", OFFERED) == ""


@pytest.mark.parametrize("run", TITLES)
def test_the_figures_with_a_goal_are_asked_for(run: str) -> None:
    """And more pairs are taken than that number needs where a goal is a test."""
    every = commands(OFFERED) | counted(OFFERED | dict.fromkeys(LARGE_POINTS, ["stock", "batch"]))
    words = every[run].split()
    keys = words[words.index("--primary") + 1].split(",")
    assert keys == [goal.key for goal in GOALS if goal.run == run and goal.kind]
    tested = any(
        goal.kind in ("lower", "no lower", "no higher") for goal in GOALS if goal.run == run
    )
    slices = int(words[words.index("--slices") + 1])
    assert not tested or len(keys) * 2.0 ** (1 - slices // 2) < 0.05


def test_a_missing_figure_misses_its_goal() -> None:
    nothing = Result(Settings("a", "b", "", None, 1), {"kernel": "6.12", "cpus": 4})
    held, lines = judged("threads", nothing)
    assert held == [False, False]
    assert lines.count("not reached") == 2
    said = closing([*held, True], nothing, large=True)
    assert said.endswith("1 of 3 goals reached, 2 not.")


def test_where_no_cpu_is_interrupted_no_goal_is_about_that() -> None:
    there = {"kernel": "6.12", "cpus": 4, "machine": "aarch64"}
    nothing = Result(Settings("a", "b", "", None, 1), there, lacks=(BROADCAST,))
    held, lines = judged("threads", nothing)
    assert held == [False, False]
    assert "interrupts" not in lines
    assert judged("mglru", replace(nothing, lacks=()))[0].count(False) == 3
    assert judged("mglru", nothing)[0].count(False) == 2
    said = " ".join(closing(held, nothing, large=True).split())
    assert BROADCAST in said
    assert "on Linux 6.12:arm64, guests" in said


@pytest.mark.parametrize(("lost", "works"), [(0, True), (2, True), (3, False)])
def test_a_lost_guest_is_followed_by_another(tmp_path: Path, lost: int, works: bool) -> None:
    count = tmp_path / "count"
    script = f'echo >>"$0"; [ $(wc -l <"$0") -gt {lost} ] || exit {STALE_BREAKPOINT}'
    command = ["sh", "-c", script, str(count)]
    with nullcontext() if works else pytest.raises(Failure, match=str(STALE_BREAKPOINT)):
        step("measuring", command, guests=3)
    assert len(count.read_text().splitlines()) == min(lost + 1, 3)


def test_what_a_lost_guest_has_done_is_not_done_again(tmp_path: Path) -> None:
    """What it was at is: it may have left a part of the file."""
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    script = script_of({first: f"echo run >>{first}", second: f"echo a part >>{second}; false"})
    assert subprocess.run(["bash", "-c", script], check=False).returncode == 1
    script = script_of({first: "false", second: f"echo all of it >>{second}"})
    assert subprocess.run(["bash", "-c", script], check=False).returncode == 0
    assert first.read_text() == "run\n"
    assert second.read_text() == "all of it\n"
