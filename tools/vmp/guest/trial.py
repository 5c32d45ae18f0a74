# SPDX-License-Identifier: GPL-2.0
"""A series tried on a kernel tree that stays as it is: applied to copies, and compiled."""

import os
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from vmp.common import CACHE, REPO, Failure, appearing, locked
from vmp.guest.architecture import ALL, Architecture, own
from vmp.guest.configuration import OPTION, configure, fragments
from vmp.guest.hooks import hook_patches
from vmp.guest.kernel import compiler, inputs_key
from vmp.guest.make import make_targets
from vmp.guest.patched import file_digest, patched_files, push, source
from vmp.guest.sources import Version, unpack

CHECK, FILES, OBJECTS = (CACHE / name for name in ("check", "files", "objects"))
# Directories of what a series may touch.
PATCHED = ("mm", "include/linux", "arch/arm64/include/asm")
# In a tree that somebody builds in; make takes no such tree for a build elsewhere.
BUILT = (".config", "include/config", "include/generated",
         *(f"arch/{each.kernel}/include/generated" for each in ALL.values()))  # fmt: skip
WARNINGS = "warnings"
FOREIGN_CONFIG = REPO / "tools/config/foreign.config"
STOCK, OFF, ON = "stock", "off", "on"  # without the series, and with it, by the option


@dataclass(frozen=True)
class Touched:
    """The files that patches touch, those that they make, and the objects of both."""

    existing: list[str]
    new: list[str]

    @property
    def objects(self) -> list[str]:
        """Return the objects of the existing files."""
        return [f"{path[:-2]}.o" for path in self.existing if path.endswith(".c")]


def touched(patches: list[Path]) -> Touched:
    """Return what patches touch."""
    text = "".join(path.read_text() for path in patches)
    pairs = re.findall(r"^--- (\S+).*\n\+\+\+ [^/\s]+/(\S+)", text, re.MULTILINE)
    new = {path for old, path in pairs if old == "/dev/null"}
    return Touched(sorted({path for _, path in pairs} - new), sorted(new))


def new_objects(patches: list[Path]) -> list[str]:
    """Return the objects of their own that patches bring, by what they add to a Makefile."""
    found: dict[str, None] = {}
    for path in patches:
        for part in re.split(r"^--- ", path.read_text(), flags=re.MULTILINE):
            if makefile := re.search(r"^\+\+\+ [^/\s]+/(\S*)Makefile$", part, re.MULTILINE):
                for line in re.findall(r"^\+obj-\S+ [+:]= (.*)", part, re.MULTILINE):
                    found |= dict.fromkeys(makefile[1] + name for name in line.split())
    return list(found)


def original_files(version: Version) -> Path:
    """Return a tree with those files alone that a series may touch, as the release has them."""
    tree = FILES / version.package
    with locked(FILES / ".lock"):
        if not all((tree / name).is_dir() for name in PATCHED):
            shutil.rmtree(tree, ignore_errors=True)
            unpack(version, tree, *PATCHED)
    return tree


def copy_files(tree: Path, names: list[str], target: Path) -> None:
    """Copy files of a tree that are there."""
    for name in names:
        if (tree / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(tree / name, target / name)


def applies(version: Version) -> None:
    """Apply the whole series to the files of a release that it touches, without fuzz."""
    patches = hook_patches(version.series)
    with tempfile.TemporaryDirectory() as name:
        copy_files(original_files(version), touched(patches).existing, Path(name))
        push(Path(name), patches)


def link_tree(source: Path, target: Path) -> None:
    """Make `target` a tree of links to the files of a kernel tree, without what was built in it."""
    target.mkdir(parents=True, exist_ok=True)
    for top, directories, files in os.walk(source):
        place = Path(top).relative_to(source)
        directories[:] = [
            name
            for name in directories
            if name not in (".git", ".pc") and str(place / name) not in BUILT
        ]
        here = target / place
        here.mkdir(exist_ok=True)
        there = {entry.name: entry.is_symlink() for entry in os.scandir(here)}
        wanted = {name for name in files if str(place / name) not in BUILT}
        for name in there.keys() - wanted - set(directories):
            gone = here / name
            shutil.rmtree(gone) if gone.is_dir() and not gone.is_symlink() else gone.unlink()
        for name in wanted:
            if name not in there:
                (here / name).symlink_to(Path(top, name))
            elif not there[name]:
                put(here / name, Path(top, name).read_bytes())


def put(path: Path, text: bytes) -> None:
    """Make a file of that content; one that has it already keeps its time."""
    if path.is_symlink() or not path.exists() or path.read_bytes() != text:
        path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)


class Trial:
    """What a series touches in a kernel tree, compiled without it, and with it off and on.

    `find` returns the tree, and `originals` has the touched files as they were: the tree may be
    patched.
    """

    def __init__(self, name: str, find: Callable[[], Path], originals: Path, series: str):
        self.find, self.originals, self.series = find, originals, series
        self.links, self.build = (CHECK / name / part for part in ("tree", "build"))
        self.patches = hook_patches(series)
        self.files = touched(self.patches)
        self.linked = False

    def objects(self, state: str) -> list[str]:
        """Return the objects that there are in a state."""
        return self.files.objects + (new_objects(self.patches) if state == ON else [])

    def enter(self, state: str) -> None:
        """Bring the tree of links to a state."""
        tree = self.find()
        if not self.linked:
            link_tree(tree, self.links)
            self.linked = True
        # The tree itself may have been patched, with another state of the series.
        names = {*self.files.existing, *self.files.new, *patched_files(tree)}
        with tempfile.TemporaryDirectory() as name:
            copy_files(self.originals, list(names), Path(name))
            if state != STOCK:
                push(Path(name), self.patches)
            for path in names:
                if (Path(name) / path).exists():
                    put(self.links / path, (Path(name) / path).read_bytes())
                else:
                    (self.links / path).unlink(missing_ok=True)

    def configured(self, state: str) -> None:
        """Configure the build: from the fragments once, then by the option alone."""
        self.build.mkdir(parents=True, exist_ok=True)
        parts = fragments(self.series, own(), "off")
        wanted = " ".join(map(file_digest, parts))
        first, stamp = self.build / ".config.off", self.build / ".config.from"
        if not stamp.exists() or stamp.read_text() != wanted:
            configure(self.links, self.build, own(), parts, False)
            shutil.copyfile(self.build / ".config", first)
            stamp.write_text(wanted)
        lines = [line for line in first.read_text().splitlines() if OPTION not in line]
        lines.append(f"{OPTION}=y" if state == ON else f"# {OPTION} is not set")
        text = "".join(f"{line}\n" for line in lines)
        current = self.build / ".config.now"
        if not current.exists() or current.read_text() != text:
            current.write_text(text)
            (self.build / ".config").write_text(text)

    def compile(self, state: str, target: Path) -> None:
        """Compile the objects of a state into a directory, which also tells of warnings."""
        with locked(self.build.with_suffix(".lock")):
            self.enter(state)
            self.configured(state)
            names = self.objects(state)
            what = f"{self.links.parent.name} {state}"
            log = make_targets(self.links, self.build, own(), what, "W=1", *names)
            if (f"{OPTION}=y" in (self.build / ".config").read_text()) != (state == ON):
                raise Failure(
                    f"{OPTION} can't be set as asked for: does it depend on another option?"
                )
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir(parents=True)
            for name in names:
                shutil.copyfile(self.build / name, target / Path(name).name)
            lines = log.read_text().splitlines()
            found = [line for line in lines if "warning:" in line]
            (target / WARNINGS).write_text("".join(f"{line}\n" for line in found))


def warnings(objects: Path) -> list[str]:
    """Return what the compiler warned of when it made objects, without the lines' numbers."""
    return [re.sub(r":\d+", "", line) for line in (objects / WARNINGS).read_text().splitlines()]


def release_trial(version: Version, series: str) -> Trial:
    """Return the trial of a series on a release of Debian's."""
    name = version.package if series == version.series else f"{version.package}-{series}"
    return Trial(name, partial(source, version), original_files(version), series)


def release_objects(version: Version, state: str) -> Path:
    """Return the directory with the objects of a release in a state, compiled if needed.

    Raises Failure if the compiler warns of something that it does not without the series.
    """
    patches = hook_patches(version.series)
    inputs = {
        "package": version.package,
        "state": state,
        "compiler": compiler(own()),
        "config": list(map(file_digest, fragments(version.series, own(), "off"))),
        "series": touched(patches).objects if state == STOCK else list(map(file_digest, patches)),
    }
    result = OBJECTS / inputs_key(inputs)
    with locked(result.with_suffix(".lock")):
        if not result.exists():
            with appearing(result) as part:
                release_trial(version, version.series).compile(state, part)
    if state != STOCK:
        known = warnings(release_objects(version, STOCK))
        if new := [line for line in warnings(result) if line not in known]:
            raise Failure("\n".join(new))
    return result


def compile_foreign(version: Version, architecture: Architecture) -> None:
    """Compile what a release's series touches for another architecture, without a warning."""
    trial = release_trial(version, version.series)
    build = trial.build.with_name(f"build-{architecture.name}")
    what = f"{version.point} for {architecture.name}"
    with locked(trial.build.with_suffix(".lock")):
        trial.enter(ON)
        build.mkdir(parents=True, exist_ok=True)
        options = f"KCONFIG_ALLCONFIG={FOREIGN_CONFIG}"
        make_targets(trial.links, build, architecture, what, options, "allnoconfig")
        taken = (build / ".config").read_text().splitlines()
        wanted = re.findall(r"^CONFIG_.*", FOREIGN_CONFIG.read_text(), re.MULTILINE)
        if refused := set(wanted) - set(taken):
            raise Failure(f"{what} can't be configured: refused are {', '.join(sorted(refused))}")
        make_targets(trial.links, build, architecture, what, "W=1", *trial.objects(ON))
