# SPDX-License-Identifier: GPL-2.0
"""Tests of what shows and resets the points, with files like the module's, and of what it says."""

import itertools
import json
import re
import sys
from pathlib import Path

import pytest
from vmp.common import REPO, Failure, Parser, Usage
from vmp.control import show, watch
from vmp.control.points import known_parameters, known_points
from vmp.vmscanctl import entry

MODULE = "\n".join(path.read_text() for path in sorted((REPO / "module").glob("*.c")))
HEADER = (REPO / "kernel-hooks/common/include/linux/vmscan_policy.h").read_text()


def said(capsys: pytest.CaptureFixture[str], command: str, *words: str) -> str:
    chosen = {c.name: c for c in (*show.COMMANDS, show.RESET, watch.STATS, watch.TOP)}[command]
    parser = Parser(prog=command)
    chosen.arguments(parser)
    assert chosen.run(parser.parse_args(words)) == 0
    return capsys.readouterr().out


def test_list_has_a_line_for_each(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(capsys, "list").splitlines()
    assert [line.split()[1] for line in lines if line[0] == "*"] == [
        "aging=continue",
        "flush=batch",
        "scan=stock",
        "throttle=stock",
        "unmap=stock",
    ]
    words = [" ".join(line.split()) for line in lines]
    assert "flush.max_folios=31 folios that share a flush" in words
    assert "unmap.kinds=lazyfree+file for which large folios" in words
    assert "unmap=half" in words  # a policy of someone's own
    assert max(map(len, lines)) <= 80


def test_list_for_completion(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(capsys, "list", "--settings").splitlines()
    assert {"flush=stock", "flush=batch", "flush.max_folios=", "unmap.kinds=anon"} <= set(lines)


@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.parametrize("point", known_points())
def test_info_fits(
    point: str, columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing() -> Path:
        raise Failure("only root")

    monkeypatch.setattr(show, "locate", nothing)
    monkeypatch.setenv("COLUMNS", str(columns))
    text = said(capsys, "info", point)
    assert max(map(len, text.splitlines())) <= min(columns, 100)
    assert all(f"\n{point}={policy}\n" in text for policy in known_points()[point].policies)


def test_info_of_a_policy(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "info", "flush=batch")
    assert "\nflush=batch, in force\n" in text and "flush=stock" not in text
    assert "1 to 4096; default 64, now 31" in text
    assert "now lazyfree+file" in said(capsys, "info", "unmap")
    assert "This kernel has no such point" in said(capsys, "info", "young")
    assert "scan=v6.12, not on this kernel" in said(capsys, "info", "scan")


@pytest.mark.parametrize(
    ("name", "message"),
    [("fluhs", "there is no point 'fluhs': allowed are flush, "),
     ("flush=bach", "flush has no policy 'bach': allowed are stock, batch"),
     ("flush=", "flush has no policy ''")],
)  # fmt: skip
def test_info_of_nothing(name: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Usage, match=re.escape(message)):
        said(capsys, "info", name)


def test_status_as_an_object(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = json.loads(said(capsys, "status", "--json"))
    assert {name: status[name] for name in ("kernel", "profile", "bypass")} == {
        "kernel": "6.12.118",
        "profile": "recommended",
        "bypass": 0,
    }
    assert status["points"]["aging"]["in_effect"] is False
    assert status["points"]["flush"] == {
        "policy": "batch",
        "policies": ["stock", "batch"],
        "in_effect": True,
        "parameters": {"max_folios": 31, "observe": 0, "span": 1},
    }


def test_reset(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "flush" / "own").write_text("3\n")
    parser = Parser()
    show.RESET.arguments(parser)
    assert show.RESET.run(parser.parse_args([])) == 0
    captured = capsys.readouterr()
    assert captured.out == (
        "set: profile=stock, flush.max_folios=64, unmap.kinds=anon+lazyfree+file\n"
    )
    assert captured.err.endswith("flush.own\n")
    assert (root / "profile").read_text() == "stock"
    assert (root / "unmap/kinds").read_text() == "anon,lazyfree,file"
    assert (root / "flush/own").read_text() == "3\n"


def growing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each wait take its time on a clock of its own, and flush count 10 in it."""
    clock = itertools.count(0)
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds
        deferred = 100 + 10 * next(clock) + 10
        (root / "flush/stats").write_text(
            f"deferred {deferred}\nbatches 4\nflushes 4\nlargest_batch 31\n"
        )

    (root / "flush/stats").chmod(0o644)
    monkeypatch.setattr("time.sleep", sleep)
    monkeypatch.setattr("time.monotonic", lambda: now[0])


def test_stats_by_intervals(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    growing(root, monkeypatch)
    lines = said(capsys, "stats", "--interval", "2s", "--count", "2").splitlines()
    assert [line.split() for line in lines] == [
        ["2.000", "flush.deferred", "10"],
        ["4.000", "flush.deferred", "10"],
    ]
    text = said(capsys, "stats", "--json", "--interval", "500ms", "--count", "1")
    assert json.loads(text)["seconds"] == 0.5
    assert json.loads(text)["counted"]["flush"]["largest_batch"] == 31


def test_stats_counts_intervals_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Usage, match="--count is for --interval"):
        said(capsys, "stats", "--count", "2")


def test_top_in_a_pipe(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    growing(root, monkeypatch)
    monkeypatch.setenv("COLUMNS", "80")
    text = said(capsys, "top", "--count", "2")
    assert "\x1b" not in text and text.count("POINT") == 2
    assert "flush      batch     deferred 10" in text.splitlines()
    assert "profile recommended" in text and "in effect: no" in text
    assert max(map(len, text.splitlines())) <= 80


def test_top_tells_flushes_and_waits() -> None:
    counted = {
        "vmstat": {"pgsteal_anon": 1500, "pgsteal_file": 500, "nr_tlb_remote_flush": 900},
        "flush": {"flushes": 3, "observed_remote_flushes": 40},
        "throttle": {"writeback": 10, "writeback_us": 50000, "kswapd": 2},
    }
    lines = list(watch.summary(watch.Tick(2.0, counted), True))
    assert lines[0].startswith("Pages a second: stolen 1,000 (anon 750, file 250), scanned")
    assert lines[1] == (
        "Per 1,000 stolen: 20 remote TLB flushes of reclaim; 5 throttled waits, 25 ms"
    )
    tick = watch.Tick(2.0, counted)
    assert "450 remote TLB flushes of all tasks" in list(watch.summary(tick, False))[1]
    counted["vmstat"] = {}
    assert "Per 1,000 stolen: - flushes of" in list(watch.summary(tick, False))[1]


def test_ctrl_c_ends_the_view(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", interrupted)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["vmscanctl", "top"])
    with pytest.raises(SystemExit) as ended:
        entry()
    assert ended.value.code == 130


def test_a_module_that_goes_ends_the_view() -> None:
    readings = iter([{"flush": {"calls": 1}}, {}])
    with pytest.raises(Failure, match="was unloaded, or the settings removed"):
        next(watch.ticks(lambda: next(readings), 0.001, None))


def resolved(text: str) -> str:
    """Return the number that a word of the module's source stands for."""
    known = {"PTRS_PER_PTE": "512", "": "0"}
    if text in known or text.isdecimal():
        return known.get(text, text)
    found = re.search(rf"^#define {text}\s+(\d+)", MODULE + HEADER, re.MULTILINE)
    return resolved(found[1]) if found else text


def test_numbers_are_those_of_the_module() -> None:
    table = r"\.path = \"([\w/]+)\",((?:\s*\.\w+ = [^\n]+,)+)"
    first = re.search(r"struct vmp_settings defaults = {(.*?)};", MODULE, re.S)
    assert first
    defaults = dict(re.findall(r"\.(\w+) = (\w+),", first[1]))
    found = {}
    for path, text in re.findall(table, MODULE):
        fields = dict(re.findall(r"\.(\w+) = (?:offsetof\(struct vmp_settings, )?(\w+)\)?,", text))
        if "names" not in fields:
            least, most = (resolved(fields.get(end, "")) for end in ("min", "max"))
            values = f"{least} or {most}" if (least, most) == ("0", "1") else f"{least} to {most}"
            found[path.replace("/", ".")] = (
                values,
                resolved(defaults.get(fields.get("setting", ""), "")),
            )
    known = {
        name: (parameter.values, parameter.default)
        for name, parameter in known_parameters().items()
        if parameter.default.isdecimal()
    }
    assert known == found


def test_policies_are_those_of_the_module() -> None:
    for name, point in known_points().items():
        table = "rmap" if name in ("unmap", "young") else name
        text = (REPO / "module" / f"{table}.c").read_text()
        block = re.search(rf"vmp_policy {table}_policies\[\] = {{(.*?)^}};", text, re.S | re.M)
        assert block
        assert re.findall(r'\.name = "([\w.]+)"', block[1]) == list(point.policies)


def test_lines_of_the_list_are_short() -> None:
    known = known_points().values()
    texts = [policy.does for point in known for policy in point.policies.values()]
    texts += [point.decides for point in known]
    assert max(map(len, texts)) <= 80 - 26


@pytest.mark.parametrize("point", known_points())
def test_figures_are_those_of_the_pages(point: str) -> None:
    for policy in known_points()[point].policies.values():
        texts = [(REPO / "docs" / name).read_text() for name in policy.sources]
        pages = "".join(text.partition("\n## Superseded\n")[0] for text in texts)
        said = " ".join((*policy.costs, *policy.helps, *policy.not_shown))
        figures = set(re.findall(r"[+-]?\d[\d,]*\.\d+|\d+,\d{3}", said))
        assert {figure for figure in figures if figure not in pages} == set()
