# SPDX-License-Identifier: GPL-2.0
"""Tests of the published experiments: their files, their verdicts and their pages."""

import argparse
import re
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from vmp.ab.command import arguments, make_plan
from vmp.bench import command
from vmp.bench.experiment import Experiment, Figure, find, names, parse
from vmp.bench.page import look_up, measured, render
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
    found = Effect(100, 100 + percent, percent, low, high)
    return Row("x", "x", 100, 100 + percent, found, 6, True, tests, p, p)


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
        ("not up", (-50, 30), 1, 0.01, NO_WORSE),
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
    five = Row("x", "x", 5, 3, Effect(5, 3, -2, None, None), 5, True, 1, 0.0625, 0.0625)
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
    words = command.words(experiment, run, "f.json", "/dev/sdx" if here else None)
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
    for run in experiment.runs:
        args, figures = ab_args(experiment, run, here), experiment.primary(run, here)
        assert args.json and (not figures or args.primary == figures)
        pairs = args.slices // 2
        assert len(figures) * 2.0 ** (1 - pairs) < 0.05  # or no difference can be told
    parser = Parser()
    vm_options(parser)
    parser.parse_args(experiment.emulated.vm.split())


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


def results(**runs: Result) -> Results:
    """Return the results of an experiment."""
    commands = dict.fromkeys(runs, "tools/ab")
    return Results("x", "tools/bench run x", False, "--cpus 2", commands, runs)


def test_a_page() -> None:
    page = render(parse("x", GOOD), [results(one=report([100] * 6, [130.0] * 6))])
    row = (
        "| operations | 6.12.117, one | 100 | 130 | +30.0 % | +30.0 to +30.0 % | 0.031 | +20.0 % "
        f"| **{REPRODUCED}** |"
    )
    assert row in page
    assert "$ tools/bench run x\n" in page


def test_a_run_against_another() -> None:
    """All slices of the one are A, those of the other B."""
    figure = Figure("what", "operations_per_second", against="one")
    other = report([100] * 6, [100.0] * 6)
    found = look_up(figure, [figure.row], report([150] * 6, [150.0] * 6), other)
    assert (found.before, found.after, found.percent) == (100, 150, 50)
    assert found.p is not None and found.p < 0.001


def test_what_an_emulator_can_not_show_is_no_primary_figure_there() -> None:
    experiment = parse("x", GOOD + 'cannot = "it is slow"\n')
    assert experiment.primary("one", False) == []
    assert experiment.primary("one", True) == ["operations_per_second"]


def test_a_figure_that_is_missing() -> None:
    found = look_up(Figure("what", "stall_p99_ms"), [], report([1] * 6, [1.0] * 6), None)
    assert (found.percent, found.p, found.ends) == (None, None, None)


def test_p_is_corrected_for_the_number_of_figures() -> None:
    figures = [Figure("what", row) for row in ("operations_per_second", "ms_per_operation")]
    primary = [figure.row for figure in figures]
    one, two = (
        look_up(figures[0], keys, report([1] * 6, [2.0] * 6), None)
        for keys in (primary[:1], primary)
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
    found = look_up(figure, [figure.row], report([before] * 6, [after] * 6), None)
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
        assert piece.counters.keys() == {"progress", "seconds", "vmstat.oom_kill"}


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
    assert f"| 6.12.117, one | {key} | 3 | 1 | {key} |\n| all | | 3 | 1, 33.3 % | |\n" in page


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
            saved.write_text(file.run_text(report([1.0] * 6, [1.5] * 6), summary=True))

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
    return done


def namespace(**values: Any) -> argparse.Namespace:
    """Return arguments of run."""
    return argparse.Namespace(
        **{"name": ["x"], "kernel": None, "here": False, "disk": None, "run_name": None} | values
    )


def test_a_run_in_a_guest(steps: list[list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    assert command.run_all(namespace(kernel="7.3")) == 0
    assert steps[:2] == [
        ["tools/kernel", "module", "--kernel", "7.3"],
        ["--kernel", "7.3", "--cpus", "2"],
    ]
    assert [words[0] for words in steps[2:]] == ["tools/ab", "tools/ab"]
    page = capsys.readouterr().out
    assert f"| +50.0 to +50.0 % | 0.031 | +20.0 % | **{REPRODUCED}** |" in page
    assert "$ tools/bench run --kernel 7.3 x\n" in page
    assert page.endswith("Saved: out/bench/x/6.12.117.json\n")


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
    assert page.endswith("Saved: out/bench/x/6.12.117-here.json\n")


def test_one_run_of_several(steps: list[list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    """It says which, and a run that is looked at beside one that is not there has no figures."""
    assert command.run_all(namespace(kernel="7.3", run_name="one")) == 0
    assert [words[0] for words in steps[2:]] == ["tools/ab"]
    page = capsys.readouterr().out
    assert "$ tools/bench run --kernel 7.3 --run one x\n" in page
    assert "| 6.12.117, one |" in page
    assert page.endswith("Saved: out/bench/x/6.12.117-one.json\n")
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


MEASURED = sorted({path.parent for path in command.PAGES.glob("*/*.json")
                   if path.parent.name in names()})  # fmt: skip


@pytest.mark.parametrize("directory", MEASURED, ids=lambda path: path.name)
def test_a_page_is_that_of_its_results(directory: Path) -> None:
    """If this fails: tools/bench page docs/results/NAME/*.json."""
    every = [file.load_results(path) for path in sorted(directory.glob("*.json"))]
    page = command.PAGES / f"{directory.name}.md"
    assert page.read_text() == render(find(directory.name), every)
    assert f"]({page.name})" in (command.PAGES / "README.md").read_text()


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
        assert f"| {cells} |" in (command.PAGES / page).read_text(), f"{page} has not: {cells}"
