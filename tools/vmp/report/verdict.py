# SPDX-License-Identifier: GPL-2.0
"""The verdict that a report opens with: what B did to what a reader asks for, in sentences."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from vmp.ab.compare import effects, with_stalls
from vmp.ab.significance import SIGNIFICANT, Effect
from vmp.ab.table import lacks, limit, lost_note, number, signed, turnover
from vmp.report.aggregate import THROTTLED, Picture, figures

# The rows of ab's table that answer what a reader asks, by their keys: of each, less is better.
QUESTIONS = {
    "Interrupts": {
        "reclaim_flushes_per_1000": "reclaim's own remote flushes",
        "reclaim_ipis_per_1000": "interrupts by these",
        "remote_flushes_per_1000": "remote TLB flushes",
        "tlb_shootdowns_per_1000": "TLB shootdowns",
        "call_ipis_per_1000": "function-call IPIs",
    },
    "Work per page": {
        "scanned_per_stolen": "pages scanned",
        "pageouts_per_1000": "pageouts",
        "read_kib_per_1000": "KiB read from disks",
        "system_ms_per_1000": "system time",
    },
    "Waits": {
        "total_wait_ms_per_1000": "all stalls together",
        "stalls_per_1000": "reclaim stalls",
        "stall_p50_ms": "p50 of the stalls",
        "stall_p99_ms": "p99 of the stalls",
        "ms_per_operation": "time per operation",
    },
    "Refaults": {
        "refault_anon_per_1000": "refaults, anon",
        "refault_file_per_1000": "refaults, file",
        "refault_file_per_operation": "refaults of files per operation",
    },
}
SCALES = (5, 10, 20, 50, 100)  # percent, to either side of the picture


class Row(NamedTuple):
    """A metric in the picture: what it is called, its figures, and its mark.

    `told` is 'better', 'worse' or 'open'. `ends` and `dot` are percent of A: without an
    interval `ends` is None, and with nothing in most of A both are.
    """

    label: str
    figures: str
    told: str
    dot: float | None
    ends: tuple[float, float] | None


@dataclass(frozen=True)
class Verdict:
    """What is said, of which file, and the rows of the picture by question, if there are any."""

    name: str
    sentences: list[str]
    groups: dict[str, list[Row]]


def row(label: str, found: Effect, p: float | None) -> Row:
    """Return the row of a metric that A or B has, with the p that is corrected."""
    sure = found.sign() if p is not None and p < SIGNIFICANT else 0
    told = {-1: "better", 0: "open", 1: "worse"}[sure]
    if not found.a:
        return Row(label, f"{number(found.a)} to {number(found.b)}", told, None, None)
    dot = 100 * found.shift / found.a
    if found.low is None or found.high is None:
        return Row(label, signed(dot), told, dot, None)
    # Of no metric more than all can go.
    low, high = max(-100, 100 * found.low / found.a), 100 * found.high / found.a
    text = f"{signed(dot)} ({signed(low)} to {signed(high)})"
    return Row(label, text, told, dot, (low, high))


def listed(rows: Iterable[Row]) -> str:
    """Return metrics with their figures, one after another."""
    return "; ".join(f"{row.label} {row.figures}" for row in rows)


def judge(rows: list[Row], pairs: int) -> list[str]:
    """Say what got better, what got worse, and what can't be told."""
    if pairs < 6:
        return ["These are too few to tell anything from noise: it takes twelve slices."]
    told = {kind: [row for row in rows if row.told == kind] for kind in ("better", "worse", "open")}
    said = [
        f"{kind.capitalize()} with B: {listed(found)}."
        if (found := told[kind])
        else f"Nothing got {kind} beyond the noise."
        for kind in ("better", "worse")
    ]
    if told["open"]:
        said.append(f"Can't be told from noise: {listed(told['open'])}.")
    return said


def of_run(name: str, report: dict[str, Any]) -> Verdict:
    """Return the verdict on an A/B run; `name` is that of its file."""
    slices = [(piece["side"], with_stalls(piece)) for piece in report["slices"]]
    found, what, pairs = effects(slices), report["settings"], len(slices) // 2
    corrected = {entry["key"]: entry["p_corrected"]
                 for entries in report["summary"].values() for entry in entries}  # fmt: skip
    groups = {
        question: [row(label, found[metric], corrected[metric]) for metric, label in metrics.items()
                   if metric in found and (found[metric].a or found[metric].b)]
        for question, metrics in QUESTIONS.items()
    }  # fmt: skip
    sentences = [
        f"B ({what['b']}) beside A ({what['a']}): {pairs} pairs of neighbouring slices of "
        f"{what['title']} {limit(what)}.",
        *judge([row for rows in groups.values() for row in rows], pairs),
    ]
    if "oom_kill" in found:
        kills = [sum(piece.get("vmstat.oom_kill", 0) for side, piece in slices if side == own)
                 for own in "AB"]  # fmt: skip
        told = "{:g} with A, {:g} with B".format(*kills) if any(kills) else "none on either side"
        groups["Kills"] = [Row("OOM kills", told, "open", None, None)]
        sentences.append(f"OOM kills: {told}.")
    lost = lost_note(report["slices"])
    if "stall_p50_ms" not in found:
        lost = lost or "How long reclaim held tasks up was not measured: ab does it with --stalls."
    sentences += [lost] if lost else []
    sentences += [*turnover(report), *lacks(report)]
    return Verdict(name, sentences, {title: rows for title, rows in groups.items() if rows})


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
