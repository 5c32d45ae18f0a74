# SPDX-License-Identifier: GPL-2.0
"""Tests of the table of workloads, of choosing a disk, and of the programs that they run."""

import os
import signal
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from vmp.ab import disk, workloads
from vmp.common import Failure, Words, parse_size, sources
from vmp.control import counters

PATIENCE = 60  # seconds: the machine may be busy


def test_places_are_put_in_and_other_braces_stay() -> None:
    workload = workloads.Workload(("awk", "{print}", "{directory}/file"))
    assert workload.words({"directory": Path("/mnt")}) == ["awk", "{print}", "/mnt/file"]
    assert not workload.compiled()


@pytest.mark.parametrize("name", workloads.WORKLOADS)
def test_each_has_what_its_command_names(name: str) -> None:
    workload = workloads.WORKLOADS[name]
    text = " ".join(workload.command)
    assert bool(workload.disk) == ("{directory}" in text)
    assert (workload.progress is not None) == ("{progress}" in text)
    assert workload.swap in ("needed", "none", "any")
    parse_size(workload.memory)


@pytest.mark.parametrize(
    ("device", "why"), [("/dev/null", "no block device"), ("/dev/nonesuch", "there is no")]
)
def test_only_a_blank_disk_is_taken(device: str, why: str) -> None:
    with pytest.raises(Failure, match=why):
        disk.require_blank(Path(device))


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where the programs are, which are built for these tests."""
    place = tmp_path_factory.mktemp("programs")
    subprocess.run(["make", "-s", "-C", sources("workloads"), f"OUT={place}"], check=True)
    return place


@pytest.fixture
def pressure(programs: Path) -> Path:
    """Return the program of that name."""
    return programs / "pressure"


@pytest.fixture
def threads(programs: Path) -> Path:
    """Return the program of that name."""
    return programs / "threads"


@pytest.fixture
def running(
    pressure: Path, tmp_path: Path
) -> Iterator[tuple[subprocess.Popen[bytes], counters.ProgressFile]]:
    """Run the program for a test."""
    progress = tmp_path / "progress"
    sizes = "--file-size 3M --readers 2 --anon-size 3M --threads 2 --progress".split()
    program = subprocess.Popen([pressure, "--file", tmp_path / "file", *sizes, progress])
    yield program, counters.ProgressFile(progress)
    program.kill()
    program.wait()


def wait_until(happens: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happens():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.05)


def wait_for_more(progress: counters.ProgressFile, than: float) -> float:
    deadline = time.monotonic() + PATIENCE
    while (now := progress.peek() or 0) <= than:
        assert time.monotonic() < deadline, f"it stays at {now} rounds"
        time.sleep(0.05)
    return now


def workers(pid: int) -> set[int]:
    return set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def test_killed_workers_are_started_again(
    running: tuple[subprocess.Popen[bytes], counters.ProgressFile],
) -> None:
    program, progress = running
    rounds = wait_for_more(progress, 0)
    killed = workers(program.pid)
    assert len(killed) == 3
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: len(workers(program.pid) - killed) >= 3, "a worker is missing")
    wait_for_more(progress, rounds + 5)
    assert program.poll() is None


def test_threads_do_not_pause_with_readers(pressure: Path, tmp_path: Path) -> None:
    # A reader of 1 s a MiB takes 5 min for 100 rounds.
    sizes = "--file-size 3M --readers 1 --pause 1000000 --anon-size 3M --threads 1 --anon-pause 0"
    program = subprocess.Popen(
        [pressure, "--file", tmp_path / "file", *sizes.split(), "--progress", tmp_path / "progress"]
    )
    try:
        wait_for_more(counters.ProgressFile(tmp_path / "progress"), 100)
    finally:
        program.kill()
        program.wait()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("", "give the file"),
        ("--file x --readers 0", "from 1 to"),
        ("--file x --file-size 5X", "K, M or G"),
        ("--file x --bogus", "--bogus"),
        ("--file /nonesuch/file", "No such file"),
    ],
)
def test_wrong_options_are_told_in_one_sentence(pressure: Path, options: str, why: str) -> None:
    done = subprocess.run([pressure, *options.split()], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert why in done.stderr
    assert done.stderr.count("\n") == 1


def faults(task: Path) -> int:
    return int((task / "stat").read_text().rpartition(")")[2].split()[7])


def ended(pid: int) -> bool:
    """Tell if a process is no more, or waits for its parent to look at it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.fixture
def writing(
    threads: Path, tmp_path: Path
) -> Iterator[tuple[subprocess.Popen[bytes], counters.ProgressFile]]:
    """Run the program for a test, until it has begun to count."""
    progress = counters.ProgressFile(tmp_path / "progress")
    sizes = "--threads 3 --size 8 --progress".split()
    program = subprocess.Popen([threads, *sizes, progress.path])
    try:
        wait_for_more(progress, 0)
        yield program, progress
    finally:
        program.kill()
        program.wait()


def test_all_memory_is_written_to_before_threads_count(
    writing: tuple[subprocess.Popen[bytes], counters.ProgressFile],
) -> None:
    program, progress = writing
    (writer,) = workers(program.pid)
    found = {int(task.name): faults(task) for task in Path(f"/proc/{writer}/task").iterdir()}
    assert len(found) == 4
    assert found.pop(writer) >= 2048
    assert sum(found.values()) < 200
    wait_for_more(progress, progress.read())


def test_threads_that_are_killed_are_started_again(
    writing: tuple[subprocess.Popen[bytes], counters.ProgressFile],
) -> None:
    program, progress = writing
    (killed,) = workers(program.pid)
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: bool(workers(program.pid) - {killed}), "no other process")
    wait_for_more(progress, progress.read())
    assert program.poll() is None


def test_threads_end_with_the_one_that_watches(
    writing: tuple[subprocess.Popen[bytes], counters.ProgressFile],
) -> None:
    program, _ = writing
    (writer,) = workers(program.pid)
    program.kill()
    wait_until(lambda: ended(writer), "it goes on")


@pytest.mark.parametrize(
    ("program", "options", "why"),
    [
        ("threads", "--size 0", "from 1 to"),
        ("threads", "--threads 2x", "from 1 to"),
        ("threads", "--bogus", "--bogus"),
        ("threads", "more", "'more'"),
        ("threads", "--size 1 --progress /nonesuch/file", "No such file"),
        ("writes", "--size 0", "from 1 to"),
        ("writes", "--size 1", "--progress is missing"),
        ("writes", "--progress /nonesuch/file", "No such file"),
        ("writes", "--progress x more", "'more'"),
    ],
)
def test_wrong_options_of_others_are_told_in_one_sentence(
    programs: Path, program: str, options: str, why: str
) -> None:
    words: list[str | Path] = [programs / program, *options.split()]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert why in done.stderr
    assert done.stderr.count("\n") == 1


DOCUMENT = 1024
Served = Callable[..., tuple[dict[int, int], list[int]]]


@pytest.fixture
def served(programs: Path, tmp_path: Path) -> Served:
    """Return what runs docstore with one client until its log has 1,000 records.

    That returns how often the file says that each document was changed, and the documents in the
    order in which they were.
    """

    def serve(*options: str) -> tuple[dict[int, int], list[int]]:
        words = "--size 8M --cache 1M --clients 1 --log-size 1G --directory".split()
        log = tmp_path / "log"
        log.unlink(missing_ok=True)
        program = subprocess.Popen([programs / "docstore", *words, tmp_path, *options])
        try:
            wait_until(lambda: log.exists() and log.stat().st_size >= 1000 * DOCUMENT, "no changes")
        finally:
            program.kill()
            program.wait()
        data, changes = (path.read_bytes() for path in (tmp_path / "data", log))
        found = {}
        for number, at in enumerate(range(0, len(data), DOCUMENT)):
            stored, changed = struct.unpack_from("QQ", data, at)
            assert stored == number
            found[number] = changed
        return found, [record for record, *_ in struct.iter_unpack(f"Q{DOCUMENT - 8}x", changes)]

    return serve


def test_stores_of_one_seed_change_the_same_documents(served: Served) -> None:
    (_, some), (_, same), (_, others) = served(), served(), served("--seed", "2")
    assert some[:1000] == same[:1000] != others[:1000]
    assert len(set(some)) < 0.9 * len(some), "all are asked for alike"


def test_changes_are_paced_by_reads(served: Served) -> None:
    (_, many), (_, few) = served("--update-every", "5"), served("--update-every", "50")
    count = min(len(many) // 10, len(few))
    assert many[9::10][:count] == few[:count]


def test_changes_reach_the_file_and_the_log(served: Served) -> None:
    """Those that are not in the file yet are in the cache: as much as may be changed there."""
    stored, logged = served()
    assert 0 < sum(stored.values()) < len(logged)
    assert all(logged.count(number) >= count for number, count in stored.items() if count)
    missing = {number // 32 for number in set(logged) if logged.count(number) > stored[number]}
    assert len(missing) <= 3, "more blocks are changed than 5 % of 32, and those under way"


def test_the_log_begins_anew(programs: Path, tmp_path: Path) -> None:
    words = "--size 1M --cache 1M --update-every 1 --log-size 64K --progress".split()
    progress = counters.ProgressFile(tmp_path / "progress")
    command: Words = [programs / "docstore", *words, progress.path, "--directory", tmp_path]
    program = subprocess.Popen(command)
    try:
        wait_for_more(progress, 200)
        sizes = {(tmp_path / "log").stat().st_size}
        while len(sizes) < 9:
            assert program.poll() is None
            sizes.add((tmp_path / "log").stat().st_size)
        assert max(sizes) <= 64 << 10
    finally:
        program.kill()
        program.wait()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("", "--directory"),
        ("--directory /nonesuch", "No such file"),
        ("--directory x --zipf 1", "above 0 and below 1"),
        ("--directory x --block 5K", "power of two"),
        ("--directory x --cache 1", "K, M or G"),
        ("--bogus", "--bogus"),
        ("more", "'more'"),
    ],
)
def test_wrong_options_of_docstore_are_told_in_one_sentence(
    programs: Path, options: str, why: str
) -> None:
    command: Words = [programs / "docstore", *options.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert why in done.stderr
    assert done.stderr.count("\n") == 1
