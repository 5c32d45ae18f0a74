# SPDX-License-Identifier: GPL-2.0
"""The workloads that ab knows, as data."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from vmp.common import CACHE, run, sources
from vmp.control.counters import parse_progress

PROGRAMS = CACHE / "workloads"

# Settings of all points, to compare.
STOCK = (
    "flush=stock,scan=stock,aging=continue,writeback=stock,throttle=stock,unmap=stock,young=stock"
)
ALL = "flush=batch,scan=budget,aging=async,writeback=feedback,throttle=all,unmap=batch,young=batch"

# Fields of fio's terse output, version 3: KiB read and KiB written so far.
FIO_VERSION, FIO_READ, FIO_WRITTEN = 0, 5, 46
FIO_BLOCK = 4  # KiB

# Makes the file $0, then becomes fio. A file that fio made would not be in the page cache, and a
# slow disk takes minutes to fill that until reclaim starts.
LAID_OUT_FIO = (
    'dd if=/dev/zero of="$0" bs=1M count=384 conv=fsync status=none && '
    'exec fio --filename="$0" "$@"'
)


def fio_operations(text: str) -> float | None:
    """Return the I/Os in the last whole line of fio's terse output; None if there is none."""
    lines = [line.split(";") for line in text.splitlines(keepends=True) if line.endswith("\n")]
    whole = [f for f in lines if len(f) > FIO_WRITTEN and f[FIO_VERSION] == "3"]
    return (int(whole[-1][FIO_READ]) + int(whole[-1][FIO_WRITTEN])) / FIO_BLOCK if whole else None


@dataclass(frozen=True)
class Workload:
    """A command that runs until it is killed, and what it runs in.

    In the command's words ab replaces {programs} by the directory of what tools/workloads builds,
    {directory} by where the disk is mounted, {progress} by the file to count in, {folio} by the
    size of large folios in KiB and {twice} by twice the cgroup's limit in MiB.
    """

    command: tuple[str, ...]
    title: str = ""  # for the table, where the command is too long
    program: str = ""  # what has to be installed, where it is not the command's first word
    memory: str = "64M"  # the cgroup's limit unless --memory is given
    swap: str = "any"  # "needed", "none" (it gets none) or "any"
    disk: str = ""  # the file system of the disk that it works on, if it does
    progress: Callable[[str], float | None] | None = None  # parses {progress}; None: no such file
    pages_out: bool = False  # reclaims its memory itself, or needs none: no limit is met
    # Keys of what it is there to tell: the primary figures unless others are named.
    primary: tuple[str, ...] = ("reclaim_flushes_per_1000", "scanned_per_stolen")

    def compiled(self) -> bool:
        """Tell if a program of tools/workloads is needed."""
        return any("{programs}" in word for word in self.command)

    def large(self) -> bool:
        """Tell if it is about large folios, of a size that is chosen."""
        return "{folio}" in self.command

    def words(self, places: dict[str, Path | int]) -> list[str]:
        """Return the command with the places put in; other braces stay as they are."""
        words = list(self.command)
        for name, place in places.items():
            words = [word.replace(f"{{{name}}}", str(place)) for word in words]
        return words


def pressure(options: str, title: str, memory: str, primary: tuple[str, ...]) -> Workload:
    """Return a workload of the program pressure, on a disk and without swap."""
    command = f"{{programs}}/pressure --file {{directory}}/file {options} --progress {{progress}}"
    return Workload(
        command=tuple(command.split()),
        program="make",
        title=title,
        memory=memory,
        swap="none",
        disk="ext4",
        progress=parse_progress,
        primary=primary,
    )


def large(kind: str, options: str, title: str, swap: str = "any", limit: str = "") -> Workload:
    """Return a workload of the program large; `limit` is that of memory, '' to page out itself."""
    command = f"{{programs}}/large --kind {kind} {options} --folio {{folio}} --progress"
    return Workload(
        command=(*command.split(), "{progress}", *(["--limit"] if limit else [])),
        program="make",
        title=title,
        memory=limit or "512M",
        swap=swap,
        disk="xfs" if kind == "file" else "",
        progress=parse_progress,
        pages_out=not limit,
        primary=("instructions_per_1000",),
    )


WORKLOADS = {
    "vm": Workload(
        command=tuple("stress-ng --vm 4 --vm-bytes 256M --vm-keep".split()),
        swap="needed",
    ),
    "threads": Workload(
        command=(
            *"{programs}/threads --threads 8 --size {twice} --progress".split(),
            "{progress}",
        ),
        program="make",
        title="threads: 8 of one process, writing at random to twice the limit",
        primary=("reclaim_flushes_per_1000", "reclaim_ipis_per_1000"),
        swap="needed",
        progress=parse_progress,
    ),
    "pressure": pressure(
        "--file-size 180M --readers 8 --anon-size 300M --threads 8",
        title="pressure: 8 readers of 180 MiB, 8 threads filling 300 MiB",
        memory="384M",
        primary=("scanned_per_stolen", "refault_file_per_operation", "total_wait_ms_per_1000"),
    ),
    "processes": pressure(
        "--file-size 256M --readers 1 --pause 3000 --threads 0 --sleepers 800",
        title="processes: a reader of 256 MiB beside 800 processes that sleep",
        memory="128M",
        primary=("scanned_per_stolen", "stall_p99_ms"),
    ),
    "zipf": Workload(
        command=(
            *("sh", "-c", LAID_OUT_FIO, "{directory}/file"),
            *"--name=zipf --size=384M --numjobs=4 --direct=0 --invalidate=0".split(),
            *"--rw=randrw --rwmixread=95 --bs=4k".split(),
            *"--ioengine=psync --random_distribution=zipf:1.1 --time_based --runtime=30d".split(),
            *"--group_reporting --status-interval=200ms".split(),
            *"--output-format=terse --terse-version=3 --output={progress}".split(),
        ),
        program="fio",
        title="fio zipf:1.1 on 384 MiB, 95 % reads, 4 jobs",
        memory="128M",
        swap="none",
        disk="ext4",
        progress=fio_operations,
        primary=("refault_file_per_operation", "scanned_per_stolen"),
    ),
    "large-lazyfree": large("lazyfree", "", "large folios of 16 MiB, MADV_FREE, MADV_PAGEOUT"),
    "large-anon": large("anon", "", "large folios of 16 MiB, written, MADV_PAGEOUT", "needed"),
    "large-file": large(
        "file", "--file {directory}/file", "large folios of a file of 16 MiB, mapped, MADV_PAGEOUT"
    ),
    "large-file-limit": large(
        "file",
        "--file {directory}/file --size 64",
        "large folios of a file of 64 MiB, mapped, written and read",
        limit="32M",
    ),
    "small-writes": Workload(
        command=tuple("{programs}/writes --progress {progress}".split()),
        program="make",
        title="writes of 1 KiB to 64 KiB of a file in memory",
        progress=parse_progress,
        pages_out=True,
        primary=("instructions_per_1000",),
    ),
}


def build_programs() -> Path:
    """Build the programs of tools/workloads where they are not up to date; return where."""
    PROGRAMS.mkdir(parents=True, exist_ok=True)
    run(["make", "-C", sources("workloads"), f"OUT={PROGRAMS}"], "compiling the workloads")
    return PROGRAMS
