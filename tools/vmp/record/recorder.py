# SPDX-License-Identifier: GPL-2.0
"""Recording the module's trace events, and the kernel's that go with them, by trace-cmd."""

import errno
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path

from vmp.common import SETUP, Failure, find_tracefs
from vmp.control.marker import RECORDING
from vmp.record import children

MODULE_EVENTS = "vmscan_policy"
# One for each large folio, of which there can be many. The kinds are in the order of the kernel's.
FOLIO_EVENTS = ("unmap_folio", "young_folio")
FOLIO_KINDS = ("anon", "lazyfree", "file")
# Rare enough to record them all, or thinned out by a filter. A kernel may lack some.
KERNEL_EVENTS = {
    "vmscan:mm_vmscan_direct_reclaim_begin": "",
    "vmscan:mm_vmscan_direct_reclaim_end": "",
    "vmscan:mm_vmscan_memcg_reclaim_begin": "",
    "vmscan:mm_vmscan_memcg_reclaim_end": "",
    "vmscan:mm_vmscan_lru_shrink_inactive": "",
    "vmscan:mm_vmscan_throttled": "",
    "vmscan:mm_vmscan_kswapd_wake": "",
    "vmscan:mm_vmscan_kswapd_sleep": "",
    "vmscan:mm_vmscan_wakeup_kswapd": "",
    "writeback:writeback_queue": "",
    "writeback:writeback_start": "",
    "writeback:writeback_written": "",
    "writeback:balance_dirty_pages": "",
    "oom:mark_victim": "",
    "tlb:tlb_flush": "reason==4",  # TLB_REMOTE_SEND_IPI; the others come at each task switch
}
START_TIMEOUT = 120  # seconds for trace-cmd to begin
REMOVE_TIMEOUT = 20  # seconds
SETTLE_TRIES = 20
LOSSES = ("overrun", "commit overrun", "dropped events")


def parse_folios(text: str) -> list[str]:
    """Return the kinds of folio that are listed; raise Failure for another one."""
    kinds = [] if text == "none" else text.split(",")
    for kind in kinds:
        if kind not in FOLIO_KINDS:
            raise Failure(
                f"'{kind}' is no kind of folio: allowed are {', '.join(FOLIO_KINDS)}, with a comma "
                "between them, or none"
            )
    return kinds


def lacks_folios(kinds: list[str]) -> bool:
    """Tell if a recording of these kinds of folio lacks some."""
    return not {*FOLIO_KINDS} <= {*kinds}


def parse_cpu_stats(text: str) -> tuple[int, int]:
    """Return the events recorded and lost on a CPU, from its `stats` file.

    Recorded are those in the buffer and those that were read from it.
    """
    stats = {m[1]: int(m[2]) for m in re.finditer(r"^([a-z ]+): (\d+)$", text, re.MULTILINE)}
    recorded = stats.get("entries", 0) + stats.get("read events", 0)
    return recorded, sum(stats.get(name, 0) for name in LOSSES)


def lost_sentence(lost: dict[int, int], buffer: int) -> str:
    """Return what to say of the events lost on each CPU, with a `buffer` of so many bytes."""
    total = sum(lost.values())
    each = ", ".join(f"CPU {cpu}: {count}" for cpu, count in sorted(lost.items()) if count)
    verb = "event was" if total == 1 else "events were"
    larger = f"{buffer * 4 >> 10}K" if buffer * 4 % (1 << 20) else f"{buffer * 4 >> 20}M"
    return f"{total} {verb} lost ({each}): try --buffer {larger}"


def told_error(text: str, status: int) -> str:
    """Return the error that ends what trace-cmd wrote to stderr, or else its exit status.

    It writes `trace-cmd: No space left on device` and, below that, what it was doing.
    """
    _, mark, rest = text.rpartition("trace-cmd: ")
    if mark and status > 0:
        return ": ".join(line.strip() for line in rest.splitlines() if line.strip())
    return f"exit status {status}" if status >= 0 else f"killed by {signal.Signals(-status).name}"


def require_events(tracefs: Path) -> None:
    """Raise Failure unless events can be recorded, and the module's are among them."""
    try:
        os.close(os.open(tracefs / "set_event", os.O_WRONLY | os.O_APPEND))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise Failure(f"no right to record: {tracefs / 'set_event'}: {reason}") from None
    if not (tracefs / "events" / MODULE_EVENTS).is_dir():
        raise Failure(
            "the module that is loaded has no trace events: load the present vmscan_policy, on a "
            "kernel built with CONFIG_TRACING"
        )


def module_events(tracefs: Path, kinds: list[str]) -> dict[str, str]:
    """Return the module's events and their filters: large folios only of these kinds."""
    wanted = "||".join(f"kind=={FOLIO_KINDS.index(kind)}" for kind in kinds)
    if not lacks_folios(kinds):
        wanted = ""
    found = {}
    for file in sorted((tracefs / "events" / MODULE_EVENTS).glob("*/enable")):
        name = file.parent.name
        if name not in FOLIO_EVENTS:
            found[f"{MODULE_EVENTS}:{name}"] = ""
        elif kinds:
            found[f"{MODULE_EVENTS}:{name}"] = wanted
    return found


def event_options(tracefs: Path, kinds: list[str]) -> list[str]:
    """Return trace-cmd's options for the module's events and those of the kernel that exist."""
    options = []
    for event, condition in (module_events(tracefs, kinds) | KERNEL_EVENTS).items():
        if (tracefs / "events" / event.replace(":", "/")).is_dir():
            options += ["-e", event]
            options += ["-f", condition] if condition else []
    return options


class Recorder:
    """One recording by trace-cmd in a trace instance of its own.

    Recording begins when the context is entered. `stop` ends it, `save` makes the file; without
    that nothing is kept.
    """

    def __init__(self, output: Path, buffer: int, kinds: list[str]) -> None:
        """Choose the file, the size of a CPU's buffer in bytes, and folios; change nothing.

        Raises Failure when nothing can be recorded or there is no directory for the file.
        """
        self.output = output
        self.kilobytes = max(buffer >> 10, 1)
        self.kinds = kinds
        if not shutil.which("trace-cmd"):
            raise Failure(f"trace-cmd is not installed: {SETUP}")
        self.tracefs = find_tracefs()
        require_events(self.tracefs)
        self.lock = os.open(self.tracefs, os.O_RDONLY)  # until this process ends
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Failure("another record is at work: wait for its end") from None
        self.instance = self.tracefs / RECORDING
        if not output.absolute().parent.is_dir():
            raise Failure(f"there is no directory for {output}: make it first")
        if output.is_dir():
            raise Failure(f"{output} is a directory: name a file with -o")

    def read(self, name: str) -> str:
        """Return the text of a file of the instance, without the line end."""
        return (self.instance / name).read_text().strip()

    def __enter__(self) -> "Recorder":
        with ExitStack() as stack:
            # In the output's directory, so that the file needs no copy, and nothing is left there.
            parent = self.output.absolute().parent
            directory = tempfile.TemporaryDirectory(dir=parent, prefix=".record.")
            self.file = Path(stack.enter_context(directory)) / "trace.dat"
            self.log = stack.enter_context(tempfile.TemporaryFile("w+"))
            self.remove_instance()  # of a record that was killed
            stack.callback(self.remove_instance)
            command = ["trace-cmd", "record", "-o", str(self.file)]
            command += ["-B", self.instance.name, "-C", "mono"]
            command += ["-b", str(self.kilobytes), *event_options(self.tracefs, self.kinds)]
            self.process = children.start(
                ["setpriv", "--pdeathsig", "INT", *command],  # it must not outlive us
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self.log,
            )
            stack.callback(self.end_trace_cmd)
            self.wait_for_start()
            self.undo = stack.pop_all()
        return self

    def recording(self) -> bool:
        """Tell if trace-cmd has set up all and recording is on, which it switches on last."""
        with suppress(OSError):  # the instance may not be there yet
            on = self.read(f"events/{MODULE_EVENTS}/enable") != "0"  # X: some of them
            return on and self.read("tracing_on") == "1"
        return False

    def wait_for_start(self) -> None:
        """Wait until events are recorded; raise Failure when trace-cmd doesn't get that far."""
        deadline = time.monotonic() + START_TIMEOUT
        while not self.recording():
            self.require_alive()
            if time.monotonic() > deadline:
                raise Failure(f"trace-cmd did not begin to record within {START_TIMEOUT} s")
            number = children.wait(0.05)
            if number:
                sys.exit(128 + number)
        if int(self.read("buffer_size_kb")) < self.kilobytes:  # trace-cmd goes on with less
            raise Failure(
                f"the kernel gives no buffer of {self.kilobytes} KiB for each CPU: choose a "
                "smaller --buffer"
            )

    def why(self) -> str:
        """Return why trace-cmd ended."""
        self.log.seek(0)
        return told_error(self.log.read(), self.process.returncode)

    def require_alive(self) -> None:
        """Raise Failure when trace-cmd has ended, which it is not to do by itself."""
        if self.process.poll() is not None:
            raise Failure(f"trace-cmd ended before the recording did: {self.why()}")

    def counts(self) -> dict[int, tuple[int, int]]:
        """Return the events recorded and lost on each CPU."""
        files = self.instance.glob("per_cpu/cpu*/stats")
        return {int(file.parent.name[3:]): parse_cpu_stats(file.read_text()) for file in files}

    def stop(self) -> None:
        """Record no more."""
        (self.instance / "tracing_on").write_text("0")

    def save(self) -> dict[int, tuple[int, int]]:
        """Make the file, after `stop`, and return the events recorded and lost on each CPU.

        Raises Failure when trace-cmd fails; then a former file is as it was.
        """
        self.require_alive()
        counts = self.counts()
        for _ in range(SETTLE_TRIES):  # what trace-cmd takes just then may be counted twice
            before, counts = counts, self.counts()
            if before == counts:
                break
        self.process.send_signal(signal.SIGINT)
        if self.process.wait() or not self.file.exists():
            raise Failure(f"trace-cmd failed: {self.why()}")
        self.file.replace(self.output)
        return counts

    def end_trace_cmd(self) -> None:
        """End trace-cmd if it still runs."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        if self.process.wait():
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def remove_instance(self) -> None:
        """Remove the instance where trace-cmd has not, which is the last that it does."""
        deadline = time.monotonic() + REMOVE_TIMEOUT
        while self.instance.is_dir():
            try:
                self.instance.rmdir()
            except OSError as error:  # a process that was killed may hold it for a moment
                if error.errno != errno.EBUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def __exit__(self, *_: object) -> None:
        self.undo.close()
