# SPDX-License-Identifier: GPL-2.0
"""The memory cgroup that a workload runs in."""

import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from vmp.common import Failure, size_text
from vmp.control.cgroups import cgroup2_root
from vmp.control.counters import parse_pairs

FREEZE_TIMEOUT = 30  # seconds


class Cgroup:
    """A memory cgroup whose tasks are not ours: it is only looked at."""

    def __init__(self, path: Path) -> None:
        """Choose the cgroup's directory."""
        self.path = path

    def require_alive(self) -> None:
        """Raise Failure when no task is left in the cgroup."""
        if not (self.path.exists() and "populated 1" in (self.path / "cgroup.events").read_text()):
            raise Failure(f"no task is in {self.path} any more")

    def stolen(self) -> int:
        """Return the pages that reclaim has taken from the cgroup."""
        text = (self.path / "memory.stat").read_text()
        return parse_pairs(text, ["pgsteal"]).get("pgsteal", 0)

    def limit(self) -> int | None:
        """Return the cgroup's own limit in bytes, None without one."""
        text = (self.path / "memory.max").read_text().strip()
        return None if text == "max" else int(text)

    def frozen(self) -> AbstractContextManager[None]:
        """Return a context that stops the tasks if they are ours."""
        return nullcontext()


def existing(text: str) -> Cgroup:
    """Return the cgroup of that path, absolute or below the root; raises Failure if it is none."""
    root = cgroup2_root()
    path = root / text.removeprefix(str(root)).strip("/")
    if path == root or not (path / "memory.stat").exists():
        raise Failure(
            f"{text} is no memory cgroup: name a directory below {root} that has a memory.stat, "
            "such as system.slice/NAME.service"
        )
    found = Cgroup(path)
    found.require_alive()
    return found


class Memcg(Cgroup):
    """A fresh memory cgroup with a limit, and the workload in it.

    As a context it removes the cgroup at the end, and kills all that runs in it before.
    """

    def __init__(self, name: str, limit: int, swap: bool) -> None:
        """Choose the cgroup's name, its memory.max in bytes and if it may swap; make nothing."""
        self.root = cgroup2_root()
        super().__init__(self.root / name)
        self.most = limit
        self.swap = swap
        self.child: subprocess.Popen[bytes] | None = None
        self.output = tempfile.TemporaryFile()

    def __enter__(self) -> "Memcg":
        (self.root / "cgroup.subtree_control").write_text("+memory")
        self.path.mkdir()
        return self

    def start(self, command: list[str]) -> None:
        """Start the workload inside the cgroup; its output is kept for the error message."""
        (self.path / "memory.max").write_text(str(self.most))
        swap_max = self.path / "memory.swap.max"
        if not self.swap and swap_max.exists():  # a kernel without swap has no such file
            swap_max.write_text("0")
        procs = self.path / "cgroup.procs"
        try:
            self.child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self.output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=lambda: procs.write_text("0"),
            )
        except OSError as error:
            raise Failure(
                f"cannot start the workload '{command[0]}': {(error.strerror or '').lower()}"
            ) from None

    def require_alive(self) -> None:
        """Raise Failure when the workload has ended."""
        status = self.child.poll() if self.child else None
        if status is None:
            return
        events = parse_pairs((self.path / "memory.events").read_text(), ["oom_kill"])
        if events.get("oom_kill") and status == -signal.SIGKILL:
            raise Failure(
                f"an OOM kill in its memory cgroup of {size_text(self.most)} ended the workload; "
                "it has to run until it is killed by this program"
            )
        self.output.seek(0)
        last = self.output.read().decode(errors="replace").strip().rpartition("\n")[2]
        raise Failure(
            f"the workload ended with status {status} during the run; it has to run until it is "
            f"killed" + (f"; its last line was: {last}" if last else "")
        )

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop all tasks in the cgroup, as soon as each leaves the kernel, and let them go on."""
        freezer = self.path / "cgroup.freeze"
        freezer.write_text("1")
        try:
            deadline = time.monotonic() + FREEZE_TIMEOUT
            while "frozen 1" not in (self.path / "cgroup.events").read_text():
                if time.monotonic() > deadline:
                    raise Failure(f"the workload's tasks don't stop within {FREEZE_TIMEOUT} s")
                time.sleep(0.01)
            yield
        finally:
            freezer.write_text("0")

    def __exit__(self, *_: object) -> None:
        if self.path.exists():
            (self.path / "cgroup.kill").write_text("1")
            if self.child:
                self.child.wait()
            deadline = time.monotonic() + 60
            while "populated 1" in (self.path / "cgroup.events").read_text():
                if time.monotonic() > deadline:
                    raise Failure(f"tasks in {self.path} do not end: look at them and rmdir it")
                time.sleep(0.05)
            self.path.rmdir()
        self.output.close()
