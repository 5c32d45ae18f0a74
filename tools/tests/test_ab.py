# SPDX-License-Identifier: GPL-2.0
"""Tests of what vmscanctl and ab compute: parsing, checking of settings, statistics, the table."""

import itertools
import time
from pathlib import Path
from typing import Any

import pytest
from vmp.ab import command, compare, significance, stalls, table, workloads
from vmp.common import Failure, mount_points, parse_size
from vmp.control import counters, debugfs
from vmp.control.debugfs import Assignment, Control

# Captured on a machine with two CPUs.
INTERRUPTS = """\
           CPU0       CPU1       
 24:          1          0  IO-APIC   5-edge      ACPI:Ged
NMI:          0          0   Non-maskable interrupts
RES:      41097      28521   Rescheduling interrupts
CAL:     113151     109404   Function call interrupts
TLB:       9604       9440   TLB shootdowns
ERR:          0
MIS:          0
"""  # noqa: W291
TRACE = """\
# tracer: nop
#
# entries-in-buffer/entries-written: 7/7   #P:4
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
    stress-ng-vm-158     [003] .....   121.999999: mm_vmscan_memcg_reclaim_end: nr_reclaimed=32
    stress-ng-vm-157     [001] .....   122.000100: mm_vmscan_memcg_reclaim_begin: order=0 gfp_flags=GFP_KERNEL
    kworker/u8:1-41      [000] d..1.   122.000200: mm_vmscan_memcg_reclaim_begin: order=0 gfp_flags=GFP_KERNEL
    stress-ng-vm-157     [002] .....   123.000099: mm_vmscan_memcg_reclaim_end: nr_reclaimed=33
           a [b]-159     [002] .....   123.000200: mm_vmscan_direct_reclaim_begin: order=0 gfp_flags=GFP_KERNEL
    kworker/u8:1-41      [000] d..1.   123.000300: mm_vmscan_direct_reclaim_end: nr_reclaimed=0
           a [b]-159     [002] .....   123.000450: mm_vmscan_direct_reclaim_end: nr_reclaimed=1
"""  # noqa: E501
# As fio 3.33 prints it, with the fields behind the two that count cut off.
FIO = ";".join(["3", "fio-3.33", "zipf", "0", "0", "46784", *["0"] * 40, "2416", "8002"])
VMSTAT = """\
workingset_refault_anon 0
workingset_refault_file 59785
nr_vmscan_write 7
pgsteal_kswapd 0
pgscan_anon 12
pgscan_anonymous 99
"""


def test_interrupts_are_summed_over_cpus() -> None:
    assert counters.parse_interrupts(INTERRUPTS) == {"CAL": 113151 + 109404, "TLB": 9604 + 9440}
    assert counters.parse_interrupts(INTERRUPTS, ("ERR", "24")) == {"ERR": 0, "24": 1}


def test_only_wanted_names_are_taken() -> None:
    wanted = ["nr_vmscan_write", "pgscan_anon", "absent"]
    assert counters.parse_pairs(VMSTAT, wanted) == {"nr_vmscan_write": 7, "pgscan_anon": 12}


def test_progress_is_the_last_number() -> None:
    assert counters.parse_progress("round 3\nops: 1250.5 done\n") == 1250.5
    assert counters.parse_progress("starting") is None


def test_progress_is_read_from_the_end_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    progress = counters.ProgressFile(tmp_path / "progress")
    assert progress.peek() is None
    monkeypatch.setattr(time, "sleep", lambda _: None)
    with pytest.raises(Failure, match="has no number"):
        progress.read()
    progress.path.write_text("7\n" * counters.PROGRESS_TAIL + "8.5\n")
    assert progress.read() == 8.5


def test_fio_tells_its_operations_in_whole_lines() -> None:
    operations = (46784 + 2416) / 4
    assert workloads.fio_operations(f"{FIO}\n") == operations
    assert workloads.fio_operations(f"{FIO}\n{FIO.replace('4', '5')}") == operations
    assert workloads.fio_operations(FIO) is None
    assert workloads.fio_operations("fio: warning\n") is None


def test_stalls_are_pairs_of_one_task_and_kind() -> None:
    assert stalls.durations(TRACE) == [999_999, 250]
    assert stalls.durations("") == []


def test_a_second_begin_counts() -> None:
    line = "x-1 [000] ..... 1.{}: mm_vmscan_memcg_reclaim_{}: x\n"
    edges = (("000100", "begin"), ("000500", "begin"), ("000600", "end"), ("000900", "end"))
    assert stalls.durations("".join(line.format(*edge) for edge in edges)) == [100]


def test_lost_events() -> None:
    text = "entries: 21\noverrun: 5\ncommit overrun: 3\nbytes: 1188\ndropped events: 2\n"
    assert stalls.lost_events(text) == 7


def test_choices() -> None:
    assert debugfs.parse_choices("[stock] batch\n") == ("stock", ["stock", "batch"])
    assert debugfs.parse_choices("31\n") == (None, ["31"])
    kinds = ["lazyfree", "anon", "file"]
    assert debugfs.parse_choices("[lazyfree] anon [file]\n") == ("lazyfree+file", kinds)


def test_stats_skip_other_lines() -> None:
    assert debugfs.parse_stats("deferred 12\nnote: x\ncalls 3\n") == {"deferred": 12, "calls": 3}


def test_assignments() -> None:
    assert debugfs.parse_assignments(["flush=batch,flush.max_folios=31", "scan=stock"]) == [
        Assignment("flush", "batch"),
        Assignment("flush.max_folios", "31"),
        Assignment("scan", "stock"),
    ]


@pytest.mark.parametrize("wrong", ["flush", "flush=", "=batch", "flush=batch,", ""])
def test_what_is_no_assignment(wrong: str) -> None:
    with pytest.raises(Failure):
        debugfs.parse_assignments([wrong])


@pytest.mark.parametrize(("text", "size"), [("64M", 64 << 20), ("1g", 1 << 30), ("2KiB", 2048)])
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("wrong", ["", "M", "-1", "0", "0M", "64X", "4096", "nanM"])
def test_what_is_no_size(wrong: str) -> None:
    with pytest.raises(ValueError, match="is no size"):
        parse_size(wrong)


def test_debugfs_is_found_where_it_is_mounted() -> None:
    mounts = "proc /proc proc rw 0 0\ndebugfs /debug debugfs rw 0 0\n"
    assert mount_points("debugfs", mounts) == [Path("/debug")]
    assert mount_points("debugfs", "proc /proc proc rw 0 0\n") == []


@pytest.fixture
def settings(tmp_path: Path) -> Control:
    """Return the control of files such as the module's."""
    files = {
        "abi": "abi 1\nmodule 0.1.0\nkernel 6.12.117\n",
        "profile": "stock max\n",
        "bypass": "0\n",
        "flush/policy": "[stock] batch\n",
        "flush/max_folios": "128\n",
        "flush/stats": "deferred 5\nlargest_batch 3\n",
        "scan/floor": "32\n",
        "scan/policy": "[stock]\n",
        "unmap/kinds": "[lazyfree] [anon] file\n",
        "unmap/policy": "[stock] batch\n",
        "other/file": "not a point\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    for name in ("abi", "flush/stats"):
        (tmp_path / name).chmod(0o444)
    return Control(tmp_path)


def test_points_and_parameters_are_found(settings: Control) -> None:
    names = "bypass profile flush flush.max_folios scan scan.floor unmap unmap.kinds"
    assert settings.names() == names.split()
    assert settings.stats() == {"flush": {"deferred": 5, "largest_batch": 3}}
    assert settings.abi()["kernel"] == "6.12.117"


def test_trace_events_are_a_setting_where_there_are_some(settings: Control) -> None:
    switch = settings.root / "enable"
    settings.trace = [switch]
    for text, shown in (("0", "0"), ("1", "1"), ("X", "some")):
        switch.write_text(text + "\n")
        assert "trace" in settings.names()
        assert settings.text("trace") == shown
        settings.check([Assignment("trace", "1")])
    with pytest.raises(Failure, match="set trace=0 or trace=1 first"):
        settings.get("trace")
    settings.write([Assignment("trace", "1")])
    assert switch.read_text() == "1"


def test_present_values_can_be_written_back(settings: Control) -> None:
    assert settings.get("flush") == "stock"
    assert settings.get("flush.max_folios") == "128"
    assert settings.get("scan.floor") == "32"
    settings.check([Assignment("scan.floor", "64")])


def test_several_names_are_joined(settings: Control) -> None:
    kinds = settings.root / "unmap/kinds"
    assert settings.get("unmap.kinds") == "lazyfree+anon"
    for value, written in (("anon+file", "anon,file"), ("file", "file"), ("none", "none")):
        wanted = debugfs.parse_assignments([f"unmap=batch,unmap.kinds={value}"])
        kinds.write_text("lazyfree anon file\n")
        assert settings.get("unmap.kinds") == "none"
        settings.check(wanted)
        settings.write(wanted)
        assert kinds.read_text() == written


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("flush", "bach", "stock, batch"),
        ("flush.max_folios", "many", "decimal number"),
        ("flush.max_folios", "-1", "decimal number"),
        ("flush.stats", "1", "flush.max_folios"),
        ("flsh", "batch", "flush"),
        ("other", "x", "flush"),
        ("profile", "min", "stock, max"),
        ("bypass", "yes", "decimal number"),
        ("scan.floor", "small", "decimal number"),
        ("unmap.kinds", "lazyfree+shmem", "lazyfree, anon, file"),
        ("unmap.kinds", "anon+", "lazyfree, anon, file"),
        ("abi", "2", "bypass, profile, flush"),
    ],
)
def test_wrong_settings_say_what_is_allowed(
    settings: Control, name: str, value: str, hint: str
) -> None:
    with pytest.raises(Failure, match=hint):
        settings.check([Assignment("flush", "batch"), Assignment(name, value)])
    assert (settings.root / "flush/policy").read_text() == "[stock] batch\n"


def test_a_refused_write_names_what_was_done(settings: Control) -> None:
    (settings.root / "scan/policy").unlink()
    (settings.root / "scan/policy").symlink_to("/dev/full")
    with pytest.raises(Failure, match="scan=x was refused .*set before it: flush=batch"):
        settings.write([Assignment("flush", "batch"), Assignment("scan", "x")])
    with pytest.raises(Failure, match="nothing was changed"):
        settings.write([Assignment("scan", "x")])


def test_slices_alternate_against_drift() -> None:
    assert compare.slice_order(8) == "ABBAABBA"
    for count in (2, 6, 10):
        order = compare.slice_order(count)
        assert order.count("A") == order.count("B")


def test_delta_of_counters_and_marks() -> None:
    before = {"time": 1.0, "vmstat.pswpin": 5, "stats.flush.largest_batch": 9, "gone": 1}
    after = {"time": 11.5, "vmstat.pswpin": 25, "stats.flush.largest_batch": 12, "new": 1}
    expected = {"seconds": 10.5, "stats.flush.largest_batch": 12, "vmstat.pswpin": 20}
    assert counters.delta(before, after) == expected


def test_of_a_gauge_the_mean_counts() -> None:
    dirty = "memcg.file_dirty"
    before, after = {"time": 1.0, dirty: 4096}, {"time": 2.0, dirty: 20480}
    assert counters.delta(before, after)[dirty] == 12288
    (row,) = (m for m in compare.sections(set())["ratios and rates"] if m.key == "dirty_pages")
    assert row.value([{dirty: 8192 * n} for n in (1, 2, 6)]) == 3 * 8192 / compare.PAGE


def test_per_1000_stolen_weighs_slices_by_their_pages() -> None:
    metric = compare.per_stolen("flushes", "flushes", "x")
    slices = [
        {"x": 10, "vmstat.pgsteal_anon": 900, "vmstat.pgsteal_file": 100},
        {"x": 80, "vmstat.pgsteal_anon": 2000, "vmstat.pgsteal_file": 0},
    ]
    assert metric.value(slices) == 30
    assert metric.value(slices[:1]) == 10


def test_missing_counters_and_zero_denominators_have_no_value() -> None:
    ratio = compare.Metric("r", "r", ("x",), ("y",))
    assert ratio.value([{"x": 1, "y": 0}]) is None
    assert ratio.value([{"x": 1}]) is None
    assert ratio.value([]) is None


def test_the_highest_mark_counts() -> None:
    mark = compare.Metric("m", "m", ("stats.flush.largest_batch",))
    assert mark.value([{"stats.flush.largest_batch": n} for n in (3, 8, 8)]) == 8


def test_percentiles_are_nearest_ranks() -> None:
    values = [15, 20, 35, 40, 50]
    percents = (0, 5, 30, 40, 50, 99, 100)
    ranks = [compare.nearest_rank(values, percent) for percent in percents]
    assert ranks == [15, 15, 20, 20, 35, 50, 50]


def test_stalls_of_all_slices_are_pooled() -> None:
    pieces = [{"stalls": times, "counters": {"seconds": 1}} for times in ([3000, 1000], [], [9])]
    slices = [compare.with_stalls(piece) for piece in pieces]
    rows = {row.key: row for row in compare.stall_rows()}
    assert rows["stall_p50_ms"].value(slices) == 1
    assert rows["stall_longest_ms"].value(slices) == 3
    assert rows["stall_p99_ms"].value(slices[1:2]) is None
    assert rows["stall_p50_ms"].value([]) is None
    for piece in slices:
        piece.update({"vmstat.pgsteal_anon": 400, "vmstat.pgsteal_file": 100})
    assert rows["stalls_per_1000"].value(slices) == 2
    assert compare.with_stalls({"counters": {"x": 1}}) == {"x": 1}


def test_difference() -> None:
    assert compare.difference(400, 20) == (-380, -95)
    assert compare.difference(0, 20) == (20, None)
    assert compare.difference(None, 20) == (None, None)


def test_half_range() -> None:
    assert significance.half_range([90, 110, 100]) == 0.1
    assert significance.half_range([0, 0]) is None
    assert significance.half_range([]) is None


def test_signed_rank_has_the_published_values() -> None:
    assert significance.signed_rank([1, 2, 3, 4, 5]) == 2 / 32
    assert significance.signed_rank([-1, -2, -3, -4, -5, -6]) == 2 / 64
    assert significance.signed_rank([-1, 2, 3, 4, 5, 6]) == 4 / 64
    assert significance.signed_rank([1, -1]) == 1
    assert significance.signed_rank([0, 1, 2, 0]) == 2 / 4
    assert significance.signed_rank([0, 0]) is None


def test_signed_rank_counts_ties_as_enumeration_does() -> None:
    differences: list[float] = [3, 3, -1, 2, 5, -2, 8]
    sizes = sorted(map(abs, differences))
    ranks = [(2 * sizes.index(abs(d)) + sizes.count(abs(d)) + 1) / 2 for d in differences]
    mean = sum(ranks) / 2
    seen = abs(sum(r for d, r in zip(differences, ranks, strict=True) if d > 0) - mean)
    signs = itertools.product((0, 1), repeat=len(ranks))
    sums = [sum(r for s, r in zip(sign, ranks, strict=True) if s) for sign in signs]
    p = sum(abs(total - mean) >= seen for total in sums) / len(sums)
    assert significance.signed_rank(differences) == p


def test_neighbours_are_compared_across_phases() -> None:
    metric = compare.Metric("x", "x", ("x",))
    a = [{"x": 100.0 * n} for n in range(1, 7)]
    b = [{"x": 100.0 * n - n} for n in range(1, 7)]
    assert compare.compare(metric, a, b)["p"] == 2 / 64


def report() -> dict[str, Any]:
    slices = []
    for index, side in enumerate("ABBA"):
        flushes = 500 if side == "A" else 20
        piece = {
            "seconds": 10.0,
            "vmstat.pgsteal_anon": 1000 + index,
            "vmstat.pgsteal_file": 0,
            "vmstat.nr_tlb_remote_flush": flushes,
            "stats.flush.calls": 0 if side == "A" else 20,
            "stats.flush.flushes": 0 if side == "A" else 21,
            "stats.flush.deferred": 0 if side == "A" else 980,
            "stats.flush.observed_dirty_flushes": flushes - 3,
            "stats.flush.observed_clean_flushes": 3,
            "stats.flush.observed_remote_flushes": flushes - 2,
            "stats.flush.observed_interrupts": 2 * flushes,
            "memcg.pgscan": 1500,
            "memcg.pgrefill": 300,
            "memcg.pgsteal": 1000,
        }
        slices.append((side, piece))
    return {
        "settings": {
            "a": "flush=stock",
            "b": "flush=batch",
            "both": "(nothing)",
            "memory_bytes": 64 << 20,
            "slice_seconds": 10.0,
            "title": "true",
        },
        "environment": {"kernel": "6.12.117", "lru": "mglru", "cpus": 4, "abi": {"abi": "1"}},
        "slices": [{"side": side, "counters": piece} for side, piece in slices],
        "summary": compare.summarize(slices),
    }


def rows() -> dict[str, list[str]]:
    lines = table.render(report()).splitlines()
    return {line[: table.LABEL].strip(): line[table.LABEL :].split() for line in lines}


def test_an_interval_ends_at_the_rank_of_the_tables() -> None:
    # One more than the critical values of the signed-rank test, two-sided, 5 %, as printed in
    # tables for 5 to 15 pairs and for 30.
    ranks = [significance.cut(pairs) for pairs in range(5, 16)]
    assert ranks == [0, 1, 3, 4, 6, 9, 11, 14, 18, 22, 26]
    assert significance.cut(30) == 138


def test_the_effect_of_six_pairs() -> None:
    # All six differences, and the median of their 21 Walsh averages.
    found = significance.effect([(0.0, float(change)) for change in (1, 2, 3, 4, 5, 9)])
    assert found == significance.Effect(0, 3.5, 3.5, 1, 9)
    assert found.sign() == 1


def test_where_nothing_is_0_ratios_are_compared() -> None:
    """B is half of A in all phases, though the differences are 1 to 100."""
    sizes, factors = (1.0, 3.0, 10.0, 30.0, 60.0, 100.0), (0.9, 1.0, 1.0, 1.0, 1.0, 1.1)
    pairs = [(2 * size, size * factor) for size, factor in zip(sizes, factors, strict=True)]
    found = significance.effect(pairs)
    percents = [found.percent(change) for change in (found.shift, found.low, found.high)]
    assert percents == pytest.approx([-50, -55, -45])
    assert significance.contrasts(pairs)[1] == pytest.approx(-0.6931472)
    assert significance.contrasts([*pairs, (0.0, 1.0)])[1] == -3


def test_a_pairs_phase_is_no_difference() -> None:
    """A tenth more in each phase is told, where differences of other phases are far larger."""
    phases = (1.0, 900.0, 3.0, 7000.0, 20.0, 100.0)
    factors = (1.1, 1.12, 1.08, 1.1, 1.09, 0.99)
    a = [{"x": phase} for phase in phases]
    b = [{"x": phase * factor} for phase, factor in zip(phases, factors, strict=True)]
    assert compare.compare(compare.Metric("x", "x", ("x",)), a, b)["p"] == 4 / 64


def test_nothing_falls_by_more_than_all() -> None:
    # Skewed: the mean of A is 80, and the differences are around -100.
    found = significance.effect([(a, 0.0) for a in (10.0, 10.0, 100.0, 100.0, 120.0, 140.0)])
    assert found.shift == -found.a


def test_five_pairs_tell_nothing() -> None:
    found = significance.effect([(10.0, 5.0)] * 5)
    assert (found.shift, found.low, found.high, found.sign()) == (-5, None, None, 0)


def test_the_interval_tells_what_the_test_tells() -> None:
    sizes = (1, 2, 4, 8, 16, 32, 64)
    for signs in itertools.product((-1, 1), repeat=len(sizes)):
        differences = [float(sign * size) for sign, size in zip(signs, sizes, strict=True)]
        p = significance.signed_rank(differences)
        assert p
        found = significance.effect([(0, difference) for difference in differences])
        assert bool(found.sign()) == (p <= 0.05)
        assert found.low is not None
        assert found.high is not None
        assert found.low <= found.shift <= found.high


def test_the_interval_covers_what_it_should() -> None:
    # Of all signs of six differences around 0, all positive and all negative leave it out.
    missed = sum(
        bool(significance.effect([(0, float(d)) for d in signed]).sign())
        for signed in itertools.product(*((-size, size) for size in (1, 2, 4, 8, 16, 32)))
    )
    assert missed == 2


def test_effects_are_by_metric() -> None:
    a = {"seconds": 2.0, "progress": 10, "vmstat.oom_kill": 0}
    b = a | {"progress": 12, "vmstat.oom_kill": 1}
    found = compare.effects([(side, {"A": a, "B": b}[side]) for side in compare.slice_order(12)])
    assert found["operations"] == pytest.approx((10, 12, 2, 2, 2))
    assert found["oom_kill"].sign() == 1
    assert "remote_flushes" not in found


def test_rows() -> None:
    found = rows()
    remote = ["499.3", "19.970", "-479.3", "-96.0%", "-"]
    assert found["remote TLB flushes / anon only"] == remote
    assert found["flushes / deferring call"][:4] == ["-", "1.050", "-", "-"]
    assert found["all flushes / deferring call"][:2] == ["-", "1"]
    assert found["deferred folios / deferring call"][1] == "49"
    assert found["deferring calls"][:2] == ["0", "19.970"]
    assert found["reclaim's own remote flushes"][:2] == ["497.3", "17.973"]
    assert found["interrupts by these"][:2] == ["998.5", "39.940"]
    assert found["memcg's scanned+refilled / stolen"][0] == "1.800"


def test_unknown_counters_are_dashes() -> None:
    assert rows()["operations / s"] == ["-"] * 5


def test_every_line_fits_its_columns() -> None:
    given = report()
    counted = {"progress": 10, "function.try_to_unmap+folio_referenced.instructions": 1e9}
    pieces = [(piece["side"], piece["counters"] | counted) for piece in given["slices"]]
    given["summary"] = compare.summarize(pieces)
    text = table.render(given)
    label = "  try_to_unmap+folio_referenced, instructions / 1,000 operations\n"
    assert label in text
    for line in text.splitlines():
        assert len(line) <= 100


def test_stalls_have_rows_only_where_they_were_recorded() -> None:
    title = "reclaim stalls (direct and memcg)"
    assert title not in table.render(report())
    counted = {"seconds": 1.0, "stall_us": [2500], "stall_count": 1}
    found = compare.summarize([("A", counted), ("B", counted)])[title]
    assert [row["before"] for row in found] == [2.5, 2.5, 2.5, *[None] * 4]


def test_all_stalls_together() -> None:
    stolen = dict(zip(compare.STOLEN, (1500, 500), strict=True))
    piece = {
        "counters": stolen | {"progress": 10, "stats.scan.passes": 12},
        "stalls": [1000, 2000, 5000],
    }
    none = {"counters": stolen | {"progress": 10, "stats.scan.passes": 0}, "stalls": [4000]}
    slices = [("A", compare.with_stalls(piece)), ("B", compare.with_stalls(none))]
    rows = compare.summarize(slices)["reclaim stalls (direct and memcg)"]
    found = {row["key"]: (row["before"], row["after"]) for row in rows}
    assert found["total_wait_ms_per_1000"] == (4, 2)
    assert found["total_wait_ms_per_operation"] == (0.8, 0.4)
    assert found["passes_per_wait"] == (4, None)


def test_lost_events_are_told() -> None:
    assert table.lost_note([{}, {"events_lost": 0}]) == ""
    assert "7 trace events" in table.lost_note([{"events_lost": 3}, {"events_lost": 4}])


def test_lacking_counters_are_told_below_the_table() -> None:
    text = table.render(report() | {"lacks": ["No x.", "No y: " + "z " * 60]})
    assert "\nNo x.\nNo y: z " in text
    assert max(map(len, text.splitlines())) <= 100
    assert table.lacks(report()) == []


@pytest.mark.parametrize(
    ("primary", "marks"), [(True, ["", "", "*", "**"]), (False, ["", "", "+", "++"])]
)
def test_marks(primary: bool, marks: list[str]) -> None:
    ps = (None, 0.05, 0.0286, 0.0079)
    assert [table.mark({"primary": primary, "p_corrected": p}) for p in ps] == marks


@pytest.mark.parametrize(("pairs", "primary", "few"), [(5, 0, True), (6, 1, False), (6, 2, True)])
def test_too_few_slices_are_told(pairs: int, primary: int, few: bool) -> None:
    given = {"slices": [{}] * 2 * pairs, "summary": {compare.PRIMARY: [{}] * primary}}
    assert ("too few" in table.footnote(given)) == few


def test_holm_has_the_published_values() -> None:
    # The example of Holm's paper: 0.01, 0.04, 0.03, 0.005 of four tests.
    found = significance.holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005})
    assert found == {"d": 0.02, "a": 0.03, "c": 0.06, "b": 0.06}
    assert significance.holm({"x": 0.9, "y": 0.8}) == {"y": 1, "x": 1}
    assert significance.holm({}) == {}


def alternating(a: dict[str, Any], b: dict[str, Any], count: int) -> list[tuple[str, Any]]:
    return [(side, {"A": a, "B": b}[side]) for side in compare.slice_order(count)]


def test_primary_figures_come_first_and_are_corrected_for_their_own_number() -> None:
    a = {"seconds": 2.0, "progress": 10, "vmstat.pgsteal_anon": 100, "vmstat.pgsteal_file": 0,
         "vmstat.pswpin": 5}  # fmt: skip
    found = compare.summarize(
        alternating(a, a | {"progress": 12, "vmstat.pswpin": 4}, 12),
        ["operations_per_second", "pswpin_per_1000", "absent"],
    )
    first = found[compare.PRIMARY]
    assert [row["key"] for row in first] == ["operations_per_second", "pswpin_per_1000"]
    assert [row["label"] for row in first] == ["operations / s", "pswpin / 1,000 stolen"]
    assert [row["p_corrected"] for row in first] == [4 / 64, 4 / 64]
    rest = {row["key"]: row for title, rows in found.items() if title != compare.PRIMARY
            for row in rows}  # fmt: skip
    assert not rest.keys() & {row["key"] for row in first}
    tested = [row for row in rest.values() if row["p_corrected"] is not None]
    assert {row["key"] for row in tested} == {
        "operations_per_1000", "pswpin_per_operation", "ms_per_operation"
    }  # fmt: skip
    assert {row["p_corrected"] for row in tested} == {6 / 64}
    assert rest["operations"]["p"] == 2 / 64  # a total


def test_figures_per_operation_are_there_where_something_counts_them() -> None:
    a = {"seconds": 1.0, "progress": 50, "vmstat.pgsteal_anon": 100, "vmstat.pgsteal_file": 0,
         "vmstat.workingset_refault_file": 25}  # fmt: skip
    rows = compare.summarize([("A", a), ("B", a)])[compare.PER_OPERATION]
    values = {row["key"]: row["before"] for row in rows}
    assert values["refault_file_per_operation"] == 500
    assert "operations_per_operation" not in values
    del a["progress"]
    assert not compare.summarize([("A", a), ("B", a)])[compare.PER_OPERATION]


def test_an_interval_is_in_percent_of_a_typical_slice() -> None:
    found = compare.compare(
        compare.Metric("x", "x", ("x",)),
        [{"x": 10.0}] * 6,
        [{"x": 10.0 + change} for change in (1, 2, 3, 4, 5, 9)],
    )
    ends = [found[name] for name in ("low", "high", "low_percent", "high_percent")]
    assert ends == pytest.approx([1, 9, 10, 90])
    assert table.interval(found) == "+10% to +90%"
    assert table.interval(found | {"low_percent": -130, "high_percent": -2.04}) == "-100% to -2.0%"
    assert table.interval(found | {"low_percent": None}) == "-"


def test_a_run_of_one_setting_tells_what_chance_marks() -> None:
    given = report()
    assert table.chance_note(given) == ""
    pieces = [(piece["side"], piece["counters"]) for piece in given["slices"]] * 4
    given["settings"]["aa"] = 1
    given["summary"] = compare.summarize(pieces, ["remote_flushes_per_1000"])
    text = table.chance_note(given)
    assert "1 of them primary: remote_flushes_per_1000" in " ".join(text.split())
    assert text in table.render(given)


def test_runs_of_one_setting_are_judged_one_by_one() -> None:
    key = "remote_flushes_per_1000"
    same = [(piece["side"], piece["counters"]) for piece in report()["slices"]] * 4
    even = [(side, same[0][1]) for side, _ in same]
    given = report()
    given["slices"] = [
        {"side": side, "counters": counters} for side, counters in even + same + even
    ]
    given["settings"] |= {"aa": 3, "primary": [key]}
    assert compare.by_chance(given) == [[], [key], []]
    said = f"Cut into 3 runs of {len(even)} slices, 1 have a primary figure marked: {key}."
    assert said in " ".join(table.chance_note(given).split())


@pytest.mark.parametrize(
    ("b", "seconds", "warned"),
    [("scan=budget", 6, False), ("scan=budget", 5, True), ("flush.max_folios=31", 5, False)],
)
def test_slices_shorter_than_three_turnovers_are_told(b: str, seconds: int, warned: bool) -> None:
    given = report()
    given["settings"] |= {"b": b, "slice_seconds": seconds}
    assert table.turnover(given) == []
    given["turnover_seconds"] = {"A": 1.0, "B": None}
    assert table.turnover(given) == []
    given["turnover_seconds"]["B"] = 2.0
    (said,) = table.turnover(given)
    assert "1 s with A, 2 s with B" in said
    assert ("take --seconds 6 or more" in said) == warned


def test_without_a_limit_of_its_own() -> None:
    given = report()
    given["settings"]["memory_bytes"] = None
    assert "true, without a limit, " in table.heading(given)


def test_operations_may_come_from_a_command() -> None:
    assert counters.ProgressCommand("echo done: 12; echo 13").read() == 13
    assert counters.ProgressCommand("echo starting").peek() is None
    for words, said in (("echo oh >&2; exit 3", "exits with 3 and says: oh"), ("true", "with 0")):
        with pytest.raises(Failure, match=said):
            counters.ProgressCommand(words).read()


def test_a_command_that_hangs_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "COMMAND_TIMEOUT", 0.1)
    with pytest.raises(Failure, match="more than 0.1 s: sleep 9"):
        counters.ProgressCommand("sleep 9").read()


def test_numbers() -> None:
    texts = [table.number(n) for n in (None, 0, 12.0, 0.0214, 123.456, 98765.4, -2.5)]
    assert texts == ["-", "0", "12", "0.021", "123.5", "98765", "-2.500"]


def test_primary_figures_are_checked() -> None:
    command.check_primary(["scanned_per_stolen", "function.x.calls_per_1000"], stalls=False)
    for key, said in (
        ("scaned_per_stolen", "there is scanned_per_stolen"),
        ("stall_p99_ms", "takes --stalls"),
    ):
        with pytest.raises(Failure, match=said):
            command.check_primary([key], stalls=False)
    command.check_primary(["stall_p99_ms"], stalls=True)


def test_the_primary_figures_of_workloads_exist() -> None:
    known = command.row_keys(stalls=True)
    for workload in workloads.WORKLOADS.values():
        assert set(workload.primary) <= known
