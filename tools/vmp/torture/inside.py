# SPDX-License-Identifier: GPL-2.0
"""Torture of the kernel that this runs on: the actions and the checkers, and their verdict.

Run by the guest test `torture`, which has made the place and takes it away again.
"""

import argparse
import errno
import mmap
import os
import random
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))

from vmp.common import Failure, Parser, Usage, run_tool
from vmp.control.debugfs import KernelLog
from vmp.guest.log import find_splat
from vmp.torture import checkers
from vmp.torture.actions import KNOWN, LANES, LEFT_OUT, remove_module
from vmp.torture.checkers import Checkers
from vmp.torture.options import add_actions, chosen, options
from vmp.torture.place import CPUS, FAULTS, Place, clock, command, read, stacks, wait_until, write
from vmp.torture.races import Races
from vmp.torture.state import left, state

HANG = 300  # seconds that nothing takes, however busy the machine
OFF = 120  # seconds after which branches are off and threads are gone
KILLED = 10  # seconds after which what was killed is gone, unless it hangs
REASONS = 256  # errors that an action may be refused with
TELL = 60  # seconds after which it says again that it goes on: a guest that is silent is ended
LATE = 0.1  # seconds that a lane makes up for
FAILED_SWAP = "Write-error on swap-device"


class Lane:
    """A process that does the actions of a lane in the order that the seed gives."""

    def __init__(self, name: str, known: list[str], seed: str) -> None:
        self.name, self.known, self.seed = name, known, seed
        # Stop, when the action began, which one; then done and refused, of each.
        memory = mmap.mmap(-1, 8 * (3 + 2 * len(known)))
        self.shared: memoryview[int] = memoryview(memory).cast("Q")
        self.reasons: memoryview[int] = memoryview(mmap.mmap(-1, 8 * REASONS)).cast("Q")
        self.pid = 0
        self.seen = (0, 0.0)  # the time at which an action began, and when that was seen

    def start(self, place: Place, pages: IO[bytes], said: Path) -> None:
        """Begin."""
        self.pid = os.fork()
        if self.pid:
            return
        try:
            os.nice(-20)  # the checkers take all that there is
            self.work(place, pages)
            os._exit(0)
        except BaseException as error:
            said.write_text(f"{self.known[self.shared[2]]}: {error}")
        os._exit(1)

    def work(self, place: Place, pages: IO[bytes]) -> None:
        """Do actions until told to stop, or until who would tell is gone."""
        parent = os.getppid()
        rng = random.Random(f"{self.seed} {self.name}")
        weights = [KNOWN[name].weight for name in self.known]
        due = time.monotonic()
        while not self.shared[0] and os.getppid() == parent:
            number = rng.choices(range(len(self.known)), weights)[0]
            own = random.Random(rng.getrandbits(64))
            pause = own.random() * 2 * LANES[self.name]
            began = time.monotonic()
            self.shared[2] = number
            self.shared[1] = int(began)
            self.shared[3 + 2 * number + (not self.act(number, own, place, pages))] += 1
            self.shared[1] = 0
            # On average: a sleep is no shorter than a tick, and an action may take long.
            now = time.monotonic()
            rest = KNOWN[self.known[number]].rest * (now - began)
            due = max(due, now - LATE) + max(pause, rest)
            while not self.shared[0] and (left := due - time.monotonic()) > 0:
                time.sleep(min(left, 1))

    def act(self, number: int, own: random.Random, place: Place, pages: IO[bytes]) -> bool:
        """Do one action; tell if it was done."""
        name = self.known[number]
        run = KNOWN[name].run
        try:
            if run:
                return run(place, own)
            return os.write(pages.fileno(), f"{name} {own.getrandbits(40)}\n".encode()) > 0
        except OSError as error:
            self.reasons[(error.errno or 0) % REASONS] += 1
            return False

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return how many of each action were done, and refused."""
        numbers = self.shared[3:]
        return {name: (numbers[2 * i], numbers[2 * i + 1]) for i, name in enumerate(self.known)}

    def gone(self) -> bool:
        """Tell if it has ended, or not begun."""
        if self.pid and os.waitpid(self.pid, os.WNOHANG)[0]:
            self.pid = 0
        return not self.pid

    def hangs(self) -> str:
        """Return a sentence if an action takes too long."""
        began = self.shared[1]
        if began != self.seen[0]:
            self.seen = (began, clock())
        if began and clock() - self.seen[1] > HANG:
            where = stacks(self.pid)
            return f"a hang: '{self.known[self.shared[2]]}' takes more than {HANG} s\n{where}"
        return ""


class Torture:
    """A run: what it does, for how long, and what came of it."""

    def __init__(
        self, place: Place, arguments: argparse.Namespace, work: Path, log: KernelLog
    ) -> None:
        self.place, self.seconds, self.work, self.log = place, arguments.for_, work, log
        self.seed = arguments.seed
        asked = chosen(arguments.actions)
        missing = {name: reason for name in asked if (reason := KNOWN[name].lacks(place))}
        self.names = [name for name in asked if name not in missing]
        if not self.names:
            raise Usage("none of these actions can be done here")
        self.say(f"seed {self.seed}, {self.seconds:.0f} s, actions {','.join(self.names)}")
        for name, reason in missing.items():
            self.say(f"left out: {name}: this kernel or machine lacks {reason}")
        if LEFT_OUT:
            self.say(f"left out: {', '.join(LEFT_OUT)}: emulated CPUs can't run code with probes")
        self.checkers = Checkers(place, work, random.Random(f"{self.seed} checkers"))
        known = {lane: [n for n in self.names if KNOWN[n].lane == lane] for lane in LANES}
        self.lanes = [Lane(lane, names, str(self.seed)) for lane, names in known.items() if names]
        self.failed_swap = 0
        self.began, self.told = time.monotonic(), 0
        self.races = Races()

    def say(self, text: str) -> None:
        """Print a line."""
        print(f"torture: {text}", flush=True)

    def tell(self) -> None:
        """Say now and then that it goes on."""
        now = int(time.monotonic() - self.began)
        if now // TELL != self.told:
            self.told = now // TELL
            self.say(f"at {now} s")

    def read_log(self) -> None:
        """Raise Failure if the kernel has logged trouble."""
        lines = list(self.log.messages())
        self.failed_swap += sum(FAILED_SWAP in line for line in lines)
        self.races.note(lines)
        if splat := find_splat(lines):
            raise Failure("the kernel's log shows trouble: " + "\n".join(splat))

    def watch(self) -> None:
        """Raise Failure when something has gone wrong by now."""
        self.tell()
        self.read_log()
        self.checkers.reap()
        for lane in self.lanes:
            if hang := lane.hangs():
                raise Failure(hang)
            if lane.pid and lane.gone() and not lane.shared[0]:
                raise Failure(f"lane {lane.name} has ended: {read(self.work / lane.name)}")

    def lanes_end(self) -> bool:
        """Tell if no action runs any more."""
        self.watch()
        return all(lane.gone() for lane in self.lanes)

    def checkers_end(self) -> bool:
        """Tell if no checker runs any more."""
        self.watch()
        return not self.checkers.running

    def run(self) -> None:
        """Do all; raise Failure, in one sentence, for what is wrong."""
        command("rmmod", "vmscan_policy")
        before = self.settled()
        if not command("insmod", self.place.module):
            raise Failure("the module can't be loaded")
        version = read(Path("/sys/module/vmscan_policy/srcversion")).strip()
        self.say(f"the module's srcversion is {version}")
        self.races.begin()
        pages = self.checkers.pages()
        self.checkers.files(Path(checkers.__file__))
        self.say(f"the lanes start at {time.time():.0f}")  # seconds since 1970
        for lane in self.lanes:
            lane.start(self.place, pages, self.work / lane.name)
        self.began, self.told = time.monotonic(), 0
        while time.monotonic() - self.began < self.seconds:
            if len(self.checkers.running) < 3:
                self.checkers.start_round()
            time.sleep(0.2)
            self.watch()
        for lane in self.lanes:
            lane.shared[0] = 1
        wait_until(self.lanes_end, "a hang: an action has not ended", HANG)
        self.put_back()
        for checker in self.checkers.running:
            checker.end()
        try:
            wait_until(self.checkers_end, "a hang: a checker has not ended", HANG)
        except Failure as failure:
            rest = (f"{each.name}: {stacks(each.process.pid)}" for each in self.checkers.running)
            raise Failure("\n".join([str(failure), *rest])) from None
        self.removed(before)
        self.read_log()
        if names := self.races.ours():
            raise Failure(f"data races in functions of ours: {', '.join(names)}")

    def settled(self) -> dict[str, set[str]]:
        """Return the state of the kernel without the module, when no branch is on any more."""
        key, last = "branches that are on, by functions called", clock() + OFF
        found = state(self.place)
        while found.get(key) and clock() < last:
            self.tell()
            time.sleep(5)
            found = state(self.place)
        return found

    def removed(self, before: dict[str, set[str]]) -> None:
        """Remove the module; raise Failure if the kernel is not as it was."""
        wait_until(lambda: remove_module(self.place), "the module can't be removed", 60)
        end = clock() + OFF
        while rest := left(before, state(self.place)):
            if clock() > end:
                raise Failure(f"after rmmod the kernel is not as before insmod: {rest}")
            self.tell()
            time.sleep(5)

    def put_back(self) -> None:
        """Undo what actions leave in force."""
        values = dict.fromkeys(CPUS.glob("cpu[0-9]*/online"), "1")
        values |= {fault / "probability": "0" for fault in FAULTS if fault.exists()}
        for cgroup in (self.place.checked, self.place.tight):
            values[cgroup / "memory.high"] = "max"
            # What is protected can't be reclaimed, to see what is called then.
            values |= {cgroup / "memory.min": "0", cgroup / "memory.low": "0"}
        for path, value in values.items():
            with suppress(OSError):
                write(path, value)
        if self.place.swap not in read(Path("/proc/swaps")):
            command("swapon", self.place.swap)

    def report(self) -> None:
        """Say how often what was done."""
        counts: dict[str, tuple[int, int]] = {}
        for lane in self.lanes:
            counts |= lane.counts()
        # What was told to the checkers is what they have done.
        counts |= {name: did for name, did in self.checkers.operations.items() if name in counts}
        done = (f"{name} {yes}/{no}" for name, (yes, no) in counts.items())
        self.say(f"actions, done/refused: {', '.join(done)}")
        for lane in self.lanes:
            refusals = [f"{errno.errorcode.get(number, 'gone')} {count}"
                        for number, count in enumerate(lane.reasons) if count]  # fmt: skip
            if refusals:
                self.say(f"lane {lane.name}: refused with {', '.join(refusals)}")
        faults = {
            "failed writes to swap (that the log tells of)": self.failed_swap,
            "failed writes to a disk": counts.get("disk-faults", (0, 0))[0],
            "processes with failed allocations": counts.get("allocation-faults", (0, 0))[0],
        }  # fmt: skip
        self.say("faults: " + ", ".join(f"{count} {name}" for name, count in faults.items()))
        checked = (f"{count} {name}" for name, count in sorted(self.checkers.counts.items()))
        self.say(f"checked: {', '.join(checked)}")
        if self.races.there:
            self.say(self.races.said())

    def abandon(self) -> None:
        """End what still runs, and wait for it, though not for what hangs."""
        running = [each.process for each in self.checkers.running]

        def ended() -> bool:
            lanes_end = all(lane.gone() for lane in self.lanes)
            return lanes_end and all(process.poll() is not None for process in running)

        for lane in self.lanes:
            if not lane.gone():
                os.kill(lane.pid, signal.SIGKILL)
        for process in running:
            process.kill()
        with suppress(Failure):
            wait_until(ended, "what was killed runs", KILLED)
        self.put_back()


def main() -> int:
    """Torture, and return 0 if all has held."""
    parser = Parser(prog="inside")
    options(parser)
    add_actions(parser)
    for name in ("policy", "module", "programs", "top", "files", "work"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in ("swap", "faulty-swap", "faulty-disk", "plugin", "bpf"):
        parser.add_argument(f"--{name}", default="")
    arguments = parser.parse_args()
    place = Place(arguments.policy, arguments.module, arguments.programs, arguments.top,
                  arguments.files, arguments.swap, arguments.faulty_swap,
                  arguments.faulty_disk, arguments.plugin, arguments.bpf)  # fmt: skip
    with KernelLog() as log:
        torture = Torture(place, arguments, arguments.work, log)
        try:
            torture.run()
        except BaseException:
            torture.abandon()
            raise
        finally:
            torture.report()
    torture.say("all has held")
    return 0


if __name__ == "__main__":
    run_tool("torture", main)
