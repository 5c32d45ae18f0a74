# SPDX-License-Identifier: GPL-2.0
"""Tests of the Debian packages: what is in them, and that it works from where it gets installed."""

import json
import subprocess
import tomllib
from pathlib import Path

from vmp.checkout import checkout
from vmp.common import CACHE, REPO, VERSION, Failure, Words, run
from vmp.testing.results import Report
from vmp.vmscanctl import COMMANDS

MODULE, TOOLS = "vmscan-policy-dkms", "vmscan-policy-tools"
NAME = "vmscan_policy"
USAGE = 2  # bench's exit status for a wrong command line
EXCLUDED = 77  # dkms's exit status for a kernel that a module is not for
# Installs a wheel where nothing else is, and has each command tell what it takes.
BARE = """
python3 -m venv "$0/venv"
"$0/venv/bin/pip" install -q --no-index "$1"
shift
cd /
for command; do "$0/venv/bin/vmscanctl" "$command" --help >/dev/null; done
"""
PAGES = ("vmscan-bench", "vmscanctl",
         *(f"vmscanctl-{name}" for name in ("ab", "record", "report", "shark")))  # fmt: skip
BENCH = ("experiments", "vmp/bench", "vmp/guest", "workloads")  # what only the package has


def make_deb(target: str, package: str, version: str = VERSION, source: Path = REPO) -> Path:
    """Make a package as a user does, of a checkout; return it."""
    deb = source / "out" / f"{package}_{version}_all.deb"
    deb.unlink(missing_ok=True)
    run(["make", "-C", source, target], f"make {target}")
    return deb


def make_wheel(directory: Path) -> Path:
    """Make what pip installs; return it."""
    tools = directory / "tools"
    run(["cp", "-r", REPO / "tools", tools], "copying the tools")  # pip leaves its work there
    options: Words = ["--no-build-isolation", "--no-deps", "-w", directory]
    run([CACHE / "venv" / "bin" / "pip", "wheel", "-q", *options, tools], "pip wheel")
    return next(directory.glob("*.whl"))


def bare(directory: str, wheel: str) -> list[str]:
    """Return the command that installs a wheel below a directory, and tries what it brings."""
    return ["sh", "-ec", BARE, directory, wheel, *COMMANDS]


def unpack(target: str, package: str, directory: Path) -> Path:
    """Make a package and unpack it; return where."""
    deb = make_deb(target, package)
    told = run(["dpkg-deb", "-f", deb, "Package", "Version"], "reading the package")
    if told.split() != ["Package:", package, "Version:", VERSION]:
        raise Failure(f"{deb} says of itself:\n{told}")
    top = directory / package
    run(["dpkg-deb", "-x", deb, top], "unpacking")
    return top


def files(top: Path, below: str) -> set[str]:
    """Return the files below a directory of a package."""
    return {str(path.relative_to(top / below)) for path in top.rglob("*")
            if path.is_relative_to(top / below) and not path.is_dir()}  # fmt: skip


def same(what: str, found: set[str], wanted: set[str]) -> None:
    """Raise Failure where two sets of files differ."""
    extra, missing = sorted(found - wanted), sorted(wanted - found)
    if extra or missing:
        raise Failure(f"{what}: too many {extra}, missing {missing}")


def module_package(top: Path) -> None:
    """Check that the package brings what dkms needs, and nothing else."""
    sources = {str(path.relative_to(REPO)) for path in (REPO / "module").rglob("*.[ch]")}
    same("usr/src", files(top, f"usr/src/{NAME}-{VERSION}"), sources | {"Kbuild", "dkms.conf"})
    docs = {f"usr/share/doc/{MODULE}/{name}" for name in ("CHANGELOG.md.gz", "changelog.gz",
            "copyright")}  # fmt: skip
    same("the rest", {name for name in files(top, ".") if "usr/src/" not in name}, docs)


def tools_package(top: Path) -> None:
    """Check that the package brings vmscanctl and bench, their pages, and that they run."""
    share = f"usr/share/{TOOLS}"
    names = (path.relative_to(top / share) for path in (top / share).rglob("*") if path.is_file())
    rooms = tomllib.loads((REPO / "tools/pyproject.toml").read_text())["tool"]["setuptools"]
    wanted = {f"tools/{room.replace('.', '/')}" for room in rooms["packages"]}
    found = {str(name.parent) for name in names}
    same("directories", found, wanted | {"tools", *(f"tools/{name}" for name in BENCH)})
    programs = {name for name in files(top, f"{share}/tools") if "/" not in name}
    same("programs", programs, {"ab", "bench", "commit.json", "run-vmscanctl"})
    same("pages", files(top, "usr/share/man/man1"), {f"{page}.1.gz" for page in PAGES})
    same("etc", files(top, "etc"), {"vmscan-policy.conf"})
    if not list(top.rglob("system/vmscan-policy.service")):
        raise Failure("there is no unit")
    same("completion", files(top, "usr/share/bash-completion/completions"), {"vmscanctl"})
    said = run([top / "usr/bin/vmscanctl", "--version"], "vmscanctl")
    if said != f"vmscanctl {VERSION}\n":
        raise Failure(f"vmscanctl --version says: {said}")
    if json.loads((top / share / "tools/commit.json").read_text()) != checkout():
        raise Failure("the package does not say which commit it is of")
    bench = top / "usr/bin/vmscan-bench"
    if run([bench, "list"], "vmscan-bench") != run([REPO / "tools/bench", "list"], "bench"):
        raise Failure("vmscan-bench lists other experiments")
    for words in (["plan"], ["run", "by-chance"], ["page", "docs/results/mix/6.12.118.json"]):
        done = subprocess.run([bench, *words], capture_output=True, text=True, check=False)
        if done.returncode != USAGE or "takes a checkout" not in done.stderr:
            raise Failure(f"vmscan-bench {words[0]} is not refused: {done.stderr}")


def dkms_builds(top: Path, kernel: Path, directory: Path) -> None:
    """Build the module from its package as dkms does, and leave out a kernel without the hooks."""
    stock, tree = directory / "stock", directory / "tree"
    tree.mkdir()
    config = stock / "include" / "config" / "auto.conf"
    config.parent.mkdir(parents=True)
    config.write_text("CONFIG_SWAP=y\n")
    release = (kernel / "release").read_text().strip()
    options: Words = ["--dkmstree", tree, "--sourcetree", top / "usr" / "src"]
    options += ["-m", NAME, "-v", VERSION]
    run(["dkms", "add", *options], "dkms add")
    build = ["dkms", "build", *map(str, options), "-k", release, "--kernelsourcedir"]
    done = subprocess.run([*build, str(stock)], capture_output=True, text=True, check=False)
    if done.returncode != EXCLUDED:
        raise Failure(f"dkms does not leave out a kernel without the hooks:\n{done.stderr}")
    run([*build, kernel / "headers"], "dkms build")
    if not list(tree.rglob(f"{NAME}.ko*")):
        raise Failure("dkms built no module")


def run_all(report: Report, kernel: Path, directory: Path) -> None:
    """Make the packages and check them."""
    with report.check("module-deb has the files for dkms, and dkms builds the module"):
        top = unpack("module-deb", MODULE, directory)
        module_package(top)
        dkms_builds(top, kernel, directory)
    with report.check("pip installs vmscanctl into a bare environment, where each command starts"):
        run(bare(str(directory), str(make_wheel(directory))), "installing")
    with report.check("tools-deb has vmscanctl and bench, which run"):
        tools_package(unpack("tools-deb", TOOLS, directory))
