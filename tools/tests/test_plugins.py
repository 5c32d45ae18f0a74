# SPDX-License-Identifier: GPL-2.0
"""Tests of what the tools do about policies of other modules."""

from pathlib import Path

import pytest
from vmp.common import REPO, Usage
from vmp.control import show
from vmp.control.debugfs import Control
from vmp.control.plugins import Plugin, plugins
from vmp.report import aggregate, trace

TOLD = (
    "about Flushes once for 32 dirty folios.\nmodule half\nindex 16\n"
    "answers 1234\nlimited 5\nns 8000000\n"
)
HALF = Plugin("Flushes once for 32 dirty folios.", "half", 16, 1234, 5, 8000000)


@pytest.fixture
def half(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the module's directory, with a policy of another module."""
    (root / "plugins").mkdir()
    (root / "plugins/flush.half").write_text(TOLD)
    (root / "flush/policy").write_text("stock batch [half]\n")
    monkeypatch.setattr(show, "locate", lambda: root)
    return root


def test_what_the_module_tells(half: Path) -> None:
    assert plugins(half) == {("flush", "half"): HALF}
    assert HALF.done == "1,234 answers, 5 of them had to be limited; 8 ms of CPU time"


def test_without_any(root: Path) -> None:
    assert plugins(root) == {}


def test_a_policy_of_a_module_has_a_page(half: Path) -> None:
    said = "\n".join(show.page("flush", "half", {"flush": "stock batch [half]"}, 100))
    assert "flush=half, in force, of the module half" in said
    assert "Flushes once for 32 dirty folios." in said
    assert "flush=batch" not in said


def test_the_list_says_whose_it_is(half: Path) -> None:
    told = TOLD.replace("module half", "module vmscan_policy")
    (half / "plugins/flush.half").write_text(told)
    said = "\n".join(show.listed(Control(half)))
    assert "*   flush=half" in said
    assert "Flushes once for 32 dirty folios. By a BPF program." in said


def test_what_is_no_policy(half: Path) -> None:
    arguments = type("Arguments", (), {"name": "flush=third"})
    with pytest.raises(Usage, match="allowed are stock, batch, half$"):
        show.info(arguments)  # type: ignore[arg-type]


def test_recordings_have_its_name() -> None:
    lines = [
        "    record-1 [000] ..... 1.000001: print: vmscan-policy plugin scan 17 own\n",
        "    x-2 [000] ..... 1.000002: policy_switch: policy=0x111 set=2 cgroup=0 nid=-1 "
        "settings=0 point=scan from=stock to=0x111 pid=2\n",
        "    x-2 [000] ..... 1.000003: policy_switch: policy=0x10 set=3 cgroup=0 nid=-1 "
        "settings=0 point=flush from=batch to=0x10 pid=2\n",
    ]
    picture = aggregate.read(trace.events(lines))
    assert [switch[1:] for switch in picture.switches] == [
        ("scan", "stock", "own"),
        ("flush", "batch", "0x10"),
    ]


def test_the_tutorial_has_the_sample() -> None:
    text = (REPO / "docs/tutorial.md").read_text()
    for name in ("half.c", "Kbuild"):
        assert (REPO / "tools/samples/half" / name).read_text() in text
