# SPDX-License-Identifier: GPL-2.0
"""Tests of README's picture: it is that of the figures below it."""

import re

from pictures import figures


def test_the_picture_is_that_of_the_table() -> None:
    """If this fails: tools/pictures/figures.py."""
    assert figures.PICTURE.read_text() == figures.picture(figures.README.read_text())


def test_its_numbers_are_those_of_the_five_rows() -> None:
    rows = figures.table(figures.README.read_text())
    assert len(rows) == 5
    drawn = re.findall(r">([^<>]+) → ([^<>]+)</text>", figures.PICTURE.read_text())
    assert drawn == [(row.before, row.after) for row in rows]
    assert "(tools/pictures/figures.svg)" in figures.README.read_text()


def test_no_interval_leaves_the_picture() -> None:
    for row in figures.table(figures.README.read_text()):
        assert -100 <= row.low <= row.change <= row.high <= figures.WIDEST - 100
