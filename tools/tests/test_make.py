# SPDX-License-Identifier: GPL-2.0
"""Tests of what make is asked for, and of what a kernel's packages are made from."""

import platform
import re
import subprocess
from pathlib import Path

import pytest
from vmp.common import REPO, Usage
from vmp.guest import deb
from vmp.guest.architecture import AMD64, ARM64
from vmp.guest.sources import NAMED

MAKEFILE = (REPO / "Makefile").read_text().replace("\\\n", " ")


def make(*words: str) -> subprocess.CompletedProcess[str]:
    """Run make in the checkout."""
    command = ["make", "--no-print-directory", "-C", str(REPO), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("target", ["modules", "clean", "dkms-install"])
def test_make_without_headers_says_what_to_do(target: str) -> None:
    done = make(target, "KDIR=/nonesuch", "RELEASE=9.9")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "/nonesuch: install linux-headers-9.9, or name a build tree with KDIR=" in done.stderr


@pytest.mark.parametrize(
    ("words", "kernel"), [((), "6.12.107"), (("KERNEL=",), "6.12.107"), (("KERNEL=7.3",), "7.3")]
)
def test_the_kernel_that_the_environment_names(
    words: tuple[str, ...], kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Make may be what a tool has started, which has decided."""
    monkeypatch.setenv(NAMED, "6.12.107")
    for name in ("KERNEL", "MAKEFLAGS", "MAKEOVERRIDES"):  # of a make that runs this
        monkeypatch.delenv(name, raising=False)
    show = "--eval=show: ; @echo $$VMP_KERNEL"
    assert make(show, "show", *words).stdout == f"{kernel}\n"


def test_help_names_each_target() -> None:
    phony = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    assert phony
    named = {line.split()[0] for line in make("help").stdout.splitlines()}
    assert set(phony[1].split()) - {"help", "headers"} <= named


def test_the_suffix_is_the_abi_of_module_and_hooks() -> None:
    supported = (REPO / "module" / "compat.h").read_text()
    assert f"VMSCAN_POLICY_ABI != {deb.suffix().removeprefix('-vmp')}\n" in supported


@pytest.mark.parametrize("text", [None, "", "no configuration\n"])
def test_what_is_no_configuration_is_refused(text: str | None, tmp_path: Path) -> None:
    config = tmp_path / "config"
    if text is not None:
        config.write_text(text)
    with pytest.raises(Usage, match="there is no kernel configuration"):
        deb.build_packages("6.12", config)


def test_what_packages_of_a_kernel_need_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    said = (
        "dpkg-checkbuilddeps: error: Unmet build dependencies: libdw-dev:native libssl-dev (>= 3)\n"
    )
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    todo = "the packages of a kernel need others: "
    assert deb.lacking(said, AMD64) == f"{todo}apt-get install libdw-dev libssl-dev"
    assert deb.lacking(said, ARM64) == (
        f"{todo}dpkg --add-architecture arm64 && apt-get update && "
        "apt-get install libdw-dev libssl-dev:arm64"
    )
    own = said.replace(" libssl-dev (>= 3)", "")
    assert deb.lacking(own, ARM64) == f"{todo}apt-get install libdw-dev"
    assert deb.lacking("make: *** Error 2\n", ARM64) == ""
