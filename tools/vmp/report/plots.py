# SPDX-License-Identifier: GPL-2.0
"""The plots of a report. Each function returns an SVG element, or None without data."""

import textwrap
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator
from vmp.report.aggregate import BIN, MOST_GROUPS, PERCENTILES, Aging, Picture, Span
from vmp.report.svg import DASHES, INK, MUTED, SERIES, SHADE, draw, style
from vmp.result.metrics import STOLEN, Metric, nearest_rank
from vmp.result.model import Result

POINTS = 120  # of a series over time, at most
FEW_PAGES = 20  # a stretch in which fewer pages were stolen says nothing about flushes
LABEL = 44  # characters of a legend's line
ANNOTATED = 0.03  # of the width: what a stretch needs for each letter above it


def plain(value: float, _position: int = 0) -> str:
    """Format a tick: no needless zeros, thousands with a comma."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:g}"


def wrapped(label: str) -> str:
    """Break a legend's text into lines that fit, behind a comma where that is possible."""
    return "\n".join(textwrap.wrap(label.replace(",", ", "), LABEL)).replace(", ", ",")


def label_axes(axes: Axes, x: str, y: str) -> None:
    """Name the axes: y above the plot, where it can be read without turning the head."""
    axes.set_xlabel(x)
    axes.set_title(y)


def log_ticks(axes: Axes, which: str) -> None:
    """Write the ticks of a logarithmic axis as plain numbers."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_formatter(FuncFormatter(plain))
    axis.set_minor_locator(NullLocator())


def mark_stretches(axes: Axes, picture: Picture) -> None:
    """Shade the time of every second group, and put its letter or number above where it fits."""
    begin, end = picture.bounds()
    groups = picture.groups()
    if len(groups) < 2:
        return
    stretches = sorted(
        (span.begin, span.end, number) for number, spans in enumerate(groups.values())
        for span in spans
    )  # fmt: skip
    joined: list[list[int]] = []
    for left, right, number in stretches:
        if joined and joined[-1][2] == number and left - joined[-1][1] <= (end - begin) / 100:
            joined[-1][1] = right
        else:
            joined.append([left, right, number])
    keys = [key(label, number) for number, label in enumerate(groups)]
    for left, right, number in joined:
        x = [(edge - begin) / 1e6 for edge in (left, right)]
        if number % 2:
            axes.axvspan(*x, color=SHADE, linewidth=0, zorder=0)
        if right - left >= ANNOTATED * len(keys[number]) * (end - begin):
            axes.annotate(keys[number], (sum(x) / 2, 0.99), ha="center", va="top", fontsize=12,
                          xycoords=("data", "axes fraction"), color=INK)  # fmt: skip
    axes.set_xlim(0, max(1e-6, (end - begin) / 1e6))


def key(label: str, number: int) -> str:
    """Return the short form of a group's label: the letter of its side, or its number."""
    side, colon, _ = label.partition(":")
    return side if colon or len(label) <= 3 else str(number + 1)


def legend(label: str, number: int) -> str:
    """Return a group's text in a legend, which begins with its key."""
    short = key(label, number)
    return wrapped(label if label.startswith(short) else f"{short}: {label}")


def resampled(span: Span, name: str, parts: int) -> list[int]:
    """Return the sums of a series in `parts` equal parts of the span."""
    sums = [0] * parts
    length = max(1, span.end - span.begin)
    for index, amount in span.series.get(name, {}).items():
        time = index * BIN + BIN // 2 - span.begin
        sums[min(parts - 1, max(0, time * parts // length))] += amount
    return sums


def middle_times(span: Span, parts: int, begin: int) -> list[float]:
    """Return the middle of each of `parts` equal parts of the span, in seconds from `begin`."""
    length = span.end - span.begin
    return [(span.begin - begin + length * (part + 0.5) / parts) / 1e6 for part in range(parts)]


def flush_rate(span: Span, width: float, begin: int) -> list[tuple[float, float]]:
    """Return (seconds from `begin`, remote flushes per 1,000 stolen pages) of parts of a span.

    The parts are about `width` microseconds long; those in which hardly a page was stolen are
    left out.
    """
    parts = max(1, round((span.end - span.begin) / width))
    flushes = resampled(span, "remote_flushes", parts)
    stolen = resampled(span, "stolen_pages", parts)
    times = middle_times(span, parts, begin)
    return [
        (time, 1000 * flushed / pages)
        for time, flushed, pages in zip(times, flushes, stolen, strict=True)
        if pages >= FEW_PAGES
    ]


def remote_flushes(picture: Picture) -> str | None:
    """Draw remote TLB flushes per 1,000 stolen pages over time."""
    if not (picture.count("remote_flushes") and picture.count("stolen_pages")):
        return None
    begin, end = picture.bounds()
    width = max(BIN, (end - begin) / POINTS)
    groups = list(picture.groups().items())
    lines = [
        (spans, legend(label, number), style(number))
        for number, (label, spans) in enumerate(groups)
    ]
    inside = {id(span) for _, spans in groups for span in spans}
    others = [span for span in picture.spans if id(span) not in inside]
    if any(flush_rate(span, width, begin) for span in others):
        lines.append((others, "outside of these", {"color": MUTED, "marker": ".", "linewidth": 0}))

    def paint(axes: Axes) -> None:
        mark_stretches(axes, picture)
        for spans, label, look in lines:
            axes.plot([], [], label=label, **look)
            for span in spans:
                points = flush_rate(span, width, begin)
                if points:
                    axes.plot(*zip(*points, strict=True), **look)
        axes.margins(y=0.15)
        axes.set_ylim(bottom=0)
        label_axes(axes, "seconds", "remote TLB flushes per 1,000 stolen pages")

    return draw("flushes", "Remote TLB flushes per 1,000 stolen pages over time", paint)


def shares(sizes: Counter[int], width: int) -> list[tuple[float, float]]:
    """Return (size, percent of all) for the sizes that occur, put together by `width`."""
    grouped: Counter[int] = Counter()
    for size, times in sizes.items():
        grouped[size // width] += times
    return [
        (index * width + (width - 1) / 2, 100 * times / sizes.total())
        for index, times in sorted(grouped.items())
    ]


def batch_sizes(picture: Picture) -> str | None:
    """Draw the distribution of folios per batch, for each group that has batches."""
    groups = {}
    for number, (label, spans) in enumerate(picture.groups().items()):
        sizes: Counter[int] = Counter()
        for span in spans:
            sizes.update(span.batch_sizes)
        if sizes:
            groups[number] = (legend(label, number), sizes)
    if not groups:
        return None
    width = -(-max(max(sizes) for _, sizes in groups.values()) // 64)

    def paint(axes: Axes) -> None:
        for number, (label, sizes) in groups.items():
            aside = (number - (len(groups) - 1) / 2) * width / 4  # not to hide each other
            places, y = zip(*shares(sizes, width), strict=True)
            x = [place + aside for place in places]
            look = style(number) | {"linestyle": "none"}
            axes.vlines(x, 0, y, color=SERIES[number], linewidth=1.2)
            axes.plot(x, y, label=label, **look)
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        label_axes(axes, "folios in a batch", "% of the batches" + (
            f", {width} sizes together" if width > 1 else ""))  # fmt: skip

    return draw("batches", "Distribution of the folios per batch", paint)


def power(value: int) -> int:
    """Return the index of a power of two's range: 0 for 0, else 1 + log2, rounded down."""
    return value.bit_length()


def passes(picture: Picture) -> str | None:
    """Draw budget against scanned pages: areas that grow with the number of passes."""
    cells: Counter[tuple[int, int]] = Counter()
    for (budget, scanned), times in picture.passes.items():
        cells[power(budget), power(scanned)] += times
    if not cells:
        return None
    most = max(cells.values())
    top = max(max(cell) for cell in cells)
    ticks = range(0, top + 1, 1 + top // 8)

    def paint(axes: Axes) -> None:
        places = sorted(cells)
        axes.plot([-0.5, top + 0.5], [-0.5, top + 0.5], color=MUTED, linestyle=DASHES[1],
                  label="all of the budget scanned")  # fmt: skip
        axes.scatter(
            [x for x, _ in places],
            [y for _, y in places],
            s=[14 + 180 * cells[place] / most for place in places],
            color=SERIES[0],
            alpha=0.75,
            linewidth=0,
            label=f"passes; the largest: {most:,}",
        )
        names = ["0" if not tick else plain(2 ** (tick - 1)) for tick in ticks]
        axes.set_xticks(list(ticks), names, rotation=45, ha="right", rotation_mode="anchor")
        axes.set_yticks(list(ticks), names)
        axes.set_xlim(-0.7, top + 0.7)
        axes.set_ylim(-0.7, top + 0.7)
        label_axes(axes, "budget, pages (this to twice this)", "pages scanned")

    return draw("passes", "Budget and scanned pages of passes", paint, 300)


def thinned(made: list[Aging]) -> list[Aging]:
    """Return evenly spread ones of many, first and last among them."""
    step = max(1, -(-len(made) // POINTS))
    return made[::step] + ([made[-1]] if (len(made) - 1) % step else [])


def generations(picture: Picture) -> str | None:
    """Draw the number of the youngest generation over time, for the cgroups with most agings."""
    lines = sorted(picture.generations.items(), key=lambda item: (-len(item[1]), item[0]))
    if not lines:
        return None
    begin, _ = picture.bounds()

    def paint(axes: Axes) -> None:
        mark_stretches(axes, picture)
        for number, ((cgroup, node), made) in enumerate(lines[:MOST_GROUPS]):
            shown = thinned(made)
            times = [(aging.time - begin) / 1e6 for aging in shown]
            axes.plot(times, [aging.number for aging in shown], color=SERIES[number],
                      linestyle=DASHES[number], drawstyle="steps-post", marker="o",
                      markersize=4, markerfacecolor=INK, markeredgecolor=INK, zorder=2,
                      label=f"cgroup {cgroup}, node {node}")  # fmt: skip
            if len(lines) > 1:
                axes.annotate(cgroup, (times[-1], shown[-1].number), xytext=(-2, 4), ha="right",
                              textcoords="offset points", fontsize=11)  # fmt: skip
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        label_axes(axes, "seconds", "number of the youngest generation")

    return draw("generations", "Generations made over time", paint)


def reached(ordered: Sequence[float], time: float) -> float:
    """Return the percentage of the ordered times that are at least `time`."""
    return 100 * (len(ordered) - bisect_left(ordered, time)) / len(ordered)


def exceeded(ordered: Sequence[float]) -> list[tuple[float, float]]:
    """Return (ms, percent of the stalls that took at least that), a hundred points or so."""
    total = len(ordered)
    chosen = {ordered[total - max(1, round(total * 10 ** (-step / 30)))] for step in range(150)}
    chosen.update(nearest_rank(ordered, percent) for percent in PERCENTILES.values())
    return [(max(time, 1) / 1000, reached(ordered, time)) for time in sorted(chosen)]


def stalls(picture: Picture) -> str | None:
    """Draw how many of the stalls took longer than what, for each group."""
    groups = {
        number: (legend(label, number), times)
        for number, (label, spans) in enumerate(picture.groups().items())
        if (times := sorted(time for span in spans for time in span.stalls))
    }
    if not groups:
        return None

    def paint(axes: Axes) -> None:
        for number, (label, times) in groups.items():
            look = style(number)
            marker = {name: look.pop(name) for name in ("marker", "markerfacecolor")
                      if name in look}  # fmt: skip
            axes.plot(*zip(*exceeded(times), strict=True), **look)
            ranks = [nearest_rank(times, percent) for percent in PERCENTILES.values()]
            places = [(max(time, 1) / 1000, reached(times, time)) for time in ranks]
            axes.plot(*zip(*places, strict=True), color=look["color"], linestyle="none",
                      markersize=7, **marker)  # fmt: skip
            axes.plot([], [], label=label, **look, **marker)
        axes.set_xscale("log")
        axes.set_yscale("log")
        log_ticks(axes, "x")
        log_ticks(axes, "y")
        label_axes(axes, "milliseconds", "% of the stalls that take so long or longer")

    return draw("stalls", "Share of the reclaim stalls that take longer than a time", paint)


def rates(
    picture: Picture, series: dict[str, str], name: str, title: str, y: str, scale: float
) -> str | None:
    """Draw sums per second over time, times `scale`; `series` are their names and labels."""
    begin, end = picture.bounds()
    shown = {key: label for key, label in series.items() if picture.count(key)}
    if not shown:
        return None
    whole = Span(begin, end, 0)
    for span in picture.spans:
        for key in shown:
            whole.series[key].update(span.series.get(key, {}))
    parts = max(1, min(POINTS // 2, (end - begin) // (5 * BIN)))
    seconds = max(1e-6, (end - begin) / 1e6 / parts)

    def paint(axes: Axes) -> None:
        mark_stretches(axes, picture)
        for number, (key, label) in enumerate(shown.items()):
            values = [scale * value / seconds for value in resampled(whole, key, parts)]
            axes.plot(middle_times(whole, parts, begin), values, label=label, markevery=3,
                      **style(number))  # fmt: skip
        axes.margins(y=0.15)
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(FuncFormatter(plain))
        label_axes(axes, "seconds", y)

    return draw(name, title, paint)


def throttling(picture: Picture) -> str | None:
    """Draw the time that reclaimers sleep, by reason, over time."""
    reasons = sorted({name for span in picture.spans for name in span.series
                      if name.startswith("throttle.")})  # fmt: skip
    series = {name: name.removeprefix("throttle.").removesuffix("_us") for name in reasons}
    title = "Time that reclaimers sleep for being throttled, by reason, over time"
    return rates(picture, series, "throttling", title, "ms slept per second, all tasks", 1e-3)


def feedback(picture: Picture) -> str | None:
    """Draw wake-ups of the flushers, and their runs, over time."""
    if not picture.seen["writeback_feedback"]:
        return None
    series = {
        "writeback.flusher_wakeups": "wake-ups by the policy",
        "flusher_runs": "runs of the flushers",
    }
    title = "Wake-ups of the flushers over time"
    return rates(picture, series, "feedback", title, "per second", 1)


def refault_lines(result: Result) -> dict[str, list[tuple[int, float]]]:
    """Return (slice, refaults per 1,000 stolen pages) by side and kind, of kinds that occur."""
    found: dict[str, list[tuple[int, float]]] = {}
    whose, per = ("memcg", ("memcg.pgsteal",)) if result.settings.twins else ("vmstat", STOLEN)
    for kind in ("file", "anon"):
        metric = Metric("", "", (f"{whose}.workingset_refault_{kind}",), per, 1000)
        sides = {side: points(result, side, metric) for side in "AB"}
        if any(value for values in sides.values() for _, value in values):
            found |= {f"{side}, {kind}": values for side, values in sides.items() if values}
    return found


def most_refaults(results: Sequence[Result]) -> float:
    """Return the largest figure of all runs: their plots have the same axis."""
    every = (value for result in results for line in refault_lines(result).values()
             for _, value in line)  # fmt: skip
    return max(every, default=0)


def refaults(result: Result, name: str, top: float) -> str | None:
    """Draw the refaults of a run's slices, by side, on an axis up to `top`."""
    lines = refault_lines(result)
    if not lines:
        return None

    def paint(axes: Axes) -> None:
        for label, values in lines.items():
            number = 2 * label.endswith("anon") + label.startswith("B")
            axes.plot(*zip(*values, strict=True), label=label, **style(number))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_ylim(0, 1.1 * top)
        axes.yaxis.set_major_formatter(FuncFormatter(plain))
        label_axes(axes, "slice", "refaults per 1,000 stolen pages")

    return draw(name, "Refaults per 1,000 stolen pages in each slice, by side", paint)


def points(result: Result, side: str, metric: Metric) -> list[tuple[int, float]]:
    """Return (slice, value) of one side's slices that have one."""
    values = (
        (number, metric.value([piece.counters]))
        for number, piece in enumerate(result.slices, 1)
        if piece.side == side
    )
    return [(number, value) for number, value in values if value is not None]
