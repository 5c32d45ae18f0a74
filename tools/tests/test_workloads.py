"""Tests of the table of workloads, of choosing a disk, and of the program `pressure`."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from vmp import counters, machine, workloads
from vmp.common import Failure

PATIENCE = 60  # seconds: the machine may be busy


class Workloads(unittest.TestCase):
    def test_places_are_put_in_and_other_braces_stay(self):
        workload = workloads.Workload(("awk", "{print}", "{directory}/file"))
        self.assertEqual(
            workload.words({"directory": Path("/mnt")}), ["awk", "{print}", "/mnt/file"]
        )
        self.assertFalse(workload.compiled())

    def test_each_has_what_its_command_names(self):
        for name, workload in workloads.WORKLOADS.items():
            with self.subTest(name):
                text = " ".join(workload.command)
                self.assertEqual(workload.disk, "{directory}" in text)
                self.assertEqual(workload.progress is not None, "{progress}" in text)
                self.assertIn(workload.swap, ("needed", "none", "any"))
                machine.parse_size(workload.memory)

    def test_only_a_blank_disk_is_taken(self):
        for device, why in (("/dev/null", "no block device"), ("/dev/nonesuch", "there is no")):
            with self.subTest(device), self.assertRaisesRegex(Failure, why):
                machine.require_blank(Path(device))


class Pressure(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.directory = Path(directory.name)
        subprocess.run(["make", "-s", "-C", workloads.SOURCES, f"OUT={directory.name}"], check=True)

    def start(self) -> tuple[subprocess.Popen, counters.Progress]:
        progress = self.directory / "progress"
        sizes = "--file-size 3M --readers 2 --anon-size 3M --threads 2 --progress".split()
        program = subprocess.Popen(
            [self.directory / "pressure", "--file", self.directory / "file", *sizes, progress]
        )
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        return program, counters.Progress(progress)

    def wait_for_more(self, progress: counters.Progress, than: float) -> float:
        deadline = time.monotonic() + PATIENCE
        while (now := progress.peek() or 0) <= than:
            self.assertLess(time.monotonic(), deadline, f"it stays at {now} rounds")
            time.sleep(0.05)
        return now

    def children(self, pid: int) -> set[int]:
        return set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))

    def test_killed_workers_are_started_again(self):
        program, progress = self.start()
        rounds = self.wait_for_more(progress, 0)
        killed = self.children(program.pid)
        self.assertEqual(len(killed), 3)
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + PATIENCE
        while len(self.children(program.pid) - killed) < 3:
            self.assertLess(time.monotonic(), deadline, "a worker is missing")
            time.sleep(0.05)
        self.wait_for_more(progress, rounds + 5)
        self.assertIsNone(program.poll())

    def test_wrong_options_are_told_in_one_sentence(self):
        for options, why in (
            ([], "give the file"),
            (["--file", "x", "--readers", "0"], "from 1 to"),
            (["--file", "x", "--file-size", "5X"], "K, M or G"),
            (["--file", "x", "--bogus"], "--bogus"),
            (["--file", "/nonesuch/file"], "No such file"),
        ):
            with self.subTest(options):
                done = subprocess.run(
                    [self.directory / "pressure", *options],
                    capture_output=True,
                    text=True,
                    check=False,
                )
                self.assertEqual(done.returncode, 1)
                self.assertIn(why, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)


if __name__ == "__main__":
    unittest.main()
