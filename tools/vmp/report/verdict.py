# SPDX-License-Identifier: GPL-2.0
"""The verdict that a report opens with: what B did to what a reader asks for, in sentences."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from vmp.form import interval, number, percent
from vmp.report.aggregate import THROTTLED, Picture, figures
from vmp.report.labels import QUESTIONS
from vmp.result import model
from vmp.result.table import ended_note, lost_note, turnover, unseen, void_note

LABELS = {key: label for metrics in QUESTIONS.values() for key, label in metrics.items()}
SCALES = (5, 10, 20, 50, 100)  # percent, to either side of the picture


class Row(NamedTuple):
    """A metric in the picture: what it is called, its figures, and its mark.

    `told` is 'better', 'worse', 'open', or 'exploratory' where nobody asked. `ends` and `dot` are
    percent of A: without an interval `ends` is None, and with nothing in most of A both are.
    """

    label: str
    figures: str
    told: str
    dot: float | None
    ends: tuple[float, float] | None


@dataclass(frozen=True)
class Verdict:
    """What is said, of which run, and the rows of the picture by question, if there are any."""

    name: str
    sentences: list[str]
    groups: dict[str, list[Row]]


def row(label: str, found: model.Row) -> Row:
    """Return the row of a figure that A or B has: of each, less is better."""
    told = {-1: "better", 0: "open", 1: "worse"}[found.sign()] if found.primary else "exploratory"
    if not found.before:
        change = f"{number(found.before)} to {number(found.after)}"
        return Row(label, f"{change} (no percentage: A has nothing)", told, None, None)
    why = found.no_interval() or interval(found.ends, None)
    return Row(label, f"{percent(found.shift, None)} ({why})", told, found.shift, found.ends)


def listed(rows: Iterable[Row]) -> str:
    """Return metrics with their figures, one after another."""
    return "; ".join(f"{row.label} {row.figures}" for row in rows)


def judged(result: model.Result) -> list[str]:
    """Say of the primary figures what changed and what did not, and what the others are."""
    said = [few] if (few := result.undecidable()) else []
    kinds: dict[str, list[Row]] = {}
    for found in result.primary:
        sign, asked = found.sign(), found.key in LABELS
        kind = "No difference was detected"
        if sign:
            words = ("Better", "Worse") if asked else ("Lower", "Higher")
            kind = f"{words[sign > 0]} with B"
        elif found.direction():
            kind = f"A difference alone, not sure among {found.tests} primary figures"
        elif found.undecidable():
            kind = "Undecided"
        kinds.setdefault(kind, []).append(row(LABELS.get(found.key, found.label), found))
    said += [f"{kind}: {listed(rows)}." for kind, rows in kinds.items()]
    said += [f"{LABELS.get(found.key, found.label)}: {seen}"
             for found in result.primary if (seen := unseen(found))]  # fmt: skip
    return [*said, "All other figures were not asked for: they have an interval and no verdict."]


def of_run(name: str, result: model.Result) -> Verdict:
    """Return the verdict on an A/B run, with its title."""
    what = result.settings
    groups = {
        question: [row(label, found) for key, label in metrics.items()
                   if (found := result.row(key)).before or found.after]
        for question, metrics in QUESTIONS.items()
    }  # fmt: skip
    sentences = [
        f"B ({what.b}) beside A ({what.a}): {result.pairs} "
        f"{'periods of twins' if what.twins else 'pairs of neighbouring slices'} of "
        f"{what.title} {what.place()}.",
        *judged(result),
    ]
    kills = result.row("oom_kill")
    if kills.before is not None and kills.after is not None:
        told = f"{kills.before:g} with A, {kills.after:g} with B"
        told = told if kills.before or kills.after else "none on either side"
        counted = f"{told} (no interval: a count)"
        groups["Kills"] = [Row("OOM kills", counted, "exploratory", None, None)]
        sentences.append(f"OOM kills: {told}.")
    lost = lost_note(result)
    if not lost and result.slices[0].stalls is None:
        lost = "How long reclaim held tasks up was not measured: ab does it with --stalls."
    notes = (ended_note(result), void_note(result), lost, *turnover(result), *result.lacks)
    return Verdict(
        name,
        [*sentences, *filter(None, notes)],
        {question: rows for question, rows in groups.items() if rows},
    )


def short(side: str) -> str:
    """Return settings for a title: of many the first."""
    first, *more = side.split(",")
    return side if len(more) < 2 else f"{first} and {len(more)} more"


def title(result: model.Result) -> str:
    """Return what a run is called in words."""
    what = result.settings
    a, b = (short(side) for side in (what.a, what.b))
    sides = f"{b} beside {a}" if what.b != what.a else f"{a} twice"
    lru = result.environment["lru"]
    return f"{sides}: {what.title.partition(':')[0]} {what.place()}, {lru} LRU"


def titles(results: list[model.Result]) -> list[str]:
    """Return what runs are called in words, each by a name of its own."""
    names = [title(result) for result in results]
    return [
        f"{name}, run {names[: index + 1].count(name)}" if names.count(name) > 1 else name
        for index, name in enumerate(names)
    ]


def beside(picture: Picture, name: str) -> str:
    """Return a figure of both groups of a recording in brackets, '' if there are not just two."""
    groups = picture.groups()
    if len(groups) != 2:
        return ""
    values = {label.partition(":")[0]: figures(spans).get(name) for label, spans in groups.items()}
    return " (" + ", ".join(f"{short}: {number(value)}" for short, value in values.items()) + ")"


def of_recording(name: str, picture: Picture) -> Verdict:
    """Return what a recording shows by itself, without a verdict on it."""
    whole = picture.whole()
    said = [f"The recording lasts {whole['seconds']:.1f} s."]
    if "stolen_pages" in whole:
        said = [f"In {whole['seconds']:.1f} s reclaim took {whole['stolen_pages']:,.0f} pages."]
    if rate := whole.get("remote_flushes_per_1000"):
        both = beside(picture, "remote_flushes_per_1000")
        said.append(
            f"For each 1,000 of these {number(rate)} TLB flushes interrupted other CPUs{both}."
        )
    if whole["stalls"]:
        p50, p99, longest = (number(whole[f"stall_{rank}_ms"]) for rank in ("p50", "p99", "max"))
        both = beside(picture, "stall_p99_ms")
        said.append(
            f"Reclaim held tasks up {whole['stalls']:,.0f} times: half of these took {p50} ms or "
            f"less, 99 % took {p99} ms or less{both}, and the longest {longest} ms."
        )
    slept = sum(us for figure, us in whole.items() if THROTTLED.fullmatch(figure))
    said += [
        f"Throttled reclaimers slept {slept / 1e6:.3g} s in all.",
        f"OOM kills: {whole.get('oom_kills', 0):.0f}.",
        "There is no picture of effects, since no JSON of tools/ab was given.",
    ]
    return Verdict(name, said, {})


def scale(verdicts: list[Verdict]) -> int:
    """Return how many percent to either side the pictures of all runs have room for."""
    shown = [row for verdict in verdicts for rows in verdict.groups.values() for row in rows]
    ends = [abs(end) for row in shown for end in (*(row.ends or ()), row.dot or 0)]
    return next((limit for limit in SCALES if max(ends, default=0) <= limit), SCALES[-1])
