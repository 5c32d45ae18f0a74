# SPDX-License-Identifier: GPL-2.0
"""By how much a figure grows with a number: slopes of the logarithm of one against the other's."""

import math
from collections.abc import Sequence

from vmp.result.significance import Effect, from_error, in_percent, least_squares

Ends = tuple[float, float]


def by_line(points: Sequence[tuple[float, float]]) -> Effect:
    """Return the slope of the straight line through points, two or more, by ordinary least squares.

    It takes three for an interval. Where all have one x the slope is 0.
    """
    line, freedom = least_squares(*zip(*points, strict=True)), len(points) - 2
    if not line or freedom < 1:
        return Effect(line.slope if line else 0.0, None, None, None, 1.0)
    return from_error(line.slope, math.sqrt(line.rest / freedom / line.spread), freedom)


def doubling(points: Sequence[tuple[float, float]]) -> tuple[float | None, Ends | None]:
    """Return by how many percent y grows when x doubles, and the interval of 95 %.

    None where x is the same in all points, or a y is 0, which has no logarithm.
    """
    if len({x for x, _ in points}) < 2 or any(y <= 0 for _, y in points):
        return None, None
    slope = by_line([(math.log2(x), math.log2(y)) for x, y in points])
    shift, *ends = (
        None if value is None else in_percent(value * math.log(2))
        for value in (slope.shift, slope.low, slope.high)
    )
    low, high = ends
    return shift, None if low is None or high is None else (low, high)
