# SPDX-License-Identifier: GPL-2.0
"""Tests of what decides whether a livepatch fits a kernel, with objects that gcc makes."""

import errno
import subprocess
from pathlib import Path

import pytest
from vmp.common import Failure
from vmp.livepatch import transition
from vmp.livepatch.build import include, make_local, make_new
from vmp.livepatch.kernel import check_options, find_compiler
from vmp.livepatch.names import NAME
from vmp.livepatch.symbols import place, read_kernel, read_object, table

SOURCE = """
static __attribute__((noinline)) int twice(int x) { asm volatile(""); return 2 * x; }
static volatile int counters[3], other[2];
int first(int x) { other[0] = x; return twice(x) + counters[x]; }
__attribute__((weak)) int replaced(void) { return 1; }
int last(int x) { return twice(x) + 3; }
"""
BASE = 0xFFFFFFFF81000000


def compiled(directory: Path, text: str = SOURCE, name: str = "code.c") -> Path:
    """Return an object."""
    source = directory / name
    source.write_text(text)
    target = source.with_suffix(".o")
    subprocess.run(["gcc", "-O2", "-c", "-o", target, source], check=True)
    return target


def symbols(binary: Path, moved: str = "", by: int = 0) -> str:
    """Return what a kernel with that object would have in /proc/kallsyms, one symbol moved."""
    listing = subprocess.run(["nm", binary], check=True, capture_output=True, text=True).stdout
    lines = []
    for line in listing.splitlines():
        at, kind, name = line.split()
        where = BASE + int(at, 16) + (0x100000 if kind in "bB" else 0)
        lines.append(f"{where + (by if name == moved else 0):x} {kind} {name}")
    # others of that name, before it and behind it
    lines += [f"{BASE - 64:x} t twice", f"{BASE + 0x2000:x} t twice", f"{BASE:x} t x\t[module]"]
    return "\n".join(lines)


def test_functions_are_found_where_they_are_in_the_object(tmp_path: Path) -> None:
    binary = compiled(tmp_path)
    placed = place(read_kernel(symbols(binary)), read_object(binary))
    assert placed["twice"] == BASE
    assert set(placed) == {"twice", "first", "last", "counters", "other"}


@pytest.mark.parametrize("name", ["twice", "last"])
def test_a_function_elsewhere_is_another_kernels(tmp_path: Path, name: str) -> None:
    binary = compiled(tmp_path)
    with pytest.raises(Failure, match="built from another source"):
        place(read_kernel(symbols(binary, name, 16)), read_object(binary))


def test_an_object_without_a_function_of_the_kernel_is_refused(tmp_path: Path) -> None:
    binary = compiled(tmp_path)
    kernel = read_kernel(symbols(binary).replace(" first", " fourth").replace(" last", " fifth"))
    with pytest.raises(Failure, match=r"all of code\.c"):
        place(kernel, read_object(binary))


def test_hidden_addresses_are_told(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="root alone"):
        read_kernel("0000000000000000 t first\n")


def test_the_table_counts_what_shares_a_name_by_address(tmp_path: Path) -> None:
    binary = compiled(tmp_path)
    kernel, found = read_kernel(symbols(binary)), read_object(binary)
    lines = [line.split() for line in table(kernel, found, place(kernel, found)).splitlines()]
    marks = [number for number, words in enumerate(lines) if words[3] == "FILE"]
    blocks = [lines[a:b] for a, b in zip(marks, [*marks[1:], None], strict=True)]
    names = [[words[7] for words in block] for block in blocks]
    assert [block.count("twice") for block in names] == [1, 1, 1]
    assert names[1][0] == "code.c"
    assert {"counters", "other", "first"} <= set(names[1])


def test_data_whose_name_is_there_twice_can_not_be_meant(tmp_path: Path) -> None:
    source = SOURCE.replace("other[0] = x;", "static volatile int calls; calls++;")
    binary = compiled(tmp_path, source)
    name = next(s.name for s in read_object(binary).symbols if s.name.startswith("calls."))
    text = f"{symbols(binary)}\n{BASE + 0x200000:x} b {name}\n{BASE + 0x200000:x} b counters\n"
    kernel, found = read_kernel(text), read_object(binary)
    lines = table(kernel, found, place(kernel, found)).splitlines()
    assert sum(line.endswith(f" {name}") for line in lines) == 2
    assert sum(line.endswith(" first") for line in lines) == 1


def test_what_the_series_makes_global_stays_local(tmp_path: Path) -> None:
    stock = compiled(tmp_path)
    hooked = compiled(tmp_path, SOURCE.replace("static __attr", "__attr"), "hooked.c")
    make_local(stock, hooked)
    assert {s.name for s in read_object(hooked).symbols if s.local} >= {"twice"}
    assert not {s.name for s in read_object(hooked).symbols if s.local} & {"first", "last"}


def test_what_the_kernel_has_inlined_is_the_livepatches_own(tmp_path: Path) -> None:
    inlined = 'static __attribute__((noinline)) int inlined(int x) { asm(""); return x; }\n'
    text = f"{SOURCE}{inlined}int caller(int x) {{ return inlined(x); }}\n"
    stock, hooked = compiled(tmp_path, text), compiled(tmp_path, text, "hooked.c")
    kernel = read_kernel(symbols(compiled(tmp_path, name="kernel.c")) + f"\n{BASE:x} t caller")
    make_new(kernel, stock, hooked)
    assert {s.name for s in read_object(stock).symbols if s.kind == "FUNC"} ^ {
        s.name for s in read_object(hooked).symbols if s.kind == "FUNC"
    } == {"inlined", "vmp_inlined"}


def test_the_registry_gets_an_end(tmp_path: Path) -> None:
    host = tmp_path / "vmscan.c"
    host.write_text("int stock;\n")
    include(host, "vmscan_policy.c")
    text = host.read_text()
    assert text.startswith("int stock;\n")
    assert text.index("#define EXPORT_SYMBOL_NS_GPL") < text.index('#include "vmscan_policy.c"')
    assert "cancel_delayed_work_sync(&off_work);" in text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"CONFIG_VMSCAN_POLICY": "y"}, "hooks built in"),
        ({"CONFIG_LIVEPATCH": "n"}, "built without CONFIG_LIVEPATCH, CONFIG_KALLSYMS_ALL"),
    ],
)
def test_a_kernel_that_needs_no_livepatch_or_takes_none(options: dict[str, str], said: str) -> None:
    with pytest.raises(Failure, match=said):
        check_options("6.12.117+deb13-amd64", options)


def test_another_compiler_is_refused() -> None:
    options = {"CONFIG_CC_VERSION_TEXT": '"gcc (Another 1.2.3-4) 1.2.3"'}
    with pytest.raises(Failure, match=r"was built by gcc \(Another 1\.2\.3-4\) 1\.2\.3, and here"):
        find_compiler("6.12.117", options)


def test_a_way_out_that_ends_while_it_is_given_up_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write that is to turn it around is refused, for by then the switch is away."""
    hooks, ran = tmp_path / "hooks", []
    hooks.mkdir()
    (hooks / "transition").write_text("1\n")

    def switch(on: bool) -> None:
        if on:
            (hooks / "transition").unlink()
            raise OSError(errno.ENODEV, "No such device")

    monkeypatch.setattr(transition, "LIVEPATCH", hooks)
    monkeypatch.setattr(transition, "switch", switch)
    monkeypatch.setattr(transition, "held_up_by", lambda _wanted: [])
    monkeypatch.setattr(transition, "run", lambda words, _what: ran.append(words))
    transition.take_out(0.1, [])
    assert ran == [["rmmod", NAME]]


def test_a_way_out_that_is_turned_around_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "transition").write_text("1\n")

    def switch(on: bool) -> None:
        (hooks / "transition").write_text("0\n" if on else "1\n")

    monkeypatch.setattr(transition, "LIVEPATCH", hooks)
    monkeypatch.setattr(transition, "switch", switch)
    monkeypatch.setattr(transition, "held_up_by", lambda _wanted: ["busy (7)"])
    with pytest.raises(Failure, match=r"the hooks stay.* busy \(7\)"):
        transition.take_out(0.1, [])
