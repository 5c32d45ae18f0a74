# SPDX-License-Identifier: GPL-2.0
"""Does a series fit a kernel tree: hunks that fail and where they would go, and what it costs."""

import difflib
import hashlib
import math
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from vmp.common import Failure
from vmp.guest import objects
from vmp.guest.hooks import order, series_names
from vmp.guest.trial import (
    OFF,
    ON,
    STOCK,
    Trial,
    copy_files,
    warnings,
)

# What reclaim does often; static ones may have been inlined into others.
HOT = (
    "shrink_folio_list",
    "scan_folios",
    "isolate_folios",
    "evict_folios",
    "try_to_shrink_lruvec",
    "shrink_lruvec",
    "shrink_node",
    "lru_gen_look_around",
    "folio_referenced_one",
    "try_to_unmap_one",
)
CLOSE = 20  # so many places are compared letter by letter
# What is so many lines away has to be alike so much more.
RANGE, FAR = 500, 0.3
MINORS = 20
HUNK = re.compile(r"^@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@", re.MULTILINE)
FUNCTION = re.compile(r"^[A-Za-z_][\w\s*]*?(\w+)\(")


@dataclass
class Hunk:
    """A hunk of a patch: the lines that it looks for, and where."""

    line: int
    before: list[str] = field(default_factory=list)


def hunks(patch: str) -> dict[str, list[Hunk]]:
    """Return the hunks of a patch by the file that they change."""
    found: dict[str, list[Hunk]] = {}
    for part in re.split(r"^(?=--- )", patch, flags=re.MULTILINE)[1:]:
        name = re.search(r"^\+\+\+ [^/\s]+/(\S+)", part, re.MULTILINE)
        if not name:
            continue
        here = found.setdefault(name[1], [])
        for line in part.splitlines()[2:]:
            if head := HUNK.match(line):
                here.append(Hunk(int(head[1])))
            elif here and line[:1] in (" ", "-"):
                here[-1].before.append(line[1:])
            elif here and not line:
                here[-1].before.append("")
    return found


@dataclass(frozen=True)
class Place:
    """Where a hunk would best go: a line, the function it is in, and how much alike (0 to 1)."""

    line: int
    function: str
    alike: float
    found: tuple[str, ...]


def words(lines: list[str]) -> Counter[str]:
    """Return the words of lines, and how often each is there."""
    return Counter(re.findall(r"\w+", "\n".join(lines)))


def enclosing(lines: list[str], at: int) -> str:
    """Return the function that a line is in or follows, by its head at the begin of a line; ""."""
    for line in reversed(lines[: at + 1]):
        if (head := FUNCTION.match(line)) and not line.rstrip().endswith(";"):
            return f"{head[1]}()"
    return ""


def best_place(lines: list[str], hunk: Hunk, moved: int = 0) -> Place | None:
    """Find the lines of a file that are most like those that a hunk looks for.

    First by rare words that are there, then letter by letter. What is far from where it would
    be, if it had `moved` by so many lines, has to be more alike.
    """
    size = len(hunk.before)
    if not any(line.strip() for line in hunk.before) or not lines:
        return None
    often = words(lines)
    weight = {word: math.log(1 + len(lines) / (1 + often[word])) for word in words(hunk.before)}
    per_line = [words([line]).keys() & weight.keys() for line in lines]
    most = sum(weight.values()) or 1.0
    rated = []
    for start in range(max(1, len(lines) - size + 1)):
        known = set().union(*per_line[start : start + size])
        far = FAR * min(1.0, abs(start + 1 - hunk.line - moved) / RANGE)
        rated.append((sum(weight[word] for word in known) / most - far, far, start))
    rated.sort(reverse=True)
    wanted = "\n".join(line.strip() for line in hunk.before)
    best, best_rate = None, -1.0
    for _, far, start in rated[:CLOSE]:
        window = lines[start : start + size]
        text = "\n".join(line.strip() for line in window)
        alike = difflib.SequenceMatcher(None, wanted, text, autojunk=False).ratio()
        if alike - far > best_rate:
            best = Place(start + 1, enclosing(lines, start), alike, tuple(window))
            best_rate = alike - far
    return best


@dataclass(frozen=True)
class Misfit:
    """A hunk that does not apply: the patch, the file and the hunk's number in it."""

    patch: str
    path: str
    number: int
    hunk: Hunk
    place: Place | None

    def lines(self) -> Iterator[str]:
        """Tell where it would go, and what is there in place of what it looks for."""
        head = f"{self.path}: hunk {self.number} of {self.patch}"
        if not self.place:
            yield f"{head}: there is nothing like it, or no such file"
            return
        where = f"line {self.place.line}"
        where += f" in {self.place.function}" if self.place.function else ""
        yield f"{head}: would best go to {where}, {100 * self.place.alike:.0f} % alike"
        if list(self.place.found) == self.hunk.before:
            yield "    the lines are there, but not in the order of the hunks"
        difference = difflib.ndiff(self.hunk.before, self.place.found)
        marks = {"- ": "wanted", "+ ": " found"}
        for line in difference:
            if line[:2] in marks:
                yield f"    {marks[line[:2]]}: {line[2:]}"


def near(moved: dict[int, int], line: int) -> int:
    """Return by how many lines that which is nearest to a line has moved; 0 if nothing is known."""
    return moved[min(moved, key=lambda other: abs(other - line))] if moved else 0


def misfits(patches: list[Path], tree: Path, files: list[str]) -> list[Misfit]:
    """Apply patches to copies of a tree's files, without fuzz, and return what fails."""
    found = []
    moved: dict[str, dict[int, int]] = {}  # by how many lines what applied at a line did move
    with tempfile.TemporaryDirectory() as name:
        copies = Path(name)
        copy_files(tree, files, copies)
        for patch in patches:
            text = patch.read_text()
            options = ["-p1", "--fuzz=0", "--force", "--no-backup-if-mismatch", "-r", "-"]
            done = subprocess.run(
                ["patch", *options],
                input=text,
                cwd=copies,
                capture_output=True,
                text=True,
                check=False,
            )
            if not done.returncode:
                continue
            parts = re.split(r"^patching file (\S+).*\n", done.stdout, flags=re.MULTILINE)
            said = dict(zip(parts[1::2], parts[2::2], strict=True))
            for path, here in hunks(text).items():
                file = copies / path
                lines = file.read_text().splitlines() if file.exists() else []
                output = said.get(path, "")
                failed = {int(number) for number in re.findall(r"#(\d+) FAILED", output)}
                if not lines:
                    failed = set(range(1, len(here) + 1))
                offsets = dict(re.findall(r"#(\d+) succeeded at \d+ \(offset (-?\d+)", output))
                for number, hunk in enumerate(here, start=1):
                    if number not in failed:
                        moved.setdefault(path, {})[hunk.line] = int(offsets.get(str(number), 0))
                for number in sorted(failed):
                    hunk = here[number - 1]
                    place = best_place(lines, hunk, near(moved.get(path, {}), hunk.line))
                    found.append(Misfit(patch.name, path, number, hunk, place))
    return found


def number(version: list[int]) -> int:
    """Return about how many kernels there were before one: a new major version follows 19 or 20."""
    return MINORS * version[0] + version[1]


def nearest(kernel: str) -> str:
    """Return the series for the kernel nearest to one, as in 7.4."""
    here = number(order(kernel))
    return min(reversed(series_names()), key=lambda series: abs(number(order(series)) - here))


def nearest_series(tree: Path) -> str:
    """Return the series for the kernel nearest to a tree's, by the version in its Makefile."""
    text = (tree / "Makefile").read_text()
    found = re.search(r"^VERSION = (\d+)\nPATCHLEVEL = (\d+)$", text, re.MULTILINE)
    if not found:
        raise Failure(f"{tree} is no kernel source: its Makefile has no VERSION and PATCHLEVEL")
    return nearest(f"{found[1]}.{found[2]}")


def source_trial(tree: Path, series: str | None) -> Trial:
    """Return the trial of a series on somebody's source tree."""
    if not (tree / "mm/vmscan.c").is_file():
        raise Failure(f"{tree} is no kernel source: it has no mm/vmscan.c")
    if (tree / "mm/vmscan_policy.c").exists():
        raise Failure(f"{tree} has hooks already: give a source without them")
    digest = hashlib.sha256(str(tree).encode()).hexdigest()[:8]
    return Trial(f"{tree.name}-{digest}", lambda: tree, tree, series or nearest_series(tree))


def compare(stock: Path, hooked: Path) -> Iterator[tuple[str, int, int]]:
    """Return each hot function of an object, its instructions, and how many differ in another."""
    before, after = objects.functions(stock), objects.functions(hooked)
    for name in HOT:
        if name in before:
            old, new = ([item.code for item in each.get(name, [])] for each in (before, after))
            matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
            changes = (code for code in matcher.get_opcodes() if code[0] != "equal")
            yield name, len(old), sum(max(i2 - i1, j2 - j1) for _, i1, i2, j1, j2 in changes)


def cost(directory: dict[str, Path]) -> Iterator[str]:
    """Tell what a series does to the objects that it touches, by directories of each state."""
    for stock in sorted(directory[STOCK].glob("*.o")):
        for name, count, differ in compare(stock, directory[OFF] / stock.name):
            same = f"{differ} differ" if differ else "the same"
            yield f"{stock.name}: {name}(): {count} instructions, with the option off {same}"
        size, off, on = (objects.text_size(directory[s] / stock.name) for s in (STOCK, OFF, ON))
        yield (
            f"{stock.name}: {size} bytes of text, {off - size:+} with the option off, "
            f"{on - size:+} ({100 * (on / size - 1):+.1f} %) with it on"
        )
        for key, sites in objects.branches(directory[ON] / stock.name).items():
            if key.startswith("vmscan_"):
                yield f"{stock.name}: {len(sites)} static branches on {key}"


def check(title: str, trial: Trial) -> bool:
    """Tell whether a series fits a tree, and print why not, or what it costs."""
    count = len(trial.patches)
    print(f"{title}: the {count} patches for {trial.series}, without fuzz", flush=True)
    failed = misfits(trial.patches, trial.originals, trial.files.existing)
    if failed:
        for misfit in failed:
            print(*misfit.lines(), sep="\n")
        total = sum(
            len(here) for path in trial.patches for here in hunks(path.read_text()).values()
        )
        print(f"{len(failed)} of {total} hunks do not apply: nothing was compiled")
        return False
    print("all apply", flush=True)
    directory = {state: trial.build.parent / "objects" / state for state in (STOCK, OFF, ON)}
    for state, where in directory.items():
        trial.compile(state, where)
        new = [line for line in warnings(where) if line not in warnings(directory[STOCK])]
        what = {STOCK: "without the series", OFF: "with the option off", ON: "with it on"}
        print(f"compiles {what[state]}, new warnings: {len(new)}", *new, sep="\n", flush=True)
    print(*cost(directory), sep="\n")
    return True
