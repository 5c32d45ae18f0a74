# SPDX-License-Identifier: GPL-2.0
"""Tests of the published experiments: their files, their verdicts and their pages."""

import argparse
import itertools
import json
import math
import re
import shlex
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure as Drawing
from tests.drawings import same_picture
from vmp import checkout
from vmp.ab.plan import arguments, make_plan
from vmp.bench import command, plan, registered
from vmp.bench.experiment import PAGES, Experiment, Figure, find, names, parse
from vmp.bench.measured import counting, look_up, measured
from vmp.bench.page import render
from vmp.bench.picture import LEGEND, paint, picture
from vmp.common import REPO, Failure, Parser, Usage
from vmp.guest.command import options as vm_options
from vmp.guest.sources import NAMED
from vmp.result import file
from vmp.result.goals import (
    BETTER,
    CANNOT,
    CHANGED,
    DIRECTION,
    FEW,
    MISSING,
    NO_WORSE,
    NOISY,
    NOT_KNOWN,
    NOT_SEEN,
    OTHER_WAY,
    OURS_ALONE,
    REPRODUCED,
    UNSURE,
    WORSE,
    verdict,
)
from vmp.result.metrics import sections
from vmp.result.model import Result, Results, Row, Settings, Slice
from vmp.result.significance import Effect

GOOD = """
title = "T"
about = "A"
published = "P"
ab = "--a flush=stock --b flush=batch"
runs = { one = "--lru mglru", two = "--lru classic" }
[emulated]
vm = "--cpus 2"
ab = "--memory 64M --seconds 4"
command = "exec true"
[real]
ab = "--memory 1G"
[[figures]]
what = "operations"
row = "operations_per_second"
published = 20
runs = ["one"]
"""
# All that a run can have counted.
COUNTED = {"stall_us", "instructions", "progress"}


def row(
    percent: float | None, p: float | None, ends: tuple[float, float] | None = None, tests: int = 1
) -> Row:
    """Return a primary figure that was 100, and is so many percent more; `ends` are its interval's.

    Without `ends` these are on its side of 0.
    """
    if percent is None:
        return Row("x", "x", 100, None, primary=True)
    low, high = ends or (percent - 0.1, percent + 0.1)
    shift, low, high = (math.log1p(each / 100) for each in (percent, low, high))
    found = Effect(shift, low, high, p, 2 / 64)
    return Row("x", "x", 100, 100 + percent, found, 6, True, tests, p)


@pytest.mark.parametrize(
    ("published", "percent", "p", "said"),
    [
        (-40, -41, 0.01, REPRODUCED),
        (-40, -20, 0.049, REPRODUCED),
        (-40, -19.9, 0.01, DIRECTION),
        (-40, -60, 0.05, UNSURE),
        (-40, 60, 0.01, OTHER_WAY),
        (-40, 60, 0.2, UNSURE),
        (-40, None, None, MISSING),
        (40, 20, 0.01, REPRODUCED),
        (40, -20, 0.01, OTHER_WAY),
        ("down", -3, 0.01, DIRECTION),
        ("down", 3, 0.01, OTHER_WAY),
        ("up", 3, 0.01, DIRECTION),
        ("", 3, 0.01, OURS_ALONE),
        ("not up", 3, 0.01, WORSE),
        ("not up", 3, 0.05, UNSURE),
        ("not up", -3, 0.01, BETTER),
        ("not up", 0, None, NO_WORSE),
        ("not up", None, None, MISSING),
    ],
)
def test_verdicts(
    published: float | str, percent: float | None, p: float | None, said: str
) -> None:
    assert verdict(published, row(percent, p)) == said


@pytest.mark.parametrize(
    ("published", "ends", "tests", "p", "said"),
    [
        (-40, (-50, -30), 2, 0.0625, FEW),
        (-40, (-50, -30), 1, 0.0625, UNSURE),
        (-40, (-50, 30), 2, 0.0625, NOT_SEEN),
        (-40, (-50, 30), 1, 0.01, NOT_SEEN),
        ("not up", (-50, 30), 1, 0.01, NOT_KNOWN),
        ("not up", (-50, 10.1), 1, 0.2, NOT_KNOWN),
        ("not up", (-50, 9.9), 1, 0.2, NO_WORSE),
        ("not up", (-50, -1), 1, 0.06, NO_WORSE),
        ("not up", (1, 9), 1, 0.06, UNSURE),
        (0, (-9.9, 9.9), 1, 0.2, REPRODUCED),
        (0, (1, 2), 1, 0.01, REPRODUCED),
        (0, (-10, 9.9), 1, 0.2, NOISY),
        (0, (-9.9, 10), 1, 0.2, NOISY),
        (0, (1, 12), 1, 0.01, CHANGED),
        (0, (1, 12), 1, 0.06, UNSURE),
    ],
)
def test_a_verdict_never_contradicts_the_interval(
    published: float | str, ends: tuple[float, float], tests: int, p: float, said: str
) -> None:
    assert verdict(published, row(-40 if published else 1.5, p, ends, tests)) == said


def test_five_pairs_tell_nothing() -> None:
    five = Row("x", "x", 5, 3, Effect(-0.5, None, None, 0.0625, 0.0625), 5, True, 1, 0.0625)
    assert [verdict(published, five) for published in (-40, 0, "not up")] == [FEW] * 3


def test_what_an_emulator_can_not_show_is_judged_on_a_real_machine() -> None:
    experiment = parse("x", GOOD + 'cannot = "it has no caches"\n')
    given = results(one=report([100] * 6, [130.0] * 6))
    assert f"**{CANNOT}**" in render(experiment, [given])
    assert f"**{REPRODUCED}**" in render(experiment, [replace(given, here=True)])


def test_a_good_file() -> None:
    experiment = parse("x", GOOD)
    assert experiment.words("one", False, "f") == [
        *"tools/ab --json f --primary operations_per_second --a flush=stock".split(),
        *"--b flush=batch --memory 64M --seconds 4 --lru mglru -- sh -c".split(),
        "exec true",
    ]
    assert experiment.words("two", True, "f")[-2:] == ["--lru", "classic"]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('title = "T"', "", "title"),
        ('title = "T"', 'titel = "T"', "unknown 'titel', allowed are ab, about"),
        ("[real]", "[reel]", "unknown 'reel'"),
        ('vm = "--cpus 2"', "cpus = 2", "emulated.*unknown 'cpus', allowed are ab, command"),
        ('runs = ["one"]', 'runs = ["three"]', "names no run of it, 'three'"),
        ('runs = ["one"]', 'against = "three"', "names no run of it, 'three'"),
        ("published = 20", 'published = "more"', "is a number, up, down or not up"),
        ("published = 20", "published = ", "experiment x: .*line"),
        ('runs = ["one"]', "runs = 5", "experiment x: "),
        ("--memory 64M", "--memory '64M", "experiment x: No closing quotation"),
    ],
)
def test_a_bad_file(old: str, new: str, why: str) -> None:
    assert old in GOOD
    with pytest.raises(Failure, match=why):
        parse("x", GOOD.replace(old, new))


def test_an_unknown_experiment() -> None:
    with pytest.raises(Usage, match="no experiment 'nonesuch': there are .*small-writes"):
        find("nonesuch")


def ab_args(experiment: Experiment, run: str, here: bool) -> Any:
    """Return ab's plan of a run."""
    disk = "/dev/sdx,/dev/sdy" if "--twins" in experiment.ab else "/dev/sdx"
    words = command.words(experiment, run, "f.json", disk if here else None)
    words = words[words.index("tools/ab") + 1 :]
    parser = Parser()
    arguments(parser)
    end = words.index("--") if "--" in words else len(words)
    args = parser.parse_args(words[:end])
    args.command = words[end + 1 :]
    return make_plan(args)


@pytest.mark.parametrize("here", [False, True], ids=["guest", "here"])
@pytest.mark.parametrize("name", names())
def test_ab_takes_what_a_file_says(name: str, here: bool) -> None:
    experiment = find(name)
    experiment.check(here)
    for run in experiment.runs:
        args, figures = ab_args(experiment, run, here), experiment.primary(run, here)
        assert args.json and (not figures or args.primary == figures)
    parser = Parser()
    vm_options(parser)
    parser.parse_args(experiment.emulated.vm.split())


@pytest.mark.parametrize("name", [name for name in names() if find(name).emulated.command])
def test_a_command_leaves_its_files_where_ab_removes_them(name: str) -> None:
    """A service's script removes its own."""
    experiment = find(name)
    for run, here in itertools.product(experiment.runs, (False, True)):
        assert "/run/" not in " ".join(experiment.words(run, here, "f.json"))


def flush(by: str, at: str, cgroup: int, cpu: int = -1) -> str:
    """Return a line of the trace; -1 is where a flush begins."""
    where = f"root=1 id={cgroup} level=0 cpu={cpu} lock contended:0"
    return f"  {by}  [000] d..1.  {at}: cgroup_rstat_locked: {where}"


def kill(by: str, at: str) -> str:
    """Return a line of the trace."""
    return f"  {by}  [002] d..1.  {at}: mark_victim: pid=6 comm=stress-ng-vm"


KILLS = [
    flush("kworker/0:1-9", "10.000000", 1),
    flush("kworker/0:1-9", "10.000900", 1, cpu=2),
    flush("cat-7", "10.200000", 30),
    flush("stress-ng-vm-5", "11.499000", 22),
    kill("stress-ng-vm-5", "11.500000"),
    flush("cat-8", "11.600000", 22),
    kill("stress-ng-vm-5", "11.640000"),
]


def test_the_age_of_statistics_at_a_kill_is_that_of_another_tasks_flush(tmp_path: Path) -> None:
    """Of all cgroups' or the own one's; a killer's own flush is for its report."""
    (tmp_path / "trace").write_text("\n".join(["# tracer: nop", *KILLS]))
    script, trace = REPO / "tools/experiments/oom-kills.sh", tmp_path / "trace"
    said = subprocess.check_output([script, "kills", trace, "22"], text=True)
    assert said.split() == ["1500", "40"]


@pytest.mark.parametrize("name", names())
def test_a_file_names_rows_that_there_are(name: str) -> None:
    experiment = find(name)
    functions = [word for o in [experiment.ab, *experiment.runs.values()] for word in o.split()]
    names = COUNTED | {f"function.{f}.{unit}" for word in functions for f in word.split(",")
                       for unit in ("calls", "instructions")}  # fmt: skip
    keys = {row.key for rows in sections(names).values() for row in rows}
    assert experiment.figures or "--aa" in experiment.ab
    for figure in experiment.figures:
        assert figure.row in keys, figure.row


@pytest.mark.parametrize("name", names())
def test_a_real_machine_has_a_figure_of_each_run(name: str) -> None:
    """It counts no instructions of a cgroup."""
    experiment = find(name)
    figures = [f for f in experiment.figures if not f.row.startswith("instructions")]
    for run in experiment.runs if experiment.figures else ():
        assert any(not f.runs or run in (*f.runs, f.against) for f in figures), run


@pytest.mark.parametrize("name", names())
def test_a_file_names_what_is_there(name: str) -> None:
    experiment = find(name)
    assert not experiment.service or (REPO / "tools/experiments" / experiment.service).exists()
    setup = (REPO / "tools/setup").read_text()
    assert all(package in setup for package in experiment.needs)
    assert experiment.title[-1] != "." and experiment.about and experiment.published


def test_instructions_are_time_on_a_real_machine() -> None:
    """What is judged there is what ab has there, by name."""
    experiment = find("arm64-folios")
    for here, unit in ((False, "instructions"), (True, "us")):
        keys = [key for run in experiment.runs for key in experiment.primary(run, here)]
        assert {key.rpartition(".")[2].partition("_")[0] for key in keys} == {unit}


def report(a: list[float], b: list[float], **settings: Any) -> Result:
    """Return a result of ab whose slices did so many operations, in a second each."""
    pairs = zip(a, b, strict=True)
    values = [(side, value) for pair in pairs for side, value in zip("AB", pair, strict=True)]
    what: dict[str, Any] = {
        "a": "flush=stock",
        "b": "flush=batch",
        "both": "(nothing)",
        "slice_seconds": 1,
    }
    what |= {"memory_bytes": 64 << 20} | settings
    return Result(
        Settings(**what),
        {"kernel": "6.12.117", "lru": "mglru", "cpus": 4},
        tuple(Slice(side, {"progress": value, "seconds": 1}) for side, value in values),
    )


def results(**runs: Result | tuple[Result, ...]) -> Results:
    """Return the results of an experiment, each run of one boot or of several."""
    commands = dict.fromkeys(runs, "tools/ab")
    boots = {name: run if isinstance(run, tuple) else (run,) for name, run in runs.items()}
    return Results("x", "tools/bench run x", False, "--cpus 2", commands, boots)


def test_a_page() -> None:
    page = render(parse("x", GOOD), [results(one=report([1e6] * 6, [1.3e6] * 6))])
    row = (
        "| operations | 6.12.117, one | 1,000,000 | 1,300,000 | +30.0 % | +30.0 to +30.0 % | 0.031 "
        f"| one | - | +20.0 % | **{REPRODUCED}** |"
    )
    assert row in page
    assert "$ tools/bench run x\n" in page


def test_a_run_against_another() -> None:
    """All slices of the one are A, those of the other B."""
    figure = Figure("what", "operations_per_second", against="one")
    other = report([100] * 6, [100.0] * 6)
    found = look_up(figure, [figure.row], [report([150] * 6, [150.0] * 6)], [other])
    assert (found.before, found.after, found.percent) == (100, 150, 50)
    assert found.p is not None and found.p < 0.001


def test_a_void_slice_is_not_compared_with_another_run() -> None:
    figure = Figure("what", "operations_per_second", against="one")
    first, *rest = report([9e9] + [150] * 6, [150.0] * 7).slices
    ours = replace(report([], []), slices=(replace(first, void=True), *rest))
    found = look_up(figure, [figure.row], [ours], [report([100] * 7, [100.0] * 7)])
    assert (found.before, found.after, found.pairs) == (100, 150, 13)


def test_what_an_emulator_can_not_show_is_no_primary_figure_there() -> None:
    experiment = parse("x", GOOD + 'cannot = "it is slow"\n')
    assert experiment.primary("one", False) == []
    assert experiment.primary("one", True) == ["operations_per_second"]


def test_a_figure_that_is_missing() -> None:
    found = look_up(Figure("what", "stall_p99_ms"), [], [report([1] * 6, [1.0] * 6)])
    assert (found.percent, found.p, found.ends) == (None, None, None)


def test_p_is_corrected_for_the_number_of_figures() -> None:
    figures = [Figure("what", row) for row in ("operations_per_second", "ms_per_operation")]
    primary = [figure.row for figure in figures]
    one, two = (
        look_up(figures[0], keys, [report([1] * 6, [2.0] * 6)]) for keys in (primary[:1], primary)
    )
    assert (one.p_corrected, two.p_corrected) == (2 / 64, 4 / 64)
    assert (one.undecidable(), two.undecidable()) == (False, True)


def test_a_run_against_another_has_figures_of_its_own() -> None:
    text = (
        GOOD
        + """
[[figures]]
what = "more"
row = "scanned_per_stolen"
runs = ["one"]
against = "two"
"""
    )
    experiment = parse("x", text)
    assert experiment.primary("one", False) == ["operations_per_second"]
    assert experiment.primary("one", False, "two") == ["scanned_per_stolen"]
    assert experiment.primary("two", False) == []


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [(0, 0, REPRODUCED), (0, 1, CHANGED), (1, 0, CHANGED), (2, 2, REPRODUCED)],
)
def test_figures_that_are_0(before: float, after: float, said: str) -> None:
    figure = Figure("what", "operations_per_second", 0)
    found = look_up(figure, [figure.row], [report([before] * 6, [after] * 6)])
    assert verdict(figure.published, found) == said


def test_what_is_no_result_is_refused(tmp_path: Path) -> None:
    """As a run of ab is: it is no experiment."""
    (tmp_path / "f").write_text(file.run_text(report([1.0] * 6, [1.0] * 6), summary=True))
    for name in ("f", "nonesuch"):
        done = subprocess.run([REPO / "tools/bench", "page", tmp_path / name], capture_output=True,
                              text=True)  # fmt: skip
        assert done.returncode == 1
        assert len(done.stderr.splitlines()) == 1


def with_counters(given: Result, **more: Any) -> Result:
    """Return a result whose slices have more of them, and with `stalls` these."""
    stalls = more.pop("stalls", None)
    more = {name.replace("__", "."): value for name, value in more.items()}
    return replace(given, slices=tuple(
        replace(piece, counters=piece.counters | more, stalls=stalls) for piece in given.slices
    ))  # fmt: skip


def test_what_is_saved_has_all_that_the_table_is_made_of() -> None:
    whole = with_counters(
        report([1.0] * 6, [2.0] * 6, workload=("x",)),
        vmstat__oom_kill=1, vmstat__pgfree=1, stats__scan__passes=1,
    )  # fmt: skip
    kept = command.trimmed(whole)
    assert kept.settings.workload == ()
    for piece in kept.slices:
        assert piece.counters.keys() == {
            "progress", "seconds", "vmstat.oom_kill", "stats.scan.passes",
        }  # fmt: skip
    asked = replace(whole, settings=replace(whole.settings, primary=("stats.flush.calls",)))
    (piece, *_) = command.trimmed(with_counters(asked, stats__flush__calls=1)).slices
    assert "stats.flush.calls" in piece.counters


def test_what_is_saved_of_one_setting_twice_has_what_the_primary_figures_are_made_of() -> None:
    given = report([1.0] * 6, [2.0] * 6, aa=1, primary=("total_wait_ms_per_1000",))
    given = with_counters(given, vmstat__pgsteal_anon=1, vmstat__pgsteal_file=1, stalls=(5,))
    for piece in command.trimmed(given).slices:
        assert piece.counters.keys() == {"vmstat.pgsteal_anon", "vmstat.pgsteal_file"}
        assert piece.stalls == (5,)


def test_a_page_of_one_setting_twice_tells_what_chance_marks() -> None:
    experiment = parse("x", GOOD.partition("[[figures]]")[0])
    asked = ("operations_per_second",)
    given = report([1.0] * 18, [1.0] * 12 + [2.0] * 6, aa=3, primary=asked)
    page = render(experiment, [results(one=command.trimmed(given))])
    key = "`operations_per_second`"
    assert f"| 6.12.117, one | {key} | 3 | {key} | 0.0 % | - |\n" in page
    assert "| all | | 3 | 33.3 % | 0.0 % | - |\n" in page


def test_a_missing_package_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = parse("x", 'needs = ["nonesuch"]\n' + GOOD)
    with pytest.raises(Failure, match="x needs nonesuch: run `tools/setup --bench`"):
        command.require(experiment)


def test_the_program() -> None:
    done = subprocess.run([REPO / "tools/bench", "list"], capture_output=True, text=True)
    assert [line.split()[0] for line in done.stdout.splitlines()] == names()
    done = subprocess.run([REPO / "tools/bench", "run", "x"], capture_output=True, text=True)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Let nothing run, but leave a result of each command that was to; return those."""
    done: list[list[str]] = []

    def step(_title: str, words: list[str], **_others: Any) -> None:
        done.append(words)
        if "--json" in words:
            saved = tmp_path / words[words.index("--json") + 1]
            saved.write_text(file.run_text(report([1e6] * 6, [1.5e6] * 6), summary=True))

    def measure(_title: str, vm: list[str], runs: dict[Path, str], *_others: Any) -> None:
        done.append(vm)
        for path, run in runs.items():
            words = shlex.split(run.removesuffix(" >/dev/null"))
            assert words[words.index("--json") + 1] == str(path)
            step("", words)

    monkeypatch.setattr(command, "REPO", tmp_path)
    monkeypatch.setattr(command, "OUT", tmp_path / "out")
    monkeypatch.setattr(command, "step", step)
    monkeypatch.setattr(command, "measure", measure)
    monkeypatch.setattr(command, "decide", lambda name: name)
    monkeypatch.setattr(command, "locate", lambda: None)
    monkeypatch.setattr(command, "find", lambda name: parse(name, GOOD))
    monkeypatch.setattr(command, "checkout", lambda: {})
    return done


def saved() -> Path:
    """Return where results are saved at present."""
    return Path(vars(command)["OUT"]) / "bench"


def namespace(**values: Any) -> argparse.Namespace:
    """Return arguments of run."""
    return argparse.Namespace(
        **{
            "name": ["x"],
            "kernel": None,
            "arch": None,
            "here": False,
            "disk": None,
            "run_name": None,
            "boots": None,
            "plan": False,
            "resume": False,
            "directory": saved(),
        }
        | values
    )


def test_a_run_in_a_guest(steps: list[list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    assert command.run_all(namespace(kernel="7.3")) == 0
    assert steps[:2] == [
        ["tools/kernel", "module", "--kernel", "7.3"],
        ["--kernel", "7.3", "--cpus", "2"],
    ]
    assert [words[0] for words in steps[2:]] == ["tools/ab", "tools/ab"]
    page = capsys.readouterr().out
    assert "| +50.0 to +50.0 % | 0.031 | one | - | +20.0 % |" in page
    assert f"| **{REPRODUCED}** |" in page
    assert "$ tools/bench run --kernel 7.3 x\n" in page
    assert page.endswith("/out/bench/x/6.12.117.json\n")


def test_each_experiment_has_its_own_kernels(
    steps: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {"old": GOOD, "new": f'kernels = ["7.3"]{GOOD}'}
    monkeypatch.delenv(NAMED, raising=False)
    monkeypatch.setattr(command, "find", lambda name: parse(name, texts[name]))
    assert command.run_all(namespace(name=["new", "old"])) == 0
    named = [words[words.index("--kernel") + 1] for words in steps if "--kernel" in words]
    assert named == ["7.3", "7.3", "6.12", "6.12"]


def test_a_run_here(steps: list[list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    assert command.run_all(namespace(here=True)) == 0
    assert [words[0] for words in steps] == ["tools/ab", "tools/ab"]
    assert all("1G" in words for words in steps)
    page = capsys.readouterr().out
    assert "| 6.12.117, one, a real machine |" in page
    assert page.endswith("/out/bench/x/6.12.117-here.json\n")


def test_one_run_of_several(steps: list[list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    """It says which, and a run that is looked at beside one that is not there has no figures."""
    assert command.run_all(namespace(kernel="7.3", run_name="one")) == 0
    assert [words[0] for words in steps[2:]] == ["tools/ab"]
    page = capsys.readouterr().out
    assert "$ tools/bench run --kernel 7.3 --run one x\n" in page
    assert "| 6.12.117, one |" in page
    assert page.endswith("/out/bench/x/6.12.117-one.json\n")
    beside = parse("x", GOOD.replace('row = "', 'against = "two"\nrow = "', 1))
    assert [name for _, name, _ in measured(beside, results(one=report([1] * 6, [2.0] * 6)))] == []


DISK = GOOD.replace("--memory", "--disk {disk} --memory")


@pytest.mark.parametrize(
    ("text", "given", "why"),
    [
        (DISK, {"here": True}, "x works on a blank disk: name one with --disk"),
        (DISK, {"disk": "/dev/sdx"}, "--disk is for --here"),
        (GOOD, {"here": True, "kernel": "7.3"}, "--kernel is for the guest"),
        (GOOD, {"run_name": "one", "name": []}, "--run is for one experiment"),
        (GOOD, {"run_name": "three"}, "x has no run 'three': there are one, two"),
        (GOOD, {"plan": True}, "--plan says what to run"),
        (GOOD, {"boots": 0}, "--boots takes a number from 1 on"),
        (GOOD, {"here": True, "boots": 2}, "are for guests"),
        (GOOD, {"run_name": "one", "resume": True}, "--resume goes on with all runs"),
    ],
)
def test_options_that_do_not_go_together(
    text: str, given: dict[str, Any], why: str, steps: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "find", lambda name: parse(name, text))
    with pytest.raises(Usage, match=why):
        command.run_all(namespace(**given))
    assert not steps


def test_the_disk(
    steps: list[list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "find", lambda name: parse(name, DISK))
    assert command.run_all(namespace(here=True, disk="/dev/sdx")) == 0
    assert all(words[words.index("--disk") + 1] == "/dev/sdx" for words in steps)
    assert "$ tools/bench run --here --disk /dev/sdx x\n" in capsys.readouterr().out
    steps.clear()
    assert command.run_all(namespace(kernel="7.3")) == 0
    assert all(words[words.index("--disk") + 1] == "/dev/vda" for words in steps[2:])


def test_one_that_fails_keeps_no_other_from_its_run(
    steps: list[list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measure(title: str, *_others: Any) -> None:
        steps.append([title])
        raise Failure("the guest stopped")

    monkeypatch.setattr(command, "measure", measure)
    with pytest.raises(Failure, match="2 of 2 were not measured: x, y"):
        command.run_all(namespace(name=["x", "y"], kernel="7.3"))
    assert [words[0][0] for words in steps if words[0] != "tools/kernel"] == ["x", "y"]
    assert "the guest stopped" in capsys.readouterr().err


CURVE = (
    GOOD.replace('runs = ["one"]\n', "")
    + """
[curve]
of = "CPUs"
at = { one = 2, two = 8 }
"""
)


def test_a_curve_has_slopes() -> None:
    """A is four times as much with two doublings, B the same; a boot is a point."""
    found = results(
        one=(report([100] * 6, [80.0] * 6), report([100] * 6, [80.0] * 6)),
        two=(report([400] * 6, [80.0] * 6), report([400] * 6, [80.0] * 6)),
    )
    page = render(parse("x", CURVE), [found])
    assert "| CPUs | 2 | 8 | a doubling | 95 % interval | points |\n|---" in page
    assert "\n| operations, 6.12.117, A | 100 | 400 | +100.0 % | +100.0 to +100.0 % | 4 |" in page
    assert "\n| operations, 6.12.117, B | 80 | 80 | +0.0 % | +0.0 to +0.0 % | 4 |" in page
    assert "## Slopes" not in render(parse("x", GOOD), [found])


def test_a_slope_takes_figures_above_0_at_two_places() -> None:
    page = render(parse("x", CURVE), [results(one=report([100] * 6, [0.0] * 6))])
    assert "\n| operations, 6.12.117, A | 100 | - | - | - | 1 |" in page
    assert "\n| operations, 6.12.117, B | 0 | - | - | - | 1 |" in page


def test_a_figure_of_other_runs_or_that_can_not_be_seen_has_no_slope() -> None:
    found = [results(one=report([100] * 6, [80.0] * 6))]
    hidden = CURVE.replace("published = 20", 'published = 20\ncannot = "C"')
    assert "| operations, 6.12.117, A |" not in render(parse("x", hidden), found)
    of_two = CURVE.replace("published = 20", 'published = 20\nruns = ["two"]')
    assert "| operations, 6.12.117, A |" not in render(
        parse("x", of_two.replace(", two = 8", "")), found
    )


def test_a_figure_of_some_runs_has_the_slope_of_these() -> None:
    of_two = CURVE.replace("published = 20", 'published = 20\nruns = ["two"]')
    both = results(one=report([100] * 6, [80.0] * 6), two=report([400] * 6, [80.0] * 6))
    page = render(parse("x", of_two), [both])
    assert "\n| operations, 6.12.117, A | - | 400 | - | - | 1 |" in page


def test_what_hardly_grows_looks_flat() -> None:
    both = results(one=report([100] * 6, [100.0] * 6), two=report([101] * 6, [102.0] * 6))
    experiment = parse("x", CURVE)
    assert experiment.curve
    axes = Drawing().subplots()
    paint(axes, experiment, experiment.curve, both)
    low, high = axes.get_ylim()
    assert low < 100 / 3
    assert high > 102 * 3


@pytest.mark.parametrize("wrong", ["three = 8", "two = 0"])
def test_a_bad_curve(wrong: str) -> None:
    with pytest.raises(
        Failure, match=rf"\[curve\]: '{wrong.split()[0]}' is no run, or at no number"
    ):
        parse("x", CURVE.replace("two = 8", wrong))


def several(*changes: float) -> tuple[Result, ...]:
    """Return boots in which B does so many times what A does."""
    return tuple(report([1e6] * 6, [change * 1e6] * 6) for change in changes)


def test_several_boots_are_one_row() -> None:
    page = render(parse("x", GOOD), [results(one=several(1.2, 1.3, 1.4))])
    (line,) = (line for line in page.splitlines() if line.startswith("| operations |"))
    cells = [cell.strip() for cell in line.split("|")]
    assert cells[3:6] == ["1,000,000", "1,300,000", "+30.0 %"]
    assert cells[8] == "3: +20.0 to +40.0 %"
    assert "3 boots, made before figures were registered" in " ".join(page.split())


def test_of_two_runs_the_boots_are_compared_side_by_side() -> None:
    figure = Figure("what", "operations_per_second", against="one")
    found = look_up(figure, [figure.row], several(1, 1, 1), [
        report([each] * 6, [each] * 6) for each in (5e5, 6e5, 4e5)
    ])  # fmt: skip
    assert (found.pairs, len(found.boots)) == (3, 3)


def test_a_guest_for_each_boot(steps: list[list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    assert command.run_all(namespace(kernel="7.3", boots=3)) == 0
    assert [words[0] for words in steps].count("--kernel") == 3
    found = file.load_results(saved() / "x/6.12.117.json")
    assert [len(boots) for boots in found.runs.values()] == [3, 3]
    assert "boots 3 x" in found.command
    assert "boot 1 of 3" not in capsys.readouterr().out


def test_a_run_goes_on_where_it_was_stopped(
    steps: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second guest is lost; what the first has done is in the file, and stays."""
    whole, guests = vars(command)["measure"], iter(range(9))

    def measure(title: str, *others: Any) -> None:
        if next(guests) == 1:
            raise Failure("the guest stopped")
        whole(title, *others)

    seconds = iter(range(9))
    monkeypatch.setattr(time, "strftime", lambda name: f"{name}{next(seconds)}")
    monkeypatch.setattr(command, "measure", measure)
    monkeypatch.setattr(plan, "find", lambda name: parse(name, GOOD))
    with pytest.raises(Failure, match="1 of 1 were not measured: x"):
        command.run_all(namespace(kernel="7.3", boots=3))
    path = saved() / "x/6.12.117.json"
    assert file.load_results(path).boots() == 1
    assert command.run_all(namespace(kernel="7.3", boots=3, resume=True)) == 0
    assert file.load_results(path).boots() == 3
    assert next(guests) == 4
    steps.clear()
    assert command.run_all(namespace(kernel="7.3", boots=3, resume=True)) == 0
    assert steps == []


PLANNED = """
[[row]]
experiment = "x"
kernel = "7.3"
boots = 2
[[row]]
experiment = "x"
kernel = "6.12"
boots = 5
"""


def test_the_plan_says_what_is_left(
    steps: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "find", lambda name: parse(name, GOOD))
    (tmp_path / "plan.toml").write_text(PLANNED)
    rows = plan.read(tmp_path / "plan.toml")
    monkeypatch.setattr(plan, "read", lambda: rows)
    where = saved()
    assert plan.told(rows, where).endswith("To do: 7 boots, 0.6 hours of guests.")
    assert command.run_all(namespace(kernel="7.3")) == 0
    said = plan.told(rows, where)
    assert said.splitlines()[1].split() == ["x", "7.3", "2", "1", "5"]
    assert said.endswith("To do: 6 boots, 0.5 hours of guests.")
    # 6.12 stands for another kernel here: its file is another one.
    monkeypatch.setattr(plan, "read", lambda: rows[:1])
    assert command.run_all(namespace(name=[], plan=True, resume=True)) == 0
    assert plan.told(rows[:1], where).endswith("To do: 0 boots, 0.0 hours of guests.")
    # Two boots whose intervals do not overlap take three more.
    (path,) = where.glob("x/*.json")
    found = file.load_results(path)
    differing = replace(found, runs=dict.fromkeys(found.runs, several(1.2, 1.8)))
    path.write_text(json.dumps(file.results_document(differing)))
    assert plan.told(rows[:1], where).splitlines()[1].split() == ["x", "7.3", "5", "3", "15"]
    assert command.run_all(namespace(name=[], plan=True, resume=True)) == 0
    assert file.load_results(path).boots() == 5


def page_of(directory: Path, name: str, command: str, **changes: Any) -> None:
    """Save results of two boots for the page of x."""
    boots = several(1.2, 1.2)
    found = results(one=boots, two=boots)
    (directory / "x").mkdir(exist_ok=True)
    document = file.results_document(replace(found, command=command, **changes))
    (directory / "x" / f"{name}.json").write_text(json.dumps(document))


def test_what_a_page_has_is_not_measured_again(
    steps: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it was registered, and counts; what is left is of the same release."""
    x = parse("x", GOOD)
    monkeypatch.setattr(plan, "PAGES", tmp_path)
    monkeypatch.setattr(plan, "find", lambda _name: x)
    monkeypatch.setattr(plan, "check", lambda *_results: None)
    monkeypatch.setattr(plan, "is_registered", lambda results: results.vm != "old")
    line = plan.Planned("x", "6.12", 3)
    for name, words, changes in (
        ("a", "bench run --kernel 6.12.117 x", {"superseded": "for a reason"}),
        ("b", "bench run --kernel 6.12.117 x", {"vm": "old"}),
        ("c", "bench run --kernel 7.3.4 x", {}),
        ("d", "bench run --kernel 6.12.117:arm64 x", {}),
        ("e", "bench run --here x", {}),
    ):
        page_of(tmp_path, name, words, **changes)
        assert line.left(saved()) == 3, name
    page_of(tmp_path, "f", "bench run --kernel 6.12.117 x")
    assert line.left(saved()) == 1
    monkeypatch.setattr(plan, "read", lambda: [line])
    assert command.run_all(namespace(name=[], plan=True, resume=True)) == 0
    assert steps[0][-2:] == ["--kernel", "6.12.117"]
    assert file.load_results(saved() / "x/6.12.117.json").boots() == 3
    assert line.left(saved()) == 0


def test_results_of_arm64_are_apart(
    steps: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have their own file, line of the plan, and name on the page."""
    monkeypatch.setattr(plan, "PAGES", tmp_path)
    monkeypatch.setattr(plan, "find", lambda name: parse(name, GOOD))
    monkeypatch.setattr(plan, "check", lambda *_results: None)
    monkeypatch.setattr(plan, "is_registered", lambda _results: True)
    there = {"kernel": "6.12.117", "machine": "aarch64", "lru": "mglru", "cpus": 4}
    boots = tuple(replace(boot, environment=there) for boot in several(1.2, 1.2))
    found = replace(results(one=boots, two=boots), command="bench run --kernel 6.12.117:arm64 x")
    line, own = plan.Planned("x", "6.12:arm64", 3), tmp_path / "x"
    own.mkdir()
    (own / "f.json").write_text(json.dumps(file.results_document(found)))
    assert line.left(saved()) == 1
    assert plan.Planned("x", "6.12", 3).left(saved()) == 3
    assert "| operations | 6.12.117:arm64, one |" in render(parse("x", GOOD), [found])
    monkeypatch.setattr(plan, "read", lambda: [line])
    monkeypatch.setattr(command, "load_run", lambda _path: boots[0])
    assert command.run_all(namespace(name=[], plan=True, resume=True)) == 0
    assert steps[0][-2:] == ["--kernel", "6.12.117:arm64"]
    assert [path.name for path in saved().glob("x/*")] == ["6.12.117_arm64.json"]
    assert line.left(saved()) == 0


def test_a_release_with_a_line_of_its_own_is_none_of_the_series() -> None:
    found = replace(results(one=several(1)), command="bench run --kernel 6.12.107 x")
    x = replace(parse("x", GOOD), kernels=("6.12.107", "6.12"))
    assert [plan.fits(x, kernel, found) for kernel in ("6.12.107", "6.12")] == [True, False]
    assert plan.fits(replace(x, kernels=("6.12",)), "6.12", found)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[[row]", "plan.toml: "),
        ('[[row]]\nexperiment = "x"', "plan.toml, .*kernel"),
        ('[[row]]\nexperiment = "nonesuch"\nkernel = "6.12"\nboots = 1', "no experiment"),
        ('[[row]]\nexperiment = "pressure"\nkernel = "6.12"\nboots = 0', "from 1 on"),
        ('[[row]]\nexperiment = "pressure"\nkernel = "6.12"\nboots = true', "from 1 on"),
        ('[[row]]\nexperiment = "pressure"\nkernel = 6.12\nboots = 1', "kernel is text"),
        ('[[rows]]\nexperiment = "pressure"', r"has no \[\[row\]\]"),
        ("row = 5", "plan.toml: "),
        ("row = [5]", "plan.toml: "),
    ],
)
def test_a_bad_plan(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(text)
    with pytest.raises(Failure, match=why):
        plan.read(tmp_path / "plan.toml")


def test_the_plan_takes_thirty_hours_at_most() -> None:
    rows = plan.read()
    assert sum(row.boots * row.found().minutes for row in rows) <= 30 * 60
    pages = {page for _, page in QUOTE.findall((REPO / "README.md").read_text())}
    five = {row.experiment for row in rows if row.boots >= 5}
    assert {page.removesuffix(".md") for page in pages} <= five
    assert all(row.boots >= 2 for row in rows)


def test_too_few_slices_are_refused_before() -> None:
    few = parse("x", GOOD.replace("--seconds 4", "--seconds 4 --slices 10"))
    with pytest.raises(Usage, match="x, one: 10 slices can't tell .* 1 primary .* --slices 12"):
        few.check(False)
    few.check(True)


@pytest.fixture
def commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Return what commits a text as the experiment's file, in a repository of its own."""
    path = tmp_path / "tools/experiments/x.toml"
    path.parent.mkdir(parents=True)
    monkeypatch.setattr(checkout, "REPO", tmp_path)

    def commit(text: str) -> str:
        path.write_text(text)
        for words in ("init -q", "add .", "-c user.name=x -c user.email=x commit -q -m x"):
            subprocess.run(["git", "-C", tmp_path, *words.split()], check=True)
        return checkout.git("rev-parse", "HEAD") or ""

    return commit


def made_at(commit: str, primary: str = "operations_per_second") -> Results:
    """Return results with a commit."""
    run = report([1.0] * 6, [2.0] * 6, primary=(primary,))
    return results(one=replace(run, environment=run.environment | {"commit": commit}))


def test_figures_are_older_than_results(commits: Callable[[str], str]) -> None:
    first = commits(GOOD)
    told = commits(GOOD.replace('about = "A"', 'about = "more"'))
    changed = commits(GOOD.replace("published = 20", "published = 30"))
    old, new = parse("x", GOOD), parse("x", GOOD.replace("published = 20", "published = 30"))
    assert registered.registered(old, False) is None  # it is not what the file is now
    assert registered.registered(new, False) == changed
    registered.check(new, made_at(changed))
    with pytest.raises(Failure, match="x, one: .* has other primary figures"):
        registered.check(new, made_at(changed, "ms_per_operation"))
    for commit in (first, told):
        with pytest.raises(Failure, match=f"made at commit {commit[:12]}, .* not before it"):
            registered.check(new, made_at(commit))
        registered.check(new, replace(made_at(commit), superseded="why"))
    boot = replace(made_at(first).every()[0], environment={"commit": first, "lost": True})
    registered.check(new, results(one=boot))
    assert not registered.is_registered(results(one=boot))
    assert registered.told(boot) == f"made at {first[:12]} (lost)"
    with pytest.raises(Failure, match="in no commit yet"):
        registered.check(parse("x", GOOD.replace("seconds 4", "seconds 5")), made_at(changed))
    registered.check(new, results(one=report([1.0] * 6, [2.0] * 6)))
    (run,) = made_at(changed).every()
    unsaved = replace(run, environment=run.environment | {"uncommitted": True})
    with pytest.raises(Failure, match="made with changes that were in no commit"):
        registered.check(new, results(one=unsaved))


@pytest.mark.parametrize("other", [{"b": "flush=stock"}, {"slices": 6}, {"memory_bytes": 1}])
def test_boots_of_other_sizes_are_no_boots_of_a_run(other: dict[str, Any]) -> None:
    run, experiment = report([1.0] * 6, [2.0] * 6), parse("x", GOOD)
    boots = results(one=(run, replace(run, settings=replace(run.settings, **other))))
    with pytest.raises(Failure, match="differ in their sides or sizes"):
        registered.check(experiment, boots)
    registered.check(experiment, replace(boots, superseded="one had other sizes"))


def test_one_run_is_of_an_experiment_that_is_in_a_commit(
    commits: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = GOOD.replace("seconds 4", "seconds 5")
    monkeypatch.setattr(command, "find", lambda name: parse(name, text))
    commits(GOOD)
    command.tell_unregistered(parse("x", text).only("one"), False)
    assert "x: figures or sizes are in no commit yet" in capsys.readouterr().err
    commits(text)
    command.tell_unregistered(parse("x", text).only("one"), False)
    assert not capsys.readouterr().err
    (tmp_path / "tools/experiments/x.toml").write_text("")
    command.tell_unregistered(parse("x", text).only("one"), False)
    assert "x: changes in the checkout are in no commit yet" in capsys.readouterr().err


def test_what_is_only_told_changes_no_figure(commits: Callable[[str], str]) -> None:
    first = commits(GOOD)
    text = GOOD.replace('about = "A"', 'about = "more"').replace('"operations"', '"more"')
    commits(text)
    assert registered.registered(parse("x", text), False) == first
    assert registered.registered(parse("x", text), True) == first


def test_a_result_has_its_commit(commits: Callable[[str], str], tmp_path: Path) -> None:
    commit = commits(GOOD)
    assert checkout.checkout() == {"commit": commit, "uncommitted": False}
    (tmp_path / "tools/experiments/x.toml").write_text("")
    assert checkout.checkout() == {"commit": commit, "uncommitted": True}
    assert registered.told(made_at(commit).every()[0]) == f"made at {commit[:12]}"


def test_all_results_are_on_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "PAGES", tmp_path)
    monkeypatch.setattr(command, "find", lambda name: parse(name, GOOD))
    (tmp_path / "x").mkdir()
    files = [tmp_path / "x" / name for name in ("6.12.json", "7.3.json")]
    given = results(one=report([1.0] * 6, [2.0] * 6))
    for path, found in zip(files, (given, replace(given, superseded="the disk was full")),
                           strict=True):  # fmt: skip
        path.write_text(json.dumps(file.results_document(found)))
    with pytest.raises(Failure, match="7.3.json is left out"):
        command.make_pages(argparse.Namespace(file=files[:1]))
    assert not (tmp_path / "x.md").exists()
    assert command.make_pages(argparse.Namespace(file=files)) == 0
    _, _, old = (tmp_path / "x.md").read_text().partition("## Superseded")
    assert "not the ones that count: the disk was full" in old
    assert old.count("| operations |") == 1


MEASURED = sorted({path.parent for path in PAGES.glob("*/*.json")
                   if path.parent.name in names()})  # fmt: skip


@pytest.mark.parametrize("directory", MEASURED, ids=lambda path: path.name)
def test_a_page_is_that_of_its_results(directory: Path) -> None:
    """If this fails: tools/bench page docs/results/NAME/*.json."""
    every = [file.load_results(path) for path in sorted(directory.glob("*.json"))]
    experiment = find(directory.name)
    for results in every:
        registered.check(experiment, results)
    page = PAGES / f"{directory.name}.md"
    assert page.read_text() == render(experiment, every)
    if experiment.curve:
        drawn = picture(experiment, experiment.curve, counting(every)[0])
        assert same_picture(page.with_suffix(".svg").read_text(), drawn)
        assert max(map(len, re.findall(">([^<]*)</text>", drawn))) <= LEGEND, "it is cut off"
    assert f"]({page.name})" in (PAGES / "README.md").read_text()


QUOTE = re.compile(
    r"\| ([^|]+ \| [^|]+ \| [^|]+ \| [^|]+) \| \[[^]]+\]\((?:docs/results/)?([\w-]+\.md)\) \|"
)


FIGURES = {"README.md": 5, "docs/results/README.md": 16}


@pytest.mark.parametrize(("document", "number"), FIGURES.items())
def test_quoted_figures_are_those_of_pages(document: str, number: int) -> None:
    """Before, after, change and interval are as in a row of the page that is named beside them."""
    quoted = QUOTE.findall((REPO / document).read_text())
    assert len(quoted) == number
    for cells, page in quoted:
        assert f"| {cells} |" in (PAGES / page).read_text(), f"{page} has not: {cells}"
