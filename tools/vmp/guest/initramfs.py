# SPDX-License-Identifier: GPL-2.0
"""A system for a guest that is all in its initramfs: programs of this machine, and Python.

It is for kernels that can't mount a directory of the host.
"""

import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from vmp.common import Failure, Words, run
from vmp.guest.stock import Stock

PYTHON = Path("/usr/bin/python3")  # the distribution's, whatever PATH has
# Of Python's library, what no tool in a guest needs.
LEFT_OUT = ("test", "idlelib", "tkinter", "turtledemo", "lib2to3", "ensurepip", "pydoc_data",
            "distutils", "unittest", "config-*", "*-packages", "*.txt")  # fmt: skip
DIRECTORIES = ("dev", "proc", "sys", "run", "tmp", "etc", "root", "usr/bin", "usr/lib", "usr/lib64")
# Debian's directories of these names are links, too.
LINKS = {"bin": "usr/bin", "sbin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64",
         "usr/sbin": "bin"}  # fmt: skip
LIBRARY = re.compile(r"(/\S+) \(0x")
MODULES = "modules"  # has them in the order in which they are to be loaded


def find_programs(names: Iterable[str]) -> list[Path]:
    """Return where programs are; raise Failure for one that isn't here."""
    found = {name: shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin") for name in names}
    if missing := [name for name, path in found.items() if not path]:
        raise Failure(f"{', '.join(missing)} is not installed: run `tools/setup demo`")
    return [Path(path) for path in found.values() if path]


def copy(source: Path, target: Path) -> None:
    """Copy a file or a directory, with what it links to and its times."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns(*LEFT_OUT))
    else:
        shutil.copy2(source, target)


def put_programs(root: Path, names: Iterable[str]) -> None:
    """Copy programs with the libraries that they need, and Python with its own."""
    programs = [*find_programs(names), PYTHON]
    ask = "import sysconfig; print(sysconfig.get_path('stdlib'))"
    library = run([PYTHON, "-c", ask], "asking Python for its library").strip()
    listed = run(["ldd", *programs], "listing the libraries of the guest's programs")
    for name in {*map(str, programs), *LIBRARY.findall(listed), library}:
        copy(Path(name), root / name.lstrip("/"))


def put_modules(root: Path, kernel: Stock, names: Iterable[str]) -> None:
    """Copy modules of a kernel, and those that they need."""
    command: Words = ["modprobe", "-d", kernel.tree, "-S", kernel.release, "--show-depends", "-a"]
    listed = run([*command, *names], "listing the guest's modules")
    for number, path in enumerate(re.findall(r"^insmod (\S+)", listed, re.MULTILINE)):
        copy(Path(path), root / MODULES / f"{number:02}-{Path(path).name}")


def make(
    target: Path,
    kernel: Stock,
    init: str,
    programs: Iterable[str],
    modules: Iterable[str],
    files: Mapping[str, Path],
) -> None:
    """Write an initramfs with `init`, a shell script, and with `files` and directories by name."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for directory in DIRECTORIES:
            (root / directory).mkdir(parents=True)
        for link, to in LINKS.items():
            (root / link).symlink_to(to)
        put_programs(root, programs)
        put_modules(root, kernel, modules)
        for place, source in files.items():
            copy(source, root / place)
        # The guest would compile it slowly, at each start.
        run([PYTHON, "-m", "compileall", "-q", *(root / place for place in files)], "compiling")
        (root / "init").write_text(init)
        (root / "init").chmod(0o755)
        pack = 'cd "$0" && find . | cpio -o -H newc -R 0:0 --quiet >"$1"'
        run(["sh", "-c", pack, root, target], "packing the initramfs")
