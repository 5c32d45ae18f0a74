# SPDX-License-Identifier: GPL-2.0
"""Tests of what is known of kernels: point releases, and names for them."""

import argparse
import os
import stat
from pathlib import Path

import pytest
from vmp.common import Failure, Usage
from vmp.guest import make, sources
from vmp.guest.kernel import decide
from vmp.guest.sources import DEFAULT, Version, asked, find_version, newest, versions

# A machine without a network: apt-cache knows the lists below, and all else fails.
MADISON = """\
{name} | 6.12.117-1~deb12u1 | http://mirror.example/debian-security bookworm-security/main amd64
{name} | 6.12.107-1 | http://mirror.example/debian trixie/main amd64 Packages
{name} |  6.12.94-1 | http://mirror.example/debian trixie/main amd64 Packages
{name} | 6.12~rc1-1 | http://mirror.example/debian experimental/main amd64 Packages
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the cache of a machine whose apt knows releases of the default series alone."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (tmp_path / "madison").write_text(MADISON.format(name=f"linux-source-{DEFAULT}"))
    scripts = {
        "apt-cache": f'[ "$2" != linux-source-{DEFAULT} ] || cat "{tmp_path}/madison"',
        "apt-get": "echo 'E: no network' >&2; exit 100",
        "apt-config": "",
    }
    for name, script in scripts.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.delenv(sources.NAMED, raising=False)
    monkeypatch.setattr(sources, "DEBS", tmp_path / "debs")
    monkeypatch.setattr(sources, "APT", tmp_path / "apt")
    monkeypatch.setattr(sources, "LISTS", tmp_path)
    return tmp_path


def new_process() -> None:
    """Have nothing be decided yet, as in another process."""
    versions.cache_clear()
    newest.cache_clear()


@pytest.fixture(autouse=True)
def forget() -> None:
    """Have nothing left of another test."""
    new_process()


def keep(machine: Path, series: str, package: str) -> None:
    """Put a source package into the cache."""
    (machine / "debs").mkdir(exist_ok=True)
    (machine / "debs" / f"linux-source-{series}_{package}_all.deb").touch()


def test_releases_in_order_and_none_before_the_first_one_that_is_supported(machine: Path) -> None:
    assert [version.point for version in versions(DEFAULT)] == ["6.12.107", "6.12.117"]
    assert find_version("6.12.107").package == "6.12.107-1"


def test_a_version_names_its_package() -> None:
    version = Version("7.3.4", "7.3.4-1~bpo13+1")
    assert (version.series, version.name) == ("7.3", "linux-source-7.3")
    assert version.deb.name == "linux-source-7.3_7.3.4-1~bpo13+1_all.deb"


def test_the_newest_of_a_series(machine: Path) -> None:
    assert find_version(DEFAULT) == find_version("6.12.117-1~deb12u1")
    assert find_version(DEFAULT).point == "6.12.117"


def line(kernel: str | None, arch: str | None = None) -> argparse.Namespace:
    """Return what a command line asks for."""
    return argparse.Namespace(kernel=kernel, arch=arch)


@pytest.mark.parametrize(
    ("given", "shell", "meant"),
    [
        (line("7.3"), "6.12.107", "7.3"),
        (line(None), "6.12.107", "6.12.107"),
        (line(None), "", DEFAULT),
        (line(None), ":arm64", f"{DEFAULT}:arm64"),
        (line("7.3", "arm64"), "", "7.3:arm64"),
        (line(None, "arm64"), "7.3", "7.3:arm64"),
        (line("/a/built/kernel"), "7.3", "/a/built/kernel"),
    ],
)
def test_the_command_line_counts_before_the_shell(
    monkeypatch: pytest.MonkeyPatch, given: argparse.Namespace, shell: str, meant: str
) -> None:
    monkeypatch.setenv(sources.NAMED, shell)
    assert asked(given) == meant


@pytest.mark.parametrize("name", ["7.3:arm64", "/a/built/kernel"])
def test_an_architecture_is_said_once(name: str) -> None:
    with pytest.raises(Usage, match="leave --arch out"):
        asked(line(name, "arm64"))


@pytest.mark.usefixtures("machine")
def test_a_release_is_of_an_architecture() -> None:
    arm = find_version("6.12.117:arm64")
    assert (arm.label, arm.exact, arm.builds) == (
        "6.12.117:arm64", "6.12.117-1~deb12u1:arm64", "6.12.117-1~deb12u1-arm64"
    )  # fmt: skip
    assert find_version(arm.label) == find_version(arm.exact) == arm
    assert find_version("6.12.117:amd64").builds == "6.12.117-1~deb12u1"
    assert arm.deb == find_version("6.12.117").deb
    with pytest.raises(Failure, match="no guest of the architecture 'riscv64': choose amd64 or"):
        find_version("6.12.117:riscv64")


def release(machine: Path) -> None:
    """Have apt know a newer release from now on."""
    with (machine / "madison").open("a") as madison:
        print(f"linux-source-{DEFAULT} | 6.12.118-1 | trixie", file=madison)


def test_a_run_decides_once_what_a_series_means(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    decided = decide(DEFAULT)
    assert decided == "6.12.117"
    assert capsys.readouterr().err == "kernel: 6.12 is 6.12.117\n"
    release(machine)
    versions.cache_clear()
    assert find_version(DEFAULT).point == "6.12.117"
    new_process()
    assert decide(decided) == find_version(decided).point == decided  # in a tool that it runs
    assert not capsys.readouterr().err


@pytest.mark.parametrize("name", ["6.12.107", "6.12.107-1"])
def test_a_release_that_is_named_is_meant(
    machine: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert decide(name) == name
    assert not capsys.readouterr().err


def test_offline_the_newest_that_was_fetched_stands_for_a_series(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(machine, DEFAULT, "6.12.107-1~deb12u1")
    assert find_version(DEFAULT) == Version("6.12.107", "6.12.107-1~deb12u1")
    assert "going on with 6.12.107" in capsys.readouterr().err


def test_a_fetched_package_is_preferred_to_another_of_that_release(machine: Path) -> None:
    keep(machine, DEFAULT, "6.12.117-1")
    assert find_version(DEFAULT).package == "6.12.117-1"


def test_a_series_that_no_list_has(machine: Path) -> None:
    with pytest.raises(Failure, match="no network"):
        versions("7.3")
    (machine / "apt").mkdir(exist_ok=True)
    (machine / "apt" / "updated").touch()
    new_process()
    with pytest.raises(Failure, match="no suite of Debian's archive has linux-source-7.3"):
        versions("7.3")
    keep(machine, "7.3", "7.3.4-1~bpo13+1")
    new_process()
    assert [version.point for version in versions("7.3")] == ["7.3.4"]


@pytest.mark.parametrize("name", ["5.10", "nonsense", "6.12.117x/y", "7"])
def test_a_name_that_no_kernel_has(machine: Path, name: str) -> None:
    with pytest.raises(Failure, match=r"no hooks for a kernel .* choose .*6\.12|choose 6\.12"):
        find_version(name)


def test_a_release_that_there_is_not(machine: Path) -> None:
    with pytest.raises(Failure, match=r"choose 6\.12 \(the newest\) or one of 6\.12\.107, 6\.12\."):
        find_version("6.12.3")


def test_a_release_that_the_machine_does_not_know_is_looked_up(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make_lists() -> None:
        (machine / "apt").mkdir(exist_ok=True)
        (machine / "apt" / "apt.conf").touch()
        (machine / "madison").write_text(f"linux-source-{DEFAULT} | 6.12.118-1 | suite\n")

    monkeypatch.setattr(sources, "make_lists", make_lists)
    assert find_version("6.12.118") == Version("6.12.118", "6.12.118-1")


def test_a_release_without_hooks_can_be_tried(machine: Path) -> None:
    keep(machine, "99.1", "99.1.2-1")
    assert find_version("99.1", hooked=False).point == "99.1.2"
    with pytest.raises(Failure, match="no hooks"):
        find_version("99.1")


def test_how_far_a_build_is(
    machine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the last whole build; one that goes on with objects that are there is none."""
    monkeypatch.setattr(make, "STEPS", machine / "steps")
    monkeypatch.setattr(make, "USUAL", {"plain": 3})
    for total, objects in ((3, 0), (2, 1), (2, 2)):
        (machine / f"{objects}.o").write_text("")
        progress = make.Progress("x", "plain", machine / "nothing" if not objects else machine)
        assert (progress.total, progress.before) == (total, objects and objects + 1)
        progress.line("  CC      mm/vmscan.o\n")
        progress.show("", "\n")
        said = capsys.readouterr().err
        assert said.startswith("kernel: x: 1 steps, 0:0")
        assert (" to go" in said) == (not objects)
        progress.line("  AR      mm/built-in.a\n")
        progress.finish()
        assert capsys.readouterr().err.startswith("kernel: x: 2 steps, 0:0")
    assert (machine / "steps" / "plain").read_text() == "2"
    (machine / "steps" / "plain").write_text("")  # as on a disk that was full
    assert make.Progress("x", "plain", machine).total == 3
