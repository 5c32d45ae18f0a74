"""Tests of what vmscanctl and ab compute: parsing, checking of settings, statistics, the table."""

import itertools
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from vmp import compare, control, counters, machine, stalls, table, workloads
from vmp.common import Failure, mount_points
from vmp.control import Assignment, Control

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


class Parsing(unittest.TestCase):
    def test_interrupts_are_summed_over_cpus(self):
        self.assertEqual(
            counters.parse_interrupts(INTERRUPTS), {"CAL": 113151 + 109404, "TLB": 9604 + 9440}
        )
        self.assertEqual(counters.parse_interrupts(INTERRUPTS, ("ERR", "24")), {"ERR": 0, "24": 1})

    def test_only_wanted_names_are_taken(self):
        self.assertEqual(
            counters.parse_pairs(VMSTAT, ["nr_vmscan_write", "pgscan_anon", "absent"]),
            {"nr_vmscan_write": 7, "pgscan_anon": 12},
        )

    def test_progress_is_the_last_number(self):
        self.assertEqual(counters.parse_progress("round 3\nops: 1250.5 done\n"), 1250.5)
        self.assertIsNone(counters.parse_progress("starting"))

    def test_progress_is_read_from_the_end_of_the_file(self):
        with tempfile.TemporaryDirectory() as directory:
            progress = counters.Progress(Path(directory) / "progress")
            self.assertIsNone(progress.peek())
            with self.assertRaisesRegex(Failure, "has no number"):
                progress.read()
            progress.path.write_text("7\n" * counters.PROGRESS_TAIL + "8.5\n")
            self.assertEqual(progress.read(), 8.5)

    def test_fio_tells_its_operations_in_whole_lines(self):
        operations = (46784 + 2416) / 4
        self.assertEqual(workloads.fio_operations(f"{FIO}\n"), operations)
        self.assertEqual(workloads.fio_operations(f"{FIO}\n{FIO.replace('4', '5')}"), operations)
        self.assertIsNone(workloads.fio_operations(FIO))
        self.assertIsNone(workloads.fio_operations("fio: warning\n"))

    def test_stalls_are_pairs_of_one_task_and_kind(self):
        self.assertEqual(stalls.durations(TRACE), [999_999, 250])
        self.assertEqual(stalls.durations(""), [])

    def test_a_second_begin_counts(self):
        line = "x-1 [000] ..... 1.{}: mm_vmscan_memcg_reclaim_{}: x\n"
        edges = (("000100", "begin"), ("000500", "begin"), ("000600", "end"), ("000900", "end"))
        text = "".join(line.format(*edge) for edge in edges)
        self.assertEqual(stalls.durations(text), [100])

    def test_lost_events(self):
        text = "entries: 21\noverrun: 5\ncommit overrun: 3\nbytes: 1188\ndropped events: 2\n"
        self.assertEqual(stalls.lost_events(text), 7)

    def test_choices(self):
        self.assertEqual(control.parse_choices("[stock] batch\n"), ("stock", ["stock", "batch"]))
        self.assertEqual(control.parse_choices("31\n"), (None, ["31"]))

    def test_stats_skip_other_lines(self):
        self.assertEqual(control.parse_stats("deferred 12\nnote: x\ncalls 3\n"),
                         {"deferred": 12, "calls": 3})  # fmt: skip

    def test_assignments(self):
        self.assertEqual(
            control.parse_assignments(["flush=batch,flush.max_folios=31", "scan=stock"]),
            [
                Assignment("flush", "batch"),
                Assignment("flush.max_folios", "31"),
                Assignment("scan", "stock"),
            ],
        )
        for wrong in ("flush", "flush=", "=batch", "flush=batch,", ""):
            with self.subTest(wrong), self.assertRaises(Failure):
                control.parse_assignments([wrong])

    def test_sizes(self):
        for text, size in (("64M", 64 << 20), ("1g", 1 << 30), ("4096", 4096), ("2KiB", 2048)):
            self.assertEqual(machine.parse_size(text), size)
        for wrong in ("", "M", "-1", "0", "64X"):
            with self.subTest(wrong), self.assertRaises(ValueError):
                machine.parse_size(wrong)

    def test_debugfs_is_found_where_it_is_mounted(self):
        mounts = "proc /proc proc rw 0 0\ndebugfs /debug debugfs rw 0 0\n"
        self.assertEqual(mount_points("debugfs", mounts), [Path("/debug")])
        self.assertEqual(mount_points("debugfs", "proc /proc proc rw 0 0\n"), [])


class Settings(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        root = Path(directory.name)
        files = {
            "abi": "abi 1\nmodule 0.1.0\nkernel 6.12.117\n",
            "profile": "stock max\n",
            "bypass": "0\n",
            "flush/policy": "[stock] batch\n",
            "flush/max_folios": "128\n",
            "flush/stats": "deferred 5\nlargest_batch 3\n",
            "scan/floor": "none [small] always\n",
            "scan/policy": "[stock]\n",
            "other/file": "not a point\n",
        }
        for name, text in files.items():
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text(text)
        for name in ("abi", "flush/stats"):
            (root / name).chmod(0o444)
        self.root, self.control = root, Control(root)

    def test_points_and_parameters_are_found(self):
        self.assertEqual(
            self.control.names(),
            ["bypass", "profile", "flush", "flush.max_folios", "scan", "scan.floor"],
        )
        self.assertEqual(self.control.stats(), {"flush": {"deferred": 5, "largest_batch": 3}})
        self.assertEqual(self.control.abi()["kernel"], "6.12.117")

    def test_trace_events_are_a_setting_where_there_are_some(self):
        switch = self.root / "enable"
        self.control.trace = [switch]
        for text, shown in (("0", "0"), ("1", "1"), ("X", "some")):
            switch.write_text(text + "\n")
            self.assertIn("trace", self.control.names())
            self.assertEqual(self.control.text("trace"), shown)
            self.control.check([Assignment("trace", "1")])
        with self.assertRaisesRegex(Failure, "set trace=0 or trace=1 first"):
            self.control.get("trace")
        self.control.write([Assignment("trace", "1")])
        self.assertEqual(switch.read_text(), "1")

    def test_present_values_can_be_written_back(self):
        self.assertEqual(self.control.get("flush"), "stock")
        self.assertEqual(self.control.get("flush.max_folios"), "128")
        self.assertEqual(self.control.get("scan.floor"), "small")
        self.control.check([Assignment("scan.floor", "always")])

    def test_wrong_settings_say_what_is_allowed(self):
        for name, value, hint in (
            ("flush", "bach", "stock, batch"),
            ("flush.max_folios", "many", "decimal number"),
            ("flush.max_folios", "-1", "decimal number"),
            ("flush.stats", "1", "flush.max_folios"),
            ("flsh", "batch", "flush"),
            ("other", "x", "flush"),
            ("profile", "min", "stock, max"),
            ("bypass", "yes", "decimal number"),
            ("scan.floor", "[small]", "none, small, always"),
            ("scan.floor", "1", "none, small, always"),
            ("abi", "2", "bypass, profile, flush"),
        ):
            with self.subTest(f"{name}={value}"), self.assertRaisesRegex(Failure, hint):
                self.control.check([Assignment("flush", "batch"), Assignment(name, value)])
        self.assertEqual((self.root / "flush/policy").read_text(), "[stock] batch\n")

    def test_a_refused_write_names_what_was_done(self):
        (self.root / "scan/policy").unlink()
        (self.root / "scan/policy").symlink_to("/dev/full")
        with self.assertRaisesRegex(Failure, "scan=x was refused .*set before it: flush=batch"):
            self.control.write([Assignment("flush", "batch"), Assignment("scan", "x")])
        with self.assertRaisesRegex(Failure, "nothing was changed"):
            self.control.write([Assignment("scan", "x")])


class Arithmetic(unittest.TestCase):
    def test_slices_alternate_against_drift(self):
        self.assertEqual(compare.slice_order(8), "ABBAABBA")
        for count in (2, 6, 10):
            order = compare.slice_order(count)
            self.assertEqual(order.count("A"), order.count("B"))

    def test_delta_of_counters_and_marks(self):
        before = {"time": 1.0, "vmstat.pswpin": 5, "stats.flush.largest_batch": 9, "gone": 1}
        after = {"time": 11.5, "vmstat.pswpin": 25, "stats.flush.largest_batch": 12, "new": 1}
        self.assertEqual(
            counters.delta(before, after),
            {"seconds": 10.5, "stats.flush.largest_batch": 12, "vmstat.pswpin": 20},
        )

    def test_per_1000_stolen_weighs_slices_by_their_pages(self):
        metric = compare.per_stolen("flushes", "flushes", "x")
        slices = [
            {"x": 10, "vmstat.pgsteal_anon": 900, "vmstat.pgsteal_file": 100},
            {"x": 80, "vmstat.pgsteal_anon": 2000, "vmstat.pgsteal_file": 0},
        ]
        self.assertAlmostEqual(metric.value(slices), 30)
        self.assertAlmostEqual(metric.value(slices[:1]), 10)

    def test_missing_counters_and_zero_denominators_have_no_value(self):
        ratio = compare.Metric("r", "r", ("x",), ("y",))
        self.assertIsNone(ratio.value([{"x": 1, "y": 0}]))
        self.assertIsNone(ratio.value([{"x": 1}]))
        self.assertIsNone(ratio.value([]))

    def test_the_highest_mark_counts(self):
        mark = compare.Metric("m", "m", ("stats.flush.largest_batch",))
        pieces = [{"stats.flush.largest_batch": n} for n in (3, 8, 8)]
        self.assertEqual(mark.value(pieces), 8)

    def test_percentiles_are_nearest_ranks(self):
        values = [15, 20, 35, 40, 50]
        percents = (0, 5, 30, 40, 50, 99, 100)
        ranks = [compare.nearest_rank(values, percent) for percent in percents]
        self.assertEqual(ranks, [15, 15, 20, 20, 35, 50, 50])
        self.assertIsNone(compare.nearest_rank([], 50))

    def test_stalls_of_all_slices_are_pooled(self):
        pieces = [
            {"stalls": times, "counters": {"seconds": 1}} for times in ([3000, 1000], [], [9])
        ]
        slices = [compare.with_stalls(piece) for piece in pieces]
        rows = {row.key: row for row in compare.stall_rows()}
        self.assertEqual(rows["stall_p50_ms"].value(slices), 1)
        self.assertEqual(rows["stall_longest_ms"].value(slices), 3)
        self.assertIsNone(rows["stall_p99_ms"].value(slices[1:2]))
        for piece in slices:
            piece.update({"vmstat.pgsteal_anon": 400, "vmstat.pgsteal_file": 100})
        self.assertEqual(rows["stalls_per_1000"].value(slices), 2)
        self.assertEqual(compare.with_stalls({"counters": {"x": 1}}), {"x": 1})

    def test_difference(self):
        self.assertEqual(compare.difference(400, 20), (-380, -95))
        self.assertEqual(compare.difference(0, 20), (20, None))
        self.assertEqual(compare.difference(None, 20), (None, None))

    def test_half_range(self):
        self.assertAlmostEqual(compare.half_range([90, 110, 100]), 0.1)
        self.assertIsNone(compare.half_range([0, 0]))
        self.assertIsNone(compare.half_range([]))

    def test_signed_rank_has_the_published_values(self):
        self.assertAlmostEqual(compare.signed_rank([1, 2, 3, 4, 5]), 2 / 32)
        self.assertAlmostEqual(compare.signed_rank([-1, -2, -3, -4, -5, -6]), 2 / 64)
        self.assertAlmostEqual(compare.signed_rank([-1, 2, 3, 4, 5, 6]), 4 / 64)
        self.assertEqual(compare.signed_rank([1, -1]), 1)
        self.assertAlmostEqual(compare.signed_rank([0, 1, 2, 0]), 2 / 4)
        self.assertIsNone(compare.signed_rank([0, 0]))

    def test_signed_rank_counts_ties_as_enumeration_does(self):
        differences = [3, 3, -1, 2, 5, -2, 8]
        sizes = sorted(map(abs, differences))
        ranks = [(2 * sizes.index(abs(d)) + sizes.count(abs(d)) + 1) / 2 for d in differences]
        mean = sum(ranks) / 2
        seen = abs(sum(r for d, r in zip(differences, ranks, strict=True) if d > 0) - mean)
        signs = itertools.product((0, 1), repeat=len(ranks))
        sums = [sum(r for s, r in zip(sign, ranks, strict=True) if s) for sign in signs]
        p = sum(abs(total - mean) >= seen for total in sums) / len(sums)
        self.assertAlmostEqual(compare.signed_rank(differences), p)

    def test_neighbours_are_compared_across_phases(self):
        metric = compare.Metric("x", "x", ("x",))
        a = [{"x": 100.0 * n} for n in range(1, 7)]
        b = [{"x": 100.0 * n - n} for n in range(1, 7)]
        self.assertAlmostEqual(compare.compare(metric, a, b)["p"], 2 / 64)


class Table(unittest.TestCase):
    def report(self) -> dict:
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
            }
            slices.append({"side": side, "counters": piece})
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
            "slices": slices,
            "summary": compare.summarize([(s["side"], s["counters"]) for s in slices]),
        }

    def rows(self) -> dict[str, list[str]]:
        lines = table.render(self.report()).splitlines()
        return {line[: table.LABEL].strip(): line[table.LABEL :].split() for line in lines}

    def test_rows(self):
        rows = self.rows()
        self.assertEqual(
            rows["remote TLB flushes / anon only"],
            ["499.3", "19.970", "-479.3", "-96.0%", "0.1%", "0.0%"],
        )
        self.assertEqual(rows["flushes / deferring call"][:4], ["-", "1.050", "-", "-"])
        self.assertEqual(rows["all flushes / deferring call"][:2], ["-", "1"])
        self.assertEqual(rows["deferred folios / deferring call"][1], "49")
        self.assertEqual(rows["deferring calls"][:2], ["0", "19.970"])

    def test_unknown_counters_are_dashes(self):
        self.assertEqual(self.rows()["operations / s"], ["-"] * 6)

    def test_every_line_fits_its_columns(self):
        for line in table.render(self.report()).splitlines():
            self.assertLessEqual(len(line), 100, line)

    def test_stalls_have_rows_only_where_they_were_recorded(self):
        title = "reclaim stalls (direct and memcg)"
        self.assertNotIn(title, table.render(self.report()))
        counted = {"seconds": 1.0, "stall_us": [2500], "stall_count": 1}
        rows = compare.summarize([("A", counted), ("B", counted)])[title]
        self.assertEqual([row["before"] for row in rows], [2.5, 2.5, 2.5, None])

    def test_lost_events_are_told(self):
        self.assertEqual(table.lost_note([{}, {"events_lost": 0}]), "")
        self.assertIn("7 trace events", table.lost_note([{"events_lost": 3}, {"events_lost": 4}]))

    def test_marks(self):
        marks = [table.stars(p) for p in (None, 0.05, 0.0286, 0.0079)]
        self.assertEqual(marks, ["", "", "*", "**"])
        self.assertIn("too few", table.footnote(5))
        self.assertNotIn("too few", table.footnote(6))

    def test_numbers(self):
        texts = [table.number(n) for n in (None, 0, 12.0, 0.0214, 123.456, 98765.4, -2.5)]
        self.assertEqual(texts, ["-", "0", "12", "0.021", "123.5", "98765", "-2.500"])


if __name__ == "__main__":
    unittest.main()
