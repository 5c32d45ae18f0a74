# SPDX-License-Identifier: GPL-2.0
"""Tests of torture and of the fuzzer: what needs no guest."""

import argparse
import os
import random
import re
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from io import BytesIO
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from vmp.common import REPO, Failure, Usage, Words, parse
from vmp.control.points import known_parameters, known_points
from vmp.guest.log import STALE_BREAKPOINT, find_splat
from vmp.guest.sources import Version
from vmp.guest.suite import GUEST
from vmp.testing.pages import parser_of
from vmp.torture import checkers, command, fuzz, options, place, races
from vmp.torture.actions import ACTIONS, KNOWN, LANES, SPOIL
from vmp.torture.checkers import WRONG_DATA, Checker
from vmp.torture.forms import Form, kernel_number
from vmp.torture.fuzz import Fuzzer
from vmp.torture.inside import Lane
from vmp.torture.reduce import reduce
from vmp.torture.state import left

SEED_LINE = "# torture: seed 7, 100 s, actions cpu,lru\n"
NUMBER = Form(lowest=1, highest=4096)
NAMES = Form(("stock", "batch"))
NOWHERE = place.Place(*(Path("/nonesuch"),) * 5, "")
SEVERAL = Form(("lazyfree", "anon", "file"), several=True)
ALONE = Form(("anon",), ("none", "anon"), several=True)
STATES = Form(("armed", "off"), ("armed", "tripped", "off"))


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory that has the program whose pages operations are for."""
    out = tmp_path_factory.mktemp("programs")
    command = ["make", "-s", "-C", str(GUEST), f"OUT={out}", f"{out}/torture"]
    subprocess.run(command, check=True)
    return out


def pages(programs: Path, directory: Path, lines: list[str], *kinds: str) -> tuple[int, str]:
    """Have operations done; return the status and what was said."""
    done = subprocess.run([programs / "torture", directory, *kinds], input="\n".join([*lines, ""]),
                          capture_output=True, text=True, timeout=120)  # fmt: skip
    return done.returncode, done.stdout + done.stderr


KINDS = re.findall(r'^\t\{ \.name = "(\S+)"', (GUEST / "torture.c").read_text(), re.MULTILINE)
OPERATIONS = [name for name, action in ACTIONS.items() if not action.run]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "moved"])
def test_a_lost_write_is_found(programs: Path, tmp_path: Path, kind: str) -> None:
    status, said = pages(programs, tmp_path, ["pageout 3", f"{SPOIL} 77"], kind)
    assert status == WRONG_DATA, said
    assert re.search(r"page \d+, word 0: 0x\w+ instead of 0x\w+", said)


def test_pages_keep_their_content(programs: Path, tmp_path: Path) -> None:
    """With all operations; what this kernel lacks is refused."""
    rng = random.Random(1)
    lines = [f"{rng.choice(OPERATIONS)} {rng.getrandbits(40)}" for _ in range(300)]
    status, said = pages(programs, tmp_path, lines)
    assert status == 0, said
    assert {name for name, _, _ in checkers.DID.findall(said)} == set(OPERATIONS)
    assert re.search(r"^checked anon [1-9]\d+$", said, re.MULTILINE)


@pytest.mark.parametrize(("lines", "kinds"), [(["nonesuch 1"], ["anon"]), ([], ["nonesuch"])])
def test_what_pages_do_not_know(
    programs: Path, tmp_path: Path, lines: list[str], kinds: list[str]
) -> None:
    status, said = pages(programs, tmp_path, lines, *kinds)
    assert (status, len(said.splitlines())) == (1, 1)


@pytest.mark.parametrize("spoiled", [False, True])
def test_files_with_checksums(tmp_path: Path, spoiled: bool) -> None:
    process = subprocess.Popen(["python3", checkers.__file__, tmp_path, "5"], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
    assert process.stdin
    while len(list(tmp_path.iterdir())) < checkers.FILES:
        assert process.poll() is None
    while spoiled and process.poll() is None:
        for path in tmp_path.iterdir():
            with path.open("r+b") as file:
                file.write(b"spoiled")
    process.stdin.close()
    assert process.stdout
    said = process.stdout.read()
    assert process.wait() == (WRONG_DATA if spoiled else 0)
    assert re.search("the checksum of sum-" if spoiled else r"files written \d+", said)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("true", ""),
        ("echo page 5 is wrong; exit 3", "wrong data: x: page 5 is wrong"),
        ("kill -KILL $$", "a checker was killed, as by the OOM killer: x"),
        ("echo no memory >&2; exit 1", "a checker ended with status 1: x: no memory"),
    ],
)
def test_how_a_checker_ends(tmp_path: Path, script: str, reason: str) -> None:
    output = tmp_path / "said"
    with output.open("wb") as file:
        process = subprocess.Popen(["sh", "-c", script], stdout=file, stderr=file)
    checker = Checker("x", process, output)
    if reason:
        with pytest.raises(Failure, match=f"^{reason}$"):
            checker.judge()
    else:
        checker.judge()


def test_a_seed_repeats_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a lane: the same actions with the same random numbers, whatever became of them."""

    def run(outcomes: random.Random) -> list[tuple[int, int]]:
        lane = Lane("kernel", list(ACTIONS), "7")
        seen: list[tuple[int, int]] = []

        def act(number: int, own: random.Random, *_: object) -> bool:
            seen.append((number, own.getrandbits(32)))
            lane.shared[0] = len(seen) == 50
            for _again in range(outcomes.randrange(5)):
                own.random()
            return outcomes.random() < 0.5

        monkeypatch.setattr(lane, "act", act)
        monkeypatch.setattr("time.sleep", lambda _: None)
        lane.work(NOWHERE, BytesIO())
        assert sum(map(sum, lane.counts().values())) == 50
        return seen

    assert run(random.Random(1)) == run(random.Random(2))


def test_a_hang_is_one_by_the_guests_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which slows down with the machine."""
    monkeypatch.setenv("VMP_TEST_WORK", str(tmp_path))
    lane = Lane("kernel", ["cpu"], "7")
    lane.shared[1] = 1
    said = []
    for seconds in (1000, 1300, 1301):
        (tmp_path / "clock").write_text(f"{seconds}\n")
        said.append(lane.hangs().partition("\n")[0])
    assert said == ["", "", "a hang: 'cpu' takes more than 300 s"]
    lane.shared[1] = 2
    assert not lane.hangs()


def test_each_action_has_a_lane_and_words() -> None:
    for action in KNOWN.values():
        assert action.lane in LANES
        assert not action.run or (action.run.__doc__ or "").strip()


@pytest.mark.parametrize("needed", [*combinations("abcdefgh", 1), *combinations("abcdefgh", 3)])
def test_a_failure_is_reduced(needed: tuple[str, ...]) -> None:
    tried: list[frozenset[str]] = []

    def fails(part: list[str]) -> bool:
        tried.append(frozenset(part))
        return set(needed) <= set(part)

    assert reduce(list("abcdefgh"), fails) == list(needed)
    assert len(tried) == len(set(tried)) < 40


@pytest.mark.parametrize("text", ["flush", "cpu,nonesuch", "", ","])
def test_actions_that_are_none(text: str) -> None:
    with pytest.raises(Usage, match="choose from write, "):
        options.chosen(text)


@pytest.mark.parametrize("text", ["", "-1", "x", "1.5", str(1 << 32), "9" * 5000, "²"])
def test_a_seed_that_is_none(text: str) -> None:
    with pytest.raises(
        argparse.ArgumentTypeError, match="is no seed: write one from 0 to 4294967295"
    ):
        options.parse_seed(text)


def test_what_is_left_behind() -> None:
    before = {"threads": {"a"}, "probes": set[str]()}
    assert left(before, {"threads": {"a"}, "probes": set()}) == ""
    after = {"threads": {"a", "vmp"}, "probes": {"x", "y"}}
    assert left(before, after) == "threads: vmp; probes: x, y"


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("64", 64), ("+64", 64), ("0x40", 64), ("0100", 64), ("4294967295", 4294967295),
     ("4294967296", None), ("-0", None), ("-1", None), ("", None), ("0x", None), ("08", None),
     (" 1", None), ("1 ", None), ("1.5", None)],
)  # fmt: skip
def test_a_number_as_the_kernel_reads_it(text: str, number: int | None) -> None:
    assert kernel_number(text) == number


@pytest.mark.parametrize(
    ("form", "data", "reads"),
    [
        (NUMBER, b"64\n", "64"), (NUMBER, b"0x10", "16"), (NUMBER, b"0", None),
        (NUMBER, b"4097", None), (NUMBER, b"64\n\n", None), (NUMBER, b"64\0x", "64"),
        (NUMBER, b"0" * 65, None), (NUMBER, b"0" * 63 + b"7", "7"),
        (NAMES, b"batch", "stock [batch]"), (NAMES, b"stock\n", "[stock] batch"),
        (NAMES, b"batch\n\n", None), (NAMES, b"", None), (NAMES, b"stock,batch", None),
        (SEVERAL, b"none\n", "lazyfree anon file"),
        (SEVERAL, b"file,anon", "lazyfree [anon] [file]"), (SEVERAL, b"", None),
        (SEVERAL, b"file,", None), (SEVERAL, b"\xff", None),
        (ALONE, b"none", "[none] anon"), (ALONE, b"anon", "none [anon]"), (ALONE, b"file", None),
        (STATES, b"off", "armed tripped [off]"), (STATES, b"tripped", None),
    ],
)  # fmt: skip
def test_what_a_file_is_to_read(form: Form, data: bytes, reads: str | None) -> None:
    assert form.reads(data) == reads


@pytest.mark.parametrize("form", [NUMBER, NAMES, SEVERAL])
def test_right_and_wrong(form: Form) -> None:
    rng = random.Random(1)
    for _ in range(200):
        assert form.reads(form.right(rng).encode()) is not None
        assert form.reads(form.wrong(rng).encode()) is None


def fuzzer(root: Path) -> Fuzzer:
    """Return a fuzzer of two files: a number and a choice."""
    found = object.__new__(Fuzzer)
    found.root, found.rng, found.counts = root, random.Random(1), Counter()
    found.files = [root / "number", root / "choice"]
    found.forms = dict(zip(found.files, (NUMBER, NAMES), strict=True))
    return found


@pytest.mark.parametrize(
    ("data", "taken", "number", "choice", "reason"),
    [
        (b"7", 1, "7", "[stock] batch", ""),
        (b"0", -1, "64", "[stock] batch", ""),
        (b"0", -1, "0", "[stock] batch", "refused, and changes number"),
        (b"4097", 4, "4097", "[stock] batch", "taken, and reads '4097'"),
        (b"7", 1, "64", "[stock] batch", "taken, and reads '64', not '7'"),
        (b"7", 1, "7", "stock [batch]", "taken, and changes choice, too"),
    ],
)
def test_what_comes_of_a_write(
    tmp_path: Path, data: bytes, taken: int, number: str, choice: str, reason: str
) -> None:
    found = fuzzer(tmp_path)
    for path, text in zip(found.files, (number, choice), strict=True):
        path.write_text(f"{text}\n")
    found.open = {path.name: os.open(path, os.O_RDONLY) for path in found.files}
    found.last = {"number": "64", "choice": "[stock] batch"}
    if reason:
        with pytest.raises(Failure, match=re.escape(reason)):
            found.judge(found.files[0], data, taken, "x")
    else:
        found.judge(found.files[0], data, taken, "x")


def test_a_wrong_value_that_is_done_at_once(tmp_path: Path) -> None:
    """Is one that nothing reads afterwards."""
    found = fuzzer(tmp_path)
    clear = tmp_path / "clear"
    found.forms[clear] = Form(lowest=1, highest=1)
    found.open, found.last = {}, {}
    found.judge(clear, b"1", 1, "x")
    with pytest.raises(Failure, match="x: taken, and reads ''"):
        found.judge(clear, b"2", 1, "x")


def test_a_file_that_others_may_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = fuzzer(tmp_path)
    monkeypatch.setattr(fuzz, "DEBUG", tmp_path)
    for path in found.files:
        path.write_text("x")
        path.chmod(0o600)
    if path.stat().st_uid == 0:
        found.modes()
    path.chmod(0o644)
    with pytest.raises(Failure, match="choice has the mode 644: give it to root alone"):
        found.modes()


def test_values_are_mostly_right() -> None:
    rng = random.Random(1)
    names = [place.value_for("[stock] batch\n", rng) for _ in range(200)]
    assert sum(name in ("stock", "batch") for name in names) > 150
    assert set(place.OTHER_WORDS) & set(names)
    several = {place.value_for("[lazyfree] [anon] file\n", rng) for _ in range(200)}
    assert {"none", "lazyfree,anon"} <= several


@pytest.mark.parametrize(
    ("status", "text", "failed", "said"),
    [
        (0, "# torture: all has held\nok 1 - torture\n", False, "all has held"),
        (1, "# torture: wrong data: x\nnot ok 1 - torture\n", True, "wrong data: x"),
        (99, "BUG: KASAN\n", True, "BUG: KASAN"),
    ],
)
def test_what_came_of_a_guest(status: int, text: str, failed: bool, said: str) -> None:
    found = command.judged(status, SEED_LINE + text, Path("log"))
    assert found.failed == failed
    assert said in found.said
    assert found.actions == ["cpu", "lru"]


@pytest.mark.parametrize(
    "text", ["vm: no kernel", "# torture: none of these actions can be done here"]
)
def test_a_guest_in_which_nothing_began(text: str) -> None:
    with pytest.raises(Failure, match=f"it has not begun: log\n{text}"):
        command.judged(125, f"{text}\n", Path("log"))


def parsed(*words: str) -> argparse.Namespace:
    return parse(parser_of(command.COMMAND), list(words))


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("", 100),
        ("# torture: the lanes start at 960\n", 60),
        ("# torture: the lanes start at 5\n", 10),
    ],
)
def test_a_lost_guest_is_followed_by_another(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    said: str,
    left: int,
) -> None:
    """For the time that is left, with the same seed and actions; it runs to its end."""
    asked: list[str] = []

    def vm_once(words: Words, _log: Path, tell: Callable[[str], None]) -> tuple[int, str]:
        for line in (f"# torture: at {60 * len(asked)} s", "# torture: seed 7", "ok 1 - torture"):
            tell(line)
        asked.append(next(str(word) for word in words if "VMP_TORTURE=" in str(word)))
        lost = len(asked) == 1
        return STALE_BREAKPOINT if lost else 0, SEED_LINE + said

    monkeypatch.setattr(command, "vm_once", vm_once)
    monkeypatch.setattr(command, "prepare", lambda _: None)
    monkeypatch.setattr(command, "build_samples", lambda _: tmp_path)
    monkeypatch.setattr(command, "kernel_version", lambda _: Version("6.12.1", "6.12.1-1"))
    monkeypatch.setattr("time.time", lambda: 1000)
    arguments = parsed("--seed", "7", "--for", "100s")
    found = command.in_guests(arguments, tmp_path, ["cpu", "lru"], "x")
    assert not found.failed
    assert asked == [
        f"VMP_TORTURE=--seed 7 --for {time}s --actions cpu,lru" for time in (100, left)
    ]
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "lost" not in line] == ["torture: at 0 s", "torture: at 60 s"]


def test_a_failed_run_is_reduced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each try in a guest of its own; the command that does the same again is printed."""
    logs, tried = [], list[str]()

    def in_guests(_: argparse.Namespace, __: Path, actions: list[str], name: str) -> command.Run:
        logs.append(name)
        done = [action for action in actions if action != "migrate"]  # which is missing there
        failed = {"cpu", "lru"} <= set(actions)
        tried.extend(actions if "-try" in name else [])
        return command.Run(failed, "torture: a hang", tmp_path / name, done)

    monkeypatch.setattr(command, "in_guests", in_guests)
    monkeypatch.setattr(command, "build_kernel", lambda *_: tmp_path)
    monkeypatch.setattr(command, "OUT", tmp_path)
    same = "--numa 2 --kernel 6.12 --arch arm64"
    assert command.torture(parsed("--seed", "7", "--reduce", *same.split())) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    again = f"tools/torture --seed 7 --for 120s {same} --actions cpu,lru"
    assert last.endswith(again)
    assert len(logs) == len(set(logs)) > 4
    assert "migrate" not in tried


DESCRIBED = REPO / "tools/syzkaller/vmscan_policy.txt"
ROOT = "/sys/kernel/debug/vmscan_policy/"


def module_files() -> set[str]:
    """Return the files of the module, by what its source makes; a cgroup's are without its id."""
    points = known_points()
    files = {"abi", "traits", "cgroups/add", "cgroups/remove", "cgroups/ID/path"}
    own = {name.replace(".", "/") for name in known_parameters()}
    for point in points:
        own |= {f"{point}/policy", f"{point}/stats"}
    own |= {"aging/in_effect", "guard/state", "guard/reason", "guard/clear", "trial"}
    alone = {"bypass", "flush/observe"}
    return files | own | {f"cgroups/ID/{name}" for name in own - alone}


def test_syzkaller_knows_each_file() -> None:
    """And no file that is not there. A new file has to be described, too."""
    text = DESCRIBED.read_text()
    assert set(re.findall(rf'"{ROOT}([^"]+)"', text)) == {
        name.replace("cgroups/ID", "cgroups/###") for name in module_files()
    }


def source_words() -> dict[str, Any]:
    text = "".join(path.read_text() for path in (REPO / "module").glob("*.c"))
    made = re.findall(r'(?:vmp_create_file\([^"]*|debugfs_create_file\()"(\w+)"', text)
    return {"made": set(made), "numbers": set(re.findall(r'\.path = "([\w/]+)"', text))}


def test_the_files_of_the_source() -> None:
    """So that a file that is made under a new name is missed above."""
    found, known = source_words(), module_files()
    assert {name for name in found["made"] if not any(Path(k).name == name for k in known)} == set()
    assert found["numbers"] <= known


def test_data_races_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    switch = tmp_path / "kcsan"
    switch.touch()
    monkeypatch.setattr(races, "SWITCH", switch)
    log = [
        "BUG: KCSAN: data-race in do_nanosleep / hrtimer_wakeup",
        "write to 0xffff888007b2fd60 of 8 bytes by task 90 on cpu 1:",
        "BUG: KCSAN: data-race in do_nanosleep / hrtimer_wakeup",
        "BUG: KCSAN: data-race in add_steps [vmscan_policy] / shrink_node",
    ]
    found = races.Races()
    found.begin()
    found.note(log)
    assert switch.read_text() == "on"
    assert not find_splat(log)
    assert found.ours() == ["add_steps [vmscan_policy] / shrink_node"]
    assert found.said() == (
        "3 reports of data races: do_nanosleep / hrtimer_wakeup 2, "
        "add_steps [vmscan_policy] / shrink_node 1"
    )


def test_a_child_is_ended() -> None:
    assert not place.done(place.child(lambda: time.sleep(60), 1))
