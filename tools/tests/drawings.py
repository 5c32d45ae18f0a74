# SPDX-License-Identifier: GPL-2.0
"""Whether two SVG files are the same picture.

Processors differ in the last bits of their arithmetic, so drawings of the same figures differ in
the last digits of their coordinates, and in the ids that matplotlib makes from those.
"""

import re

import pytest

COORDINATE = re.compile(r"(-?\d+\.\d+)")
MADE_ID = re.compile(r"-[mp][0-9a-f]{10}\b")
TOLERANCE = 0.01  # units of the SVG: less than anyone sees


def same_picture(one: str, other: str) -> bool:
    """Return whether two SVG files have the same elements at the same places."""
    parts = [COORDINATE.split(MADE_ID.sub("", text)) for text in (one, other)]
    if parts[0][::2] != parts[1][::2]:
        return False
    first, second = ([float(number) for number in every[1::2]] for every in parts)
    return first == pytest.approx(second, abs=TOLERANCE)
