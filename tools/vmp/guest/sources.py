# SPDX-License-Identifier: GPL-2.0
"""Kernel sources: which point releases of a series Debian has, and a source package fetched.

A series is looked up in the machine's own apt lists and in lists of our own, which know the
suites that a stable machine has no need of; the system's apt stays as it is.
"""

import argparse
import functools
import os
import re
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from vmp.common import CACHE, Failure, Usage, Words, appearing, locked, run
from vmp.guest import architecture
from vmp.guest.architecture import Architecture
from vmp.guest.hooks import FIRST, order, series_names

DEFAULT = "6.12"
NAMED = "VMP_KERNEL"  # in the environment: what --kernel is where it is not given
KERNEL_HELP = f"a series, as in {DEFAULT} (its newest release), or a point release"
DEBS, APT = CACHE / "debs", CACHE / "apt"
LISTS = Path("/var/lib/apt/lists")
DAY, HOUR = 86400, 3600  # seconds
# What the archive calls the suites, and what is added to that name.
ALIASES = {"stable": ["", "-updates", "-backports"], "testing": [""], "unstable": [""]}
SECURITY = "-security"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


@dataclass(frozen=True)
class Version:
    """A point release (6.12.117), the Debian version of its source, and what it is built for."""

    point: str
    package: str
    architecture: Architecture = field(default_factory=architecture.own)

    @property
    def series(self) -> str:
        """Return the series, as in 6.12."""
        return self.point.rpartition(".")[0]

    @property
    def other(self) -> str:
        """Return what names end with where it is not built for this machine's architecture."""
        return "" if self.architecture.native else f":{self.architecture.name}"

    @property
    def label(self) -> str:
        """Return what find_version() knows the release by."""
        return f"{self.point}{self.other}"

    @property
    def exact(self) -> str:
        """Return what find_version() knows it by, and no other package of the release."""
        return f"{self.package}{self.other}"

    @property
    def builds(self) -> str:
        """Return the name of the directory that its builds are in."""
        return self.exact.replace(":", "-")

    @property
    def name(self) -> str:
        """Return the name of the source package."""
        return package_name(self.series)

    @property
    def deb(self) -> Path:
        """Return where the source package is kept."""
        return DEBS / f"{self.name}_{self.package}_all.deb"


def package_name(series: str) -> str:
    """Return the name of a series' source package."""
    return f"linux-source-{series}"


def say(text: str) -> None:
    """Print a line of progress."""
    print(f"kernel: {text}", file=sys.stderr, flush=True)


def key(version: Version) -> list[int]:
    """Return what point releases are ordered by."""
    return [int(part) for part in version.point.split(".")]


def read_version(series: str, package: str) -> Version | None:
    """Return a version by its Debian version; None if it is no release that the series is for."""
    point = re.match(rf"{re.escape(series)}\.(\d+)", package)
    if not point or int(point[1]) < FIRST.get(series, 0):
        return None
    return Version(point[0], package)


def cached(series: str) -> list[Version]:
    """Return the point releases whose source package has been fetched."""
    names = (path.name.split("_")[1] for path in DEBS.glob(f"{package_name(series)}_*_all.deb"))
    return [version for name in names if (version := read_version(series, name))]


def own_apt() -> dict[str, str]:
    """Return the environment of an apt that uses our own lists."""
    return os.environ | {"APT_CONFIG": str(APT / "apt.conf"), "LC_ALL": "C"}


def listed(series: str, own: bool) -> list[Version]:
    """Return the point releases in the machine's lists, or in our own."""
    if own and not (APT / "apt.conf").exists():
        return []
    listing = run(
        ["apt-cache", "madison", package_name(series)],
        "listing the kernel sources",
        env=own_apt() if own else None,
    )
    names = (line.split("|")[1].strip() for line in listing.splitlines())
    return [version for name in names if (version := read_version(series, name))]


def age(*paths: Path) -> float:
    """Return how long ago the newest of some files changed, in seconds."""
    times = [path.stat().st_mtime for path in paths if path.exists()]
    return time.time() - max(times, default=0)


def mirrors() -> dict[str, str]:
    """Return where the machine has Debian and its security archive from, by their label."""
    form = "$(LABEL)|$(REPO_URI)"
    targets = run(["apt-get", "indextargets", "--format", form], "reading apt's sources")
    found: dict[str, str] = {}
    for line in reversed(targets.splitlines()):
        label, site = line.split("|")
        if label in ("Debian", "Debian-Security") and not site.startswith("cdrom:"):
            found[label] = site
    if "Debian" not in found:
        raise Failure("apt's sources name no mirror of Debian: add one, and run `apt-get update`")
    return found


def suite_lines(suite: str) -> list[str]:
    """Return what apt's sources have of a suite, by codename, with security and backports."""
    sites = mirrors()
    names = [suite, f"{suite}-updates", f"{suite}-backports"]
    lines = [(sites["Debian"], name) for name in names]
    if security := sites.get("Debian-Security"):
        lines.append((security, suite + SECURITY))
    return source_lines(lines)


def source_lines(suites: list[tuple[str, str]], kind: str = "deb") -> list[str]:
    """Return what apt's sources have of suites, each at its mirror; deb-src: of their sources."""
    return [f"{kind} [signed-by={KEYRING}] {site} {suite} main" for site, suite in suites]


def write_sources(suites: list[tuple[str, str]]) -> None:
    """Name the suites, each at its mirror, that our own lists are of."""
    text = "".join(f"{line}\n" for line in source_lines(suites))
    (APT / "etc/sources.list").write_text(text)


def update(*options: str) -> None:
    """Bring our own lists up to date; raise Failure if any of them can't be had."""
    strict = ["-o", "APT::Update::Error-Mode=any"]
    run(["apt-get", "update", *strict, *options], "updating the lists of kernels", env=own_apt())


def make_settings() -> None:
    """Make the settings of an apt with lists of our own: the machine's."""
    for name in ("state/lists/partial", "cache/archives/partial", "etc/apt.conf.d"):
        (APT / name).mkdir(parents=True, exist_ok=True)
    # Proxies and the like; but no hooks, which would touch the system's apt.
    settings = [
        line
        for line in run(["apt-config", "dump", "Acquire"], "reading apt's settings").splitlines()
        if not line.startswith(("Acquire::IndexTargets", "Acquire::Languages"))
    ]
    ours = [f'Dir::{name} "{APT / name.lower()}";' for name in ("State", "Cache", "Etc")]
    # A new stable is no reason to stop; root's files are nothing that apt's own user could write.
    ours += [
        'Acquire::Languages "none";',
        'Acquire::AllowReleaseInfoChange "true";',
        'APT::Sandbox::User "root";',
    ]
    (APT / "apt.conf").write_text("\n".join([*settings, *ours, ""]))


def make_lists() -> None:
    """Make or update our own lists: more suites of the machine's mirror."""
    make_settings()
    sites = mirrors()
    # The names of the suites change their meaning: caches on the way may have old ones.  So ask
    # what stands for what, and read the lists of that.
    write_sources([(sites["Debian"], alias) for alias in ALIASES])
    update("-o", "Acquire::IndexTargets::deb::Packages::DefaultEnabled=false")
    suites = [
        (sites["Debian"], codename(alias) + ending)
        for alias, endings in ALIASES.items()
        for ending in endings
    ]
    if security := sites.get("Debian-Security"):
        suites.append((security, codename("stable") + SECURITY))
    write_sources(suites)
    update()


def codename(alias: str) -> str:
    """Return the codename of a suite, as its release file has it."""
    for path in (APT / "state/lists").glob(f"*_dists_{alias}_*Release"):
        found = re.search(r"^Codename: (\S+)", path.read_text(errors="replace"), re.MULTILINE)
        if found:
            return found[1]
    return alias


def download_source(package: str, directory: Path) -> None:
    """Download stable's source archive of a package, without what Debian adds, to a directory."""
    what = f"downloading the source of {package}"
    with locked(APT / "lock"):
        make_settings()
        listing = APT / "etc/sources.source"
        line = source_lines([(mirrors()["Debian"], "stable")], "deb-src")[0]
        listing.write_text(f"{line}\n")
        only = ["-o", f"Dir::Etc::SourceList={listing}", "-o", "APT::Get::List-Cleanup=false"]
        update(*only)
        words = ["apt-get", "source", *only, "--download-only", "--tar-only", package]
        run(words, what, cwd=directory, env=own_apt())


def refresh(series: str, wide: bool) -> str:
    """Update our own lists if a series has to be looked up there; return why that failed, or "".

    What is a day old is, and what the machine does not know; a `wide` look-up always.
    """
    stamps = [APT / "updated", APT / "tried"]
    fresh = not wide and age(LISTS, LISTS / "partial") < DAY and listed(series, own=False)
    if fresh or age(stamps[0]) < DAY:
        return ""
    if age(stamps[1]) < HOUR and (cached(series) or listed(series, own=True)):
        return ""  # It failed before, and there is one to go on with.
    with locked(APT / "lock"):
        if age(stamps[0]) < DAY:
            return ""
        say("looking up kernel sources in Debian's suites")
        try:
            make_lists()
        except Failure as failure:
            stamps[1].touch()
            return str(failure)
        stamps[0].touch()
    return ""


@functools.cache
def versions(series: str, wide: bool = False) -> list[Version]:
    """Return the point releases of a series that are to be had, oldest first.

    Those that the machine's lists have are enough, if these are of today, unless it is `wide`.
    """
    failed = refresh(series, wide)
    found: dict[str, Version] = {}
    # Of one point release, that one which is there already; else what the machine trusts.
    for version in cached(series) + listed(series, own=False) + listed(series, own=True):
        found.setdefault(version.point, version)
    if not found:
        raise Failure(
            failed
            or f"no suite of Debian's archive has {package_name(series)}, and none is in {DEBS}: "
            "it can't be had any more"
        )
    if failed:
        say(f"{failed}: going on with the known releases")
    return sorted(found.values(), key=key)


def archive_series() -> list[str]:
    """Return the series that Debian's suites have sources of, oldest first, from the first hooked.

    Raises Failure where the suites can't be looked up.
    """
    if failed := refresh(DEFAULT, wide=True):
        raise Failure(failed)
    names = run(["apt-cache", "pkgnames", package_name("")], "listing the kernel sources",
                env=own_apt())  # fmt: skip
    known = series_names()
    found = re.findall(rf"^{package_name('')}(\d+\.\d+)$", names, re.MULTILINE)
    wanted = {name for name in found if name in known or order(name) > order(known[-1])}
    return sorted(wanted, key=order)


def fetch(version: Version) -> Path:
    """Return the source package, downloaded with apt if it isn't in the cache."""
    deb = version.deb
    with locked(DEBS / ".lock"):
        if deb.exists():
            return deb
        say(f"downloading {version.name} {version.package}")
        part = DEBS / f".{version.package}"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        run(
            ["apt-get", "download", f"{version.name}={version.package}"],
            f"downloading {version.name} {version.package} (stale lists need `apt-get update`)",
            cwd=part,
            env=None if version in listed(version.series, own=False) else own_apt(),
        )
        (part / deb.name).rename(deb)
        part.rmdir()
        return deb


def unpack(version: Version, tree: Path, *only: str) -> None:
    """Make `tree` of a point release's source package, or of some of its directories `only`."""
    deb = fetch(version)
    pipe = (
        'set -o pipefail; dpkg-deb --fsys-tarfile "$1" | tar -xO "./usr/src/$2.tar.xz" '
        '| tar -x -I "xz -dT0" --strip-components=1 -C "$3" --no-wildcards-match-slash '
        '--wildcards "${@:4}"'
    )
    wanted = [f"*/{name}" for name in only]
    with appearing(tree) as part:
        words: Words = ["bash", "-c", pipe, "unpack", deb, version.name, part, *wanted]
        run(words, f"extracting {deb.name}")


@functools.cache
def newest(series: str) -> Version:
    """Return the newest point release of a series; the newest cached one on a machine offline.

    It is decided once, and said: the lists may know a newer one before a long run ends.
    """
    version = versions(series)[-1]
    kept = sorted(cached(series), key=key)
    if kept and version not in kept:
        try:
            fetch(version)
        except Failure as failure:
            say(f"{failure}: going on with {kept[-1].point}")
            version = kept[-1]
    say(f"{series} is {version.point}")
    return version


def add_kernel(add: Callable[..., Any], more: str = "") -> None:
    """Have a command take --kernel, whose help ends with `more`, and --arch."""
    add("--kernel", metavar="V", help=f"{KERNEL_HELP}{more}")
    add("--arch", choices=architecture.GUESTS, help="its architecture (default: this machine's)")


def asked(args: argparse.Namespace, default: str = DEFAULT) -> str:
    """Return the kernel that a command line asks for: --kernel, or what the user's shell names.

    That may be the architecture alone, behind a colon.
    """
    name: str = args.kernel or os.environ.get(NAMED) or default
    if name.startswith(":"):
        name = f"{default}{name}"
    if not args.arch:
        return name
    if "/" in name or ":" in name:
        raise Usage(f"--kernel {name} says what its architecture is: leave --arch out")
    return f"{name}:{args.arch}"


def architecture_of(name: str) -> Architecture:
    """Return the architecture that a kernel's name says, behind a colon, or this machine's."""
    _, colon, other = name.partition(":")
    if not colon:
        return architecture.own()
    if other not in architecture.GUESTS:
        choices = " or ".join(architecture.GUESTS)
        raise Failure(f"there is no guest of the architecture '{other}': choose {choices}")
    return architecture.ALL[other]


def find_version(name: str, hooked: bool = True) -> Version:
    """Return a version by its name: a series (its newest), a point release, a Debian version.

    Behind a colon the name has another architecture than this machine's. Raises Failure if it is
    to be `hooked` and there are no hooks for it.
    """
    name, colon, other = name.partition(":")
    if colon:
        chosen = architecture_of(f":{other}")
        return replace(find_version(name, hooked), architecture=chosen)
    known = series_names()
    found = re.match(r"(\d+\.\d+)($|\.\d)", name)
    if not found or (hooked and found[1] not in known):
        raise Failure(
            f"there are no hooks for a kernel '{name}': choose {', '.join(known)} (the newest of "
            "a series), or one that `tools/kernel versions` prints"
        )
    series = found[1]
    if name == series:
        return newest(series)
    for offered in (cached, versions, functools.partial(versions, wide=True)):
        for version in offered(series):
            if name in (version.point, version.package):
                return version
    points = ", ".join(version.point for version in versions(series, wide=True))
    raise Failure(f"there is no kernel '{name}': choose {series} (the newest) or one of {points}")
