# SPDX-License-Identifier: GPL-2.0
"""Tests of what tools/vm reads from a guest's kernel log."""

import pytest
from vmp.guest.log import find_splat, stale_breakpoint


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
