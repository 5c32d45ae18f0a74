# SPDX-License-Identifier: GPL-2.0
"""Debian's prebuilt kernels for virtual machines: downloaded and unpacked, never installed.

A kernel that is taken has an image, headers and a source package of the same version: the archive
drops these at different times.
"""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from vmp.common import CACHE, Failure, appearing, locked, run
from vmp.guest.sources import Version, key, package_name, read_version

STOCK = CACHE / "stock"
FLAVOUR = "-cloud-amd64"
MADISON = re.compile(r"^\s*(\S+) \|\s*(\S+) \|", re.MULTILINE)


@dataclass(frozen=True)
class Stock:
    """A kernel of Debian's by its release, and the version of its packages."""

    release: str  # as in 6.12.117+deb12-cloud-amd64
    version: Version

    @property
    def packages(self) -> list[str]:
        """Return the names of its packages, but for the source's."""
        base = self.release.removesuffix(FLAVOUR)
        return [f"linux-image-{self.release}", f"linux-headers-{self.release}",
                f"linux-headers-{base}-common", f"linux-kbuild-{base}"]  # fmt: skip

    @property
    def tree(self) -> Path:
        """Return the directory that its packages are unpacked in."""
        return STOCK / f"{self.version.package}{FLAVOUR}"

    @property
    def image(self) -> Path:
        """Return the bzImage."""
        return self.tree / "boot" / f"vmlinuz-{self.release}"

    @property
    def headers(self) -> Path:
        """Return the directory that modules are built in."""
        return self.tree / "usr" / "src" / f"linux-headers-{self.release}"


def choose(series: str, names: str, madison: str) -> list[Stock]:
    """Return the kernels of a series that all packages are there of, oldest first.

    `names` is what `apt-cache pkgnames` prints of the images, `madison` what `apt-cache madison`
    prints of all packages.
    """
    there = set(MADISON.findall(madison))
    found = []
    for name in names.split():
        release = name.removeprefix("linux-image-")
        for version in {package for other, package in there if other == name}:
            known = read_version(series, version)
            if known and release.endswith(FLAVOUR):
                kernel = Stock(release, known)
                if all((each, version) in there for each in [*kernel.packages, known.name]):
                    found.append(kernel)
    return sorted(found, key=lambda kernel: key(kernel.version))


def offered(series: str) -> list[Stock]:
    """Return the kernels of a series that the machine's lists have, oldest first."""
    names = run(["apt-cache", "pkgnames", f"linux-image-{series}."], "listing Debian's kernels")
    releases = [name.removeprefix("linux-image-") for name in names.split()]
    wanted = {name for release in releases if release.endswith(FLAVOUR)
              for name in Stock(release, Version("", "")).packages}  # fmt: skip
    if not wanted:
        return []
    every = ["apt-cache", "madison", package_name(series), *sorted(wanted)]
    return choose(series, names, run(every, "listing Debian's kernels"))


def fetch(kernel: Stock) -> None:
    """Download and unpack a kernel's packages if they aren't there."""
    with locked(STOCK / ".lock"):
        if kernel.tree.exists():
            return
        with appearing(kernel.tree) as part:
            (part / "debs").mkdir()
            wanted = [f"{name}={kernel.version.package}" for name in kernel.packages]
            what = f"downloading {kernel.release}"
            run(["apt-get", "download", *wanted], what, cwd=part / "debs")
            for deb in sorted((part / "debs").iterdir()):
                run(["dpkg-deb", "-x", deb, part], f"unpacking {deb.name}")
            shutil.rmtree(part / "debs")
            settle(part, kernel)


def settle(tree: Path, kernel: Stock) -> None:
    """Make unpacked packages usable where they are."""
    if not (tree / "lib").exists():
        (tree / "lib").symlink_to("usr/lib")  # depmod looks there
    headers = tree / kernel.headers.relative_to(kernel.tree)
    makefile = headers / "Makefile"
    makefile.write_text(makefile.read_text().replace("/usr/src/", f"{kernel.tree}/usr/src/"))
    (headers / "vmlinux").unlink(missing_ok=True)  # has types, for which pahole would be needed
    run(["depmod", "-b", tree, kernel.release], "listing the kernel's modules")
    if not (tree / "boot" / kernel.image.name).exists():
        raise Failure(f"{kernel.packages[0]} has no {kernel.image.name}")
