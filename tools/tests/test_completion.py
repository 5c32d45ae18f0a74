# SPDX-License-Identifier: GPL-2.0
"""Tests of the completion for bash: that it is the parsers', and what it offers."""

import subprocess
from pathlib import Path

import pytest
from vmp.testing.completion import FILE, script

SETTINGS = "flush=stock\nflush=batch\nflush.max_folios=\nprofile=stock\nprofile=max\n"
ASK = r"""
. "$1"
COMP_LINE=$2 COMP_POINT=${#2}
_vmscanctl
printf '%s\n' "${COMPREPLY[@]}"
"""


def test_the_file_is_that_of_the_parsers() -> None:
    assert FILE.read_text() == script(), "cd tools && python3 -m vmp.testing.completion"


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("vmscanctl re", "reset record report"),
        ("vmscanctl --cgroup s", "system.slice system.slice/db@1.service system.slice/a\\\\x2d"),
        ("vmscanctl --cgroup /system.slice/d", "/system.slice/db@1.service"),
        ("vmscanctl --cgroup system.slice/db@1", "1.service"),
        ("vmscanctl --cgroup none", ""),
        ("vmscanctl --cgroup db set flush=", "stock batch"),
        ("vmscanctl --cgroup db set b", ""),
        ("vmscanctl --cgroup=db set b", ""),
        ("vmscanctl set b", "bypass="),
        ("vmscanctl --cgroup db reset --", "--help --version --all"),
        ("vmscanctl top --", "--help --version --interval --count"),
        ("vmscanctl set fl", "flush=stock flush=batch flush.max_folios="),
        ("vmscanctl set flush=", "stock batch"),
        ("vmscanctl set profile=max flush=b", "batch"),
        ("vmscanctl profile ", "stock max"),
        ("vmscanctl info flu", "flush flush=stock flush=batch"),
        ("vmscanctl info scan=v", "v6.12"),
        ("vmscanctl ab --lru ", "mglru classic keep"),
    ],
)
def test_what_is_offered(typed: str, offered: str, tmp_path: Path) -> None:
    fake = tmp_path / "vmscanctl"
    fake.write_text(
        f"#!/bin/sh\ncat <<E\n{SETTINGS}E\n"
        'case "$1 $2" in "--cgroup db" | "--cgroup=db list") ;; *) echo bypass= ;; esac\n'
    )
    fake.chmod(0o755)
    for name in ("db@1.service", "a\\x2d"):
        (tmp_path / "cgroup/system.slice" / name).mkdir(parents=True)
    (tmp_path / "findmnt").write_text(f"#!/bin/sh\necho {tmp_path}/cgroup\n")
    (tmp_path / "findmnt").chmod(0o755)
    done = subprocess.run(
        ["bash", "-c", ASK, "ask", FILE, typed],
        capture_output=True,
        text=True,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
    )
    assert sorted(done.stdout.split()) == sorted(offered.split())
