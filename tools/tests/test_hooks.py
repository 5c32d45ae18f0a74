# SPDX-License-Identifier: GPL-2.0
"""Tests of how a series is composed, and of what tells where a hunk would go."""

import subprocess
from pathlib import Path

import pytest
from vmp.common import Failure
from vmp.guest import hooks, porting, trial
from vmp.guest.hooks import common_files, hook_patches, series_names, write_series
from vmp.guest.porting import Hunk, best_place, hunks, misfits

# Stock text of two kernels, as it is in mm/vmscan.c.
OLD = """\
static unsigned int shrink_folio_list(struct list_head *folio_list,
		struct pglist_data *pgdat, struct scan_control *sc)
{
	unsigned int nr_demoted = 0;
	struct swap_iocb *plug = NULL;

	folio_batch_init(&free_folios);
	memset(stat, 0, sizeof(*stat));
	cond_resched();

	return nr_reclaimed;
}
"""
NEW = """\
static unsigned int other(void)
{
	memset(stat, 0, sizeof(*stat));
	cond_resched();

	return 0;
}

""" + OLD.replace("struct swap_iocb *plug = NULL;", "struct swap_io_ctx ctx = {};")
PATCH = """\
Why it is so.
--- a/mm/vmscan.c
+++ b/mm/vmscan.c
@@ -4,5 +4,6 @@
 \tunsigned int nr_demoted = 0;
 \tstruct swap_iocb *plug = NULL;
+\tstruct vmscan_flush flush;

 \tfolio_batch_init(&free_folios);
 \tmemset(stat, 0, sizeof(*stat));
@@ -9,4 +10,5 @@
 \tcond_resched();

+\tflush_all();
 \treturn nr_reclaimed;
 }
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a tree with the newer file, and a patch for the older one beside it."""
    (tmp_path / "tree/mm").mkdir(parents=True)
    (tmp_path / "tree/mm/vmscan.c").write_text(NEW)
    (tmp_path / "one.patch").write_text(PATCH)
    return tmp_path


@pytest.mark.parametrize("series", series_names())
def test_a_composed_series_makes_the_common_files(series: str, tmp_path: Path) -> None:
    """The patch program makes of them what they are, with all that existing files need left out."""
    write_series(series, tmp_path)
    names = (tmp_path / "series").read_text().split()
    first = (tmp_path / names[0]).read_text()
    files = common_files()
    assert files
    new = first[first.index(f"--- /dev/null\n+++ b/{min(files)}") :]
    subprocess.run(["patch", "-p1", "-s"], input=new, text=True, cwd=tmp_path, check=True)
    for path, text in files.items():
        assert (tmp_path / path).read_text() == text
    for name in names[1:]:
        assert (tmp_path / name).read_text() == (hooks.HOOKS / series / name).read_text()


def test_a_composition_is_kept_until_something_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    series = tmp_path / "hooks/6.12"
    series.mkdir(parents=True)
    (series / "series").write_text("# comment\none.patch -p1\n\ntwo.patch\n")
    for name in ("one.patch", "two.patch"):
        (series / name).write_text(f"{name}\n")
    monkeypatch.setattr(hooks, "HOOKS", tmp_path / "hooks")
    monkeypatch.setattr(hooks, "COMMON", tmp_path / "hooks/common")
    monkeypatch.setattr(hooks, "PATCHES", tmp_path / "patches")
    patches = hook_patches("6.12")
    assert [path.name for path in patches] == ["one.patch", "two.patch"]
    assert hook_patches("6.12", 1) == patches[:1]
    assert hook_patches("6.12", 0) == []
    (tmp_path / "hooks/common/mm").mkdir(parents=True)
    (tmp_path / "hooks/common/mm/new.c").write_text("int new;\n")
    changed = hook_patches("6.12")
    assert changed[0].parent != patches[0].parent
    assert changed[0].read_text().endswith("+++ b/mm/new.c\n@@ -0,0 +1,1 @@\n+int new;\n")
    with pytest.raises(Failure, match="the series has 2 patches"):
        hook_patches("6.12", 3)
    with pytest.raises(Failure, match=r"no hooks for 7\.9"):
        hook_patches("7.9")


def test_the_hunks_of_a_patch() -> None:
    found = hunks(PATCH)["mm/vmscan.c"]
    assert [hunk.line for hunk in found] == [4, 9]
    assert found[1].before == ["\tcond_resched();", "", "\treturn nr_reclaimed;", "}"]


def test_a_hunk_that_fails_and_where_it_would_go(tree: Path) -> None:
    (failed,) = misfits([tree / "one.patch"], tree / "tree", ["mm/vmscan.c"])
    assert (failed.path, failed.number) == ("mm/vmscan.c", 1)
    assert failed.place
    line = NEW.splitlines().index("\tunsigned int nr_demoted = 0;") + 1
    assert (failed.place.line, failed.place.function) == (line, "shrink_folio_list()")
    assert list(failed.lines())[1:] == [
        "    wanted: \tstruct swap_iocb *plug = NULL;",
        "     found: \tstruct swap_io_ctx ctx = {};",
    ]
    assert (tree / "tree/mm/vmscan.c").read_text() == NEW


def test_no_hunk_fails_where_all_is_as_it_was(tree: Path) -> None:
    (tree / "tree/mm/vmscan.c").write_text(OLD)
    assert misfits([tree / "one.patch"], tree / "tree", ["mm/vmscan.c"]) == []


def test_a_file_that_is_gone(tree: Path) -> None:
    (tree / "tree/mm/vmscan.c").unlink()
    failed = misfits([tree / "one.patch"], tree / "tree", ["mm/vmscan.c"])
    assert [misfit.number for misfit in failed] == [1, 2]
    assert "no such file" in next(failed[0].lines())


def test_of_like_places_the_nearest() -> None:
    lines = ["int a;", "", "call(b);", "", "int c;"] * 100
    hunk = Hunk(201, ["call(b);", ""])
    for moved, line in ((0, 203), (100, 303), (-199, 3)):
        place = best_place(lines, hunk, moved)
        assert place and place.alike == 1
        assert abs(place.line - line) <= 5


def test_nothing_to_look_for() -> None:
    assert best_place(["int a;"], Hunk(1, [""])) is None
    assert best_place([], Hunk(1, ["int a;"])) is None


@pytest.mark.parametrize(
    ("version", "series"),
    [((6, 12), "6.12"), ((6, 14), "6.12"), ((6, 19), "7.2"), ((99, 0), series_names()[-1])],
)
def test_the_series_nearest_to_a_tree(
    tmp_path: Path, version: tuple[int, int], series: str
) -> None:
    (tmp_path / "Makefile").write_text(f"VERSION = {version[0]}\nPATCHLEVEL = {version[1]}\n")
    assert porting.nearest_series(tmp_path) == series


def test_links_follow_the_tree_and_leave_out_what_was_built(tmp_path: Path) -> None:
    source, links = tmp_path / "source", tmp_path / "links"
    for name in ("mm/a.c", "mm/b.c", ".config", "include/config/auto.conf", ".git/HEAD"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(name)
    trial.link_tree(source, links)
    assert (links / "mm/a.c").is_symlink()
    assert sorted(str(path.relative_to(links)) for path in links.rglob("*") if path.is_file()) == [
        "mm/a.c",
        "mm/b.c",
    ]
    trial.put(links / "mm/a.c", b"patched")
    (links / "mm/new.c").touch()
    (source / "mm/b.c").unlink()
    trial.link_tree(source, links)
    assert (links / "mm/a.c").read_text() == "mm/a.c" == (source / "mm/a.c").read_text()
    assert [path.name for path in (links / "mm").iterdir()] == ["a.c"]


def test_a_source_that_has_no_use_for_a_series(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="no kernel source"):
        porting.source_trial(tmp_path, None)
    (tmp_path / "mm").mkdir()
    for name in ("vmscan.c", "vmscan_policy.c"):
        (tmp_path / "mm" / name).touch()
    with pytest.raises(Failure, match="has hooks already"):
        porting.source_trial(tmp_path, None)
