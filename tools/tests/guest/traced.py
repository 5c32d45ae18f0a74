#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tell what the events in a trace add up to, and fail where the module counted something else.

usage: traced.py TRACE BEFORE AFTER

TRACE is the text of a trace instance, BEFORE and AFTER are lines of POINT.NAME and a value.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))

from vmp.common import Failure, run_tool
from vmp.report import aggregate, match, trace


def paired(events: Iterable[trace.Event], alone: list[str]) -> Iterator[trace.Event]:
    """Pass the events on; `alone` gets, as NAME id=ID, those without their begin or their end.

    A task that was not throttled after all has a throttle_begin only.
    """
    begun: dict[str, str] = {}
    for event in events:
        kind, _, edge = event.name.rpartition("_")
        number = trace.fields(event.text).get("id", "0")
        if edge == "begin":
            if number == "0" or number in begun:
                alone.append(f"{event.name} id={number}")
            begun[number] = kind
        elif edge == "end" and begun.pop(number, "") != kind:
            alone.append(f"{event.name} id={number}")
        yield event
    alone += [f"{kind}_begin id={number}" for number, kind in begun.items() if kind != "throttle"]


def counters(path: Path) -> dict[str, int]:
    """Return the lines of a name and a value."""
    return {name: int(value) for name, value in map(str.split, path.read_text().splitlines())}


def main() -> int:
    """Print each figure as its name and its value, or raise Failure."""
    text, before, after = map(Path, sys.argv[1:])
    alone: list[str] = []
    with text.open(errors="replace") as lines:
        picture = aggregate.read(paired(trace.events(lines), alone))
    if alone:
        raise Failure(f"{len(alone)} events have no beginning or no end: {', '.join(alone[:9])}")
    earlier = counters(before)
    picture.counted = {name: value - earlier[name] for name, value in counters(after).items()}
    rows = match.beside_module(picture)
    if wrong := [row for row in rows if row["trace"] != row["counted"]]:
        told = (f"{row['figure']}: traced {row['trace']}, counted {row['counted']}"
                for row in wrong)  # fmt: skip
        raise Failure("; ".join(told))
    for row in rows:
        print(row["figure"], row["trace"])
    return 0


if __name__ == "__main__":
    run_tool("traced", main)
