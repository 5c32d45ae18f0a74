# SPDX-License-Identifier: GPL-2.0
"""Tests of the report: reading recordings, their figures, the page, and what a browser shows."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, sync_playwright
from vmp.ab.workloads import WORKLOADS
from vmp.common import Failure
from vmp.report import aggregate, command, labels, match, trace, verdict
from vmp.result import file, metrics
from vmp.result.model import Result, Settings, Slice, slice_order

REPORT = Path(__file__).resolve().parents[1] / "report"
# Not the one of the virtual environment, which the tool is to find by itself.
PYTHON = Path(sys.base_prefix) / "bin" / "python3"
OWN = "set=3 cgroup=57 nid=0"
RUN = 'print: tracing_mark_write: vmscan-policy ab run {"a": "flush=stock", "b": "flush=batch"}'
# Seconds, and what an event prints; `trace-cmd report` puts the task and the CPU before them.
EVENTS = (
    ("10.000000", RUN),
    ("10.000100", "print: tracing_mark_write: vmscan-policy ab begin 1 A"),
    ("10.100000", "mm_vmscan_memcg_reclaim_begin: order=0 gfp_flags=GFP_KERNEL"),
    ("10.100500", "tlb_flush: pages=1 reason= (4)"),
    ("10.100600", "tlb_flush: pages:-1 reason:remote shootdown (1)"),
    ("10.101000", "mm_vmscan_lru_shrink_inactive: nid=0 nr_scanned=64 nr_reclaimed=50 priority=12"),
    ("10.102000", "mm_vmscan_memcg_reclaim_end: nr_reclaimed=50"),
    ("11.900000", "mm_vmscan_memcg_reclaim_begin: order=0 gfp_flags=GFP_KERNEL"),
    ("12.000000", "print: tracing_mark_write: vmscan-policy ab end 1 A"),
    ("12.000100", f"policy_switch: policy=batch {OWN} point=flush from=stock to=batch pid=9"),
    ("12.001000", "print: tracing_mark_write: vmscan-policy ab begin 2 B"),
    ("12.100000", "mm_vmscan_memcg_reclaim_end: nr_reclaimed=1"),
    ("12.200000", f"flush_batch_begin: policy=batch {OWN} id=1 folios=44 pages=44"),
    ("12.200200", "tlb_flush: pages=-1 reason=remote ipi send (4)"),
    ("12.200300", f"flush_batch_end: policy=batch {OWN} id=1 folios=44 pages=44 mapped=1 gone=0 "
                  "flushed=1"),
    ("12.200310", f"unmap_folio: policy=batch {OWN} kind=anon pages=16 ptes=24 batches=2 left=8 "
                  "kept=1"),
    ("12.200320", f"unmap_folio: policy=batch {OWN} kind=file pages=16 ptes=16 batches=1 left=0 "
                  "kept=0"),
    ("12.200330", f"young_folio: policy=batch {OWN} kind=file pages=32 ptes=30 batches=3 left=2 "
                  "kept=0"),
    ("12.200400", f"scan_end: policy=budget {OWN} id=2 budget=64 scanned=60 reclaimed=43 "
                  "priority=12 reason=enough"),
    ("12.200500", f"aging_end: policy=continue {OWN} id=3 before=5 after=6"),
    ("12.200600", f"aging_end: policy=continue {OWN} id=4 before=6 after=6"),
    ("12.200700", f"writeback_feedback: policy=feedback {OWN} taken=64 dirty=64 unqueued=64 "
                  "congested=0 writeback=0 immediate=0 woken=1 waited=0"),
    ("12.200800", f"throttle_end: policy=memcg {OWN} id=5 reason=writeback us=1500"),
    ("12.201000", "mm_vmscan_lru_shrink_inactive: nid=0 nr_scanned=64 nr_reclaimed=43 priority=12"),
    ("12.300000", "mark_victim: pid=7 comm=x"),
    ("14.000000", "print: tracing_mark_write: vmscan-policy ab end 2 B"),
)  # fmt: skip
LOST = ("CPU:1 [123 EVENTS DROPPED]", "CPU:0 [LOST 7 EVENTS]", "CPU:2 [EVENTS DROPPED]")
FAKE = """\
#!/bin/sh
case "$*" in
*--uname*) echo "Linux (none) 6.12.117 x86_64" ;;
*--cpus*) printf 'List of CPUs in trace.dat with data:\\n  0\\n  1\\n' ;;
*) [ -n "$RECORDING" ] || { echo "error reading header" >&2; exit 255; }
   cat "$RECORDING" ;;
esac
"""


def lines(*before: str) -> list[str]:
    """Return the text of a recording, with lines that come first."""
    found = []
    for time, text in EVENTS:
        name, _, rest = text.partition(":")
        found.append(f"    stress-ng-vm-312   [001]    {time}: {name + ':':<22}{rest}")
    return ["cpus=4", *before, *found]


def pictured(*before: str) -> aggregate.Picture:
    """Return the picture of the recording."""
    return aggregate.read(trace.events(lines(*before)))


def ab_result(**changes: float) -> Result:
    """Return ab's result of the same run, with some of B's counters changed."""
    names = ("pgsteal_anon", "pgsteal_file", "nr_tlb_remote_flush", "oom_kill")
    stats = {"flush.deferred": 0, "flush.batches": 0, "flush.largest_batch": 64}
    a: dict[str, float] = {"seconds": 2.0, "vmstat.workingset_refault_file": 10}
    a |= {f"vmstat.{name}": value for name, value in zip(names, (50, 0, 1, 0), strict=True)}
    a |= {f"stats.{name}": value for name, value in stats.items()}
    b = a | {"vmstat.pgsteal_anon": 40, "vmstat.pgsteal_file": 3, "vmstat.oom_kill": 1}
    b |= {"stats.flush.deferred": 44, "stats.flush.batches": 1} | changes
    return Result(
        Settings("flush=stock", "flush=batch", "(nothing)", 64 << 20, 2, "stress <ng>"),
        {"kernel": "6.12.117", "lru": "mglru", "cpus": 4, "abi": {}},
        (Slice("A", a), Slice("B", b)),
    )


def text_of(result: Result) -> str:
    """Return the file of a result."""
    return file.run_text(result, summary=True)


@pytest.mark.parametrize(
    "start",
    [
        "  stress-ng-vm-312   [001]    12.345678:",
        "  stress-ng-vm-312   [001] d..1.    12.345678:",
        "  a [b]: 1-2-312   [011]    12.345678912:",
    ],
)
def test_interrupt_flags_and_odd_names_do_not_matter(start: str) -> None:
    found = list(trace.events([f"{start} scan_end:      id=4097 reason=enough\n"]))
    assert found == [(12_345_678, 312, "scan_end", "id=4097 reason=enough")]


def test_gaps_are_told() -> None:
    found = list(trace.events(["version = 7", "CPU 3 is empty", *LOST]))
    assert [event.name for event in found] == [trace.LOST] * 3
    assert [event.text for event in found] == ["123", "7", ""]


def test_another_form_is_told() -> None:
    line = lines()[-1].replace("print:", "scan_end:")
    with pytest.raises(Failure, match="event scan_end of another form"):
        aggregate.read(trace.events([line]))


def test_sums() -> None:
    whole = pictured().whole()
    expected = {
        "stolen_pages": 93, "remote_flushes": 2, "oom_kills": 1, "stalls": 2,
        "flush.batches": 1, "flush.deferred": 44, "flush.bounce_gone": 0,
        "flush.flushes": 1, "flush.bounce_mapped": 1, "unmap.folios": 2, "unmap.pages": 32,
        "unmap.ptes": 40, "unmap.batches": 3, "unmap.left": 8, "unmap.kept": 1, "young.folios": 1,
        "young.pages": 32, "young.ptes": 30, "young.batches": 3, "young.left": 2,
        "scan.passes": 1, "scan.budget": 64, "scan.scanned": 60, "scan.reclaimed": 43,
        "scan.end_enough": 1, "aging.sync": 1, "aging.failed": 1, "writeback.batches": 1,
        "writeback.taken": 64, "writeback.dirty": 64, "writeback.flusher_wakeups": 1,
        "writeback.waits": 0, "throttle.writeback": 1, "throttle.writeback_us": 1500,
        "stall_p50_ms": 2.0, "stall_max_ms": 200.0, "remote_flushes_per_1000": 2000 / 93,
    }  # fmt: skip
    assert {name: whole[name] for name in expected} == expected


def test_sides() -> None:
    groups = pictured().groups()
    assert list(groups) == ["A: flush=stock", "B: flush=batch"]
    a, b = (aggregate.figures(spans) for spans in groups.values())
    assert (a["stolen_pages"], b["stolen_pages"]) == (50, 43)
    assert (a["stalls"], a["stall_max_ms"], b["stalls"]) == (1, 2.0, 0)
    assert a["seconds"] == 1.9999


def test_policies_without_slices() -> None:
    text = [line for line in lines() if "vmscan-policy ab" not in line]
    groups = aggregate.read(trace.events(text)).groups()
    assert list(groups) == ["flush=stock", "flush=batch"]
    assert aggregate.figures(groups["flush=batch"])["flush.batches"] == 1


def of_settings() -> list[str]:
    """Return the text of a recording with settings of a cgroup, and of one that is gone."""
    text = [
        line.replace(f"{OWN} id", f"{OWN} settings=57 id") if "scan_end" in line else line
        for line in lines()
        if "vmscan-policy ab" not in line
    ]
    end = "x-1 [0] 15.{}: "
    where = "policy=batch set=9 cgroup={0} nid=-1 settings={0}"
    text += [
        f"{end.format('000000')}policy_switch: {where.format(57)} point=flush from=stock to=batch",
        f"{end.format('100000')}policy_switch: {where.format(57)} point=scan from=stock to=budget",
        f"{end.format('200000')}policy_switch: {where.format(9)} point=flush from=batch to=stock",
        f"{end.format('300000')}print: tracing_mark_write: vmscan-policy settings 57 /db/a b",
        end.format("400000") + 'print: vmscan-policy counted scan {"passes": 1}',
    ]
    return text


def test_a_switch_of_a_cgroup_is_none_of_the_machine() -> None:
    shown = aggregate.read(trace.events(of_settings()))
    assert list(shown.groups()) == ["flush=stock", "flush=batch"]
    assert [switch[1:] for switch in shown.switches] == [("flush", "stock", "batch")]


def test_counts_by_the_settings_that_held() -> None:
    assert labels.settings_rows(pictured()) == []
    shown = aggregate.read(trace.events(of_settings()))
    head, *rows = labels.settings_rows(shown)
    assert head[:3] == ["settings of", "groups", "folios in them"]
    assert rows == [
        ["the machine", "1", "44", "0", "1", "1", "1,500", "-"],
        ["cgroup 9", *"000000", "flush=stock"],
        ["/db/a b", "0", "0", "1", "0", "0", "0", "flush=batch, scan=budget"],
    ]
    compared = {row["figure"]: row["percent"] for row in match.beside_module(shown)}
    assert compared["scan.passes"] == 0


def test_of_many_policies_the_longest_are_shown() -> None:
    text = "x-1 [0] {}.000000: policy_switch: policy=0 point=flush from={} to={} pid=1"
    found = [text.format(number * number, number, number + 1) for number in range(9)]
    groups = aggregate.read(trace.events(found)).groups()
    assert list(groups) == [f"flush={number}" for number in range(3, 9)]


def test_lost_events_are_counted() -> None:
    whole = pictured(*LOST).whole()
    assert (whole["lost_events"], whole["gaps_of_unknown_size"]) == (130, 1)


def test_a_run_is_found_by_its_settings_and_slices() -> None:
    shown, result = pictured(), ab_result()
    other = replace(result, settings=replace(result.settings, b="flush=batch,flush.max_folios=31"))
    assert match.pair(shown, [other, result]) == {0: 1}
    turned = replace(result, slices=result.slices[::-1])
    assert match.pair(shown, [other, turned]) == {}


def test_figures_beside_those_of_the_module() -> None:
    shown = pictured()
    assert match.beside_module(shown) == []
    shown.counted = {"flush.deferred": 50, "aging.waited": 3}
    rows = {row["figure"]: (row["trace"], row["counted"]) for row in match.beside_module(shown)}
    assert rows["flush.deferred"][1] == 50
    assert rows["scan.passes"] == (shown.whole()["scan.passes"], 0)
    assert not {"stolen_pages", "stalls", "aging.waited"} & rows.keys()


def test_folios_that_were_left_out_are_not_compared() -> None:
    shown = pictured("x-1 [0] 9.000000: print: tracing_mark_write: vmscan-policy lacks folios")
    shown.counted = {"unmap.folios": 9}
    names = {row["figure"] for row in match.beside_module(shown)}
    result = ab_result(**{"stats.unmap.folios": 9})
    names |= {row["figure"] for row in match.beside(shown, shown.slices(0), result)}
    assert "flush.deferred" in names
    assert not {"unmap.folios", "young.folios"} & names


def test_figures_beside_those_of_ab() -> None:
    result = ab_result(**{"vmstat.pgsteal_anon": 83, "stats.scan.passes": 0})
    shown = pictured()
    found = match.beside(shown, shown.groups()["B: flush=batch"], result)
    rows = {row["figure"]: (row["trace"], row["counted"], row["percent"]) for row in found}
    assert rows["stolen_pages"] == (43, 86, -50)
    assert rows["flush.deferred"] == (44, 44, 0)
    assert rows["scan.passes"] == (1, 0, None)
    assert "flush.largest_batch" not in rows
    assert "stalls" not in rows


def test_a_result_without_the_length_of_its_slices_is_matched() -> None:
    result = ab_result()
    pieces = [replace(p, counters={"vmstat.pswpin": 1}) for p in result.slices]
    assert match.pair(pictured(), [replace(result, slices=tuple(pieces))]) == {0: 0}


def test_what_was_recorded_while_ab_read_its_counters() -> None:
    mark, flush = "print: tracing_mark_write: vmscan-policy ab", "tlb_flush: pages=1 reason= (4)"
    texts = (RUN, f"{mark} begin 1 A", flush, f"{mark} read", flush,
             f"{mark} end 1 A", flush, flush, f"{mark} read", flush)  # fmt: skip
    said = [f"x-1 [001] {10 + time}.000000: {text}" for time, text in enumerate(texts)]
    shown = aggregate.read(trace.events(["cpus=4", *said]))
    [row] = match.beside(shown, shown.slices(0), ab_result(**{"vmstat.pgsteal_anon": 0}))[1:]
    assert (row["figure"], row["trace"], row["counted"]) == ("remote_flushes", 2, 1)
    assert row["edges"] == 3


PRIMARY = ("scanned_per_stolen", "ms_per_operation", "refault_anon_per_1000")


def long_result(primary: tuple[str, ...] = PRIMARY, **of_b: list[float]) -> Result:
    """Return ab's result of twelve pairs: A counts 100 of all, and B, twice, what is given."""
    names = {"scanned": "memcg.pgscan", "operations": "progress", "anon": "vmstat.pgsteal_anon",
             "refaults": "vmstat.workingset_refault_anon", "kills": "vmstat.oom_kill"}  # fmt: skip
    a = {"seconds": 2.0, "memcg.pgsteal": 100, "vmstat.pgsteal_file": 0, names["anon"]: 100}
    a |= dict.fromkeys(names.values(), 100) | {names["kills"]: 0}
    values = {names[name]: iter(counts * 2) for name, counts in of_b.items()}
    slices = tuple(
        Slice(side, a | ({n: next(v) for n, v in values.items()} if side == "B" else {}))
        for side in slice_order(24, 1)
    )
    given = ab_result()
    return replace(given, slices=slices, settings=replace(given.settings, primary=primary))


def test_the_verdict_is_on_what_was_asked_for() -> None:
    result = long_result(
        scanned=[80, 81, 82, 83, 84, 85], operations=[98, 103, 99, 101, 104, 95],
        refaults=[120, 121, 122, 123, 124, 460], kills=[0, 0, 1, 0, 2, 0],
    )  # fmt: skip
    found = verdict.of_run("x", result)
    assert found.sentences == [
        "B (flush=batch) beside A (flush=stock): 12 pairs of neighbouring slices of stress <ng> in "
        "64 MiB.",
        "Better with B: pages scanned -17 % (-19 to -16 %).",
        "No difference was detected: time per operation +0.0 % (-2.4 to +2.1 %).",
        "Worse with B: refaults, anon +22 % (+21 to +136 %).",
        "time per operation: no difference; one of -3.7 % or +3.8 % would have been seen in four "
        "runs of five.",
        "All other figures were not asked for: they have an interval and no verdict.",
        "OOM kills: 0 with A, 6 with B.",
        "How long reclaim held tasks up was not measured: ab does it with --stalls.",
    ]
    assert list(found.groups) == ["Work per page", "Waits", "Refaults", "Kills"]
    row = found.groups["Refaults"][0]
    # The upper end is of the two largest of six ratios: the root of 1.23 * 4.6, of 1.
    assert row.told == "worse"
    assert row.dot == pytest.approx(22.4, abs=0.1)
    assert row.ends == pytest.approx((21, 136), abs=0.5)
    assert verdict.scale([found]) == 100
    other = verdict.of_run("x", replace(result, settings=replace(result.settings, primary=())))
    assert other.groups["Refaults"][0] == row._replace(told="exploratory")


def test_of_nothing_there_is_no_percentage() -> None:
    result = long_result(refaults=[5, 6, 7, 8, 9, 10])
    nothing = {"vmstat.workingset_refault_anon": 0}
    result = replace(result, slices=tuple(
        replace(p, counters=p.counters | nothing) if p.side == "A" else p for p in result.slices
    ))  # fmt: skip
    row = verdict.of_run("x", result).groups["Refaults"][0]
    said = "0 to 75 (no percentage: A has nothing)"
    assert row == verdict.Row("refaults, anon", said, "worse", None, None)


def test_what_a_reader_asks_is_in_the_table() -> None:
    names = {"stall_us", "stats.flush.calls", "progress"}
    keys = {metric.key for each in metrics.sections(names).values() for metric in each}
    assert verdict.LABELS.keys() <= keys
    # Whatever a load is there to tell; instructions are told per function.
    primary = {key for workload in WORKLOADS.values() for key in workload.primary}
    assert primary - verdict.LABELS.keys() == {"instructions_per_1000"}


def test_few_slices_have_no_verdict() -> None:
    slices = tuple(
        Slice(side, {"seconds": 2.0, "progress": count})
        for side, count in zip("ABBA", (10, 20, 20, 10), strict=True)
    )
    found = verdict.of_run("x", replace(long_result(), slices=slices))
    assert "too few to tell a difference" in found.sentences[1]
    said = "-50 % (no interval: 2 of 6 pairs)"
    (row,) = found.groups["Waits"]
    assert row._replace(dot=None) == verdict.Row("time per operation", said, "open", None, None)
    assert row.dot == pytest.approx(-50)
    assert verdict.scale([found]) == 50


def test_runs_are_called_by_what_they_are() -> None:
    name = "flush=batch beside flush=stock: stress <ng> in 64 MiB, mglru LRU"
    assert verdict.titles([ab_result()]) == [name]
    assert verdict.titles([ab_result()] * 2) == [f"{name}, run 1", f"{name}, run 2"]


def test_what_a_recording_shows_by_itself() -> None:
    said = " ".join(verdict.of_recording("trace.dat", pictured()).sentences)
    assert "In 4.0 s reclaim took 93 pages." in said
    assert "21.51 TLB flushes interrupted other CPUs (A: 20, B: 23.26)." in said
    assert "99 % took 200 ms or less (A: 2, B: -), and the longest 200 ms." in said
    assert "slept 0.0015 s in all. OOM kills: 1. There is no picture" in said


@pytest.mark.parametrize(
    ("sides", "counters"),
    [("AAB", {"seconds": 2}), ("", {}), ("AB", {"seconds": "2"}), ("AA", {"seconds": 2})],
)
def test_another_json_is_told(tmp_path: Path, sides: str, counters: dict[str, Any]) -> None:
    path = tmp_path / "ab.json"
    slices = tuple(Slice(side, counters) for side in sides)
    path.write_text(
        json.dumps(file.run_document(replace(ab_result(), slices=slices), summary=False))
    )
    with pytest.raises(Failure, match="neither a trace.dat"):
        command.read(path)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with a recording, JSON of ab, and a trace-cmd that reads the one."""
    place = tmp_path_factory.mktemp("report")
    fake = place / "bin" / "trace-cmd"
    fake.parent.mkdir()
    fake.write_text(FAKE)
    fake.chmod(0o755)
    (place / "trace.dat").write_bytes(trace.MAGIC + b"6")
    (place / "lines").write_text("\n".join(lines(*LOST)))
    (place / "ab.json").write_text(text_of(ab_result()))
    (place / "other").write_text("{}")
    return place


def run(place: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    own = {"PATH": f"{place}/bin:{os.environ['PATH']}", "RECORDING": "lines"}
    return subprocess.run(
        [PYTHON, REPORT, *words],
        cwd=place,
        env=os.environ | own | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def page_of(place: Path, *words: str) -> str:
    done = run(place, "-o", "page.html", *words)
    assert (done.returncode, done.stderr) == (0, "")
    return (place / "page.html").read_text()


@pytest.fixture(scope="module")
def printed(place: Path) -> str:
    """Return what the tool prints when it makes whole.html and figures.json."""
    written = ["-o", "whole.html", "--json", "figures.json"]
    done = run(place, *written, "trace.dat", "ab.json")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture(scope="module")
def page(place: Path, printed: str) -> str:
    """Return whole.html."""
    return (place / "whole.html").read_text()


def test_page(page: str) -> None:
    assert page.count('role="img"') == 8
    assert "130 events were lost" in page
    assert "stress &lt;ng&gt;" in page
    assert page.index("<p>B (flush=batch) beside A") < page.index("<figure") < page.index("<svg v")
    assert "Left out" not in page
    assert not re.search(r"https?:|<script|src=|@import", page)
    assert not re.search(r"#0[ab]0[ab][0-9a-f]{2}", page)
    names = re.findall(r'\bid="([^"]*)"', page)
    assert len(names) == len(set(names))
    assert set(re.findall(r'(?:href="|url\()#([^")]*)', page)) <= set(names)


def test_figures(place: Path, printed: str) -> None:
    assert "EVENTS ARE MISSING: 130 events were lost" in printed
    found = json.loads((place / "figures.json").read_text())
    assert found["recording"]["lost_events"] == 130
    assert found["groups"]["B: flush=batch"]["flush.deferred"] == 44
    assert found["runs"][0]["ab"] == "ab.json"
    assert [piece["side"] for piece in found["runs"][0]["slices"]] == ["A", "B"]
    stolen = {"figure": "stolen_pages", "trace": 43, "counted": 43, "percent": 0, "edges": 0}
    assert stolen in found["runs"][0]["compared"]["B"]


def test_the_same_again(place: Path, page: str) -> None:
    assert page_of(place, "ab.json", "trace.dat") == page


def test_settings_are_in_the_page_and_the_figures(place: Path) -> None:
    (place / "own").write_text("\n".join(of_settings()))
    words = ["-o", "own.html", "--json", "own.json", "trace.dat"]
    done = run(place, *words, RECORDING="own")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\n/db/a b  " in done.stdout
    assert "By the settings that held" in (place / "own.html").read_text()
    found = json.loads((place / "own.json").read_text())["settings"]
    assert found["57"] == {"path": "/db/a b", "passes": 1}


def test_what_is_left_out_is_said(place: Path) -> None:
    page = page_of(place, "ab.json")
    assert page.count('role="img"') == 1
    assert "Batch sizes: no recording was given" in page
    page = page_of(place, "trace.dat")
    assert "There is no picture of effects, since no JSON of tools/ab was given." in page
    assert "<figure" not in page


def test_each_run_has_its_verdict(place: Path) -> None:
    (place / "second.json").write_text(text_of(long_result(scanned=[80, 81, 82, 83, 84, 85])))
    page = page_of(place, "ab.json", "second.json")
    assert page.count("<figure") == 2
    assert page.index("mglru LRU, run 1</h2>") < page.index("mglru LRU, run 2</h2>")
    assert 'class="effect better"' in page


def test_files_of_one_name_are_all_shown(place: Path) -> None:
    for name in ("one", "two"):
        (place / name).mkdir()
        (place / name / "ab.json").write_text(text_of(ab_result()))
    page = page_of(place, "one/ab.json", "two/ab.json")
    assert page.count("<figure") == 2


@pytest.mark.parametrize(
    ("words", "environment", "why"),
    [
        ("nonesuch", {}, "No such file"),
        ("trace.dat", {"RECORDING": ""}, "cannot read trace.dat: error reading header"),
        ("trace.dat", {"RECORDING": "other"}, "no event of vmscan_policy"),
        ("trace.dat trace.dat", {}, "one trace.dat only"),
        ("other", {}, "other is neither a trace.dat"),
        ("lines", {}, "lines is neither a trace.dat"),
        # Of the JSON alone a page is made sooner.
        ("ab.json -o nonesuch/x", {}, "cannot write nonesuch/x"),
        ("ab.json -o bin", {}, "bin is a directory"),
        ("ab.json --json nonesuch/x", {}, "cannot write nonesuch/x"),
        ("trace.dat", {"PATH": "/nonesuch"}, "trace-cmd is not"),
        ("trace.dat", {"XDG_CACHE_HOME": "/nonesuch"}, "run tools/setup"),
    ],
)
def test_failures_are_told_in_one_sentence_and_write_nothing(
    place: Path, words: str, environment: dict[str, str], why: str
) -> None:
    before = sorted(place.rglob("*"))
    done = run(place, "-o", "none.html", *words.split(), **environment)
    assert done.returncode == 1
    assert why in done.stderr
    assert done.stderr.count("\n") == 1
    assert sorted(place.rglob("*")) == before


@pytest.mark.parametrize("words", ["-o ./trace.dat", "--json trace.dat", "--json report.html"])
def test_no_input_is_written_over(place: Path, words: str) -> None:
    before = (place / "trace.dat").read_bytes()
    done = run(place, "trace.dat", *words.split())
    assert done.returncode == 2
    assert "is given twice: name another file to write" in done.stderr
    assert (place / "trace.dat").read_bytes() == before
    assert not (place / "report.html").exists()


LOOK = """() => ({
  width: document.documentElement.scrollWidth,
  background: getComputedStyle(document.body).backgroundColor,
  plots: document.querySelectorAll("svg[role=img]").length,
  text: Math.min(...[...document.querySelectorAll("svg text")].map(
    text => text.getBoundingClientRect().height)),
})"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Return Debian's browser, without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium")
        yield browser
        browser.close()


def look(chromium: Browser, text: str, width: int, scheme: Literal["light", "dark"]) -> Any:
    """Return what a page looks like: sizes in CSS pixels, colour, what the console says."""
    page = chromium.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.set_content(text)
    found = page.evaluate(LOOK)
    page.close()
    return found | {"console": said}


def test_a_browser_shows_it_light_and_dark_in_a_narrow_window(page: str, chromium: Browser) -> None:
    light, dark = look(chromium, page, 360, "light"), look(chromium, page, 360, "dark")
    for view in (light, dark):
        assert (view["width"], view["plots"], view["console"]) == (360, 8, [])
        assert view["text"] > 9
    assert light["background"] != dark["background"]
    assert look(chromium, page, 1600, "light")["width"] == 1600


def test_a_browser_would_tell(chromium: Browser) -> None:
    wide = '<div style="width:400px">x</div><script>console.error("wrong")</script>'
    view = look(chromium, wide, 360, "light")
    assert (view["width"] > 360, view["plots"], view["console"]) == (True, 0, ["wrong"])
