# SPDX-License-Identifier: GPL-2.0
"""Tests of applying a file of settings, and of the unit that does it at boot."""

import configparser
import re
from pathlib import Path

import pytest
from vmp.common import REPO
from vmp.control import conf
from vmp.control.debugfs import Control, parse_assignments
from vmp.control.points import known_parameters, known_points
from vmp.vmscanctl import COMMANDS, make_parser

SYSTEMD = REPO / "tools" / "systemd"


@pytest.fixture
def control(tmp_path: Path) -> Control:
    """Return the control of files such as the module's."""
    for name, text in {
        "profile": "[stock] max\n",
        "flush/policy": "[stock] batch\n",
        "flush/max_folios": "64\n",
        "scan/policy": "[stock] budget\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return Control(tmp_path)


def test_all_lines_are_set(control: Control) -> None:
    text = "# a comment\n\n  flush = batch # why\nscan=budget,flush.max_folios=31\nprofile=max\n"
    assert conf.apply(control, conf.numbered(text)) == (
        ["flush = batch", "scan=budget,flush.max_folios=31", "profile=max"],
        [],
    )
    files = ("flush/policy", "flush/max_folios", "scan/policy", "profile")
    assert [(control.root / name).read_text() for name in files] == ["batch", "31", "budget", "max"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("flush=bach", "flush cannot be 'bach': allowed are stock, batch"),
        ("flsh=batch", "unknown name 'flsh': allowed are profile, flush, flush.max_folios, scan"),
        ("batch", "'batch' is no setting: write POINT=POLICY or POINT.PARAMETER=VALUE"),
        ("flush.max_folios=\ufffd", "flush.max_folios cannot be '\ufffd': allowed is a decimal"),
        ("flush=batch,profile=mx", "profile cannot be 'mx': allowed are stock, max"),
    ],
)
def test_a_wrong_line_is_named_and_the_others_are_set(
    control: Control, line: str, said: str
) -> None:
    done, (wrong,) = conf.apply(control, conf.numbered(f"# why\n{line}\nscan=budget\n"))
    assert wrong.startswith(f"line 2: {said}")
    assert done == ["scan=budget"]
    assert (control.root / "flush/policy").read_text() == "[stock] batch\n"
    assert (control.root / "scan/policy").read_text() == "budget"


def test_a_refused_line_is_named_and_the_others_are_set(control: Control) -> None:
    policy = control.root / "flush/policy"
    policy.unlink()
    policy.symlink_to("/proc/self/uid_map")  # can be written once, which the kernel has done
    done, (wrong,) = conf.apply(control, conf.numbered("flush=0\nscan=budget\n"))
    assert wrong.startswith("line 1: flush=0 was refused")
    assert done == ["scan=budget"]


def test_the_example_sets_what_there_is_and_nothing_by_itself() -> None:
    text = (SYSTEMD / "vmscan-policy.conf").read_text()
    assert conf.numbered(text) == []
    offered = [line[1:] for line in text.splitlines() if re.match(r"#\S", line)]
    machine, cgroup = conf.sections("\n".join(offered))
    assert "profile=recommended" in [line for _, line in machine.lines]
    assert cgroup.head == "system.slice/mariadb.service]"
    lines = [line for _, line in machine.lines + cgroup.lines]
    assert {item.name for item in parse_assignments(lines)} < {*known_points(), *known_parameters()}


def test_the_drop_in_is_for_any_unit_and_keeps_none_from_starting() -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.read(SYSTEMD / "service-settings.conf")
    prefixes, program, *words = re.split(r"(?<=[-+])(?=/)| ", unit["Service"]["ExecStartPost"])
    assert (set(prefixes), program) == (set("-+"), "/usr/bin/vmscanctl")
    args = make_parser(COMMANDS.values()).parse_args(words)
    assert (args.who, args.chosen, args.file) == ("%n", "apply", conf.CONF)


def test_the_unit_runs_the_program_and_nothing_waits_for_it() -> None:
    unit = configparser.ConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(SYSTEMD / "vmscan-policy.service")
    assert unit["Unit"]["ConditionPathExists"] == str(conf.CONF)
    # A target is reached after what it wants, but for what comes after it.
    assert unit["Install"]["WantedBy"] in unit["Unit"]["After"].split()
    assert "Before" not in unit["Unit"]
    assert set(unit["Install"]) == {"WantedBy"}
