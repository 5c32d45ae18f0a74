# SPDX-License-Identifier: GPL-2.0
"""Tests of what ab measures large folios with: the function profiler, the sizes of folios."""

from pathlib import Path

import pytest
from vmp.ab import folios, functions, plan
from vmp.ab.functions import Functions, parse_functions, parse_profile
from vmp.common import ICOUNT, Failure, Parser, Usage
from vmp.result import metrics

# As the kernel prints trace_stat/function0, which has the first 30 letters of a name; and without
# the function graph tracer, which brings the times.
PROFILE = """\
  Function                               Hit    Time            Avg             s^2
  --------                               ---    ----            ---             ---
  try_to_unmap                              1234    5678.901 us     4.602 us        0.123 us    
  folio_referenced                             7    12.500 us       1.785 us        0.000 us    
  __mmu_notifier_invalidate_rang               2    3.000 us        1.500 us        0.000 us    
"""  # noqa: W291
UNTIMED = """\
  Function                               Hit
  --------                               ---
  try_to_unmap                              1234
"""
OTHERS = "#### all functions enabled ####\n"


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("", []),
        ("try_to_unmap", [("try_to_unmap",)]),
        ("f,g+h", [("f",), ("g", "h")]),
        (" f , g + _h2 ", [("f",), ("g", "_h2")]),
    ],
)
def test_functions_are_named_in_groups(text: str, groups: list[tuple[str, ...]]) -> None:
    assert parse_functions(text) == groups


@pytest.mark.parametrize("wrong", [",", "f,", "f+", "+f", "f g", "f*", "f.isra.0"])
def test_what_names_no_functions(wrong: str) -> None:
    with pytest.raises(Failure, match="names no functions: write NAME,NAME or NAME\\+NAME"):
        parse_functions(wrong)


def test_a_profile_has_calls_and_microseconds() -> None:
    found = parse_profile(PROFILE)
    assert found.pop("__mmu_notifier_invalidate_rang") == (2, 3)
    assert found == {"try_to_unmap": (1234, 5678.901), "folio_referenced": (7, 12.5)}
    assert parse_profile(UNTIMED) == {}
    assert parse_profile("") == {}


@pytest.fixture
def tracefs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory with the files of the profiler, in which nobody filters."""
    for name in ("options", "trace_stat"):
        (tmp_path / name).mkdir()
    (tmp_path / "set_ftrace_filter").write_text(OTHERS)
    (tmp_path / "function_profile_enabled").write_text("0\n")
    (tmp_path / "options/sleep-time").write_text("1\n")
    monkeypatch.setattr(functions, "find_tracefs", lambda: tmp_path)
    monkeypatch.delenv(ICOUNT, raising=False)
    return tmp_path


def left_as_found(tracefs: Path) -> bool:
    """Tell if nothing is traced, and the option is as the kernel has it."""
    names = ("set_ftrace_filter", "function_profile_enabled", "options/sleep-time")
    return [(tracefs / name).read_text().strip() for name in names] == ["", "0", "1"]


def test_cpus_and_groups_are_added_up(tracefs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    groups = [("try_to_unmap",), ("try_to_unmap", "folio_referenced"), ("never_called",)]
    (tracefs / "trace_stat/function0").write_text(PROFILE)
    (tracefs / "trace_stat/function1").write_text(PROFILE.replace(" 7 ", " 3 "))
    assert Functions(groups).stop() == pytest.approx(
        {
            "function.try_to_unmap.calls": 2468,
            "function.try_to_unmap.us": 11357.802,
            "function.try_to_unmap+folio_referenced.calls": 2478,
            "function.try_to_unmap+folio_referenced.us": 11382.802,
            "function.never_called.calls": 0,
            "function.never_called.us": 0,
        }
    )
    monkeypatch.setenv(ICOUNT, "1")
    counted = Functions(groups[:1]).stop()
    assert counted["function.try_to_unmap.instructions"] == pytest.approx(11357802)


def test_a_long_name_is_found(tracefs: Path) -> None:
    name = "__mmu_notifier_invalidate_range_start"
    (tracefs / "trace_stat/function0").write_text(PROFILE)
    assert Functions([(name,)]).stop()[f"function.{name}.calls"] == 2


def test_the_profiler_is_left_as_it_was(tracefs: Path) -> None:
    with Functions([("try_to_unmap",)]) as profiler:
        assert (tracefs / "set_ftrace_filter").read_text() == OTHERS + "try_to_unmap"
        assert (tracefs / "options/sleep-time").read_text() == "0"
        profiler.start()
        assert (tracefs / "function_profile_enabled").read_text() == "1"
    assert left_as_found(tracefs)


def test_a_function_that_is_not_there_is_named(
    tracefs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Functions, "filter", lambda _: OTHERS + "try_to_unmap\n")
    with pytest.raises(Failure, match="can't trace nonesuch, other: inlined"):
        Functions([("try_to_unmap",), ("other", "nonesuch")]).__enter__()
    assert left_as_found(tracefs)


def test_what_others_trace_is_left_alone(tracefs: Path) -> None:
    (tracefs / "set_ftrace_filter").write_text("schedule\n")
    with pytest.raises(Failure, match="somebody uses it: empty it"):
        Functions([("try_to_unmap",)]).__enter__()
    assert (tracefs / "set_ftrace_filter").read_text() == "schedule\n"


def test_a_kernel_without_the_profiler(tracefs: Path) -> None:
    (tracefs / "function_profile_enabled").unlink()
    with pytest.raises(Failure, match="CONFIG_FUNCTION_PROFILER"):
        Functions([("try_to_unmap",)]).__enter__()


@pytest.fixture
def offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[int, Path]:
    """Return the files of three sizes of folios, of which one is in use."""
    found = {kib: tmp_path / f"hugepages-{kib}kB/enabled" for kib in (16, 64, 2048)}
    for kib, path in found.items():
        path.parent.mkdir()
        inherit = "[inherit]" if kib == 2048 else "inherit"
        never = "never" if kib == 2048 else "[never]"
        path.write_text(f"always {inherit} madvise {never}\n")
    (tmp_path / "enabled").write_text("always [madvise] never\n")
    monkeypatch.setattr(folios, "THP", tmp_path)
    return found


def test_one_size_is_held(offered: dict[int, Path]) -> None:
    with folios.held_folios(64):
        texts = {kib: path.read_text() for kib, path in offered.items()}
        assert texts == {16: "never", 64: "always", 2048: "never"}
    assert {kib: path.read_text() for kib, path in offered.items()} == {
        16: "never",
        64: "never",
        2048: "inherit",
    }


def test_single_pages_are_a_size_too(offered: dict[int, Path]) -> None:
    with folios.held_folios(folios.PAGE_KIB):
        assert {path.read_text() for path in offered.values()} == {"never"}


def test_sizes_come_back_after_a_failure(offered: dict[int, Path]) -> None:
    with pytest.raises(Failure, match="later"), folios.held_folios(16):
        raise Failure("later")
    assert [path.read_text() for path in offered.values()] == ["never", "never", "inherit"]


def test_a_size_that_is_not_offered(
    offered: dict[int, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = [path.read_text() for path in offered.values()]
    with pytest.raises(Failure, match="no folios of 48 KiB: --folio takes 4K, 16K, 64K, 2048K"):
        folios.held_folios(48).__enter__()
    assert [path.read_text() for path in offered.values()] == before
    monkeypatch.setattr(folios, "THP", tmp_path / "nonesuch")
    with pytest.raises(Failure, match="lacks transparent huge pages"):
        folios.held_folios(64).__enter__()


@pytest.mark.parametrize(
    ("words", "why"),
    [("--folio 64K -- true", "--folio is for"), ("--functions f+ -- true", "names no functions")],
)
def test_options_that_are_refused(words: str, why: str) -> None:
    parser = Parser()
    plan.arguments(parser)
    with pytest.raises(Usage, match=why):
        plan.make_plan(parser.parse_args(words.split()))


COUNTED = {
    "function.f+g.calls": 50,
    "function.f+g.us": 200.0,
    "vmstat.pgsteal_anon": 900,
    "vmstat.pgsteal_file": 100,
}


def function_values(piece: dict[str, float]) -> dict[str, float | None]:
    """Return what the rows of the section say about one slice, by label."""
    return {row.label: row.value([piece]) for row in metrics.function_rows(set(piece))}


def test_functions_are_counted_per_stolen_page() -> None:
    assert function_values(COUNTED) == {
        "f+g, calls / 1,000 stolen pages": 50,
        "f+g, us / 1,000 stolen pages": 200,
        "f+g, us / call": 4,
    }
    assert metrics.function_rows({"vmstat.pgsteal_anon", "progress"}) == []


def test_functions_are_counted_per_operation_where_some_are() -> None:
    assert function_values(COUNTED | {"progress": 500, "instructions": 2e6}) == {
        "memcg, instructions / 1,000 operations": 4e6,
        "f+g, calls / 1,000 operations": 100,
        "f+g, us / 1,000 operations": 400,
        "f+g, us / call": 4,
    }


def test_a_function_that_was_not_called_has_no_time_per_call() -> None:
    rows = function_values(COUNTED | {"function.f+g.calls": 0, "function.f+g.us": 0})
    assert rows["f+g, us / 1,000 stolen pages"] == 0
    assert rows["f+g, us / call"] is None
