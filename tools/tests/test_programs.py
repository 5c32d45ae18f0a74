# SPDX-License-Identifier: GPL-2.0
"""Tests of loading BPF programs, with a script that attaches and says what it is told to."""

import argparse
from pathlib import Path

import pytest
from vmp.common import Failure
from vmp.control import programs
from vmp.control.debugfs import Control

TOLD = "about A BPF program.\nmodule vmscan_policy\nindex 16\nanswers 0\nlimited 0\nns 0\n"


@pytest.fixture
def bpffs(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return bpffs, on a machine that takes programs."""
    mount = tmp_path / "bpf"
    mount.mkdir()
    (root / "plugins").mkdir()
    monkeypatch.setattr(programs, "chosen", lambda _: (Control(root), None))
    monkeypatch.setattr(programs, "locate", lambda: root)
    monkeypatch.setattr(programs, "mount_points", lambda _: [mount])
    monkeypatch.setattr(programs, "TYPES", tmp_path)
    monkeypatch.setattr(programs, "GONE", 0.2)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    (tmp_path / "half.bpf.o").touch()
    (tmp_path / "told").write_text(TOLD)
    return mount


def bpftool(tmp_path: Path, script: str) -> None:
    """Have a bpftool that does `script`; $4 is where links go."""
    (tmp_path / "bpftool").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "bpftool").chmod(0o755)


def load(tmp_path: Path, name: str = "half.bpf.o") -> int:
    """Load a file."""
    return programs.load(argparse.Namespace(program=tmp_path / name))


def test_a_policy_comes_and_goes(
    bpffs: Path, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    offered = root / "plugins/flush.half"
    bpftool(tmp_path, f"touch $4/half; cp {tmp_path}/told {offered}")
    assert load(tmp_path) == 0
    link = bpffs / programs.PINS / "flush=half"
    assert link.exists()
    assert capsys.readouterr().out == "loaded: flush=half\n"
    arguments = argparse.Namespace(policy="flush=half")
    with pytest.raises(Failure, match="another program holds it"):
        programs.unload(arguments)
    link.parent.mkdir(exist_ok=True)
    link.touch()
    offered.unlink()
    assert programs.unload(arguments) == 0
    assert not link.parent.exists()


def test_what_bpftool_says(bpffs: Path, tmp_path: Path) -> None:
    bpftool(tmp_path, "echo one; echo 'libbpf: no' >&2; echo 'Error: no' >&2; exit 1")
    with pytest.raises(Failure, match="half.bpf.o can't be loaded: libbpf: no; Error: no$"):
        load(tmp_path)
    assert not list((bpffs / programs.PINS).iterdir())


def test_a_bpftool_that_crashes(bpffs: Path, root: Path, tmp_path: Path) -> None:
    attached = f"touch $4/half; cp {tmp_path}/told {root}/plugins/flush.half"
    bpftool(tmp_path, f"{attached}; kill -SEGV $$")
    assert load(tmp_path) == 0
    assert (bpffs / programs.PINS / "flush=half").exists()
    bpftool(tmp_path, "kill -SEGV $$")
    with pytest.raises(Failure, match="half.bpf.o can't be loaded: exit status -11$"):
        load(tmp_path)


def test_several_policies_are_not_loaded(bpffs: Path, root: Path, tmp_path: Path) -> None:
    offered = root / "plugins"
    bpftool(tmp_path, f"for n in a b; do touch $4/$n; cp {tmp_path}/told {offered}/flush.$n; done")
    with pytest.raises(Failure, match="has 2 policies: load one at a time"):
        load(tmp_path)
    assert not list((bpffs / programs.PINS).iterdir())


def test_what_is_not_there(bpffs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bpftool(tmp_path, "exit 1")
    with pytest.raises(Failure, match="none.o is no file"):
        load(tmp_path, "none.o")
    with pytest.raises(Failure, match="no BPF program is flush=x: none is loaded"):
        programs.unload(argparse.Namespace(policy="flush=x"))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(Failure, match="bpftool is not installed"):
        load(tmp_path)
    monkeypatch.setattr(programs, "TYPES", tmp_path / "none")
    with pytest.raises(Failure, match="the module takes no BPF programs"):
        load(tmp_path)
    monkeypatch.setattr(programs, "mount_points", lambda _: [])
    with pytest.raises(Failure, match="bpffs is not mounted"):
        programs.pins()
