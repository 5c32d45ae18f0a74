# SPDX-License-Identifier: GPL-2.0
"""Switching between two settings of the policies while something else runs."""

import random
import time

from vmp.common import Failure
from vmp.control.debugfs import Assignment, Control
from vmp.result.model import turns

EXCLUDED = {
    "profile": "name the points instead",
    "trace": "the recording needs it",
}


def parse_sides(words: list[str]) -> dict[str, list[Assignment]]:
    """Return what sides A and B set, from words such as `flush=stock,batch`.

    Raises Failure for another form and for a name that is given twice.
    """
    sides: dict[str, list[Assignment]] = {"A": [], "B": []}
    for word in words:
        name, _, values = (text.strip() for text in word.partition("="))
        pair = [value.strip() for value in values.split(",")]
        if not name or len(pair) != 2 or not all(pair) or pair[0] == pair[1]:
            raise Failure(
                f"'{word}' is no pair of settings: write POINT=X,Y or POINT.PARAMETER=X,Y "
                "with two different values"
            )
        if name in EXCLUDED:
            raise Failure(f"{name} can't be switched here: {EXCLUDED[name]}")
        if any(item.name == name for item in sides["A"]):
            raise Failure(f"{name} is given twice: name both values in one --ab")
        for side, value in zip("AB", pair, strict=True):
            sides[side].append(Assignment(name, value))
    return sides


class Alternation:
    """Two settings, in force by turns: A B or B A, by coin.

    As a context it checks both when it is entered and restores the former settings at the end.
    """

    def __init__(
        self,
        control: Control,
        sides: dict[str, list[Assignment]],
        seconds: float,
        coin: random.Random,
    ) -> None:
        """Choose how long a turn lasts, in seconds, and what chooses the order; change nothing."""
        self.control = control
        self.sides = sides
        self.seconds = seconds
        self.turns = turns(coin)
        self.side = ""
        self.next = 0.0
        self.before: list[Assignment] = []

    def __enter__(self) -> "Alternation":
        items = self.sides["A"] + self.sides["B"]
        self.control.check(items)
        if reason := self.control.tripped():
            raise Failure(f"the guard has tripped: run `vmscanctl clear` first; {reason}")
        names = [item.name for item in self.sides["A"]]
        self.before = [Assignment(name, self.control.get(name)) for name in names]
        try:
            for item in items:  # the kernel alone knows which numbers it takes
                self.control.write([item])
        except BaseException:
            self.restore()
            raise
        return self

    def restore(self) -> None:
        """Write back what was set before; a guard that has tripped would refuse it."""
        self.control.clear()
        self.control.write(self.before)

    def __exit__(self, *_: object) -> None:
        self.restore()

    def start(self) -> None:
        """Begin with the first turn."""
        self.turn()

    def turn(self) -> None:
        """Begin the next turn."""
        side = next(self.turns)
        if side != self.side:
            self.control.write(self.sides[side])
        self.side = side
        self.next = time.monotonic() + self.seconds

    def step(self) -> float:
        """Begin the next turn if it is time to; return the time of the one after, monotonic."""
        if time.monotonic() >= self.next:
            self.turn()
        return self.next
