# SPDX-License-Identifier: GPL-2.0
"""Tests of what tools/vm reads from a guest's kernel log, and of the machine it asks QEMU for."""

import itertools
import json
import pty
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from vmp.common import REPO, Failure, Usage, Words, parse
from vmp.guest import qemu
from vmp.guest.command import COMMAND, check
from vmp.guest.foreign import inside
from vmp.guest.kernel import kernel_inputs
from vmp.guest.log import NO_PORTS, PORTS, find_splat, stale_breakpoint
from vmp.testing.pages import parser_of


def oops(kind: str, before: str, at: str) -> list[str]:
    """Return a kernel log with an Oops that shows two bytes around the instruction pointer."""
    return [
        "vmp: command starts",
        f"Oops: {kind}: 0000 [#1] SMP",
        "RIP: 0010:shrink_folio_list+0x14f/0x220",
        f"Code: 00 c7 43 68 01 00 {before} <{at}> 44 89 f2",
        "RIP: 0033:0x7f0f3dd70ad7",
        "Code: 0b e9 68 cc <48> 3d 01",
        "---[ end trace 0000000000000000 ]---",
        "Kernel panic - not syncing: Fatal exception",
    ]


@pytest.mark.parametrize(("before", "at"), [("66", "90"), ("e9", "34"), ("eb", "7b")])
def test_memory_has_no_breakpoint(before: str, at: str) -> None:
    assert stale_breakpoint(find_splat(oops("int3", before, at)))


def test_memory_has_a_breakpoint() -> None:
    assert not stale_breakpoint(find_splat(oops("int3", "cc", "90")))


def test_another_oops() -> None:
    assert not stale_breakpoint(find_splat(oops("0002", "66", "90")))


def test_trouble_before_the_oops() -> None:
    log = ["WARNING: CPU: 1 PID: 7 at mm/vmscan.c:9", *oops("int3", "66", "90")]
    assert not stale_breakpoint(find_splat(log))


def test_no_code_and_no_trouble() -> None:
    assert not stale_breakpoint(["Oops: int3: 0000 [#1] SMP"])
    assert not stale_breakpoint([])


def test_a_command_does_not_start_on_the_console(tmp_path: Path) -> None:
    log = tmp_path / "kmsg"
    script = PORTS.replace("/dev/kmsg", str(log)) + "echo started"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "started\n"
    assert not log.exists()
    _, console = pty.openpty()
    assert subprocess.run(["sh", "-c", script], stdout=console, check=False).returncode == 125
    assert NO_PORTS in log.read_text()


def write_inputs(kernel: Path, architecture: str) -> None:
    inputs = {"architecture": architecture, "variant": "plain", "release": "6.12.117"}
    (kernel / "inputs.json").write_text(json.dumps(inputs))


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory of a kernel; virtme-ng's command is that of QEMU with its options."""

    def show(command: Words, *_: Any, **__: Any) -> str:
        words = [str(word) for word in command]
        (tmp_path / "asked").write_text(shlex.join(words))
        options = words[words.index("--qemu-opts") + 1 :]
        return "made by virtme-ng\n" + shlex.join(
            ["qemu", "-cpu", "its own", "-append", "quiet", *options]
        )

    virtme = tmp_path / "venv/bin/virtme-run"
    virtme.parent.mkdir(parents=True)
    virtme.touch()
    (tmp_path / "release").write_text("6.12.117\n")
    write_inputs(tmp_path, "amd64")
    monkeypatch.setattr(qemu, "CACHE", tmp_path)
    monkeypatch.setattr(qemu, "run", show)
    return tmp_path


@pytest.mark.parametrize(
    "inputs",
    [
        "",
        "{",
        "{}",
        "[]",
        "null",
        "\udcff",
        '{"architecture": "amd64", "variant": "plain"}',
        '{"architecture": "vax", "variant": "plain", "release": "6.12.117"}',
        '{"architecture": "amd64", "variant": 1, "release": "6.12.117"}',
    ],
)
def test_a_directory_that_holds_no_kernel(tmp_path: Path, inputs: str) -> None:
    (tmp_path / "inputs.json").write_text(inputs, errors="surrogateescape")
    with pytest.raises(Failure, match="holds no built kernel: give a directory that"):
        kernel_inputs(tmp_path)


@pytest.mark.parametrize(
    "words",
    ["--memory=10000G", "--memory=١G", "--disk=99999999999999999999G", f"--disk=1G:{10**9}"],
)
def test_a_machine_that_is_too_large(words: str) -> None:
    with pytest.raises(Usage, match="up to 9999G"):
        check(parse(parser_of(COMMAND), [words, "--", "true"]))


def test_clocks_count_instructions_where_that_is_asked_for(kernel: Path) -> None:
    for icount in (False, True):
        machine = qemu.Machine(4, "2G", disks=("1M",), icount=icount)
        words = qemu.qemu_command(machine, kernel, kernel, kernel / "log")
        after = words[words.index("-icount") + 1] if "-icount" in words else ""
        # An instruction takes a nanosecond, and the clocks run on while all CPUs are idle.
        assert after == ("shift=0,sleep=off" if icount else "")
        assert "virtio-blk-pci,drive=disk0" in words


def test_the_last_node_can_be_of_slow_memory(kernel: Path) -> None:
    machine = qemu.Machine(4, "3G", nodes=3, slow_node=True)
    words = qemu.qemu_command(machine, kernel, kernel, kernel / "log")
    nodes = [word for word in words if word.startswith("node,")]
    assert [node.partition(",memdev=")[2] for node in nodes] == [
        "node0,cpus=0-1",
        "node1,cpus=2-3",
        "node2,initiator=0",
    ]
    # Each node with CPUs knows the way to each node, itself included.
    ways = [word for word in words if word.startswith("hmat-lb,")]
    assert len(ways) == 2 * 2 * 3
    assert {way.rpartition("latency=")[2] for way in ways if ",target=2," in way} >= {"100"}


def processor(words: list[str]) -> str:
    """Return what QEMU emulates: the last of its options counts."""
    return [after for word, after in itertools.pairwise(words) if word == "-cpu"][-1]


@pytest.mark.parametrize("icount", [False, True])
@pytest.mark.parametrize("usable", [False, True])
def test_kvm_is_used_where_it_can_be(
    kernel: Path, monkeypatch: pytest.MonkeyPatch, usable: bool, icount: bool
) -> None:
    monkeypatch.setattr(qemu, "kvm_usable", lambda: usable)
    words = qemu.qemu_command(qemu.Machine(4, "2G", icount=icount), kernel, kernel, kernel / "log")
    kvm = usable and not icount
    assert ("--disable-kvm" not in shlex.split((kernel / "asked").read_text())) == kvm
    assert processor(words) == ("its own" if kvm else "max")


def test_a_foreign_guest_has_programs_of_its_own(
    kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_inputs(kernel, "arm64")
    monkeypatch.setattr(qemu, "make_root", lambda architecture: kernel / architecture.name)
    monkeypatch.setattr(qemu, "inside", lambda root: ["env", f"ROOT={root}"])
    words = qemu.qemu_command(qemu.Machine(4, "2G"), kernel, kernel, kernel / "log")
    assert words[:2] == ["env", f"ROOT={kernel / 'arm64'}"]
    assert processor(words) == "max,pauth-impdef=on"
    options = shlex.split((kernel / "asked").read_text())
    assert options[options.index("--root") + 1] == str(kernel / "arm64")
    assert options[options.index("--arch") + 1] == "aarch64"
    # What the guest sees is where it is on this machine.
    assert f"--rwdir={kernel}={kernel}" in options


def test_the_root_of_a_foreign_guest_shows_the_checkout(tmp_path: Path) -> None:
    words = inside(tmp_path)
    assert words[:2] == ["unshare", "--mount"]
    assert f"mount --bind {REPO} {tmp_path}{REPO} && " in words[4]
    assert Path(f"{tmp_path}{REPO}").is_dir()
