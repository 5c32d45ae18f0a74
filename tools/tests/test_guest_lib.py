# SPDX-License-Identifier: GPL-2.0
"""Tests of what guest tests share: how they wait, are ended, and clean up."""

import re
import subprocess
import time
from pathlib import Path

import pytest
from vmp.guest.suite import GUEST


def bash(tmp_path: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Run a script that has clock.sh; its clock goes ten times as fast."""
    (tmp_path / "clock").write_text("0\n")
    begin = f"""
        set -euo pipefail
        VMP_TEST_WORK={tmp_path}
        . {GUEST}/clock.sh
        # Not for ever: the number of a shell that has ended is another's some day.
        for ((ticks = 0; ticks < 3000; ticks++)); do
            [[ -d /proc/$$ ]] || break
            read_clock
            pause 0.1
            echo $((clock + 1)) >{tmp_path}/clock
        done &>/dev/null &
        ticker=$!
    """
    command = ["timeout", "60", "bash", "-c", begin + script]
    return subprocess.run(command, capture_output=True, text=True, check=False)


RUN_TEST = f". {GUEST}/session.sh; run_test 20 $VMP_TEST_WORK/test || echo status $?"


@pytest.mark.parametrize(
    ("test", "said"),
    [
        ("echo one; echo 'two  three'", "# one\n# two  three\n"),
        ("printf one; sleep 1.5; printf two; exit 3", "# onetwo\nstatus 3\n"),
        ("exit 4", "status 4\n"),
        ("sleep 1000 & echo $! >$VMP_TEST_WORK/left", ""),
    ],
)
def test_a_test_in_the_guest(tmp_path: Path, test: str, said: str) -> None:
    """What it leaves behind ends with it, and holds up nobody."""
    (tmp_path / "test").write_text(f"VMP_TEST_WORK={tmp_path}; {test}\n")
    done = bash(tmp_path, RUN_TEST)
    assert (done.returncode, done.stdout, done.stderr) == (0, said, "")
    if (left := tmp_path / "left").exists():
        status = Path("/proc", left.read_text().strip(), "status")
        assert not status.exists() or "zombie" in status.read_text()


@pytest.mark.parametrize("test", ["sleep 1000", "while :; do echo more; sleep 0.1; done"])
def test_a_test_that_hangs(tmp_path: Path, test: str) -> None:
    (tmp_path / "test").write_text(f"echo begins\n{test}\n")
    done = bash(tmp_path, RUN_TEST)
    assert done.stdout.startswith("# begins\n")
    assert "# it takes longer than 20 s, and is ended:\n# " in done.stdout
    assert done.stdout.endswith("status 1\n")


def test_a_runner_that_hangs(tmp_path: Path) -> None:
    """The clock stops to say that it goes, after it has said where the runner is."""
    (tmp_path / "due").write_text("100\n")
    short = "s/2000/1/; s/1000000 - took/1000/"  # a second of its work
    clock = f"""
        renice() {{ :; }}
        . {GUEST}/session.sh
        . <(sed '/^run_clock/,/^}}/{{ s,/proc/.*adj,/dev/null,; {short} }}' {GUEST}/clock.sh)
        kill $ticker
        pgrep() {{ echo 99999999; command pgrep "$@"; }}  # one that has ended since
        run_clock
    """
    done = bash(tmp_path, clock)
    assert done.stdout.startswith("... 60 s\n# it hangs before its test, or after it:\n# ")
    assert "/clock.sh" not in done.stderr
    assert done.returncode == 0


def test_a_zombie_is_gone(tmp_path: Path) -> None:
    """A guest test that took one for a task in reclaim failed after three minutes."""
    with subprocess.Popen(["true"]) as zombie, subprocess.Popen(["sleep", "60"]) as alive:
        while "zombie" not in Path(f"/proc/{zombie.pid}/status").read_text():
            time.sleep(0.01)
        script = f"gone {zombie.pid} && gone 99999999 && ! gone {alive.pid} && ! gone $$"
        done = bash(tmp_path, script)
        alive.kill()
    assert done.returncode == 0


# There is no module here.
LIB = f"set +e; . {GUEST}/lib.sh 2>/dev/null; set -e\n"


@pytest.mark.parametrize(("begins", "ends"), [(0, 1), (4, 1), (1, 1)])
def test_a_clean_up_goes_on(tmp_path: Path, begins: int, ends: int) -> None:
    script = "\n".join(
        [
            LIB,
            "step() { (exit 3); echo still in step; }",
            "clean_up() { clean_up_begins; step; echo $nothing_set; fail wrong; echo at its end",
            "    exit $ended; }",
            "test_clean_up() { clean_up_begins; (exit 2); clean_up; }",
            f"trap test_clean_up EXIT; exit {begins}",
        ]
    )
    done = bash(tmp_path, script)
    assert done.returncode == ends
    assert done.stdout == "still in step\n\nwrong\nat its end\n"
    assert re.findall(r"clean-up: status (\d) at \S+:\d+", done.stderr)[:2] == ["2", "3"]


@pytest.mark.parametrize("status", [0, 1, 4])
def test_a_clean_up_in_which_nothing_fails(tmp_path: Path, status: int) -> None:
    begins = "clean_up_begins; [[ ! -e /nonesuch ]] || false; ! false; exit $ended"
    done = bash(tmp_path, f"{LIB}trap '{begins}' EXIT; exit {status}")
    assert (done.returncode, done.stderr) == (status, "")


@pytest.mark.parametrize(("work", "status"), [("", 1), ("same", 1), ("$clock", 0)])
def test_what_goes_on_is_waited_for(tmp_path: Path, work: str, status: int) -> None:
    """The clock has gone far beyond the limit when it has happened."""
    condition = f"""
        n=0
        happens() {{
            echo $((n += 100)) >$VMP_TEST_WORK/clock
            work={work}
            ((n >= 1000))
        }}
    """
    done = bash(tmp_path, f"{LIB}kill $ticker\n{condition}\nwait_until happens")
    assert done.returncode == status


def test_settings_are_put_back(tmp_path: Path) -> None:
    """Whatever a test has done, and though its clean-up fails; but for what no write changes."""
    files = {
        "flush/policy": "[stock] batch\n",
        "unmap/kinds": "[lazyfree] [anon] file\n",
        "aging/kinds": "lazyfree anon file\n",
        "vm/dirty_ratio": "20\n",
        "vm/lowmem_reserve_ratio": "256 256 32\n",
        "vm/compact": "1\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "vm/compact").chmod(0o200)
    script = f"""
        . {GUEST}/session.sh
        . {GUEST}/settings.sh
        setting_places=({tmp_path}/{{flush,unmap,aging,vm}})
        keep_settings
        run_test 20 $VMP_TEST_WORK/test || echo status $?
        restore_settings || echo not all
    """
    (tmp_path / "test").write_text(
        "trap 'exit 1' EXIT\ncd ${BASH_SOURCE%/*}\n"
        "for file in */*; do echo 'stock [batch]' >$file; done\nrm vm/dirty_ratio\n"
    )
    done = bash(tmp_path, script)
    gone = f"{tmp_path}/vm/dirty_ratio was 20, and now is gone"
    assert done.stdout == f"status 1\n{gone}\nnot all\n"
    assert {name: (tmp_path / name).read_text() for name in files if name != "vm/dirty_ratio"} == {
        "flush/policy": "stock\n",
        "unmap/kinds": "lazyfree,anon\n",
        "aging/kinds": "none\n",
        "vm/lowmem_reserve_ratio": "256 256 32\n",
        "vm/compact": "stock [batch]\n",
    }


def test_a_clean_up_begins_with_the_status() -> None:
    """What comes before clean_up_begins takes the status away: a test that fails would pass."""
    for script in GUEST.glob("*.sh"):
        for body in re.findall(r"^\w+\(\) \{\n(.*?)^\}$", script.read_text(), re.M | re.S):
            lines = [line.strip() for line in body.splitlines()]
            assert "clean_up_begins" not in lines[1:], script.name
            ends = any(re.match(r"(fault_)?clean_up\b", line) for line in lines)
            assert not ends or lines[0] == "clean_up_begins", script.name
