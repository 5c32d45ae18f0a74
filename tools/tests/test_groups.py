# SPDX-License-Identifier: GPL-2.0
"""Tests of what decides which tests run, what they say, and of the faulty builds."""

import platform
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from vmp.common import REPO, Failure, Usage
from vmp.guest import architecture
from vmp.guest.module import Edit
from vmp.guest.sources import Version
from vmp.guest.suite import GUEST
from vmp.testing import changed, mutants, results
from vmp.testing.faults import FAULTS, NEEDED
from vmp.testing.guest_tests import names
from vmp.testing.results import Report

OFFERED = {"kernels", "series", "static", "slow", "plain", "recording", "debug"}


@pytest.mark.parametrize(
    ("path", "groups"),
    [
        ("module/flush.c", {"static", "slow", "plain", "debug", "recording"}),
        ("kunit/scan.c", {"static", "slow", "plain", "debug", "recording"}),
        ("kernel-hooks/6.12/series", OFFERED),
        ("kernel-hooks/common/mm/vmscan_pass.c", OFFERED),
        ("tools/config/guest.config", OFFERED),
        ("tools/vmp/guest/porting.py", {"static", "series"}),
        ("tools/vmp/guest/kernel.py", OFFERED),
        ("tools/something-new", OFFERED),
        ("tools/tests/guest/race.sh", {"static", "slow", "plain", "debug"}),
        ("tools/tests/test_ab.py", {"static"}),
        ("tools/vmp/result/model.py", {"static", "plain", "recording"}),
        ("tools/vmp/report/match.py", {"static", "plain", "recording"}),
        ("tools/vmp/report/page.py", {"static", "recording"}),
        ("tools/man/ab.1", {"static"}),
        ("README.md", {"static"}),
    ],
)
def test_what_a_path_can_break(path: str, groups: set[str]) -> None:
    assert changed.can_break(path, OFFERED) == groups


@pytest.mark.parametrize("revision", ["no-such-revision", "--output=written"])
def test_a_revision_that_is_none(revision: str) -> None:
    with pytest.raises(Usage, match="give a revision that git knows"):
        changed.changed_paths(revision)
    assert not (REPO / "written").exists()


def test_every_path_has_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changed, "changed_paths", lambda _revision: ["README.md", "module/scan.c"])
    reasons = changed.groups("HEAD", {"static", "plain", "series"})
    assert reasons == {"static": ["README.md", "module/scan.c"], "plain": ["module/scan.c"]}


@pytest.mark.parametrize("text", ["", "one one"])
def test_an_edit_needs_one_place(tmp_path: Path, text: str) -> None:
    (tmp_path / "file").write_text(text)
    with pytest.raises(Failure, match="times"):
        Edit("mutant", "file", "one", "two").apply(tmp_path)
    assert (tmp_path / "file").read_text() == text


def test_an_edit(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("just one")
    Edit("mutant", "file", "one", "two").apply(tmp_path)
    assert (tmp_path / "file").read_text() == "just two"


GROUPS = ("plain", "numa", "demote", "slow", "debug", "bpf", "full")
EDITS: list[Edit] = [mutant for mutant in mutants.MUTANTS if not mutant.in_kernel]
EDITS += FAULTS.values()


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.name)
def test_faulty_builds_have_their_place_in_the_module(edit: Edit) -> None:
    assert (REPO / edit.path).read_text().count(edit.old) == 1


def test_the_tests_that_catch_mutants_belong_to_make_test() -> None:
    plain = {name for group in ("plain", "slow", "numa", "demote") for name in names(group)}
    debug = set(names("debug"))
    for mutant in mutants.MUTANTS:
        tests = {"debug": debug, "plain": plain | debug, "bpf": set(names("bpf"))}[mutant.variant]
        assert mutant.test in tests, mutant.name
        assert mutant.machine in {"", *(found.machine for found in architecture.ALL.values())}
    assert len(mutants.MUTANTS) == len({mutant.name for mutant in mutants.MUTANTS})
    assert set(NEEDED) <= plain | debug


@pytest.mark.parametrize(
    ("changed_field", "why"),
    [
        ({}, ""),
        ({"series": "7.2"}, "only 7.2 needs what it leaves out"),
        ({"machine": "x86_64"}, "only guests of x86_64 show what it does"),
        ({"machine": "aarch64"}, ""),
        ({"path": "module/writeback.c"}, "this kernel has no writeback point"),
        ({"path": "mm/none.c"}, "the series has no mm/none.c"),
        ({"path": "mm/vmscan.c"}, ""),
        ({"test": "bpf"}, "bpftool is this machine's"),
        ({"test": "demote"}, "no table of this architecture tells the kernel of slow memory"),
    ],
)
def test_mutants_that_no_guest_of_arm64_shows(
    monkeypatch: pytest.MonkeyPatch, changed_field: dict[str, Any], why: str
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    mutant = replace(mutants.Mutant("one", "module/scan.c", "old", "new"), **changed_field)
    version = Version("7.3.4", "7.3.4-1", architecture.ARM64)
    assert mutants.useless(mutant, version, {"flush"}, "+++ b/mm/vmscan.c\n") == why


def test_groups_have_all_guest_tests_but_those_of_a_full_run() -> None:
    grouped = {name for group in GROUPS for name in names(group)}
    assert grouped == set(names("all"))
    assert (GUEST / "run").exists()


def test_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = Report(tmp_path / "log")
    with report.group("first"):
        report.add("one", None, 1.4)
        with report.check("two"):
            raise Failure("it is\nbroken")
    with report.group("second"):
        raise Failure("no kernel")
    assert report.finish() == 1
    printed = capsys.readouterr().out
    assert printed == (tmp_path / "log").read_text()
    lines = printed.splitlines()
    assert lines[:4] == ["ok - one (1 s)", "not ok - two (0 s)", "#   it is", "#   broken"]
    assert lines[4].startswith("# group first: 0.0 min")
    assert lines[5:7] == ["not ok - second: preparing its tests", "#   no kernel"]
    assert lines[-5].startswith("# minutes: first 0.0, second 0.0; 0.0 in all")
    assert lines[-4].startswith("# CPU minutes: ")
    assert lines[-3:] == [
        "# failed: two",
        "# failed: second: preparing its tests",
        "1 passed, 2 failed",
    ]


def test_how_far_a_run_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The lane that takes longest tells how long, once each group has been run before."""
    monkeypatch.setattr(results, "LAST", tmp_path / "minutes")
    for told in ("0 of 3 groups done", "0 of 3 groups done, 5 min to go"):
        report = Report(tmp_path / "log", [["a", "b"], ["c"]])
        for name in "abc":
            with report.group(name):
                report.add(name, None)
        assert report.finish() == 0
        said = capsys.readouterr().out
        assert said.startswith(f"# group a begins: {told}\n")
        assert "# group c: 0.0 min; 3 of 3 groups done" in said
        (tmp_path / "minutes").write_text('{"a": 2, "b": 3, "c": 4}')


def test_what_no_test_expects_fails_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In one line, with its place, and what follows is run."""
    report = Report(tmp_path / "log")
    with report.group("first"):
        with report.check("one"):
            int("x")
        report.add("two", None)
        Path("/nonesuch").read_text()
    with report.group("second"):
        report.add("three", None)
    assert report.finish() == 1
    lines = capsys.readouterr().out.splitlines()
    assert re.match(rf"#   ValueError at {__file__}:\d+: invalid literal", lines[1])
    assert lines[3] == "not ok - first: preparing its tests"
    assert re.match(rf"#   FileNotFoundError at {__file__}:\d+: .*/nonesuch", lines[4])
    assert lines[-1] == "2 passed, 2 failed"


def test_a_group_that_has_not_run_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(results, "LAST", tmp_path / "minutes")
    report = Report(tmp_path / "log", [["a", "b"]])
    with report.group("a"):
        report.add("one", None)
    assert report.finish() == 1
    assert "# not run to its end: b\n1 passed, 0 failed\n" in capsys.readouterr().out


@pytest.mark.parametrize("text", ['{"a": 2', "[]", ""])
def test_minutes_that_are_not_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(results, "LAST", tmp_path / "minutes")
    results.LAST.write_text(text)
    report = Report(tmp_path / "log", [["a"]])
    with report.group("a"):
        report.add("one", None)
    assert report.finish() == 0
    assert results.LAST.read_text() == '{"a": ' + str(report.minutes["a"]) + "}"


def test_no_test_is_a_failure(tmp_path: Path) -> None:
    assert Report(tmp_path / "log").finish() == 1
