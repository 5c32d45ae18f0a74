# SPDX-License-Identifier: GPL-2.0
"""Tests of what record computes and checks, and of how it runs commands."""

import contextlib
import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from vmp.ab import alternation
from vmp.common import SIGNALS, Failure
from vmp.control.debugfs import Assignment, Control
from vmp.record import children, command, recorder

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


def test_sides() -> None:
    assert alternation.parse_sides(["flush=stock,batch", "flush.max_folios=31, 64"]) == {
        "A": [Assignment("flush", "stock"), Assignment("flush.max_folios", "31")],
        "B": [Assignment("flush", "batch"), Assignment("flush.max_folios", "64")],
    }
    with pytest.raises(Failure, match="flush is given twice"):
        alternation.parse_sides(["flush=a,b", "flush=b,a"])


@pytest.mark.parametrize(
    "wrong", ["flush", "flush=a", "flush=a,", "flush=a,b,c", "=a,b", "flush=a,a", ""]
)
def test_what_is_no_pair_of_settings(wrong: str) -> None:
    with pytest.raises(Failure, match="no pair of settings"):
        alternation.parse_sides([wrong])


@pytest.mark.parametrize("word", ["profile=stock,max", "trace=0,1"])
def test_settings_that_are_no_side(word: str) -> None:
    with pytest.raises(Failure, match="can't be switched here"):
        alternation.parse_sides([word])


def test_all_kinds_of_loss_count() -> None:
    assert recorder.parse_cpu_stats(CPU_STATS) == (28, 10)
    assert recorder.parse_cpu_stats("") == (0, 0)


def test_what_trace_cmd_tells_is_passed_on() -> None:
    text = "trace-cmd: No space left on device\n  Error creating output file\n"
    said = recorder.told_error(f"CPU0 data recorded\n{text}", 28)
    assert said == "No space left on device: Error creating output file"
    assert recorder.told_error("CPU0 data recorded\n", 0) == "exit status 0"
    assert recorder.told_error("", -9) == "killed by SIGKILL"


def test_losses_are_told_for_each_cpu() -> None:
    several = "532 events were lost (CPU 0: 500, CPU 3: 32): try --buffer 32M"
    assert recorder.lost_sentence({3: 32, 1: 0, 0: 500}, 8 << 20) == several
    one = "1 event was lost (CPU 0: 1): try --buffer 256K"
    assert recorder.lost_sentence({0: 1}, 64 << 10) == one


@pytest.fixture
def tracefs(tmp_path: Path) -> Path:
    """Return a directory with files such as those of tracefs."""
    files = {
        "set_event": "",
        "events/vmscan_policy/enable": "0\n",
        "events/vmscan_policy/bypass/enable": "0\n",
        "events/vmscan_policy/unmap_folio/enable": "0\n",
        "events/vmscan_policy/young_folio/enable": "0\n",
        "events/oom/mark_victim/enable": "0\n",
        "events/tlb/tlb_flush/enable": "0\n",
    }
    make_files(tmp_path, files)
    return tmp_path


def test_only_events_that_exist_are_asked_for(tracefs: Path) -> None:
    options = "-e vmscan_policy:bypass -e oom:mark_victim -e tlb:tlb_flush -f reason==4"
    assert recorder.event_options(tracefs, []) == options.split()


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("anon,lazyfree,file", ""),
        ("anon,file", "kind==0||kind==2"),
        ("lazyfree", "kind==1"),
    ],
)
def test_large_folios_of_some_kinds(tracefs: Path, text: str, condition: str) -> None:
    assert recorder.module_events(tracefs, recorder.parse_folios(text)) == {
        "vmscan_policy:bypass": "",
        "vmscan_policy:unmap_folio": condition,
        "vmscan_policy:young_folio": condition,
    }


@pytest.mark.parametrize("wrong", ["", "anno", "anon,", "anon,none", "anon file"])
def test_what_is_no_kind_of_folio(wrong: str) -> None:
    with pytest.raises(Failure, match="allowed are anon, lazyfree, file, .*or none$"):
        recorder.parse_folios(wrong)


def test_the_modules_events_are_required(tracefs: Path) -> None:
    recorder.require_events(tracefs)
    (tracefs / "events/vmscan_policy").rename(tracefs / "events/other")
    with pytest.raises(Failure, match="has no trace events"):
        recorder.require_events(tracefs)
    (tracefs / "set_event").unlink()
    with pytest.raises(Failure, match="no right to record"):
        recorder.require_events(tracefs)


def test_trace_cmd_may_append_to_the_events_of_others(tracefs: Path) -> None:
    (tracefs / "set_event").write_text("oom:mark_victim\n")
    recorder.require_events(tracefs)
    assert (tracefs / "set_event").read_text() == "oom:mark_victim\n"


@pytest.fixture
def control(tmp_path: Path) -> Control:
    """Return the control of files such as the module's."""
    files = {"flush/policy": "[stock] batch\n", "flush/max_folios": "64\n", "bypass": "0"}
    make_files(tmp_path, files)
    return Control(tmp_path)


@pytest.fixture
def written(control: Control, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what is written by the control from now on, in place of the files; 9999 is not."""
    found: list[str] = []

    def write(items: list[Assignment]) -> None:
        for item in items:
            if item.value == "9999":
                raise Failure("refused")
            found.append(str(item))

    monkeypatch.setattr(control, "write", write)
    return found


def turns(control: Control, word: str, seconds: float) -> alternation.Alternation:
    coin = random.Random(4)  # A B B A, twice
    return alternation.Alternation(control, alternation.parse_sides([word]), seconds, coin)


def test_the_order_is_by_coin_and_the_end_restores(control: Control, written: list[str]) -> None:
    with turns(control, "flush=stock,batch", 0) as alternating:
        assert written == ["flush=stock", "flush=batch"]
        written.clear()
        alternating.start()
        for _ in range(7):
            alternating.step()
        expected = ["flush=stock", "flush=batch", "flush=stock", "flush=batch", "flush=stock"]
        assert written == expected
        written.clear()
    assert written == ["flush=stock"]


def test_a_turn_lasts_its_time(control: Control, written: list[str]) -> None:
    alternating = turns(control, "flush=stock,batch", 1000)
    alternating.start()
    for _ in range(5):
        assert alternating.step() > time.monotonic() + 900
    assert written == ["flush=stock"]


@pytest.mark.parametrize(
    ("word", "hint"), [("flush=stock,bach", "allowed are stock, batch"), ("x=1,2", "flush.max")]
)
def test_wrong_settings_change_nothing(
    control: Control, written: list[str], word: str, hint: str
) -> None:
    with pytest.raises(Failure, match=hint), turns(control, word, 1):
        pass
    assert written == []


def test_a_refused_number_restores(control: Control, written: list[str]) -> None:
    with pytest.raises(Failure, match="refused"), turns(control, "flush.max_folios=31,9999", 1):
        pass
    assert written == ["flush.max_folios=31", "flush.max_folios=64"]


def test_after_a_trip_there_is_no_recording(control: Control, written: list[str]) -> None:
    make_files(control.root, {"guard/state": "armed [tripped] off", "guard/reason": "cause=oom"})
    with pytest.raises(Failure, match="`vmscanctl clear` first; cause=oom"):
        turns(control, "flush=stock,batch", 1).__enter__()
    assert written == []


def test_a_trip_ends_the_recording_which_is_kept(
    control: Control, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done: list[str] = []
    tripped: list[int] = []

    def write(items: list[Assignment]) -> None:
        if tripped:
            raise Failure("the guard has tripped")
        done.extend(map(str, items))
        tripped.extend([1] * (len(done) == 3))  # both are tried before the first turn

    monkeypatch.setattr(control, "write", write)
    monkeypatch.setattr(control, "clear", tripped.clear)

    class Recording(contextlib.nullcontext[None]):
        def require_alive(self) -> None: ...

        def stop(self) -> None: ...

        def save(self) -> dict[int, tuple[int, int]]:
            done.append("saved")
            return {0: (3, 0)}

    monkeypatch.setattr(command, "Recorder", lambda *_: Recording())
    monkeypatch.setattr(command, "all_stats", lambda _: {})
    monkeypatch.setattr(command, "Marker", lambda: SimpleNamespace(write=lambda _: None))
    monkeypatch.setattr(command, "with_settings", lambda _: {})
    monkeypatch.setattr(command, "plugins", lambda _: {})
    sides = alternation.parse_sides(["flush=stock,batch"])
    plan = command.Plan([], Path("trace.dat"), 1000, sides, 0, [], 1, False)
    assert command.Run(plan, control).record() == command.FAILED
    assert done[2:] in (["flush=stock", "saved", "flush=stock"],
                        ["flush=batch", "saved", "flush=stock"])  # fmt: skip
    said = capsys.readouterr().err
    assert "record: the recording ends early: the guard has tripped\n" in said
    assert "3 events in trace.dat" in said


@pytest.fixture
def held() -> Iterator[None]:
    """Hold the signals, of which none is left of before."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    handler = signal.getsignal(signal.SIGINT)
    children.hold_signals()
    while children.wait(0) or signal.sigpending() & set(children.HELD):
        pass
    yield
    signal.signal(signal.SIGINT, handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def start(script: str) -> subprocess.Popen[bytes]:
    return children.start(["sh", "-c", script], stdout=subprocess.PIPE)


def wait_for_line(child: subprocess.Popen[bytes]) -> None:
    assert child.stdout
    child.stdout.readline()


@pytest.mark.usefixtures("held")
def test_the_end_of_a_child_cuts_waiting_short() -> None:
    before = time.monotonic()
    with start("exit 3") as child:
        assert children.wait(60) is None
        assert time.monotonic() - before < 50
        assert children.exit_status(child.wait()) == 3


@pytest.mark.usefixtures("held")
def test_a_signal_is_told_even_if_it_came_before() -> None:
    for number in SIGNALS:
        os.kill(os.getpid(), number)
        assert children.wait(60) == number
    assert children.wait(0) is None


@pytest.mark.usefixtures("held")
def test_a_child_gets_signals() -> None:
    with start("trap 'exit 5' INT; echo ready; while :; do sleep 0.1; done") as child:
        wait_for_line(child)
        children.end(child)
        assert child.returncode == 5


@pytest.mark.usefixtures("held")
def test_the_whole_group_ends_and_stronger_signals_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    ladder = ((signal.SIGINT, 0.3), (signal.SIGTERM, 0.3), (signal.SIGKILL, 30))
    monkeypatch.setattr(children, "LADDER", ladder)
    with start("trap '' INT TERM; sleep 1000 & echo ready; wait; sleep 1000") as child:
        wait_for_line(child)
        children.end(child)
        assert children.exit_status(child.returncode) == 128 + signal.SIGKILL
        assert child.stdout
        assert child.stdout.read() == b""  # nobody holds the pipe any more


@pytest.mark.usefixtures("held")
def test_what_a_child_that_ended_left_behind_stays() -> None:
    with start("echo ready; exec sleep 1000 &") as child:
        child.wait()
        children.end(child)
        os.killpg(child.pid, 0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)


@pytest.mark.usefixtures("held")
def test_a_command_that_is_missing_is_named() -> None:
    with pytest.raises(Failure, match="cannot start '/nonesuch': no such file"):
        children.start(["/nonesuch"])


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("", "give the command"),
        ("--", "give the command"),
        ("--for soon", "is no time"),
        ("--every 0 -- true", "is no time"),
        ("--buffer much -- true", "is no size"),
        ("--folios all -- true", "'all' is no kind of folio: allowed are anon, lazyfree, file"),
        ("--ab flush=stock -- true", "no pair of settings"),
        ("--bogus -- true", "--bogus"),
        ("true", "unrecognized"),
    ],
)
def test_mistakes_are_told_in_one_sentence(words: str, why: str) -> None:
    done = subprocess.run([RECORD, *words.split()], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert re.search(f"^record: .*{why}", done.stderr)
    assert (done.stderr.count("\n"), done.stdout) == (1, "")
