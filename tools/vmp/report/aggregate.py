# SPDX-License-Identifier: GPL-2.0
"""What a recording shows: sums and distributions of its events, by span of time."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from vmp.common import Failure
from vmp.report.trace import Event, fields
from vmp.result.metrics import nearest_rank

BIN = 20_000  # microseconds: what a series is resolved to
REMOTE_SEND = re.compile(r"\(4\)|reason[=:]\s*4\b")  # TLB_REMOTE_SEND_IPI
MARKER = re.compile(r"vmscan-policy ab (run|begin|end|read) ?(.*)")
LACKS = "vmscan-policy lacks folios"
SETTINGS = re.compile(r"vmscan-policy settings (\d+) (.*)")
MACHINE = "0"  # what `settings` is where the machine's held
COUNTED = re.compile(r"vmscan-policy counted (\w+) (.*)")
PLUGIN = re.compile(r"vmscan-policy plugin (\w+) (\d+) (\S+)")
OWN_EVENTS = frozenset(
    "flush_batch_begin flush_batch_end scan_begin scan_end aging_begin aging_end "
    "writeback_feedback throttle_begin throttle_end unmap_folio young_folio policy_switch "
    "bypass guard_tripped".split()
)
WALKERS = ("unmap", "young")  # points that go over large folios
MOST_GROUPS = 6  # what can be told apart
THROTTLED = re.compile(r"throttle\.\w+_us")  # figures: how long reclaimers slept, by reason
PERCENTILES = {"p50": 50, "p90": 90, "p99": 99, "max": 100}


@dataclass
class Span:
    """A stretch of the recording in which neither the slice nor the policies change.

    Times are in microseconds. `switches` is the number of switches before it, `run` the number of
    the A/B run, from 0, and `number` that of its slice, from 1, or 0 outside of all slices.
    """

    begin: int
    end: int
    switches: int
    run: int = 0
    number: int = 0
    side: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    series: defaultdict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    batch_sizes: Counter[int] = field(default_factory=Counter)
    stalls: list[int] = field(default_factory=list)

    def place(self) -> tuple[int, int, int]:
        """Return what a stall has to begin and to end in."""
        return self.switches, self.run, self.number


@dataclass(frozen=True)
class Aging:
    """A generation made: when (microseconds), and its number."""

    time: int
    number: int


class Picture:
    """Takes the events of one recording in their order, and holds what they add up to.

    The names of the counts are those of the module's own counters, POINT.NAME, where it has one.
    """

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.switches: list[tuple[int, str, str, str]] = []  # time, point, from, to
        self.runs: list[dict[str, Any]] = []  # the settings of each A/B run
        # By run and number of a slice: what went on while ab read its counters, at both ends.
        self.edges: defaultdict[tuple[int, int], Counter[str]] = defaultdict(Counter)
        self.slice = 0, 0
        self.lacks_folios = False  # record was told to leave some kinds out
        self.counted: dict[str, int] = {}  # by the module meanwhile, POINT.NAME; no zeros
        self.generations: defaultdict[tuple[str, str], list[Aging]] = defaultdict(list)
        self.passes: Counter[tuple[int, int]] = Counter()  # budget, scanned
        self.across: list[int] = []  # stalls that a switch or the edge of a slice fell into
        self.seen: Counter[str] = Counter()
        # By the id of the cgroup whose settings held; a recording may lack their paths.
        self.settings: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.own_switches: defaultdict[str, list[str]] = defaultdict(list)
        self.paths: dict[str, str] = {}
        self.plugins: dict[tuple[str, int], str] = {}  # by point and index
        self.begun: dict[tuple[int, str], tuple[int, tuple[int, int, int]]] = {}
        self.span = Span(0, 0, 0)
        self.handlers = {
            name.removeprefix("on_"): getattr(self, name)
            for name in dir(self)
            if name.startswith("on_")
        }

    def add(self, event: Event) -> None:
        """Take one event."""
        if not self.spans:
            self.span = Span(event.time, event.time, 0)
            self.spans.append(self.span)
        self.span.end = event.time
        self.seen[event.name] += 1
        handler = self.handlers.get(event.name)
        if handler:
            handler(event, self.span)

    def cut(self, run: int = 0, number: int = 0, side: str = "") -> None:
        """End the present span, and begin the next."""
        now = self.span.end
        self.span = Span(now, now, len(self.switches), run, number, side)
        self.spans.append(self.span)

    def total(self, span: Span, name: str, event: Event, amount: int) -> None:
        """Add to a count that is also shown over time."""
        span.counts[name] += amount
        span.series[name][event.time // BIN] += amount

    def on_lost(self, event: Event, span: Span) -> None:
        """Count what the recording lacks."""
        span.counts["lost_events" if event.text else "gaps_of_unknown_size"] += int(event.text or 1)

    def by_settings(self, own: dict[str, str], **amounts: int) -> None:
        """Add to the counts of whose settings held, by an event's fields."""
        self.settings[own.get("settings", MACHINE)].update(amounts)

    def on_flush_batch_end(self, event: Event, span: Span) -> None:
        """Count a batch of deferred pageouts."""
        own = fields(event.text)
        self.by_settings(own, groups=1, folios=int(own["folios"]))
        span.counts["flush.batches"] += 1
        for name, source in (
            ("deferred", "folios"),
            ("bounce_mapped", "mapped"),
            ("bounce_gone", "gone"),
            ("flushes", "flushed"),
        ):
            span.counts[f"flush.{name}"] += int(own[source])
        span.batch_sizes[int(own["folios"])] += 1

    def on_unmap_folio(self, event: Event, span: Span) -> None:
        """Count a large folio that was gone over to unmap it."""
        self.count_walk("unmap", event, span)

    def on_young_folio(self, event: Event, span: Span) -> None:
        """Count a large folio that was gone over to see whether it was accessed."""
        self.count_walk("young", event, span)

    def count_walk(self, point: str, event: Event, span: Span) -> None:
        """Count what became of a large folio's entries; apart, where stock went over them."""
        own = fields(event.text)
        prefix = f"{point}.stock_" if own["policy"] == "stock" else f"{point}."
        span.counts[f"{prefix}folios"] += 1
        for name in ("pages", "ptes", "batches", "left", "kept"):
            span.counts[f"{prefix}{name}"] += int(own[name])

    def on_scan_end(self, event: Event, span: Span) -> None:
        """Count a pass over an lruvec."""
        own = fields(event.text)
        self.by_settings(own, passes=1)
        span.counts["scan.passes"] += 1
        for name in ("budget", "scanned", "reclaimed"):
            span.counts[f"scan.{name}"] += int(own[name])
        span.counts[f"scan.end_{own['reason']}"] += 1
        self.passes[int(own["budget"]), int(own["scanned"])] += 1

    def on_aging_end(self, event: Event, span: Span) -> None:
        """Count a generation, or that none was made."""
        own = fields(event.text)
        if own["after"] == own["before"]:
            span.counts["aging.failed"] += 1
            return
        self.by_settings(own, generations=1)
        span.counts["aging.sync"] += 1
        made = Aging(event.time, int(own["after"]))
        self.generations[own["cgroup"], own["nid"]].append(made)

    def on_writeback_feedback(self, event: Event, span: Span) -> None:
        """Count a batch that met dirty folios, and what it led to."""
        own = fields(event.text)
        span.counts["writeback.batches"] += 1
        for name in ("taken", "dirty"):
            span.counts[f"writeback.{name}"] += int(own[name])
        self.total(span, "writeback.flusher_wakeups", event, int(own["woken"]))
        span.counts["writeback.waits"] += int(own["waited"])

    def on_throttle_end(self, event: Event, span: Span) -> None:
        """Count a sleep of a reclaimer."""
        own = fields(event.text)
        self.by_settings(own, sleeps=1, slept_us=int(own["us"]))
        span.counts[f"throttle.{own['reason']}"] += 1
        self.total(span, f"throttle.{own['reason']}_us", event, int(own["us"]))

    def on_tlb_flush(self, event: Event, span: Span) -> None:
        """Count a flush that interrupts other CPUs."""
        if REMOTE_SEND.search(event.text):
            self.total(span, "remote_flushes", event, 1)

    def on_mm_vmscan_lru_shrink_inactive(self, event: Event, span: Span) -> None:
        """Count the pages that reclaim took."""
        self.total(span, "stolen_pages", event, int(fields(event.text)["nr_reclaimed"]))

    def on_mark_victim(self, _event: Event, span: Span) -> None:
        """Count an OOM kill."""
        span.counts["oom_kills"] += 1

    def on_writeback_start(self, event: Event, span: Span) -> None:
        """Count a run of the flushers."""
        self.total(span, "flusher_runs", event, 1)

    def begin_stall(self, event: Event, span: Span) -> None:
        """Note that reclaim begins in a task."""
        self.begun[event.pid, event.name.removesuffix("_begin")] = (event.time, span.place())

    def end_stall(self, event: Event, span: Span) -> None:
        """Note how long reclaim took, if its begin was recorded."""
        begin = self.begun.pop((event.pid, event.name.removesuffix("_end")), None)
        if begin:
            inside = begin[1] == span.place()
            (span.stalls if inside else self.across).append(event.time - begin[0])

    on_mm_vmscan_direct_reclaim_begin = begin_stall
    on_mm_vmscan_memcg_reclaim_begin = begin_stall
    on_mm_vmscan_direct_reclaim_end = end_stall
    on_mm_vmscan_memcg_reclaim_end = end_stall

    def switch(self, event: Event, point: str, before: str, after: str) -> None:
        """Note that another policy is in force from now on."""
        self.switches.append((event.time, point, before, after))
        self.cut(self.span.run, self.span.number, self.span.side)

    def on_policy_switch(self, event: Event, _span: Span) -> None:
        """Note a switch of a point: of the machine's, or of those of a cgroup alone."""
        own = fields(event.text)
        whose = own.get("settings", MACHINE)
        before, after = (self.policy(own["point"], own[key]) for key in ("from", "to"))
        if whose == MACHINE:
            self.switch(event, own["point"], before, after)
        else:
            self.settings[whose]
            self.own_switches[whose].append(f"{own['point']}={after}")

    def policy(self, point: str, name: str) -> str:
        """Return the name of a policy; the kernel knows those of other modules by numbers."""
        number = int(name, 16) & 0xFF if re.fullmatch(r"0x[0-9a-f]+", name) else -1
        return self.plugins.get((point, number), name)

    def on_bypass(self, event: Event, _span: Span) -> None:
        """Note that all points act as stock, or no longer do."""
        before, after = ("on", "off") if fields(event.text)["on"] == "0" else ("off", "on")
        self.switch(event, "bypass", before, after)

    def on_print(self, event: Event, _span: Span) -> None:
        """Note what tools/ab and tools/record wrote into the recording."""
        self.lacks_folios |= LACKS in event.text
        named = SETTINGS.search(event.text)
        if named:
            self.paths[named[1]] = named[2].rstrip()
        plugin = PLUGIN.search(event.text)
        if plugin:
            self.plugins[plugin[1], int(plugin[2])] = plugin[3]
        told = COUNTED.search(event.text)
        if told:
            counters = from_json(told[2])
            self.counted |= {f"{told[1]}.{name}": value for name, value in counters.items()}
            return
        found = MARKER.search(event.text)
        if not found:
            return
        kind, rest = found.groups()
        if kind == "run":
            self.runs.append(from_json(rest))
            self.cut()
            return
        if not self.runs:
            self.runs.append({})
        if kind == "read":
            self.edges[self.slice].update(self.span.counts)
            return
        number, _, side = rest.strip().partition(" ")
        self.slice = len(self.runs) - 1, int(number)
        if kind == "begin":
            self.cut(*self.slice, side)
        else:
            self.cut()

    def policies(self, switches: int) -> str:
        """Return the policies in force after that many switches, of the points ever switched."""
        now: dict[str, str] = {}
        for _, point, before, _ in self.switches:
            now.setdefault(point, before)
        now |= {point: after for _, point, _, after in self.switches[:switches]}
        return ",".join(f"{point}={now[point]}" for point in sorted(now)) or "one set of policies"

    def slices(self, run: int) -> list[Span]:
        """Return the spans within the slices of one A/B run."""
        return [span for span in self.spans if span.number and span.run == run]

    def all_groups(self) -> dict[str, list[Span]]:
        """Return the spans by what is to be told apart: the sides of each A/B run, or policies."""
        found: dict[str, list[Span]] = {}
        for index, run in enumerate(self.runs):
            prefix = f"{index + 1}" if len(self.runs) > 1 else ""
            for side in "AB":
                spans = [span for span in self.slices(index) if span.side == side]
                what = run.get(side.lower())
                if spans:
                    found[f"{prefix}{side}: {what}" if what else f"{prefix}{side}"] = spans
        if found:
            return found
        for span in self.spans:
            found.setdefault(self.policies(span.switches), []).append(span)
        return found

    def groups(self) -> dict[str, list[Span]]:
        """Return the groups that are shown: of too many to be told apart the longest."""
        every = self.all_groups()
        longest = sorted(every, key=lambda label: -duration(every[label]))[:MOST_GROUPS]
        return {label: spans for label, spans in every.items() if label in longest}

    def bounds(self) -> tuple[int, int]:
        """Return the times of the first and of the last event."""
        return self.spans[0].begin, self.spans[-1].end

    def count(self, name: str) -> int:
        """Return a count over the whole recording."""
        return sum(span.counts[name] for span in self.spans)

    def whole(self) -> dict[str, float]:
        """Return all figures over the whole recording."""
        return figures(self.spans, self.across)


def duration(spans: list[Span]) -> float:
    """Return how long the spans last, in seconds."""
    return sum(span.end - span.begin for span in spans) / 1e6


def from_json(text: str) -> dict[str, Any]:
    """Return the object that a mark in the recording holds; an empty one if it is cut off."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def stall_figures(times: list[int]) -> dict[str, float]:
    """Return the number of stalls and their percentiles (nearest rank) in ms, from microseconds."""
    ordered = sorted(times)
    found: dict[str, float] = {"stalls": len(ordered)}
    if ordered:
        ranks = {name: nearest_rank(ordered, percent) for name, percent in PERCENTILES.items()}
        found |= {f"stall_{name}_ms": rank / 1000 for name, rank in ranks.items()}
    return found


def figures(spans: list[Span], stalls: Iterable[int] = ()) -> dict[str, float]:
    """Return all figures over `spans`; `stalls` are more of these, in microseconds."""
    sums: Counter[str] = Counter()
    for span in spans:
        sums.update(span.counts)
    found: dict[str, float] = {"seconds": duration(spans)}
    found |= dict(sorted(sums.items()))
    if sums["stolen_pages"] and sums["remote_flushes"]:
        found["remote_flushes_per_1000"] = 1000 * sums["remote_flushes"] / sums["stolen_pages"]
    return found | stall_figures([*stalls, *(time for span in spans for time in span.stalls)])


def read(found: Iterable[Event]) -> Picture:
    """Return the picture of a recording's events; raises Failure for an event of another form."""
    picture = Picture()
    for event in found:
        try:
            picture.add(event)
        except (KeyError, ValueError):
            raise Failure(
                f"the recording has an event {event.name} of another form, '{event.text}': it was "
                "made with another version of the module"
            ) from None
    return picture


def require_own(picture: Picture, name: str) -> None:
    """Raise Failure if a picture has no event of vmscan_policy."""
    if not OWN_EVENTS & picture.seen.keys():
        raise Failure(
            f"{name} has no event of vmscan_policy: record them, as with `trace-cmd record "
            "-e vmscan_policy`, while the module is loaded"
        )
