"""Tests of the report: reading recordings, their figures, the page, and what a browser shows."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from vmp import browser, compare, match, picture, trace
from vmp.common import Failure

TOOLS = Path(__file__).resolve().parents[1]
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
    ("12.200100", f"flush_bounce: policy=batch {OWN} id=1 reason=mapped pages=1"),
    ("12.200200", "tlb_flush: pages=-1 reason=remote ipi send (4)"),
    ("12.200300", f"flush_batch_end: policy=batch {OWN} id=1 folios=44 pages=44 bounced=1 "
                  "written=43 flushed=1 ns=300000"),
    ("12.200400", f"scan_end: policy=budget {OWN} id=2 budget=64 scanned=60 reclaimed=43 "
                  "priority=12 reason=enough"),
    ("12.200500", f"aging_end: policy=async {OWN} id=3 async=1 before=5 after=6"),
    ("12.200600", f"aging_end: policy=async {OWN} id=4 async=0 before=6 after=6"),
    ("12.200700", f"writeback_feedback: policy=feedback {OWN} taken=64 dirty=64 unqueued=64 "
                  "congested=0 writeback=0 immediate=0 put_back=60 woken=1 waited=0"),
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


def pictured(*before: str) -> picture.Picture:
    """Return the picture of the recording."""
    return picture.read(trace.events(lines(*before)))


def ab_report(**changes: float) -> dict:
    """Return ab's report of the same run, with some of B's counters changed."""
    names = ("pgsteal_anon", "pgsteal_file", "nr_tlb_remote_flush", "oom_kill")
    stats = {"flush.deferred": 0, "flush.batches": 0, "flush.largest_batch": 64}
    a = {f"vmstat.{name}": value for name, value in zip(names, (50, 0, 1, 0), strict=True)}
    a |= {"seconds": 2.0, "vmstat.workingset_refault_file": 10}
    a |= {f"stats.{name}": value for name, value in stats.items()}
    b = a | {"vmstat.pgsteal_anon": 40, "vmstat.pgsteal_file": 3, "vmstat.oom_kill": 1}
    b |= {"stats.flush.deferred": 44, "stats.flush.batches": 1} | changes
    slices = [{"side": "A", "counters": a}, {"side": "B", "counters": b}]
    return {
        "format": 1,
        "settings": {
            "a": "flush=stock", "b": "flush=batch", "both": "(nothing)", "title": "stress <ng>",
            "memory_bytes": 64 << 20, "slice_seconds": 2,
        },
        "environment": {"kernel": "6.12.117", "lru": "mglru", "cpus": 4, "abi": {}},
        "slices": slices,
        "summary": compare.summarize([(piece["side"], piece["counters"]) for piece in slices]),
        "test": "exact two-sided Wilcoxon signed-rank over neighbouring slices",
    }  # fmt: skip


class Reading(unittest.TestCase):
    def test_interrupt_flags_and_odd_names_do_not_matter(self):
        for start in (
            "  stress-ng-vm-312   [001]    12.345678:",
            "  stress-ng-vm-312   [001] d..1.    12.345678:",
            "  a [b]: 1-2-312   [011]    12.345678912:",
        ):
            with self.subTest(start):
                found = list(trace.events([f"{start} scan_end:      id=4097 reason=enough\n"]))
                self.assertEqual(found, [(12_345_678, 312, "scan_end", "id=4097 reason=enough")])

    def test_gaps_are_told(self):
        found = list(trace.events(["version = 7", "CPU 3 is empty", *LOST]))
        self.assertEqual([event.name for event in found], [trace.LOST] * 3)
        self.assertEqual([event.text for event in found], ["123", "7", ""])

    def test_another_form_is_told(self):
        line = lines()[-1].replace("print:", "scan_end:")
        with self.assertRaisesRegex(Failure, "event scan_end of another form"):
            picture.read(trace.events([line]))


class Figures(unittest.TestCase):
    def test_sums(self):
        whole = pictured().whole()
        expected = {
            "stolen_pages": 93, "remote_flushes": 2, "oom_kills": 1, "stalls": 2,
            "flush.batches": 1, "flush.deferred": 44, "flush.bounced": 1, "flush.pageouts": 43,
            "flush.flushes": 1, "flush.batch_ns": 300_000, "flush.bounce_mapped": 1,
            "scan.passes": 1, "scan.budget": 64, "scan.scanned": 60, "scan.reclaimed": 43,
            "scan.end_enough": 1, "aging.async": 1, "aging.failed": 1, "writeback.batches": 1,
            "writeback.taken": 64, "writeback.put_back": 60, "writeback.flusher_wakeups": 1,
            "writeback.waits": 0, "throttle.writeback": 1, "throttle.writeback_us": 1500,
            "stall_p50_ms": 2.0, "stall_max_ms": 200.0,
        }  # fmt: skip
        self.assertEqual({name: whole[name] for name in expected}, expected)
        self.assertNotIn("aging.sync", whole)
        self.assertAlmostEqual(whole["remote_flushes_per_1000"], 2000 / 93)

    def test_sides(self):
        groups = pictured().groups()
        self.assertEqual(list(groups), ["A: flush=stock", "B: flush=batch"])
        a, b = (picture.figures(spans) for spans in groups.values())
        self.assertEqual((a["stolen_pages"], b["stolen_pages"]), (50, 43))
        self.assertEqual((a["stalls"], a["stall_max_ms"], b["stalls"]), (1, 2.0, 0))
        self.assertAlmostEqual(a["seconds"], 1.9999)

    def test_policies_without_slices(self):
        text = [line for line in lines() if "vmscan-policy ab" not in line]
        groups = picture.read(trace.events(text)).groups()
        self.assertEqual(list(groups), ["flush=stock", "flush=batch"])
        self.assertEqual(picture.figures(groups["flush=batch"])["flush.batches"], 1)

    def test_of_many_policies_the_longest_are_shown(self):
        text = "x-1 [0] {}.000000: policy_switch: policy=0 point=flush from={} to={} pid=1"
        found = [text.format(number * number, number, number + 1) for number in range(9)]
        groups = picture.read(trace.events(found)).groups()
        self.assertEqual(list(groups), [f"flush={number}" for number in range(3, 9)])

    def test_lost_events_are_counted(self):
        whole = pictured(*LOST).whole()
        self.assertEqual((whole["lost_events"], whole["gaps_of_unknown_size"]), (130, 1))

    def test_a_run_is_found_by_its_settings_and_slices(self):
        shown, report = pictured(), ab_report()
        other = ab_report()
        other["settings"]["b"] = "flush=batch,flush.max_folios=31"
        self.assertEqual(match.pair(shown, [other, report]), {0: 1})
        report["slices"].reverse()
        self.assertEqual(match.pair(shown, [other, report]), {})

    def test_figures_beside_those_of_the_module(self):
        shown = pictured()
        self.assertEqual(match.beside_module(shown), [])
        shown.counted = {"flush.deferred": 50, "aging.queued": 3}
        rows = {row["figure"]: (row["trace"], row["counted"]) for row in match.beside_module(shown)}
        self.assertEqual(rows["flush.deferred"][1], 50)
        self.assertEqual(rows["scan.passes"], (shown.whole()["scan.passes"], 0))
        self.assertFalse({"stolen_pages", "stalls", "aging.queued"} & rows.keys())

    def test_figures_beside_those_of_ab(self):
        report = ab_report(**{"vmstat.pgsteal_anon": 83, "stats.scan.passes": 0})
        found = match.beside(pictured().groups()["B: flush=batch"], report)
        rows = {row["figure"]: (row["trace"], row["counted"], row["percent"]) for row in found}
        self.assertEqual(rows["stolen_pages"], (43, 86, -50))
        self.assertEqual(rows["flush.deferred"], (44, 44, 0))
        self.assertEqual(rows["scan.passes"], (1, 0, None))
        self.assertNotIn("flush.largest_batch", rows)
        self.assertNotIn("stalls", rows)


class Tool(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.place = Path(directory.name)
        fake = cls.place / "bin" / "trace-cmd"
        fake.parent.mkdir()
        fake.write_text(FAKE)
        fake.chmod(0o755)
        (cls.place / "trace.dat").write_bytes(trace.MAGIC + b"6")
        (cls.place / "lines").write_text("\n".join(lines(*LOST)))
        (cls.place / "ab.json").write_text(json.dumps(ab_report()))
        (cls.place / "other").write_text("{}")

    def report(self, *words: str, **environment: str) -> subprocess.CompletedProcess:
        path = f"{self.place}/bin:{os.environ['PATH']}"
        return subprocess.run(
            [sys.executable, TOOLS / "report", *words],
            cwd=self.place,
            env=os.environ | {"PATH": path, "RECORDING": "lines"} | environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def page(self, *words: str) -> str:
        done = self.report("-o", "page.html", *words)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return (self.place / "page.html").read_text()

    def test_page_and_figures(self):
        done = self.report("-o", "page.html", "--json", "figures.json", "trace.dat", "ab.json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("EVENTS ARE MISSING: 130 events were lost", done.stdout)
        page = (self.place / "page.html").read_text()
        self.assertEqual(page.count('role="img"'), 8)
        self.assertIn("130 events were lost", page)
        self.assertIn("stress &lt;ng&gt;", page)
        self.assertNotIn("Left out", page)
        self.assertNotRegex(page, r"https?:|<script|src=|@import")
        self.assertNotRegex(page, r"#0[ab]0[ab][0-9a-f]{2}")
        names = re.findall(r'\bid="([^"]*)"', page)
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(set(re.findall(r'(?:href="|url\()#([^")]*)', page)) - set(names), set())
        found = json.loads((self.place / "figures.json").read_text())
        self.assertEqual(found["recording"]["lost_events"], 130)
        self.assertEqual(found["groups"]["B: flush=batch"]["flush.deferred"], 44)
        self.assertEqual(found["runs"][0]["ab"], "ab.json")
        self.assertEqual([piece["side"] for piece in found["runs"][0]["slices"]], ["A", "B"])
        self.assertIn(
            {"figure": "stolen_pages", "trace": 43, "counted": 43, "percent": 0},
            found["runs"][0]["compared"]["B"],
        )

    def test_the_same_again(self):
        self.assertEqual(self.page("trace.dat", "ab.json"), self.page("ab.json", "trace.dat"))

    def test_what_is_left_out_is_said(self):
        page = self.page("ab.json")
        self.assertEqual(page.count('role="img"'), 1)
        self.assertIn("Batch sizes: no recording was given", page)
        page = self.page("trace.dat")
        self.assertIn("no JSON of tools/ab was given", page)

    def test_failures_are_told_in_one_sentence_and_write_nothing(self):
        for words, environment, why in (
            (["nonesuch"], {}, "No such file"),
            (["trace.dat"], {"RECORDING": ""}, "cannot read trace.dat: error reading header"),
            (["trace.dat"], {"RECORDING": "other"}, "no event of vmscan_policy"),
            (["trace.dat", "trace.dat"], {}, "one trace.dat only"),
            (["other"], {}, "other is neither a trace.dat"),
            (["lines"], {}, "lines is neither a trace.dat"),
            (["trace.dat", "-o", "nonesuch/x"], {}, "cannot write nonesuch/x"),
            (["trace.dat", "-o", "bin"], {}, "bin is a directory"),
            (["trace.dat", "--json", "nonesuch/x"], {}, "cannot write nonesuch/x"),
            (["trace.dat"], {"PATH": f"{Path(sys.executable).parent}"}, "trace-cmd is not"),
            (["trace.dat"], {"XDG_CACHE_HOME": "/nonesuch"}, "run tools/setup"),
        ):
            with self.subTest(why):
                before = sorted(self.place.rglob("*"))
                done = self.report("-o", "none.html", *words, **environment)
                self.assertEqual(done.returncode, 1)
                self.assertIn(why, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)
                self.assertEqual(sorted(self.place.rglob("*")), before)

    def test_no_input_is_written_over(self):
        before = (self.place / "trace.dat").read_bytes()
        for words in (["-o", "./trace.dat"], ["--json", "trace.dat"], ["--json", "report.html"]):
            with self.subTest(words):
                done = self.report("trace.dat", *words)
                self.assertEqual(done.returncode, 2)
                self.assertIn("is given twice: name another file to write", done.stderr)
                self.assertEqual((self.place / "trace.dat").read_bytes(), before)
                self.assertFalse((self.place / "report.html").exists())

    def test_a_browser_shows_it_light_and_dark_in_a_narrow_window(self):
        page = self.page("trace.dat", "ab.json")
        backgrounds = set()
        for scheme in browser.SCHEMES:
            with self.subTest(scheme):
                view = browser.look(page, 360, scheme)
                self.assertEqual((view.width, view.plots, view.console), (360, 8, []))
                self.assertGreater(view.smallest_text, 9)
                backgrounds.add(view.background)
        self.assertEqual(len(backgrounds), 2)

    def test_a_browser_would_tell(self):
        wide = '<div style="width:400px">x</div><script>console.error("wrong")</script>'
        view = browser.look(wide, 360, "light")
        self.assertEqual((view.width > 360, view.plots), (True, 0))
        self.assertRegex("".join(view.console), "wrong")


if __name__ == "__main__":
    unittest.main()
