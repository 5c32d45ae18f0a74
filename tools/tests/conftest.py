# SPDX-License-Identifier: GPL-2.0
"""A machine with files like the module's, and with cgroups."""

import errno
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from vmp.control import cgroups, show
from vmp.control.debugfs import Control
from vmp.vmscanctl import entry

FILES = {
    "abi": "abi 9\nmodule 0.1.0\nkernel 6.12.118\n",
    "profile": "stock [recommended] max\n",
    "bypass": "0\n",
    "flush/policy": "stock [batch]\n",
    "flush/max_folios": "31\n",
    "flush/span": "1\n",
    "flush/observe": "0\n",
    "flush/stats": "deferred 100\nbatches 4\nflushes 4\nlargest_batch 31\n",
    "scan/policy": "[stock] budget\n",
    "scan/batch": "64\n",
    "scan/floor": "32\n",
    "aging/policy": "stop [continue]\n",
    "aging/in_effect": "no: scan/policy is stock\n",
    "unmap/policy": "[stock] batch half\n",
    "unmap/kinds": "[lazyfree] anon [file]\n",
    "unmap/max_ptes": "512\n",
    "throttle/policy": "[stock] memcg all\n",
    "throttle/stats": "writeback 0\nwriteback_us 0\nwriteback_longest_us 0\n",
}
READ_ONLY = ("abi", "stats", "in_effect")
CGROUPS = ("db", "db/a", "db/b/deep", "twice/x", "else/x", "system.slice/postgresql.service")
MEMORY = "anon 1\npgsteal 1000\npgscan 2000\n"
Run = Callable[..., tuple[int, str, str]]


def like_the_module(root: Path, mount: Path) -> Callable[[Control, str, int], None]:
    """Return what stands for the module's cgroups/add and cgroups/remove."""

    def request(machine: Control, what: str, number: int) -> None:
        own = machine.root / "cgroups" / str(number)
        if what == "remove":
            if not own.exists():
                raise OSError(errno.ENOENT, "")
            shutil.rmtree(own)
            return
        (found,) = (path for path in mount.rglob("*/") if path.stat().st_ino == number)
        if not (found / "memory.stat").exists():
            raise OSError(errno.EOPNOTSUPP, "")
        above = [root / "cgroups" / str(path.stat().st_ino) for path in found.parents]
        held = next((path for path in above if path.is_dir()), root)
        without = shutil.ignore_patterns("abi", "bypass", "observe", "cgroups", "path")
        shutil.copytree(held, own, symlinks=True, ignore=without)
        escaped = str(found.relative_to(mount)).replace("\\", "\\134").replace("\n", "\\012")
        (own / "path").write_text(f"/{escaped}\n")
        (own / "path").chmod(0o444)

    return request


@pytest.fixture
def mount(tmp_path: Path) -> Path:
    """Return where the cgroups are."""
    found = tmp_path / "cgroup"
    for name in CGROUPS:
        (found / name).mkdir(parents=True)
    for directory in found.rglob("*/"):
        (directory / "memory.stat").write_text(MEMORY)
    (found / "cgroup.controllers").write_text("cpu memory\n")
    return found


@pytest.fixture
def root(tmp_path: Path, mount: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory with the module's files."""
    found = tmp_path / "vmscan_policy"
    (found / "cgroups").mkdir(parents=True)
    for name, text in FILES.items():
        path = found / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o444 if path.name in READ_ONLY else 0o644)
    for module in (show, cgroups):
        monkeypatch.setattr(module, "locate", lambda: found)
    monkeypatch.setattr("vmp.control.debugfs.mount_points", lambda _kind: [])
    monkeypatch.setattr(cgroups, "mount_points", lambda _kind: [mount])
    monkeypatch.setattr(cgroups, "request", like_the_module(found, mount))
    monkeypatch.setattr(show, "request", like_the_module(found, mount))
    monkeypatch.setattr(cgroups, "control_group", lambda _unit: "")
    return found


@pytest.fixture
def vmscanctl(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Return what runs a command line: its exit status, and what it prints and complains."""

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["vmscanctl", *words])
        monkeypatch.setattr("signal.signal", lambda *_: None)
        with pytest.raises(SystemExit) as ended:
            entry()
        said = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, said.out, said.err

    return run
