# SPDX-License-Identifier: GPL-2.0
"""What a trial says, and what the tools say of a guard that has tripped."""

import signal
from dataclasses import replace
from pathlib import Path

import pytest
from tests.conftest import Run
from vmp.common import Failure
from vmp.control import trial
from vmp.control.cgroups import Cgroup
from vmp.control.counters import parse_pressure
from vmp.control.debugfs import Control
from vmp.control.trial import Meter, Phase, Reading, progress, table
from vmp.result.model import Result, Settings, Slice

REASON = "cause=clamps when=2026-01-01T00:00:00 point=flush: 17 answers had to be limited"


def guarded(root: Path, state: str, reason: str) -> None:
    """Give settings a guard."""
    (root / "guard").mkdir()
    for name, text in (("state", state), ("strict", "0"), ("reason", reason), ("clear", "")):
        (root / "guard" / name).write_text(f"{text}\n")
    (root / "guard" / "reason").chmod(0o444)
    (root / "trial").write_text("0\n")


def test_the_guard_has_names(root: Path) -> None:
    guarded(root, "[armed] tripped off", "none")
    names = Control(root).names()
    assert [name for name in names if "guard" in name] == ["guard.state", "guard.strict"]
    assert "trial" not in names
    assert Control(root).tripped() == ""


def test_a_tripped_guard_is_told(vmscanctl: Run, root: Path) -> None:
    guarded(root, "armed [tripped] off", REASON)
    status, said, _ = vmscanctl("status")
    assert status == 0
    assert f"the guard has tripped: {REASON}" in said
    status, said, _ = vmscanctl("clear")
    assert (status, said) == (0, f"cleared: {REASON}\n")
    assert (root / "guard" / "clear").read_text() == "1"


def test_clear_without_a_trip(vmscanctl: Run, root: Path) -> None:
    guarded(root, "[armed] tripped off", "none")
    assert vmscanctl("clear")[:2] == (0, "cleared: nothing, the guard has not tripped\n")
    assert (root / "guard" / "clear").read_text() == "\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--for", "0", "flush=batch"), "--for"),
        (("--for", "0.5", "flush=batch"), "a trial takes --for 1s to 7 days"),
        (("--for", "8000m", "--around", "999999", "flush=batch"), "a trial takes --for"),
        (("--for", "10m", "flush"), "'flush' is no setting"),
        (("--for", "10m", "trace=1"), "trace is no setting that the module takes back"),
        (("--for", "10m", "bypass=1"), "bypass is no setting that the module takes back"),
        (("--for", "10m", "flush=batch,flush.observe=1"), "flush.observe is no setting that"),
        (("flush=batch",), "--for"),
    ],
)
def test_what_is_no_trial(vmscanctl: Run, words: tuple[str, ...], message: str) -> None:
    status, _, said = vmscanctl("trial", *words)
    assert status == 2
    assert message in said


def test_a_module_without_trials(vmscanctl: Run) -> None:
    status, _, said = vmscanctl("trial", "--for", "10m", "flush=batch")
    assert status == 1
    assert "this module has no trials" in said


def test_a_signal_while_what_is_set_is_read(
    vmscanctl: Run, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guarded(root, "[armed] tripped off", "none")

    def stop(*_: object) -> None:
        trial.on_signal(signal.SIGTERM, None)

    monkeypatch.setattr(Control, "spell_out", stop)
    status, said, _ = vmscanctl("trial", "--for", "10m", "flush=stock")
    assert status == 128 + signal.SIGTERM
    assert "SIGTERM came" in said
    monkeypatch.setattr(Control, "check", stop)
    assert vmscanctl("trial", "--for", "10m", "flush=stock") == (143, "", "")


def test_a_signal_while_a_cgroup_gets_settings(
    vmscanctl: Run, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guarded(root, "[armed] tripped off", "none")
    request = Cgroup.request

    def stop(cgroup: Cgroup, what: str) -> None:
        request(cgroup, what)
        if what == "add":
            trial.on_signal(signal.SIGTERM, None)

    monkeypatch.setattr(Cgroup, "request", stop)
    assert vmscanctl("--cgroup", "db", "trial", "--for", "10m", "flush=stock") == (143, "", "")
    assert not list((root / "cgroups").iterdir())


@pytest.mark.parametrize(
    ("who", "before"), [((), "vmscanctl"), (("--cgroup", "db"), "vmscanctl --cgroup /db")]
)
def test_after_a_trip(vmscanctl: Run, root: Path, who: tuple[str, ...], before: str) -> None:
    guarded(root, "armed [tripped] off", REASON)
    status, _, said = vmscanctl(*who, "trial", "--for", "1s", "flush=batch")
    assert status == 1
    assert said == f"vmscanctl: the guard has tripped: run `{before} clear` first; {REASON}\n"
    assert not list((root / "cgroups").iterdir())


def test_a_trip(vmscanctl: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guarded(root, "[armed] tripped off", "none")
    reasons = iter(("", REASON))  # at first, and at the end
    monkeypatch.setattr(trial, "run_phases", lambda *_: "the guard tripped")
    monkeypatch.setattr(Control, "tripped", lambda _: next(reasons))
    status, said, advice = vmscanctl("--cgroup", "db", "trial", "--for", "1s", "flush=stock")
    assert status == 1
    assert "ended, the guard tripped; policies are stock, all else is as before" in said
    assert advice == (
        "`vmscanctl --cgroup /db clear` arms it again, and leaves policies stock. "
        "/db keeps settings of its own until `vmscanctl --cgroup /db reset`.\n"
    )


def test_wrong_settings(vmscanctl: Run, root: Path) -> None:
    guarded(root, "[armed] tripped off", "none")
    status, _, said = vmscanctl("trial", "--for", "10s", "--around", "0", "flush=bach")
    assert status == 1
    assert said.startswith("vmscanctl: flush cannot be 'bach'")


def test_a_refused_value(vmscanctl: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guarded(root, "[armed] tripped off", "none")

    def refuse(_control: Control, _assignments: object, kept: bool = True) -> None:
        raise Failure(f"refused, {kept=}")

    monkeypatch.setattr(Control, "write", refuse)
    status, _, said = vmscanctl("trial", "--for", "10s", "--around", "0", "flush=stock")
    assert (status, said) == (1, "vmscanctl: refused, kept=False\n")


def test_the_table() -> None:
    first = Reading(10, {"stolen": 100, "kills": 1, "some_usec": 0, "waited_ms": 5})
    last = Reading(20, {"stolen": 1100, "kills": 3, "some_usec": 500_000, "waited_ms": 5})
    lines = list(table([Phase("before", first, last), Phase("during", last, last)]))
    cells = {line[:26].strip(): line[26:].split() for line in lines}
    assert cells[""] == ["before", "during"]
    assert cells["seconds"] == ["10", "0"]
    assert cells["pages stolen a second"] == ["100", "-"]
    assert cells["PSI some, %"] == ["5", "-"]
    assert cells["flushes a second, of all"] == ["-", "-"]
    assert cells["OOM kills"] == ["2", "0"]
    assert progress("during", Phase("during", first, last), 5).endswith("PSI some 5 %, 2 OOM kills")


REFAULTS = "workingset_refault_anon 5\nworkingset_refault_file 6\n"
STEALS = "pgsteal_kswapd 1\npgsteal_direct 2\n"


@pytest.mark.parametrize(("of_cgroup", "stolen"), [(False, 70), (True, 900)])
def test_what_is_measured(
    root: Path, mount: Path, monkeypatch: pytest.MonkeyPatch, of_cgroup: bool, stolen: int
) -> None:
    vmstat = mount / "vmstat"
    vmstat.write_text(
        f"nr_tlb_remote_flush 8\n{STEALS}pgsteal_anon 30\npgsteal_file 40\n{REFAULTS}oom_kill 2\n"
    )
    monkeypatch.setattr(trial, "VMSTAT", vmstat)
    (mount / "db" / "memory.stat").write_text(f"pgsteal 900\n{STEALS}{REFAULTS}")
    (mount / "db" / "memory.events").write_text("oom 9\noom_kill 2\n")
    control = Control(root)
    cgroup = Cgroup(control, mount, mount / "db") if of_cgroup else None
    counted = Meter(control, cgroup).read().counted
    wanted = {"stolen": stolen, "refaults": 11, "kills": 2, "flushes": 8, "waits": 0}
    assert wanted.items() <= counted.items()


def test_pressure() -> None:
    text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=12\nfull avg10=0.00 total=3\n"
    assert parse_pressure(text) == {"some_usec": 12, "full_usec": 3}


def test_void_slices_are_left_out_with_their_neighbours() -> None:
    slices = [Slice(side, {"seconds": float(n)}) for n, side in enumerate("ABBAAB")]
    result = Result(Settings("", "", "", None, 1.0), {}, tuple(slices))
    assert result.pairs == 3
    slices[2] = replace(slices[2], void=True)
    result = Result(Settings("", "", "", None, 1.0), {}, tuple(slices))
    assert result.pairs == 2
    assert [piece["seconds"] for piece in result.side("A")] == [0, 4]
    assert [piece["seconds"] for piece in result.side("B")] == [1, 5]
