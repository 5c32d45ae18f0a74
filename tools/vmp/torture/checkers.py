# SPDX-License-Identifier: GPL-2.0
"""The programs that check data while torture goes on, all in one memory cgroup."""

import fcntl
import mmap
import os
import random
import re
import signal
import subprocess
import sys
import zlib
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))

from vmp.common import Failure
from vmp.torture.place import Place

KILLED = "a child died of signal 9"  # what one says whose child was killed
WRONG_DATA = 3  # exit status of a checker that has found some
SECONDS = 10  # of one that is started again and again
ROUNDS = (
    ("lostwrite", "anon", str(SECONDS)),
    ("lostwrite", "shmem", str(SECONDS)),
    ("lostwrite", "large", str(SECONDS)),
    ("uffd-move", str(SECONDS), "0"),
)
FILES, MOST = 12, 1 << 20  # files with checksums, bytes of each
# What a checker says in the end, and what that counts.
SAID = (
    (re.compile(r"^checked (\S+) (\d+)$", re.M), "pages of "),
    (re.compile(r"^()\d+ of (\d+) writes lost$", re.M), "writes through stale TLB entries"),
    (re.compile(r"^()(\d+) moves, ", re.M), "pages moved by UFFDIO_MOVE"),
    (re.compile(r"^files (\S+) (\d+)$", re.M), "files "),
)
DID = re.compile(r"^did (\S+) (\d+) (\d+)$", re.M)


def check_files(directory: Path, seed: str) -> None:
    """Write files and compare checksums until stdin ends; exit with WRONG_DATA on a wrong one."""
    rng, counts = random.Random(seed), Counter[str]()
    sums: dict[Path, int] = {}
    os.set_blocking(0, False)
    while True:
        with suppress(BlockingIOError):
            if not os.read(0, 1):
                break
        path = directory / f"sum-{rng.randrange(FILES)}"
        if path in sums and rng.random() < 0.6:
            descriptor = os.open(path, os.O_RDONLY)
            if rng.random() < 0.5:  # from the disk
                os.fsync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            data = os.read(descriptor, MOST + 1)
            os.close(descriptor)
            if zlib.crc32(data) != sums[path]:
                print(f"the checksum of {path.name} is wrong", flush=True)
                os._exit(WRONG_DATA)
            counts["read"] += 1
            continue
        data = rng.randbytes(4096) * rng.randrange(1, MOST // 4096)
        with path.open("wb", 0) as file:
            file.write(data)
        sums[path] = zlib.crc32(data)
        counts["written"] += 1
    print(*(f"files {name} {count}" for name, count in counts.items()), sep="\n", flush=True)


@dataclass
class Checker:
    """A program that runs; its stdin ends it, or time does."""

    name: str
    process: subprocess.Popen[bytes]
    output: Path
    killable: bool = False  # by the OOM killer

    def end(self) -> None:
        """Have it end."""
        if self.process.stdin:
            with suppress(OSError):
                self.process.stdin.close()

    def judge(self) -> None:
        """Raise Failure, in one sentence, when it has ended otherwise than it should."""
        status, said = self.process.wait(), self.text().strip().splitlines()
        last = f": {said[-1]}" if said else ""
        if status == WRONG_DATA:
            raise Failure(f"wrong data: {self.name}{last}")
        if self.killable and (status == -signal.SIGKILL or last.endswith(KILLED)):
            return
        if status == -signal.SIGKILL:
            raise Failure(f"a checker was killed, as by the OOM killer: {self.name}")
        if status:
            raise Failure(f"a checker ended with status {status}: {self.name}{last}")

    def text(self) -> str:
        """Return what it has said."""
        return self.output.read_text(errors="replace")


@dataclass
class Checkers:
    """All that run, and what those that have ended have counted."""

    place: Place
    work: Path  # a directory for what they say
    rng: random.Random
    running: list[Checker] = field(default_factory=list)
    started: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    operations: dict[str, tuple[int, int]] = field(default_factory=dict)  # done, refused

    def start(self, cgroup: Path, name: str, *words: str | Path) -> Checker:
        """Start a program in a cgroup."""
        self.started += 1
        output = self.work / f"checker-{self.started}"
        script = 'echo 0 >"$1/cgroup.procs" && shift && exec "$@"'
        command = ["sh", "-c", script, "sh", str(cgroup), *map(str, words)]
        with output.open("wb") as file:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=file, stderr=file, bufsize=0,
            )  # fmt: skip
        self.running.append(Checker(name, process, output, cgroup == self.place.tight))
        return self.running[-1]

    def start_round(self) -> None:
        """Start the next of those that don't run all the time."""
        program, *words = self.rng.choice(ROUNDS)
        name = f"{program} {words[0]}"
        # Whoever takes its CPU flushes the TLB entries that it is about; yet others have work, too.
        nice = self.rng.choice(("0", "-20"))
        self.start(
            self.place.tight, name, "nice", "-n", nice, self.place.programs / program, *words
        )

    def pages(self) -> IO[bytes]:
        """Start the program that operations are for; return what takes them."""
        checker = self.start(
            self.place.checked, "torture", self.place.programs / "torture", self.place.files
        )
        assert checker.process.stdin
        os.set_blocking(checker.process.stdin.fileno(), False)
        # Few wait in it: they are done before the program ends.
        fcntl.fcntl(checker.process.stdin, fcntl.F_SETPIPE_SZ, mmap.PAGESIZE)
        return checker.process.stdin

    def files(self, script: Path) -> None:
        """Start the one of files, which is this file as a program."""
        seed = str(self.rng.getrandbits(64))
        self.start(self.place.checked, "files", "python3", script, self.place.files, seed)

    def reap(self) -> None:
        """Judge and count those that have ended."""
        for checker in [each for each in self.running if each.process.poll() is not None]:
            self.running.remove(checker)
            checker.judge()
            text = checker.text()
            for pattern, what in SAID:
                for name, number in pattern.findall(text):
                    self.counts[what + name] += int(number)
            for name, done, refused in DID.findall(text):
                self.operations[name] = int(done), int(refused)
            checker.output.unlink()


if __name__ == "__main__":
    check_files(Path(sys.argv[1]), sys.argv[2])
