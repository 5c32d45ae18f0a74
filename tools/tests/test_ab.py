# SPDX-License-Identifier: GPL-2.0
"""Tests of what vmscanctl and ab compute: parsing, checking of settings, statistics, the table."""

import itertools
import json
import random
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from vmp.ab import command, plan, stalls, workloads
from vmp.ab.run import Run
from vmp.common import Failure, Parser, Usage, mount_points, parse_size
from vmp.control import counters, debugfs
from vmp.control.debugfs import Assignment, Control
from vmp.result import file
from vmp.result.model import Result

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


def test_interrupts_are_summed_over_cpus() -> None:
    assert counters.parse_interrupts(INTERRUPTS) == {"CAL": 113151 + 109404, "TLB": 9604 + 9440}
    assert counters.parse_interrupts(INTERRUPTS, ("ERR", "24")) == {"ERR": 0, "24": 1}


def test_only_wanted_names_are_taken() -> None:
    wanted = ["nr_vmscan_write", "pgscan_anon", "absent"]
    assert counters.parse_pairs(VMSTAT, wanted) == {"nr_vmscan_write": 7, "pgscan_anon": 12}


def test_progress_is_the_last_number() -> None:
    assert counters.parse_progress("round 3\nops: 1250.5 done\n") == 1250.5
    assert counters.parse_progress("starting") is None
    with pytest.raises(Failure, match="2.14748e.09: print all of its digits"):
        counters.ProgressCommand("echo 2.14748e+09").peek()


def test_progress_is_read_from_the_end_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    progress = counters.ProgressFile(tmp_path / "progress")
    assert progress.peek() is None
    monkeypatch.setattr(time, "sleep", lambda _: None)
    with pytest.raises(Failure, match="has no number"):
        progress.read()
    progress.path.write_text("7\n" * counters.PROGRESS_TAIL + "8.5\n")
    assert progress.read() == 8.5


def test_fio_tells_its_operations_in_whole_lines() -> None:
    operations = (46784 + 2416) / 4
    assert workloads.fio_operations(f"{FIO}\n") == operations
    assert workloads.fio_operations(f"{FIO}\n{FIO.replace('4', '5')}") == operations
    assert workloads.fio_operations(FIO) is None
    assert workloads.fio_operations("fio: warning\n") is None


def test_stalls_are_pairs_of_one_task_and_kind() -> None:
    begun: stalls.Begun = {}
    assert [wait.end - wait.begin for wait in stalls.waits(TRACE, begun)] == [999_999, 250]
    assert stalls.waits("", {}) == []


def trace(*edges: tuple[int, str], pid: int = 1) -> str:
    """Return a trace of one task: microseconds after the first second, and the edge."""
    line = "x-{} [000] ..... 1.{:06}: mm_vmscan_memcg_reclaim_{}: x\n"
    return "".join(line.format(pid, time, edge) for time, edge in edges)


def test_a_second_begin_counts() -> None:
    text = trace((100, "begin"), (500, "begin"), (600, "end"), (900, "end"))
    assert [wait.end - wait.begin for wait in stalls.waits(text, {})] == [100]


SECOND = 1_000_000


def slices_of(*texts: str) -> list[tuple[list[int], int]]:
    """Return what slices of 1 ms, with 1 ms between them, have of the waits in these traces.

    Each is read when its slice ends.
    """
    begun: stalls.Begun = {}
    found = []
    for number, text in enumerate(texts):
        begin = SECOND + 2000 * number
        ended = stalls.waits(text, begun)
        found.append(stalls.of_slice(ended, begun.values(), begin, begin + 1000))
    return found


def test_a_wait_longer_than_a_slice_counts_in_each_and_once_in_percentiles() -> None:
    """It begins in the first slice, covers the second, and ends in the third."""
    found = slices_of(trace((700, "begin")), "", trace((4400, "end")))
    assert found == [([], 300), ([], 1000), ([3700], 400)]


def test_waits_are_cut_at_both_edges_for_their_sum() -> None:
    one, two = trace((900, "begin"), (1100, "end")), trace((200, "begin"), (300, "end"), pid=2)
    assert slices_of(one + two) == [([100], 200)]
    # What begins and ends between two slices is in neither; what ends after one has begun is in it.
    between = trace((1200, "begin"), (1900, "end")) + trace((1300, "begin"), (2010, "end"), pid=2)
    assert slices_of("", between) == [([], 0), ([710], 10)]


def test_long_waits_are_found_as_often_as_they_happen() -> None:
    """Every tenth wait lasts as long as 25 slices, the others a hundredth of one; half is seen."""
    source, now, edges, lengths = random.Random(3), 0, [], []
    while now < 4_000_000:
        length = 25_000 if source.random() < 0.1 else 10
        now += source.randrange(100, 900)
        edges += [(now, "begin"), (now + length, "end")]
        lengths.append(length)
        now += length
    begun: stalls.Begun = {}
    line = "x-1 [000] ..... {}.{:06}: mm_vmscan_memcg_reclaim_{}: x\n"
    ended = stalls.waits(
        "".join(line.format(*divmod(SECOND + at, SECOND), edge) for at, edge in edges), begun
    )
    assert len(ended) == len(lengths)
    slices = [stalls.of_slice(ended, (), begin, begin + 1000)
              for begin in range(SECOND, SECOND + 4_000_000, 2000)]  # fmt: skip
    seen = [length for found, _ in slices for length in found]
    assert seen.count(25_000) / len(seen) == pytest.approx(0.1, abs=0.03)
    assert sum(total for _, total in slices) == pytest.approx(sum(lengths) / 2, rel=0.02)


def test_lost_events() -> None:
    text = "entries: 21\noverrun: 5\ncommit overrun: 3\nbytes: 1188\ndropped events: 2\n"
    assert stalls.lost_events(text) == 7


def test_choices() -> None:
    assert debugfs.parse_choices("[stock] batch\n") == ("stock", ["stock", "batch"])
    assert debugfs.parse_choices("31\n") == (None, ["31"])
    kinds = ["lazyfree", "anon", "file"]
    assert debugfs.parse_choices("[lazyfree] anon [file]\n") == ("lazyfree+file", kinds)


def test_stats_skip_other_lines() -> None:
    assert debugfs.parse_stats("deferred 12\nnote: x\ncalls 3\n") == {"deferred": 12, "calls": 3}


def test_assignments() -> None:
    assert debugfs.parse_assignments(["flush=batch,flush.max_folios=31", "scan=stock"]) == [
        Assignment("flush", "batch"),
        Assignment("flush.max_folios", "31"),
        Assignment("scan", "stock"),
    ]


@pytest.mark.parametrize("wrong", ["flush", "flush=", "=batch", "flush=batch,", ""])
def test_what_is_no_assignment(wrong: str) -> None:
    with pytest.raises(Failure):
        debugfs.parse_assignments([wrong])


@pytest.mark.parametrize(("text", "size"), [("64M", 64 << 20), ("1g", 1 << 30), ("2KiB", 2048)])
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("wrong", ["", "M", "-1", "0", "0M", "64X", "4096", "nanM"])
def test_what_is_no_size(wrong: str) -> None:
    with pytest.raises(ValueError, match="is no size"):
        parse_size(wrong)


def test_debugfs_is_found_where_it_is_mounted() -> None:
    mounts = "proc /proc proc rw 0 0\ndebugfs /debug debugfs rw 0 0\n"
    assert mount_points("debugfs", mounts) == [Path("/debug")]
    assert mount_points("debugfs", "proc /proc proc rw 0 0\n") == []


@pytest.fixture
def settings(tmp_path: Path) -> Control:
    """Return the control of files such as the module's."""
    files = {
        "abi": "abi 1\nmodule 0.1.0\nkernel 6.12.117\n",
        "profile": "stock max\n",
        "bypass": "0\n",
        "flush/policy": "[stock] batch\n",
        "flush/max_folios": "128\n",
        "flush/stats": "deferred 5\nlargest_batch 3\n",
        "scan/floor": "32\n",
        "scan/policy": "[stock]\n",
        "unmap/kinds": "[lazyfree] [anon] file\n",
        "unmap/policy": "[stock] batch\n",
        "other/file": "not a point\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    for name in ("abi", "flush/stats"):
        (tmp_path / name).chmod(0o444)
    return Control(tmp_path)


def test_points_and_parameters_are_found(settings: Control) -> None:
    names = "bypass profile flush flush.max_folios scan scan.floor unmap unmap.kinds"
    assert settings.names() == names.split()
    assert settings.stats() == {"flush": {"deferred": 5, "largest_batch": 3}}
    assert settings.abi()["kernel"] == "6.12.117"


def test_trace_events_are_a_setting_where_there_are_some(settings: Control) -> None:
    switch = settings.root / "enable"
    settings.trace = [switch]
    for text, shown in (("0", "0"), ("1", "1"), ("X", "some")):
        switch.write_text(text + "\n")
        assert "trace" in settings.names()
        assert settings.text("trace") == shown
        settings.check([Assignment("trace", "1")])
    with pytest.raises(Failure, match="set trace=0 or trace=1 first"):
        settings.get("trace")
    settings.write([Assignment("trace", "1")])
    assert switch.read_text() == "1"


def test_present_values_can_be_written_back(settings: Control) -> None:
    assert settings.get("flush") == "stock"
    assert settings.get("flush.max_folios") == "128"
    assert settings.get("scan.floor") == "32"
    settings.check([Assignment("scan.floor", "64")])


def test_several_names_are_joined(settings: Control) -> None:
    kinds = settings.root / "unmap/kinds"
    assert settings.get("unmap.kinds") == "lazyfree+anon"
    for value, written in (("anon+file", "anon,file"), ("file", "file"), ("none", "none")):
        wanted = debugfs.parse_assignments([f"unmap=batch,unmap.kinds={value}"])
        kinds.write_text("lazyfree anon file\n")
        assert settings.get("unmap.kinds") == "none"
        settings.check(wanted)
        settings.write(wanted)
        assert kinds.read_text() == written


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("flush", "bach", "stock, batch"),
        ("flush.max_folios", "many", "decimal number"),
        ("flush.max_folios", "-1", "decimal number"),
        ("flush.stats", "1", "flush.max_folios"),
        ("flsh", "batch", "flush"),
        ("other", "x", "flush"),
        ("profile", "min", "stock, max"),
        ("bypass", "yes", "decimal number"),
        ("scan.floor", "small", "decimal number"),
        ("unmap.kinds", "lazyfree+shmem", "lazyfree, anon, file"),
        ("unmap.kinds", "anon+", "lazyfree, anon, file"),
        ("abi", "2", "bypass, profile, flush"),
    ],
)
def test_wrong_settings_say_what_is_allowed(
    settings: Control, name: str, value: str, hint: str
) -> None:
    with pytest.raises(Failure, match=hint):
        settings.check([Assignment("flush", "batch"), Assignment(name, value)])
    assert (settings.root / "flush/policy").read_text() == "[stock] batch\n"


def test_a_refused_write_names_what_was_done(settings: Control) -> None:
    (settings.root / "scan/policy").unlink()
    (settings.root / "scan/policy").symlink_to("/dev/full")
    with pytest.raises(Failure, match="scan=x was refused .*set before it: flush=batch"):
        settings.write([Assignment("flush", "batch"), Assignment("scan", "x")])
    with pytest.raises(Failure, match="nothing was changed"):
        settings.write([Assignment("scan", "x")])


def test_delta_of_counters_and_marks() -> None:
    before = {"time": 1.0, "vmstat.pswpin": 5, "stats.flush.largest_batch": 9, "gone": 1}
    after = {"time": 11.5, "vmstat.pswpin": 25, "stats.flush.largest_batch": 12, "new": 1}
    expected = {"seconds": 10.5, "stats.flush.largest_batch": 12, "vmstat.pswpin": 20}
    assert counters.delta(before, after) == expected


def test_operations_may_come_from_a_command() -> None:
    assert counters.ProgressCommand("echo done: 12; echo 13").read() == 13
    assert counters.ProgressCommand("echo starting").peek() is None
    for words, said in (("echo oh >&2; exit 3", "exits with 3 and says: oh"), ("true", "with 0")):
        with pytest.raises(Failure, match=said):
            counters.ProgressCommand(words).read()


def test_a_command_that_hangs_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "COMMAND_TIMEOUT", 0.1)
    with pytest.raises(Failure, match="more than 0.1 s: sleep 9"):
        counters.ProgressCommand("sleep 9").read()


def test_primary_figures_are_checked() -> None:
    plan.check_primary(["scanned_per_stolen", "function.x.calls_per_1000"], stalls=False)
    for key, said in (
        ("scaned_per_stolen", "there is scanned_per_stolen"),
        ("stall_p99_ms", "takes --stalls"),
    ):
        with pytest.raises(Failure, match=said):
            plan.check_primary([key], stalls=False)
    plan.check_primary(["stall_p99_ms"], stalls=True)


def test_the_primary_figures_of_workloads_exist() -> None:
    known = plan.row_keys(stalls=True)
    for workload in workloads.WORKLOADS.values():
        assert set(workload.primary) <= known


class Load:
    """A cgroup whose workload goes on for so many slices, and then does what it is told."""

    path = Path("/nonesuch")

    def __init__(self, slices: int, end: BaseException) -> None:
        self.slices = slices
        self.end = end

    def require_alive(self) -> None:
        """Count a slice."""
        if not self.slices:
            raise self.end
        self.slices -= 1


@pytest.fixture
def run_ab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Return what runs ab for 20 slices, of a load that ends after some; nothing is measured."""
    ticks = itertools.count()

    class Snapshots:
        marker = SimpleNamespace(write=lambda _text: None)

        def __init__(self, *_sources: Any) -> None:
            pass

        def snapshot(self, _mark: str = "") -> dict[str, float]:
            tick = next(ticks)
            return {"time": tick, "progress": 10 * tick}

    monkeypatch.setattr("vmp.ab.run.Counters", Snapshots)
    monkeypatch.setattr(command, "locate", lambda: None)
    control = SimpleNamespace(write=lambda _side: None, clear=lambda: "")
    monkeypatch.setattr(command, "Control", lambda _root: control)
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    monkeypatch.setattr(signal, "signal", lambda *_handler: None)

    def run(slices: int, end: BaseException) -> int:
        def measure_all(self: Run) -> None:
            where = {"kernel": "6.12", "lru": "mglru", "cpus": 1, "abi": {}}
            start = Result(self.plan.settings(None, ["true"]), where)
            load: Any = Load(slices, end)
            self.measure(load, {"A": [], "B": []}, start)

        monkeypatch.setattr(Run, "measure_all", measure_all)
        parser = Parser()
        plan.arguments(parser)
        words = f"--json {tmp_path}/r.json --slices 20 --primary operations_per_second true"
        return command.run(parser.parse_args(words.split()))

    return run


@pytest.mark.parametrize(
    ("end", "status", "why"),
    [
        (SystemExit(130), 130, "it was stopped by SIGINT"),
        (Failure("the workload has ended"), 1, "the workload has ended"),
        (OSError(28, "No space left on device"), 1, "No space left on device"),
    ],
)
def test_what_was_measured_is_kept(
    run_ab: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str],
    end: BaseException, status: int, why: str,
) -> None:  # fmt: skip
    assert run_ab(5, end) == status
    out, said = capsys.readouterr()
    assert f"INCOMPLETE: the run ended after 5 slices: {why}" in out
    assert "operations / s" in out
    assert f"5 of 20 slices were measured: {why}" in said
    kept = json.loads((tmp_path / "r.json").read_text())
    assert (kept["complete"], len(kept["slices"])) == (False, 5)
    assert file.load_run(tmp_path / "r.json").pairs == 2


def test_a_run_that_has_not_begun_to_measure_leaves_nothing(
    run_ab: Callable[..., int], tmp_path: Path
) -> None:
    with pytest.raises(Failure, match="oh"):
        run_ab(1, Failure("oh"))
    assert not json.loads((tmp_path / "r.json").read_text())["complete"]


def test_a_whole_run_is_complete(run_ab: Callable[..., int], tmp_path: Path) -> None:
    assert run_ab(20, Failure("")) == 0
    kept = json.loads((tmp_path / "r.json").read_text())
    assert (kept["complete"], kept["ended"], len(kept["slices"])) == (True, "", 20)
    assert kept["summary"]["primary figures"][0]["before"] == 10


def test_a_slice_in_which_the_guard_tripped_is_void(
    run_ab: Callable[..., int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # Asked before and after each slice.
    reasons = itertools.chain([""] * 5, ["cause=oom"], itertools.repeat(""))
    cleared = []
    control: Any = vars(command)["Control"](tmp_path)

    def clear() -> str:
        if reason := next(reasons):
            cleared.append(1)
        return reason

    monkeypatch.setattr(control, "clear", clear)
    assert run_ab(20, Failure("")) == 0
    out, said = capsys.readouterr()
    assert "ab: the guard tripped: cause=oom" in said
    assert "1 void slice is left out, with the neighbour of each: the guard tripped, or a" in out
    assert cleared == [1]
    kept = file.load_run(tmp_path / "r.json")
    assert [piece.void for piece in kept.slices] == [False, False, True, *[False] * 17]
    assert kept.pairs == 9


@pytest.mark.parametrize(("reason", "status"), [("cause=wait", 0), ("", 1)])
def test_a_side_that_a_tripped_guard_refuses_is_set_again(
    run_ab: Callable[..., int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    reason: str,
    status: int,
) -> None:
    """It trips over the first policies of a side; what is refused without it ends the run."""
    control: Any = vars(command)["Control"](tmp_path)
    writes, refused = itertools.count(), []

    def write(_side: list[Any]) -> None:
        if next(writes) == 4:
            refused.append(reason)
            raise Failure("unmap=batch was refused")

    monkeypatch.setattr(control, "write", write)
    monkeypatch.setattr(control, "clear", lambda: refused.pop() if refused else "")
    assert run_ab(20, Failure("")) == status
    said = capsys.readouterr().err
    assert ("unmap=batch was refused" in said, "guard tripped" in said) == (
        not reason,
        bool(reason),
    )
    kept = file.load_run(tmp_path / "r.json")
    assert (len(kept.slices), any(piece.void for piece in kept.slices)) == (4 if status else 20, 0)


def test_a_slice_in_which_the_count_of_operations_fell_is_void(
    run_ab: Callable[..., int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # Of a service that starts anew in the third slice; a snapshot comes before the first.
    counts = itertools.chain([500, 510, 520, 530, 540, 550, 40], itertools.count(50, 10))
    ticks = itertools.count()
    monkeypatch.setattr("vmp.ab.run.Counters.snapshot",
                        lambda *_: {"time": next(ticks), "progress": next(counts)})  # fmt: skip
    assert run_ab(20, Failure("")) == 0
    out, said = capsys.readouterr()
    assert "ab: progress fell by 510 in a slice, which is void" in said
    assert "1 void slice is left out" in out
    document = json.loads((tmp_path / "r.json").read_text())
    assert document["slices"][2]["void"]
    assert file.load_run(tmp_path / "r.json").pairs == 9
    del document["slices"][2]["void"]  # as files of before have it
    (tmp_path / "r.json").write_text(json.dumps(document))
    assert file.load_run(tmp_path / "r.json").pairs == 9


def test_a_full_disk_ends_no_run(
    run_ab: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table is printed, and the file has what was written before."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
    try:
        with pytest.raises(Failure, match="File too large"):
            run_ab(20, Failure(""))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    out, said = capsys.readouterr()
    assert "20 slices of" in out
    assert said.count("File too large") == 1
    kept = file.load_run(tmp_path / "r.json")
    assert 2 < len(kept.slices) < 20
    assert not list(tmp_path.glob(".r.json*"))


def test_a_terminal_is_told_each_slice(
    run_ab: Callable[..., int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    run_ab(20, Failure(""))
    lines = [line for line in capsys.readouterr().err.splitlines() if " to go" in line]
    assert len(lines) == 20
    assert lines[1] == "ab: slice 2 of 20, 36 s to go; operations / s: A 10, B 10 (+0.0 %)"


@pytest.mark.parametrize(
    "words",
    ["--warmup nan", "--seconds inf", "--settle -1", "--seconds 0", "--slices 3", "--aa 0",
     "--aa --b flush=batch", "--json /nonesuch/x", "--json /", "--primary nonesuch",
     "--memory x", "--folio 64K", "--folio=", "--progress x --progress-command y", "--slices 12",
     "--seed -5", "--seed 4294967296", "--slices 2002", "--aa 1668",
     "--cgroup=", "--functions f --primary function.g.calls_per_1000"],
)  # fmt: skip
def test_a_wrong_command_line_is_told_in_one_sentence(words: str) -> None:
    parser = Parser()
    plan.arguments(parser)
    with pytest.raises(Usage):
        command.run(parser.parse_args([*words.split(), "true"]))


def plan_of(*words: str) -> plan.Plan:
    """Return the plan of a command line."""
    parser = Parser()
    plan.arguments(parser)
    return plan.make_plan(parser.parse_args([*words, "true"]))


def test_a_run_that_can_tell_nothing_is_refused() -> None:
    two = "reclaim_flushes_per_1000,scanned_per_stolen"
    with pytest.raises(Usage, match="12 slices can't tell .* 2 primary .* --slices 14 or more"):
        plan_of("--slices", "12", "--primary", two)
    with pytest.raises(Usage, match="10 slices"):
        plan_of("--aa", "20", "--slices", "10", "--primary", "scanned_per_stolen")
    assert plan_of("--slices", "14", "--primary", two).slices == 14
    assert plan_of("--slices", "4", "--primary", "").primary == []


def test_the_guard_makes_no_slice_void_for_kills_that_are_counted() -> None:
    def both(*words: str) -> str:
        return plan.settings(plan_of(*words).both)

    assert both("--primary", "oom_kill", "--set", "scan=budget") == "scan=budget,guard.window=0"
    assert both("--primary", "oom_kill", "--set", "guard.window=9") == "guard.window=9"
    assert both("--primary", "scanned_per_stolen", "--set", "scan=budget") == "scan=budget"


def test_a_seed_repeats_the_order() -> None:
    one, other = plan_of(), plan_of()
    assert one.seed != other.seed
    again = plan_of("--seed", str(one.seed))
    assert again.order() == one.order()
    assert again.settings(None, []).seed == one.seed
    assert set(plan_of("--aa", "--seed", "1").order()) == {"A", "B"}


def test_the_figures_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    parser = Parser()
    plan.arguments(parser)
    assert command.run(parser.parse_args(["--list-figures"])) == 0
    listed = {line.split()[0] for line in capsys.readouterr().out.splitlines() if line[:2] == "  "}
    assert listed == plan.row_keys(stalls=True)
