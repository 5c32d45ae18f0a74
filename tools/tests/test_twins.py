# SPDX-License-Identifier: GPL-2.0
"""Tests of what runs two copies of a workload at the same time, on files such as the kernel's."""

import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from vmp.ab import command, plan, twins
from vmp.ab.cgroup import Cgroup
from vmp.ab.run import Run
from vmp.common import Failure, Parser, Usage, parse
from vmp.control import cgroups, counters
from vmp.control.debugfs import Assignment, Control
from vmp.report import plots
from vmp.result import file
from vmp.result.metrics import PAGE
from vmp.result.model import Result
from vmp.result.table import render

HELD = 100  # pages
PRESSURE = """\
some avg10=0.00 avg60=0.00 avg300=0.00 total=1200
full avg10=0.00 avg60=0.00 avg300=0.00 total=34
"""


class Pair:
    """Two cgroups, of which reclaim takes so many pages in each second that somebody sleeps."""

    def __init__(self, directory: Path, taken: tuple[int, int]) -> None:
        self.directory = directory
        self.taken = taken
        self.now = 0.0
        self.stolen = [0, 0]
        self.log: list[str] = []  # what was done, in its order
        self.twins = [self.twin(place) for place in twins.PLACES]

    def twin(self, place: int) -> Any:
        """Return one of them; its progress is the pages stolen."""
        path = self.directory / str(place)
        point = path / "settings/flush"
        point.mkdir(parents=True)
        (point / "policy").write_text("[stock] batch\n")
        (point / "stats").write_text("deferred 0\nobserved_interrupts 5\n")
        texts = {
            "memory.current": f"{HELD * PAGE}\n",
            "memory.events": "max 7\noom_kill 0\n",
            "memory.pressure": PRESSURE,
            "cpu.stat": "user_usec 1\nsystem_usec 2\n",
            "cgroup.events": "populated 1\n",
            "memory.stat": "pgsteal 0\nfile_dirty 0\n",
        }
        for name, text in texts.items():
            (path / name).write_text(text)
        control = Control(path / "settings", of_cgroup=True)
        sides = {"A": [Assignment("flush", "stock")], "B": [Assignment("flush", "batch")]}
        progress = counters.ProgressFile(path / "memory.stat", lambda text: float(text.split()[1]))
        counted = counters.Counters(control, path, progress, alone=False)
        memcg: Any = Cgroup(path)
        return twins.Twin(place, memcg, control, sides, counted)

    def policy(self, place: int) -> str:
        """Return what was written last for one of them."""
        return (self.directory / str(place) / "settings/flush/policy").read_text()

    def sleep(self, seconds: float) -> None:
        """Have time go by."""
        self.now += seconds
        self.log.append(f"{self.policy(1)} {self.policy(2)} {seconds:g}")
        for index, rate in enumerate(self.taken):
            self.stolen[index] += int(rate * seconds)
            dirty = self.stolen[index] % 100  # bytes
            text = f"pgsteal {self.stolen[index]}\nfile_dirty {dirty}\n"
            (self.directory / str(index + 1) / "memory.stat").write_text(text)

    def end(self, place: int) -> None:
        """Have one copy end."""
        (self.directory / str(place) / "cgroup.events").write_text("populated 0\n")


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pair:
    """Return cgroups of which the second is replaced in 5 s and the first in 2 s."""
    found = Pair(tmp_path, (50, 20))
    monkeypatch.setattr(time, "sleep", found.sleep)
    monkeypatch.setattr(time, "monotonic", lambda: found.now)
    monkeypatch.setattr(os, "sync", lambda: found.log.append("sync"))
    return found


def test_a_period_lasts_until_both_were_replaced(pair: Pair) -> None:
    twins.wait(pair.twins, 3, 300)
    assert pair.now == 15
    twins.wait(pair.twins, 3, 7)
    assert pair.now == 22


def test_a_copy_that_ends_is_noticed(pair: Pair) -> None:
    pair.end(2)
    with pytest.raises(Failure, match="no task is in .*/2 any more"):
        twins.wait(pair.twins, 3, 300)


def test_each_has_its_side_and_nothing_dirty(pair: Pair) -> None:
    for sides, policies in (("AB", ("stock", "batch")), ("BA", ("batch", "stock"))):
        twins.begin(pair.twins, sides)
        assert (pair.policy(1), pair.policy(2)) == policies
        assert pair.log.pop() == "sync"


def test_what_is_counted_is_each_ones_own(pair: Pair) -> None:
    slices = twins.measure(pair.twins, "BA", 1, 300)
    assert [(piece.side, piece.place) for piece in slices] == [("B", 1), ("A", 2)]
    assert [piece.counters["memcg.pgsteal"] for piece in slices] == [250, 100]
    assert [piece.counters["progress"] for piece in slices] == [250, 100]
    for piece in slices:
        assert not [name for name in piece.counters if counters.of_machine(name)]
        assert {"memcg.oom_kill", "memcg.some_usec", "stats.flush.deferred"} <= set(piece.counters)


def test_what_is_dirty_is_seen_all_the_while(pair: Pair) -> None:
    first, second = twins.measure(pair.twins, "AB", 1, 300)
    assert first.counters["memcg.file_dirty"] == sum([0, 50, 0, 50, 0, 50]) / 6
    assert second.counters["memcg.file_dirty"] == sum([0, 20, 40, 60, 80, 0]) / 6


def test_a_report_draws_refaults_of_the_cgroups(pair: Pair) -> None:
    parser = Parser()
    plan.arguments(parser)
    made = plan.make_plan(parser.parse_args(["--twins", "true"]))
    slices = tuple(
        replace(piece, counters=piece.counters | {"memcg.workingset_refault_file": 25})
        for piece in twins.measure(pair.twins, "AB", 1, 300)
    )
    found = plots.refault_lines(Result(made.settings(64 << 20, ["true"]), {}, slices))
    assert found == {"A, file": [(1, 100)], "B, file": [(2, 250)]}


def test_pressure_is_what_tasks_have_waited() -> None:
    assert counters.parse_pressure(PRESSURE) == {"some_usec": 1200, "full_usec": 34}
    assert counters.parse_pressure("") == {}


@pytest.fixture
def run_twins(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, Path]]:
    """Return what measures the pair with ab's options; it says the status and the file."""
    monkeypatch.setattr(command, "locate", lambda: None)
    monkeypatch.setattr(command, "Control", lambda _root: None)
    monkeypatch.setattr(signal, "signal", lambda *_handler: None)

    def measure_all(self: Run) -> None:
        where = {"kernel": "6.12", "lru": "mglru", "cpus": 1, "abi": {}}
        self.measure_twins(pair.twins, Result(self.plan.settings(64 << 20, ["true"]), where))

    def run(words: str) -> tuple[int, Path]:
        monkeypatch.setattr(Run, "measure_all", measure_all)
        parser = Parser()
        plan.arguments(parser)
        kept = tmp_path / "r.json"
        return command.run(parser.parse_args(f"--twins --json {kept} {words} true".split())), kept

    return run


def test_slices_of_one_time_follow_each_other(
    run_twins: Callable[..., tuple[int, Path]], pair: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "--slices 24 --turnovers 2 --primary memcg_stolen_per_second --seed 7"
    status, kept = run_twins(words)
    assert status == 0
    result = file.load_run(kept)
    assert [piece.place for piece in result.slices] == [1, 2] * 12
    first, second = ([piece.side for piece in result.slices[place::2]] for place in (0, 1))
    assert all(a != b for a, b in zip(first, second, strict=True)), "both have one side"
    assert all(a != b for a, b in zip(first[::2], first[1::2], strict=True)), "none is exchanged"
    settings = result.settings
    assert (settings.twins, settings.turnovers, settings.seed) == (True, 2, 7)
    assert "".join(piece.side for piece in result.slices) == twins.twins_order(24, 7, 1)
    # One turnover of the slower one settles, which is 5 s, and two count.
    spent = [line for line in pair.log if line != "sync"]
    assert len(spent) == 12 * 15 and pair.log.count("sync") == 12
    assert {piece.counters["seconds"] for piece in result.slices} == {10}
    table = capsys.readouterr().out
    assert "in two cgroups at the same time, 12 periods of 2 turnovers, 300 s at most" in table
    assert "pages stolen / s" in table
    assert "TLB" not in table.partition("95 % interval:")[0]


def test_a_coin_says_who_begins() -> None:
    orders = [twins.twins_order(24, seed, 2) for seed in range(9)]
    assert len(set(orders)) == 9
    for order in orders:
        blocks = {order[start : start + 4] for start in range(0, 48, 4)}
        assert len(order) == 48 and blocks == {"ABBA", "BAAB"}


def test_settling_may_take_a_time(run_twins: Callable[..., tuple[int, Path]], pair: Pair) -> None:
    run_twins("--slices 24 --turnovers 1 --settle 3 --primary memcg_stolen_per_second")
    assert pair.log[:2] == ["sync", pair.log[1]] and pair.log[1].endswith(" 3")
    assert pair.now == 12 * (3 + 5)


def test_what_was_measured_is_kept_when_a_copy_ends(
    run_twins: Callable[..., tuple[int, Path]],
    pair: Pair,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def sleep(seconds: float) -> None:
        pair.sleep(seconds)
        if pair.now > 40:
            written = json.loads((tmp_path / "r.json").read_text())["slices"]
            assert [piece["place"] for piece in written] == [1, 2, 1, 2]
            pair.end(1)

    monkeypatch.setattr(time, "sleep", sleep)
    status, kept = run_twins("--slices 24 --turnovers 2 --primary memcg_stolen_per_second")
    assert status == 1
    result = json.loads(kept.read_text())
    assert not result["complete"]
    assert "no task is in" in result["ended"]
    assert [piece["place"] for piece in result["slices"]] == [1, 2, 1, 2]
    assert "INCOMPLETE: the run ended after 4 slices" in render(file.load_run(kept))


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--twins --slices 6", "in fours"),
        ("--twins --cgroup x", "starts two copies"),
        ("--twins --functions f", "counted for the whole machine"),
        ("--twins --stalls", "recorded for the whole machine"),
        ("--twins --b trace=1", "trace is a setting of the whole machine"),
        ("--twins --a bypass=1", "bypass is a setting of the whole machine"),
        ("--twins --set flush.observe=1", "flush.observe is a setting of the whole machine"),
        ("--twins --primary refault_file_per_operation", "can't tell twins apart"),
        ("--twins --primary stats.flush.observed_interrupts", "can't tell twins apart"),
        ("--twins --primary nonesuch", "no figure"),
        ("--twins --progress x", "write {twin}"),
        ("--twins --progress-command x", "write {twin}"),
        ("--twins --disk /dev/vda", "two disks"),
        ("--twins --disk /dev/vda,/dev/vda", "two disks"),
        ("--twins --turnovers 0", "count"),
        ("--disk /dev/vda,/dev/vdb", "one disk"),
        ("--turnovers 3", "--turnovers is for --twins"),
    ],
)  # fmt: skip
def test_what_does_not_go_with_twins_is_told(words: str, why: str) -> None:
    parser = Parser()
    plan.arguments(parser)
    with pytest.raises(Usage, match=why.replace("{", r"\{")):
        command.run(parser.parse_args([*words.split(), *["true"] * ("--cgroup" not in words)]))


def test_a_load_that_reclaims_its_own_memory_has_periods_of_a_time() -> None:
    parser = Parser()
    plan.arguments(parser)
    words = "--twins --workload small-writes --primary ms_per_operation".split()
    with pytest.raises(Usage, match="give --seconds"):
        command.run(parser.parse_args(words))
    made = plan.make_plan(parser.parse_args([*words, "--seconds", "9"]))
    assert (made.seconds, made.settle) == (9, 0)


def test_a_program_of_ours_can_be_run_with_other_sizes() -> None:
    parser = Parser()
    plan.arguments(parser)
    words = "{programs}/docstore --directory {directory} --progress {progress} --size 1G"
    line = "--twins --disk /dev/a,/dev/b --memory 256M --"
    made = plan.make_plan(parse(parser, [*line.split(), *words.split()]))
    assert made.workload.compiled()
    found = made.progress_of({"twin": 1, "progress": Path("/run/x")})
    assert found == counters.ProgressFile(Path("/run/x"))


def test_each_twin_has_a_disk_and_counts_by_itself() -> None:
    parser = Parser()
    plan.arguments(parser)
    words = "--twins --disk /dev/a,/dev/b --progress /run/{twin} cp {directory} {twin}".split()
    made = plan.make_plan(parser.parse_args(words))
    assert made.disks == (Path("/dev/a"), Path("/dev/b"))
    for place in twins.PLACES:
        places: dict[str, Path | int] = {"twin": place, "directory": Path(f"/mnt/{place}")}
        assert made.workload.words(places) == ["cp", f"/mnt/{place}", str(place)]
        assert made.progress_of(places) == counters.ProgressFile(Path(f"/run/{place}"))


def test_the_primary_figures_of_twins_are_those_of_a_cgroup() -> None:
    keys = plan.row_keys(stalls=False, twins=True)
    assert {"memcg_refault_file_per_operation", "dirty_pages", "ms_per_operation"} <= keys
    assert not {"remote_flushes", "refault_file_per_1000", "oom_kill", "read_kib"} & keys
    assert keys < plan.row_keys(stalls=False)


def test_a_module_without_settings_of_cgroups_is_told(tmp_path: Path) -> None:
    machine: Any = SimpleNamespace(root=tmp_path)
    with pytest.raises(Failure, match="has no settings for cgroups"):
        cgroups.require_settings(machine)
