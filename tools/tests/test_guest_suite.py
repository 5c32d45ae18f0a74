# SPDX-License-Identifier: GPL-2.0
"""Tests of what runs the guest tests: guests that follow each other, and how each ends."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from vmp.common import Words
from vmp.guest import suite as vm_suite
from vmp.guest.log import STALE_BREAKPOINT
from vmp.guest.qemu import run_guest
from vmp.guest.sources import Version
from vmp.guest.suite import GUEST, GUESTS
from vmp.testing import guest_tests
from vmp.testing.guest_tests import guest_suite
from vmp.testing.results import Report

NO_GUEST, SPLAT = 125, 99
TESTS = ["one", "two", "three", "four"]
Guest = Callable[[list[str]], tuple[int, str]]


def ktap(*results: str) -> str:
    """Return what a guest says of some tests, as in "not ok one"."""
    lines = ["KTAP version 1"]
    for number, result in enumerate(results, 1):
        verdict, _, name = result.rpartition(" ")
        lines += [f"# about {name}", f"# {name}: 1 s", f"{verdict} {number} - {name}"]
    return "\n".join(lines)


def stops_at(failing: str, tests: list[str]) -> tuple[int, str]:
    """Be a guest in which a test fails."""
    if failing not in tests:
        return 0, ktap(*(f"ok {name}" for name in tests))
    ended = tests[: tests.index(failing)]
    return 1, ktap(*(f"ok {name}" for name in ended), f"not ok {failing}")


def ends_at(status: int, killer: str, tests: list[str]) -> tuple[int, str]:
    """Be a guest that a test ends, or QEMU meanwhile, with a status of tools/vm."""
    if killer not in tests:
        return 0, ktap(*(f"ok {name}" for name in tests))
    return status, ktap(*(f"ok {name}" for name in tests[: tests.index(killer)]))


@pytest.fixture
def suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[Guest], tuple[list[list[str]], str]]:
    """Return what runs TESTS in guests; that returns the tests of each guest, and what was said."""

    def run(guest: Guest) -> tuple[list[list[str]], str]:
        guests: list[list[str]] = []

        def vm_once(words: Words, _log: Path, tell: Callable[[str], None]) -> tuple[int, str]:
            assert "VMP_STOP=1" in words
            tests = [str(word) for word in words[words.index(GUEST / "run") + 1 :]]
            guests.append(tests)
            status, text = guest(tests)
            for line in text.splitlines():
                tell(line)
            return status, text

        monkeypatch.setattr(guest_tests, "vm_once", vm_once)
        guest_suite(Report(tmp_path / "log"), "x", tmp_path, TESTS, False)
        return guests, capsys.readouterr().out

    monkeypatch.setattr(guest_tests, "OUT", tmp_path)
    monkeypatch.setattr(guest_tests, "prepare", lambda _: None)
    monkeypatch.setattr(guest_tests, "compile_workloads", lambda _: None)
    version = Version("6.12.1", "6.12.1-1")
    monkeypatch.setattr(guest_tests, "kernel_version", lambda _: version)
    monkeypatch.setattr(guest_tests, "settings", lambda *_: [])
    return run


CLEAN = "ok - x: each guest ran to its end with a clean kernel log"


def test_one_guest_is_enough(suite: Any) -> None:
    guests, said = suite(lambda tests: stops_at("", tests))
    assert guests == [TESTS]
    assert f"\n{CLEAN}" in said


def test_a_fresh_guest_goes_on_after_a_test_that_fails(suite: Any) -> None:
    guests, said = suite(lambda tests: stops_at("two", tests))
    assert guests == [TESTS, ["three", "four"]]
    assert "not ok - x: two (1 s)\n#   about two\n" in said
    assert "# x: two has failed" in said
    assert "another goes on at three\n" in said
    assert "ok - x: four (1 s)\n" in said
    assert f"\n{CLEAN}" in said


def test_no_guest_follows_the_last_test(suite: Any) -> None:
    guests, said = suite(lambda tests: stops_at("four", tests))
    assert guests == [TESTS]
    assert "not ok - x: four (1 s)\n" in said
    assert f"\n{CLEAN}" in said


@pytest.mark.parametrize("status", [NO_GUEST, SPLAT])
def test_a_test_that_ends_its_guest_is_all_that_is_lost(suite: Any, status: int) -> None:
    guests, said = suite(lambda tests: ends_at(status, "two", tests))
    assert guests == [TESTS, ["three", "four"]]
    assert f"not ok - x: two\n#   tools/vm ended with status {status}" in said
    assert said.count("not ok - ") == 2
    assert f"not {CLEAN}" in said


def test_a_test_is_repeated_where_qemu_has_lost_the_guest(suite: Any) -> None:
    lost: list[str] = []

    def guest(tests: list[str]) -> tuple[int, str]:
        lost.append(tests[0])
        return ends_at(STALE_BREAKPOINT, "two" if len(lost) == 1 else "", tests)

    guests, said = suite(guest)
    assert guests == [TESTS, ["two", "three", "four"]]
    assert "not ok" not in said


def test_a_guest_that_does_not_begin(suite: Any) -> None:
    guests, said = suite(lambda _: (NO_GUEST, "vm: there is no kernel"))
    assert guests == [TESTS]
    assert said.count("not ok - ") == 1
    assert "#   vm: there is no kernel\n#   these were not run: one, two, three, four\n" in said


def test_a_log_that_is_not_clean(suite: Any) -> None:
    _, said = suite(lambda tests: (SPLAT, stops_at("", tests)[1]))
    assert said.count("not ok - ") == 1
    assert f"not {CLEAN}" in said


def test_there_is_an_end_to_guests(suite: Any) -> None:
    guests, said = suite(lambda tests: ends_at(STALE_BREAKPOINT, tests[0], tests))
    assert len(guests) == GUESTS
    assert "#   these were not run: one, two, three, four\n" in said


def test_a_guest_is_ended_when_it_says_nothing(tmp_path: Path) -> None:
    talk = f"for i in 1 2 3 4; do sleep 0.6; echo >{tmp_path}/stdout; done; sleep 60"
    start = time.monotonic()
    assert run_guest(["sh", "-c", talk], tmp_path, 60, 1) == "1 s without a word (--silence)"
    assert 3 < time.monotonic() - start < 30


def test_a_guest_is_ended_after_its_time(tmp_path: Path) -> None:
    assert run_guest(["sleep", "60"], tmp_path, 1, 30) == "1 s (--timeout)"


def test_a_guest_that_ends(tmp_path: Path) -> None:
    assert run_guest(["sh", "-c", "exit 3"], tmp_path, 60) == 3


def vm_that(does: str, monkeypatch: pytest.MonkeyPatch, directory: Path) -> Path:
    """Have tools/vm do something else; return its log."""
    monkeypatch.setattr(vm_suite, "VM", directory / "vm")
    vm_suite.VM.write_text(f"#!/bin/sh\n{does}\n")
    vm_suite.VM.chmod(0o755)
    return directory / "log"


def test_a_guests_lines_are_told_when_they_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = vm_that("echo one; echo two >&2; exit 3", monkeypatch, tmp_path)
    told: list[tuple[str, str]] = []
    found = vm_suite.vm_once([], log, lambda line: told.append((line, log.read_text())))
    assert found == (3, "one\ntwo\n")
    assert told == [("one", "one\n"), ("two", "one\ntwo\n")]


def test_a_guest_ends_with_who_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_line: str) -> None:
        raise KeyboardInterrupt

    log = vm_that("echo $$; exec sleep 60", monkeypatch, tmp_path)
    with pytest.raises(KeyboardInterrupt):
        vm_suite.vm_once([], log, interrupted)
    assert not Path("/proc", log.read_text().strip()).exists()
