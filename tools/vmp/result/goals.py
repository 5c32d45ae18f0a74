# SPDX-License-Identifier: GPL-2.0
"""What a figure says of one that was published, and whether it meets a goal."""

from dataclasses import dataclass

from vmp.form import interval, number, percent
from vmp.result.model import Row
from vmp.result.significance import SIGNIFICANT

ENOUGH = 0.5  # of the published change
EQUAL = 10  # percent: a change that is surely smaller is none
NOT_UP = "not up"  # what is published where a figure only must not rise

REPRODUCED = "reproduced"
DIRECTION = "same direction"
NOT_SEEN = "not seen"
OTHER_WAY = "the other way"
CHANGED = "a change, none was published"
NOISY = "too noisy to tell"
FEW = "too few slices to tell"
UNSURE = "not sure among its figures"
DIFFER = "boots differ"
CANNOT = "can't be seen here"
OURS_ALONE = "no figure was published"
MISSING = "no figure here"
BETTER = "better"
WORSE = "worse"
NO_WORSE = "not worse"
NOT_KNOWN = "not known to be no worse"

UNTOLD_RULE = (
    f"*{UNSURE}*: an interval without 0, but a p that is not below {SIGNIFICANT}. *{DIFFER}*: "
    "the intervals of fewer than five do not overlap, and it takes five to tell."
)
RULE = (
    f"*{REPRODUCED}*: a change in the published direction, with a p below {SIGNIFICANT}, of at "
    f"least half the published percentage. *{DIRECTION}*: such a change, but a smaller one, or "
    f"only the direction was published. *{NOT_SEEN}*: the interval includes 0; "
    f"*{FEW}*: so few slices that no p can be below {SIGNIFICANT}. "
    f"*{OTHER_WAY}*: one in the other direction. *{CANNOT}*: what the emulator does not have. "
    f"Where no change was published, *{REPRODUCED}* is an interval within {EQUAL} % either way, "
    f"*{CHANGED}* another with a p below {SIGNIFICANT}, and *{NOISY}* one that includes 0."
)
RISE_RULE = (
    f"For a figure that must not rise, *{BETTER}* and *{WORSE}* are changes with a p below "
    f"{SIGNIFICANT}, *{NO_WORSE}* is an interval that ends at +{EQUAL} % or below, and "
    f"*{NOT_KNOWN}* one that includes 0 and more than that."
)


def rule(published: list[float | str]) -> str:
    """Return in words how figures are judged, of which that was published."""
    kinds = {each == NOT_UP for each in published}
    return " ".join([RULE] * (False in kinds) + [RISE_RULE] * (True in kinds) + [UNTOLD_RULE])


def untold(row: Row, open_word: str) -> str:
    """Return the verdict on a figure whose change is not sure; `open_word` if 0 is inside."""
    if row.differ:
        return DIFFER
    if row.direction() == 0 and row.ends:
        return open_word
    return FEW if row.undecidable() else UNSURE if row.direction() else open_word


def no_change(row: Row) -> str:
    """Judge a figure for which no change was published."""
    if row.ends and -EQUAL < row.ends[0] and row.ends[1] < EQUAL:
        return REPRODUCED
    return CHANGED if row.sign() else untold(row, NOISY)


def verdict(published: float | str, row: Row) -> str:
    """Judge a figure by the change that was published: percent, 0 for none, or in words."""
    if row.delta is None:
        return MISSING
    if published == "":
        return OURS_ALONE
    if published == 0:
        return no_change(row)
    sign = row.sign()
    if published == NOT_UP:
        if sign:
            return WORSE if sign > 0 else BETTER
        if row.ends and row.ends[1] <= EQUAL and row.direction() <= 0:
            return NO_WORSE
        return untold(row, NOT_KNOWN)
    if not sign:
        return untold(row, NOT_SEEN)
    if isinstance(published, str):
        return DIRECTION if (sign > 0) == (published == "up") else OTHER_WAY
    if sign * published < 0:
        return OTHER_WAY
    return REPRODUCED if abs(row.change) >= ENOUGH * abs(published) else DIRECTION


@dataclass(frozen=True)
class Goal:
    """A figure of a run, and what it is to be with B.

    The kinds: 'at most', B's value, of `limit`; 'ratio', of B's to A's, of `limit` at most;
    'lower', 'no lower' and 'no higher', where a change counts that is sure; '' only shows it.
    """

    run: str
    what: str
    key: str
    kind: str = ""
    limit: float = 0

    def holds(self, row: Row) -> bool:
        """Tell if a row meets the goal; one that is missing does not."""
        if row.before is None or row.after is None:
            return not self.kind or (self.kind == "at most" and row.after is not None
                                     and row.after <= self.limit)  # fmt: skip
        return {
            "": True,
            "at most": row.after <= self.limit,
            "ratio": row.after <= self.limit * row.before and row.before > 0,
            "lower": row.sign() < 0,
            "no lower": row.sign() >= 0,
            "no higher": row.sign() <= 0,
        }[self.kind]

    def wanted(self) -> str:
        """Return the goal in words."""
        if self.kind == "ratio":
            return f"at most {percent(100 * (self.limit - 1), None)}"
        return f"{self.kind} {self.limit:g}" if self.kind == "at most" else self.kind

    def told(self, row: Row) -> str:
        """Return the figure with its verdict, in one line."""
        change = f"{percent(row.percent)} ({row.no_interval() or interval(row.ends)})"
        line = f"{self.what}: {number(row.before)} with A, {number(row.after)} with B, {change}"
        if not self.kind:
            return f"  {line}"
        held = "reached" if self.holds(row) else "not reached"
        return f"  goal {held}: {line}; goal: {self.wanted()}"
