# SPDX-License-Identifier: GPL-2.0
"""Tests of the documents: their links, their patches, and how their steps are found and done."""

import re
import sys
from pathlib import Path

import pytest
from tests import docs
from vmp.common import REPO, Failure

DOCUMENTS = sorted([*REPO.glob("*.md"), *REPO.glob("docs/**/*.md")])
TEXT = """Text with `inline` code.

```sh
true
  one two \\
    three

four
```
In `there/new.c`, a new file:

```c
int x;
```
```text
not run
```

```diff
--- a/x
+++ b/x
```
"""


def test_steps() -> None:
    assert list(docs.steps(TEXT)) == [
        docs.Step("sh", "true\n", 4),
        docs.Step("sh", "  one two \\\n    three\n", 5),
        docs.Step("sh", "four\n", 8),
        docs.Step("file", "int x;\n", 13, "there/new.c"),
        docs.Step("diff", "--- a/x\n+++ b/x\n", 20),
    ]


def test_steps_of_nothing() -> None:
    assert not list(docs.steps("no block\n"))
    assert [step.line for step in docs.steps("```sh\ntrue\n```\n")] == [2]


def test_do(tmp_path: Path) -> None:
    assert docs.do(docs.Step("file", "old\n", 1, "new/x"), tmp_path) == 0
    diff = "--- a/new/x\n+++ b/new/x\n@@ -1 +1 @@\n-old\n+changed\n"
    assert docs.do(docs.Step("diff", diff, 1), tmp_path) == 0
    assert (tmp_path / "new/x").read_text() == "changed\n"
    assert docs.do(docs.Step("diff", diff, 1), tmp_path) != 0
    assert docs.do(docs.Step("sh", "grep -q changed new/x\n", 1), tmp_path) == 0
    assert docs.do(docs.Step("sh", "false | cat\n", 1), tmp_path) == 1


def test_failure_names_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = tmp_path / "x.md"
    document.write_text("```sh\ntrue\nexit 3\n```\n")
    monkeypatch.setattr(sys, "argv", ["docs", str(document)])
    monkeypatch.setattr(docs, "copy_checkout", lambda _top: None)
    with pytest.raises(Failure, match=r"x\.md, line 3, ends with status 3"):
        docs.main()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(REPO)))
def test_patches_apply(document: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["docs", "--edits", str(document)])
    assert docs.main() == 0


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(REPO)))
def test_links(document: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
        name, _, anchor = link.partition("#")
        target = document.parent / name if name else document
        assert target.exists(), link
        heads = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE) if anchor else []
        slugs = {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
        assert not anchor or anchor in slugs, link


# What only those know who were there, and marks that no table explains.
INSIDERS = re.compile(r"\bABI \d|MISSED|Spread [AB]|†|demo above")
FOR_INSIDERS = ("docs/contributing.md", "docs/history/", "CHANGELOG.md")


@pytest.mark.parametrize(
    "document",
    [
        path
        for path in [*DOCUMENTS, *sorted(REPO.glob("tools/man/*.1"))]
        if not str(path.relative_to(REPO)).startswith(FOR_INSIDERS)
    ],
    ids=lambda path: str(path.relative_to(REPO)),
)
def test_words_are_for_readers_who_were_not_there(document: Path) -> None:
    assert not INSIDERS.findall(document.read_text())


def test_readme_is_short() -> None:
    assert len((REPO / "README.md").read_text().splitlines()) <= 150
