# SPDX-License-Identifier: GPL-2.0
"""How numbers, percentages, intervals and times to go are written, wherever that is."""

import math

MOST = 10_000  # percent: a hundredfold rise. How far beyond it one is, no figure here can tell


def number(value: float | None) -> str:
    """Format a figure: whole from 1,000 on, else with four digits; '-' for None."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def signed(value: float, digits: int | None) -> str:
    """Format a change: with so many decimals; None: one decimal below 10 and none above."""
    if value > MOST:
        return f">{MOST:+,}"
    if digits is None:
        return f"{value:+.0f}" if abs(value) >= 9.95 else f"{value:+z.1f}"
    return f"{value:+.{digits}f}"


def percent(value: float | None, digits: int | None = 1) -> str:
    """Format a change in percent; '-' for None, and where there was nothing before."""
    if value is None or math.isinf(value):
        return "-"
    return f"{signed(value, digits)} %"


def interval(ends: tuple[float, float] | None, digits: int | None = 1) -> str:
    """Format an interval in percent; '-' for None."""
    return " to ".join(signed(end, digits) for end in ends) + " %" if ends else "-"


def to_go(seconds: float) -> str:
    """Format how long something will still take, about."""
    return f"{seconds / 60:.0f} min to go" if seconds >= 100 else f"{seconds:.0f} s to go"
