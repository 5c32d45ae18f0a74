# SPDX-License-Identifier: GPL-2.0
"""Tests of the settings of cgroups: by command line, in the file, and in the view."""

import itertools
import json
import os
from pathlib import Path

import pytest
from tests.conftest import Run
from vmp.common import Failure
from vmp.control import cgroups
from vmp.control.debugfs import Control
from vmp.record import command as record


def own(root: Path, mount: Path, name: str) -> Path:
    """Return the directory with the settings of a cgroup."""
    return root / "cgroups" / str((mount / name).stat().st_ino)


@pytest.mark.parametrize("form", ["db/a", "/db/a", "/db/a/", "{mount}/db/a", "a"])
def test_a_cgroup_by_its_path_or_its_name(root: Path, mount: Path, form: str) -> None:
    assert cgroups.find(Control(root), form.format(mount=mount)).path == "/db/a"


def test_a_cgroup_by_its_unit(
    root: Path, mount: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    fake = tmp_path / "systemctl"
    fake.write_text('#!/bin/sh\n[ "$*" = "show -P ControlGroup -- x" ] && echo /twice/x\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert cgroups.named(mount, "x") == [mount / "twice/x"]
    assert cgroups.named(mount, "b") == [mount / "db/b"]  # which systemd doesn't know


@pytest.mark.parametrize(
    ("who", "status", "message"),
    [
        ("/", 2, "'/' is no cgroup that can have settings: name its path, such as "),
        ("", 2, "argument --cgroup: its value is empty"),
        ("db/../db", 2, "'db/../db' is no cgroup"),
        ("none", 1, "there is no cgroup 'none': name a path below "),
        ("/db/x", 1, "there is no cgroup '/db/x'"),
        ("x", 1, "'x' is the name of several cgroups: name one of /else/x, /twice/x"),
    ],
)
def test_what_is_no_cgroup(vmscanctl: Run, who: str, status: int, message: str) -> None:
    found, out, err = vmscanctl("--cgroup", who, "set", "flush=stock")
    assert (found, out, err.count("\n")) == (status, "", 1)
    assert err.startswith(f"vmscanctl: {message}")


@pytest.mark.parametrize("command", ["ab", "info flush", "doctor", "record", "shark x"])
def test_commands_of_the_machine_alone(vmscanctl: Run, command: str) -> None:
    status, out, err = vmscanctl("--cgroup", "db", *command.split())
    assert (status, out) == (2, "")
    whose = "list, status, set, profile, reset, clear, trial, load, apply, stats, top"
    assert f"--cgroup is for {whose}, not" in err


def test_a_module_without_cgroups(vmscanctl: Run, root: Path) -> None:
    (root / "cgroups").rmdir()
    assert vmscanctl("--cgroup", "db", "status")[2].startswith("vmscanctl: this module has no")
    assert vmscanctl("status")[0] == 0


def test_set_makes_the_settings_and_reset_removes_them(
    vmscanctl: Run, root: Path, mount: Path
) -> None:
    assert vmscanctl("--cgroup", "db", "set", "flush=stock", "flush.max_folios=8") == (0, "", "")
    assert (own(root, mount, "db") / "flush/policy").read_text() == "stock"
    assert (own(root, mount, "db") / "flush/max_folios").read_text() == "8"
    assert (root / "flush/policy").read_text() == "stock [batch]\n"
    assert vmscanctl("--cgroup", "db/a", "profile", "max")[0] == 0
    said = "removed: those of /db hold for /db/a now\n"
    assert vmscanctl("--cgroup", "db/a", "reset") == (0, said, "")
    said = "removed: nothing. /db/a has no settings of its own: those of /db hold for it.\n"
    assert vmscanctl("--cgroup", "db/a", "reset") == (0, said, "")
    assert vmscanctl("--cgroup", "db", "reset")[1] == ("removed: the machine's hold for /db now\n")
    assert not list((root / "cgroups").iterdir())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("set flush=bach", "flush cannot be 'bach': allowed are stock, batch"),
        ("set bypass=1", "unknown name 'bypass': allowed are profile, aging, "),
        ("set flush.observe=1", "unknown name 'flush.observe': allowed are"),
        ("set trace=1", "unknown name 'trace': allowed are"),
        ("profile mx", "profile cannot be 'mx': allowed are stock, recommended, max"),
        ("set scan=budget flush=0", "flush=0 was refused (operation not permitted); nothing was"),
    ],
)
def test_of_a_refused_value_nothing_stays(
    vmscanctl: Run, root: Path, words: str, message: str
) -> None:
    if "=0" in words:
        (root / "flush/policy").unlink()
        (root / "flush/policy").symlink_to("/proc/self/uid_map")  # can be written once, and was
    status, out, err = vmscanctl("--cgroup", "db", *words.split())
    assert (status, out) == (1, "")
    assert err.startswith(f"vmscanctl: {message}")
    assert not list((root / "cgroups").iterdir())


def test_a_cgroup_without_the_memory_controller(vmscanctl: Run, mount: Path) -> None:
    (mount / "db/memory.stat").unlink()
    assert vmscanctl("--cgroup", "db", "set", "flush=stock") == (
        1,
        "",
        "vmscanctl: /db can't get settings of its own: it has no memory controller: write +memory "
        "to its parent's cgroup.subtree_control\n",
    )


def test_whose_settings_hold_is_said(vmscanctl: Run) -> None:
    status, out, _ = vmscanctl("--cgroup", "db/b/deep", "status")
    assert status == 0
    sentence = "/db/b/deep has no settings of its own: the machine's hold for it."
    assert out.startswith(f"{sentence}\nprofile                  stock [recommended] max\n")
    assert "bypass" not in out and "observe" not in out
    vmscanctl("--cgroup", "db", "set", "flush=stock")
    sentence = "/db/b/deep has no settings of its own: those of /db hold for it"
    assert vmscanctl("--cgroup", "deep", "stats") == (1, "", f"vmscanctl: {sentence}\n")
    assert vmscanctl("--cgroup", "deep", "top", "--count", "1")[2] == f"vmscanctl: {sentence}\n"
    assert vmscanctl("--cgroup", "deep", "list")[1].startswith(f"{sentence}.\n")
    assert "* " not in vmscanctl("--cgroup", "deep", "list", "--settings")[1]
    found = json.loads(vmscanctl("--cgroup", "deep", "status", "--json")[1])
    assert (found["cgroup"], found["settings_of"]) == ("/db/b/deep", "/db")
    assert "abi" not in found and "cgroups" not in found
    status, out, _ = vmscanctl("--cgroup", "db", "stats")
    assert (status, out.splitlines()[0].split()) == (0, ["flush.deferred", "100"])


def test_ab_switches_the_settings_of_the_machine(vmscanctl: Run, root: Path, mount: Path) -> None:
    cgroups.require_machines(Control(root), mount / "db/a")
    vmscanctl("--cgroup", "db", "set", "flush=stock")
    cgroups.require_machines(Control(root), mount / "twice")
    message = "those of /db hold for /db/a, and not .* run `vmscanctl --cgroup /db reset` first"
    with pytest.raises(Failure, match=message):
        cgroups.require_machines(Control(root), mount / "db/a")


def test_status_has_a_tree(vmscanctl: Run, mount: Path) -> None:
    assert "cgroups" not in vmscanctl("status")[1]
    strange = "s\\x2d\n\x1b"
    (mount / "db" / strange).mkdir()
    (mount / "db" / strange / "memory.stat").touch()
    for name, setting in {
        "db/b/deep": "scan=budget",
        "db": "flush.max_folios=8",
        f"db/{strange}": "flush.max_folios=9",
        "postgresql.service": "unmap.kinds=none",
    }.items():
        assert vmscanctl("--cgroup", name, "set", setting) == (0, "", "")
    lines = vmscanctl("status")[1].partition("own, and what they would not inherit:\n")[2]
    assert [" ".join(line.split()) for line in lines.splitlines()] == [
        "/db flush.max_folios=8",
        "/b/deep flush.max_folios=31, scan=budget",
        "/s\\x2d\\012\\033 flush.max_folios=9",
        "/system.slice/postgresql.service unmap.kinds=none",
    ]
    assert [len(line) - len(line.lstrip()) for line in lines.splitlines()] == [2, 4, 4, 2]
    found = json.loads(vmscanctl("status", "--json")[1])["cgroups"]
    assert list(found) == [
        "/db", "/db/b/deep", f"/db/{strange}", "/system.slice/postgresql.service",
    ]  # fmt: skip
    assert found["/db/b/deep"]["inherits"] == "/db"
    assert found["/db/b/deep"]["differs"] == ["flush.max_folios", "scan"]
    assert found["/db"]["settings"]["flush.max_folios"] == 8


def test_a_profile_stands_for_its_policies(vmscanctl: Run, root: Path, mount: Path) -> None:
    vmscanctl("--cgroup", "db", "set", "flush=stock", "flush.max_folios=8")
    (own(root, mount, "db") / "profile").write_text("stock recommended [max]\n")
    assert "  /db   " in vmscanctl("status")[1]
    assert vmscanctl("status")[1].endswith(" profile=max, flush.max_folios=8\n")
    (own(root, mount, "db") / "profile").write_text("stock recommended max\n")
    assert vmscanctl("status")[1].endswith(" flush=stock, flush.max_folios=8\n")


def test_settings_of_a_cgroup_that_is_gone(vmscanctl: Run, root: Path, mount: Path) -> None:
    vmscanctl("--cgroup", "db", "set", "flush=stock")
    path = own(root, mount, "db") / "path"
    path.unlink()
    path.symlink_to("nothing")  # reading it has ENOENT
    assert "/db" not in vmscanctl("status")[1]
    assert json.loads(vmscanctl("status", "--json")[1])["cgroups"] == {}


def test_reset_of_the_machine_leaves_cgroups(vmscanctl: Run, root: Path) -> None:
    for name in ("db", "deep"):
        vmscanctl("--cgroup", name, "set", "flush=stock")
    out = vmscanctl("reset")[1]
    assert "2 cgroups with settings of their own: left as they are, reset --all removes" in out
    assert len(list((root / "cgroups").iterdir())) == 2
    assert vmscanctl("--cgroup", "db", "reset", "--all") == (
        2,
        "",
        "vmscanctl: --all is for the machine: leave out --cgroup\n",
    )


def test_reset_of_all(vmscanctl: Run, root: Path) -> None:
    for name in ("db", "deep"):
        vmscanctl("--cgroup", name, "set", "flush=stock")
    out = vmscanctl("reset", "--all")[1]
    assert out.startswith("set: profile=stock, ")
    assert out.endswith("\nremoved: the settings of 2 cgroups\n")
    assert not list((root / "cgroups").iterdir())


CONF = """\
scan=budget
[system.slice/postgresql.service] # a database
flush.max_folios=9
flush=bach
[none]
flush=stock
[a
flush.max_folios=7
[ db/a ]
flush.max_folios=8,throttle=all
"""


def test_a_file_with_sections(vmscanctl: Run, root: Path, mount: Path, tmp_path: Path) -> None:
    file = tmp_path / "conf"
    file.write_text(CONF)
    status, out, err = vmscanctl("apply", str(file))
    assert out.splitlines() == [
        "set: scan=budget",
        "set for /system.slice/postgresql.service: flush.max_folios=9",
        "set for /db/a: flush.max_folios=8,throttle=all",
        "not there now: [none]",
    ]
    assert (status, err.splitlines()) == (
        1,
        [
            f"vmscanctl: {file}, line 4: flush cannot be 'bach': allowed are stock, batch",
            f"vmscanctl: {file}, line 7: '[a' is no section, and its lines are left out: write "
            "[CGROUP], as in [system.slice/mariadb.service]",
        ],
    )
    assert len(list((root / "cgroups").iterdir())) == 2
    assert (own(root, mount, "db/a") / "flush/max_folios").read_text() == "8"
    assert (root / "flush/max_folios").read_text() == "31\n"
    file.write_text(CONF.replace("flush=bach\n", "").replace("[a\nflush.max_folios=7\n", ""))
    assert vmscanctl("apply", str(file))[0] == 0


def test_the_section_of_one_cgroup(vmscanctl: Run, root: Path, tmp_path: Path) -> None:
    file = tmp_path / "conf"
    file.write_text(CONF)
    said = "set for /db/a: flush.max_folios=8,throttle=all\n"
    assert vmscanctl("--cgroup", "a", "apply", str(file)) == (0, said, "")
    assert len(list((root / "cgroups").iterdir())) == 1
    assert (root / "scan/policy").read_text() == "[stock] budget\n"
    said = f"vmscanctl: {file} has no section [db]\n"
    assert vmscanctl("--cgroup", "db", "apply", str(file)) == (1, "", said)


def test_top_has_the_busiest_cgroups(
    vmscanctl: Run, root: Path, mount: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("db", "db/a", "deep"):
        vmscanctl("--cgroup", name, "set", "flush=stock")
    (own(root, mount, "db/a") / "flush/policy").write_text("stock [batch]\n")
    stats = own(root, mount, "db/b/deep") / "flush/stats"
    stats.chmod(0o644)
    now, calls = [0.0], itertools.count(1)

    def sleep(seconds: float) -> None:
        now[0] += seconds
        done = next(calls)
        (mount / "db/a/memory.stat").write_text(f"pgsteal {1000 + 200 * done}\n")
        (mount / "db/b/deep/memory.stat").write_text(f"pgsteal {1000 + 3000 * done}\n")
        stats.write_text(f"deferred {100 + 90 * done}\nbatches {4 + 3 * done}\n")

    monkeypatch.setattr("time.sleep", sleep)
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setenv("COLUMNS", "100")
    out = vmscanctl("top", "--interval", "2s", "--count", "1")[1]
    assert [line.split() for line in out.splitlines()[-3:]] == [
        ["1,500", "1.5", "30", "0", "/db/b/deep,", "flush=stock"],
        ["100", "0", "-", "0", "/db/a"],
        ["0", "0", "-", "0", "/db,", "flush=stock"],
    ]
    monkeypatch.setenv("LINES", "15")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    out = vmscanctl("top", "--interval", "2s", "--count", "1")[1]
    lines = out.split("\x1b[K\n")
    assert len(lines) == 15 and "/db/b/deep" in out and "/db," not in out
    out = vmscanctl("--cgroup", "deep", "top", "--interval", "2s", "--count", "1")[1]
    assert "/db/b/deep, profile" in out and "stolen 1,500, scanned 0" in out
    assert "STOLEN/S" not in out


def test_no_file_is_read_twice_for_the_tree(
    vmscanctl: Run, root: Path, mount: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vmscanctl("--cgroup", "db", "set", "flush=stock")
    files = sum(path.is_file() for path in own(root, mount, "db").rglob("*"))
    read: list[Path] = []
    original = Path.open

    def counting(path: Path, *words: object, **more: object) -> object:
        read.append(path)
        return original(path, *words, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", counting)
    cgroups.all_values(Control(root))
    below = [path for path in read if path.is_relative_to(root / "cgroups")]
    assert len(below) <= files


def test_a_recording_counts_what_all_settings_count(
    vmscanctl: Run, root: Path, mount: Path
) -> None:
    vmscanctl("--cgroup", "db", "set", "flush=stock")
    before = record.all_stats(Control(root))
    (own(root, mount, "db") / "flush/stats").chmod(0o644)
    (own(root, mount, "db") / "flush/stats").write_text("deferred 150\n")
    vmscanctl("--cgroup", "deep", "set", "flush=stock")
    stats = own(root, mount, "db/b/deep") / "flush/stats"
    stats.chmod(0o644)
    stats.write_text("deferred 7\n")  # of one that is new
    (root / "flush/stats").chmod(0o644)
    (root / "flush/stats").write_text("deferred 101\n")
    grown = record.grown(before, record.all_stats(Control(root)))
    assert grown["flush"]["deferred"] == 50 + 7 + 1


def test_what_is_not_utf_8_is_shown(root: Path, mount: Path) -> None:
    (mount / os.fsdecode(b"\xff")).mkdir()
    assert cgroups.shown(cgroups.find(Control(root), os.fsdecode(b"\xff")).path) == "/\\377"
    with pytest.raises(Failure, match=r"^/\\377 has no settings of its own: the machine's hold"):
        cgroups.find(Control(root), os.fsdecode(b"\xff")).own()
