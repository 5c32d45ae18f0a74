# SPDX-License-Identifier: GPL-2.0
"""Tests of what the demo tells: a line a slice, the verdict, the page; and its recordings."""

import argparse
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from vmp.common import Failure
from vmp.demo import command, told
from vmp.demo.machine import lines
from vmp.demo.page import page
from vmp.result.file import run_text
from vmp.result.model import Result, Settings, Slice, slice_order
from vmp.testing.terminal import record, said, when

KEYS = (told.FLUSHES, told.INTERRUPTS)
SETTINGS = Settings("flush=stock", "flush=batch", "", 64 << 20, 2, "threads", primary=KEYS)
WHERE = {"kernel": "6.12.117+deb12-cloud-amd64", "cpus": 4, "lru": "mglru"}


def piece(side: str, flushes: float) -> Slice:
    """Return a slice of 1,000 pages."""
    counters = {"vmstat.pgsteal_anon": 1000.0, "vmstat.pgsteal_file": 0.0, "seconds": 2.0,
                "stats.flush.observed_remote_flushes": flushes,
                "stats.flush.observed_interrupts": 3 * flushes}  # fmt: skip
    return Slice(side, counters)


def slices(count: int, stock: float, batch: float) -> list[Result]:
    """Return so many slices, as they come out of a guest."""
    parts = []
    for number, side in enumerate(slice_order(count, 1)):
        one = piece(side, (stock if side == "A" else batch) + number % 3)
        text = run_text(Result(SETTINGS, WHERE, (one,)), summary=False)
        assert text.count("\n") == 1
        parts.append(told.read_slice(text))
    return parts


def run(count: int, stock: float, batch: float, ended: str = "") -> Result:
    """Return a run of so many slices."""
    return told.joined(slices(count, stock, batch), ended)


@pytest.mark.parametrize(
    ("stock", "batch", "said"),
    [
        (1000, 20, "flush=batch saves 98 of 100 interrupts by reclaim."),
        (20, 1000, "flush=batch is worse here."),
        (100, 100, "no difference was detected."),
    ],
)
def test_the_verdict(stock: float, batch: float, said: str) -> None:
    lines = told.verdict(run(16, stock, batch))
    assert len(lines) == 5
    assert lines[-1] == f"Verdict: {said}"
    assert max(map(len, lines)) <= 110


def test_the_figures_of_a_verdict() -> None:
    first, flushes, interrupts, stolen, _ = told.verdict(run(16, 1000, 20))
    assert "8 pairs, threads in 64 MiB, Linux 6.12.117+deb12-cloud-amd64, 4 CPUs" in first
    assert " 1,001 to     21  -97.9 % (95 %: " in flushes
    assert " 3,003 to     63  -97.9 % (95 %: " in interrupts
    assert "    500 to    500 " in stolen


def test_a_run_that_ended_early() -> None:
    lines = told.verdict(run(5, 1000, 20, "it was interrupted"))
    assert lines[4].startswith("Verdict: 2 pairs in which both sides reclaimed are too few")
    assert lines[5] == "INCOMPLETE: the run ended after 5 slices: it was interrupted."


def test_slices_without_reclaim_are_no_pairs() -> None:
    """A busy host may let the guest get nowhere in a slice."""
    whole = run(16, 1000, 20)
    idle = {name: 0.0 for name in whole.slices[0].counters}
    parts = [replace(piece, counters=idle) if n in (0, 4) else piece
             for n, piece in enumerate(whole.slices)]  # fmt: skip
    lines = told.verdict(replace(whole, slices=tuple(parts)))
    assert lines[4] == "Verdict: 6 pairs in which both sides reclaimed are too few to be sure."
    assert told.live(1, replace(whole, slices=(parts[0],))).split()[2:] == ["-", "-", "0"]


def test_a_line_that_is_cut_off() -> None:
    with pytest.raises(Failure, match="cut off"):
        told.read_slice('{"format": 2, "kind": "run", "sett')


def test_the_live_line() -> None:
    line = told.live(3, run(2, 1000, 20))
    assert line.split() == ["3", "flush=stock", "1,000", "3,000", "1,000"]
    assert line.index("flush=stock") == told.heading().index("policy")


@pytest.mark.parametrize("batch", [20, 0])
def test_the_page_has_a_bar_and_a_row_for_each_slice(batch: float) -> None:
    text = page(run(6, 1000, batch))
    assert text.count('<th scope="row">') == 6
    assert text.count('opacity="0.25"') == 6
    assert "Verdict:" in text


def test_a_recording_has_what_was_printed_and_when(tmp_path: Path) -> None:
    cast = tmp_path / "x.cast"
    script = "import sys, time; print('one'); sys.stdout.flush(); time.sleep(0.3); print('two')"
    assert record([sys.executable, "-c", script], "x", cast) == 0
    assert said(cast) == "one\ntwo\n"
    assert when(cast, "^two") >= when(cast, "^one") + 0.2


def test_ctrl_c_is_typed_once_a_line_was_seen(tmp_path: Path) -> None:
    script = "trap 'echo ended; exit 130' INT; for n in 1 2 3; do echo line $n; done; sleep 60"
    assert record(["sh", "-c", script], "x", tmp_path / "x.cast", stop="^line 2") == 130
    assert said(tmp_path / "x.cast").endswith("ended\n")


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo one; echo vmp-status 0", ""),
        ("echo one; echo vmp-status 3", "the guest failed: one"),
        ("echo one", "the guest failed: one"),
        ("echo one; echo vmp-status 0; exit 99", "the guest failed: one"),
    ],
)
def test_how_a_guest_ends(script: str, said: str) -> None:
    with pytest.raises(Failure, match=said) if said else nullcontext():
        assert list(lines(["sh", "-c", script])) == ["one\n"]


@pytest.mark.parametrize("ended", [None, Failure("it broke")])
def test_a_run_without_a_console_leaves_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended: Failure | None
) -> None:
    def measured(_command: list[str], parts: list[Result]) -> None:
        parts += slices(20, 1000, 20)
        if ended:
            raise ended

    monkeypatch.setattr(command, "OUT", tmp_path)
    monkeypatch.setattr(command, "REPO", tmp_path)
    monkeypatch.setattr(command, "prepare", lambda *_: ["true"])
    monkeypatch.setattr(command, "measure", measured)
    with pytest.raises(Failure, match="it broke") if ended else nullcontext():
        command.run(argparse.Namespace(all=False, kernel=None, arch=None))
    assert {path.name for path in tmp_path.glob("demo-*/*")} == {
        command.RESULT,
        command.PAGE,
        command.VERDICT,
    }
