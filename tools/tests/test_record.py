"""Tests of what record computes and checks, and of how it runs commands."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from vmp import alternation, children, recording
from vmp.common import Failure
from vmp.control import Assignment, Control

RECORD = Path(__file__).resolve().parents[1] / "record"
# A buffer that 7 events were read from, as the kernel shows it.
CPU_STATS = """\
entries: 21
overrun: 5
commit overrun: 3
bytes: 1188
oldest event ts:   121.999999
now ts:   122.000100
dropped events: 2
read events: 7
"""


def make_files(root: Path, files: dict[str, str]) -> None:
    """Make files, and the directories that they are in, below `root`."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


class WithDirectory(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name)


class Parsing(unittest.TestCase):
    def test_durations(self):
        for text, seconds in (("30s", 30), ("2m", 120), ("500ms", 0.5), ("1.5", 1.5), ("1h", 3600)):
            self.assertEqual(recording.parse_duration(text), seconds)
        for wrong in ("", "s", "0", "0ms", "-1s", "5 days", "1e3s", "inf"):
            with self.subTest(wrong), self.assertRaisesRegex(Failure, "is no time"):
                recording.parse_duration(wrong)

    def test_sides(self):
        self.assertEqual(
            alternation.parse_sides(["flush=stock,batch", "flush.max_folios=31, 64"]),
            {
                "A": [Assignment("flush", "stock"), Assignment("flush.max_folios", "31")],
                "B": [Assignment("flush", "batch"), Assignment("flush.max_folios", "64")],
            },
        )
        for wrong in ("flush", "flush=a", "flush=a,", "flush=a,b,c", "=a,b", "flush=a,a", ""):
            with self.subTest(wrong), self.assertRaisesRegex(Failure, "no pair of settings"):
                alternation.parse_sides([wrong])
        with self.assertRaisesRegex(Failure, "flush is given twice"):
            alternation.parse_sides(["flush=a,b", "flush=b,a"])
        for name in ("profile=stock,max", "trace=0,1"):
            with self.subTest(name), self.assertRaisesRegex(Failure, "can't be switched here"):
                alternation.parse_sides([name])

    def test_all_kinds_of_loss_count(self):
        self.assertEqual(recording.parse_cpu_stats(CPU_STATS), (28, 10))
        self.assertEqual(recording.parse_cpu_stats(""), (0, 0))

    def test_what_trace_cmd_tells_is_passed_on(self):
        text = "trace-cmd: No space left on device\n  Error creating output file\n"
        said = recording.told_error(f"CPU0 data recorded\n{text}", 28)
        self.assertEqual(said, "No space left on device: Error creating output file")
        self.assertEqual(recording.told_error("CPU0 data recorded\n", 0), "exit status 0")
        self.assertEqual(recording.told_error("", -9), "killed by SIGKILL")

    def test_losses_are_told_for_each_cpu(self):
        self.assertEqual(
            recording.lost_sentence({3: 32, 1: 0, 0: 500}, 8 << 20),
            "532 events were lost (CPU 0: 500, CPU 3: 32): try --buffer 32M",
        )
        self.assertEqual(
            recording.lost_sentence({0: 1}, 64 << 10),
            "1 event was lost (CPU 0: 1): try --buffer 256K",
        )


class Tracefs(WithDirectory):
    def setUp(self):
        super().setUp()
        make_files(
            self.root,
            {
                "set_event": "",
                "current_tracer": "nop\n",
                "events/vmscan_policy/enable": "0\n",
                "events/oom/mark_victim/enable": "0\n",
                "events/tlb/tlb_flush/enable": "0\n",
            },
        )

    def test_only_events_that_exist_are_asked_for(self):
        self.assertEqual(
            recording.event_options(self.root),
            ["-e", "vmscan_policy", "-e", "oom:mark_victim", "-e", "tlb:tlb_flush"]
            + ["-f", "reason==4"],
        )

    def test_the_modules_events_are_required(self):
        recording.require_events(self.root)
        (self.root / "events/vmscan_policy").rename(self.root / "events/other")
        with self.assertRaisesRegex(Failure, "has no trace events"):
            recording.require_events(self.root)
        (self.root / "set_event").unlink()
        with self.assertRaisesRegex(Failure, "no right to record"):
            recording.require_events(self.root)

    def test_others_that_trace_are_named(self):
        recording.require_idle(self.root)
        (self.root / "set_event").write_text("oom:mark_victim\n")
        recording.require_events(self.root)
        self.assertEqual((self.root / "set_event").read_text(), "oom:mark_victim\n")
        with self.assertRaisesRegex(Failure, r"tracing \(oom:mark_victim\)"):
            recording.require_idle(self.root)
        (self.root / "current_tracer").write_text("function\n")
        with self.assertRaisesRegex(Failure, r"tracing \(the tracer function, \.\.\.\)"):
            recording.require_idle(self.root)


class Switching(WithDirectory):
    def setUp(self):
        super().setUp()
        make_files(
            self.root,
            {"flush/policy": "[stock] batch\n", "flush/max_folios": "64\n", "bypass": "0"},
        )
        self.written = []
        self.control = Control(self.root)
        self.control.write = lambda items: self.written.extend(map(str, items))
        self.sides = alternation.parse_sides(["flush=stock,batch"])

    def test_the_order_is_a_b_b_a_and_the_end_restores(self):
        with alternation.Alternation(self.control, self.sides, 0) as turns:
            self.assertEqual(self.written, ["flush=stock", "flush=batch"])
            self.written.clear()
            turns.start()
            for _ in range(7):
                turns.step()
            self.assertEqual(
                self.written,
                ["flush=stock", "flush=batch", "flush=stock", "flush=batch", "flush=stock"],
            )
            self.written.clear()
        self.assertEqual(self.written, ["flush=stock"])

    def test_a_turn_lasts_its_time(self):
        turns = alternation.Alternation(self.control, self.sides, 1000)
        turns.start()
        for _ in range(5):
            self.assertGreater(turns.step(), time.monotonic() + 900)
        self.assertEqual(self.written, ["flush=stock"])

    def test_wrong_settings_change_nothing(self):
        for word, hint in (
            ("flush=stock,bach", "allowed are stock, batch"),
            ("x=1,2", "flush.max"),
        ):
            wrong = alternation.Alternation(self.control, alternation.parse_sides([word]), 1)
            with self.subTest(word), self.assertRaisesRegex(Failure, hint), wrong:
                pass
        self.assertEqual(self.written, [])

    def test_a_refused_number_restores(self):
        def write(items: list[Assignment]) -> None:
            for item in items:
                if item.value == "9999":
                    raise Failure("refused")
                self.written.append(str(item))

        self.control.write = write
        sides = alternation.parse_sides(["flush.max_folios=31,9999"])
        with self.assertRaisesRegex(Failure, "refused"):
            alternation.Alternation(self.control, sides, 1).__enter__()
        self.assertEqual(self.written, ["flush.max_folios=31", "flush.max_folios=64"])


class Children(unittest.TestCase):
    def setUp(self):
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
        self.addCleanup(signal.pthread_sigmask, signal.SIG_SETMASK, before)
        handler = signal.getsignal(signal.SIGINT)
        self.addCleanup(signal.signal, signal.SIGINT, handler)
        children.hold_signals()
        while children.wait(0) or signal.sigpending() & set(children.HELD):
            pass

    def start(self, script: str) -> subprocess.Popen:
        child = children.start(["sh", "-c", script], stdout=subprocess.PIPE, text=True)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.wait)
        return child

    def test_the_end_of_a_child_cuts_waiting_short(self):
        before = time.monotonic()
        child = self.start("exit 3")
        self.assertIsNone(children.wait(60))
        self.assertLess(time.monotonic() - before, 50)
        self.assertEqual(children.exit_status(child.wait()), 3)

    def test_a_signal_is_told_even_if_it_came_before(self):
        for number in children.STOPS:
            os.kill(os.getpid(), number)
            self.assertEqual(children.wait(60), number)
        self.assertIsNone(children.wait(0))

    def test_a_child_gets_signals(self):
        child = self.start("trap 'exit 5' INT; echo ready; while :; do sleep 0.1; done")
        child.stdout.readline()
        children.end(child)
        self.assertEqual(child.returncode, 5)

    def test_the_whole_group_ends_and_stronger_signals_follow(self):
        ladder = ((signal.SIGINT, 0.3), (signal.SIGTERM, 0.3), (signal.SIGKILL, 30))
        with mock.patch.object(children, "LADDER", ladder):
            script = "trap '' INT TERM; sleep 1000 & echo ready; wait; sleep 1000"
            child = self.start(script)
            child.stdout.readline()
            children.end(child)
        self.assertEqual(children.exit_status(child.returncode), 128 + signal.SIGKILL)
        self.assertEqual(child.stdout.read(), "")  # nobody holds the pipe any more

    def test_what_a_child_that_ended_left_behind_stays(self):
        child = self.start("echo ready; exec sleep 1000 &")
        child.wait()
        children.end(child)
        os.killpg(child.pid, 0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)

    def test_a_command_that_is_missing_is_named(self):
        with self.assertRaisesRegex(Failure, "cannot start '/nonesuch': no such file"):
            children.start(["/nonesuch"])


class CommandLine(unittest.TestCase):
    def test_mistakes_are_told_in_one_sentence(self):
        for words, why in (
            ([], "give the command"),
            (["--"], "give the command"),
            (["--for", "soon"], "is no time"),
            (["--every", "0", "--", "true"], "is no time"),
            (["--buffer", "much", "--", "true"], "is no size"),
            (["--ab", "flush=stock", "--", "true"], "no pair of settings"),
            (["--bogus", "--", "true"], "--bogus"),
            (["true"], "unrecognized"),
        ):
            with self.subTest(words):
                done = subprocess.run([RECORD, *words], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 125)
                self.assertRegex(done.stderr, f"^record: .*{why}")
                self.assertEqual((done.stderr.count("\n"), done.stdout), (1, ""))


if __name__ == "__main__":
    unittest.main()
