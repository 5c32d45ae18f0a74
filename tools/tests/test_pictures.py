# SPDX-License-Identifier: GPL-2.0
"""Tests of README's pictures: that of its figures, and that of the recorded demo."""

import re
from pathlib import Path

import pytest
from pictures import demo, figures
from tests.drawings import same_picture


def test_the_picture_is_that_of_the_table() -> None:
    """If this fails: tools/pictures/figures.py."""
    drawn = figures.picture(figures.README.read_text())
    assert same_picture(figures.PICTURE.read_text(), drawn)


@pytest.mark.parametrize(("old", "new", "same"), [
    ("M 12.000004 ", "M 12.000005 ", True),
    ("M 12.000004 ", "M 12.020004 ", False),
    ("-m0123456789", "-m012345678a", True),
    ("-95.6 %", "-95.7 %", False),
    ("series1", "series2", False),
    ("fig", "figs", False),
])  # fmt: skip
def test_a_picture_is_told_from_another(old: str, new: str, same: bool) -> None:
    text = '<use id="fig-m0123456789" d="M 12.000004 3" style="var(--series1)"/>-95.6 %'
    assert old in text
    assert same_picture(text, text.replace(old, new)) is same


def test_its_numbers_are_those_of_the_five_rows() -> None:
    rows = figures.table(figures.README.read_text())
    assert len(rows) == 5
    drawn = re.findall(r">([^<>]+) → ([^<>]+)</text>", figures.PICTURE.read_text())
    assert drawn == [(row.before, row.after) for row in rows]
    assert "(tools/pictures/figures.svg)" in figures.README.read_text()


def test_no_interval_leaves_the_picture() -> None:
    for row in figures.table(figures.README.read_text()):
        assert -100 <= row.low <= row.change <= row.high <= figures.WIDEST - 100


def test_the_screen_is_that_of_the_recording() -> None:
    """If this fails: tools/pictures/demo.py."""
    assert demo.PICTURE.read_text() == demo.picture(demo.CAST)
    assert "Verdict: flush=batch saves " in demo.PICTURE.read_text()
    assert "(tools/pictures/demo.svg)" in figures.README.read_text()


def test_a_recording_is_kept_from_where_the_demo_begins(tmp_path: Path) -> None:
    cast = tmp_path / "x.cast"
    cast.write_text('{"version": 2, "width": 4}\n[1.5, "o", "apt\\r\\n"]\n'
                    '[3.0, "o", "demo: 1 of 5"]\n[4.25, "o", "end"]\n')  # fmt: skip
    cast.write_text(demo.kept(cast))
    assert cast.read_text().splitlines()[1:] == ['[0.0, "o", "demo: 1 of 5"]', '[1.25, "o", "end"]']
    assert re.findall(r">([^<>]*)</text>", demo.picture(cast)) == ["demo", ": 1 ", "of 5", "end"]
