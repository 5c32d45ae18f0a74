# SPDX-License-Identifier: GPL-2.0
"""What a user of Debian does, in installations of it: the commands of README, and the packages."""

import re
import shutil
import time
from pathlib import Path

from vmp.common import OUT, REPO, VERSION, Failure, run
from vmp.guest.configuration import CONFIG
from vmp.guest.debian import (
    copy_checkout,
    copy_tree,
    inside,
    installed,
    make_disk,
    make_tree,
    run_script,
)
from vmp.guest.kernel import build_kernel
from vmp.livepatch import install
from vmp.testing.package_tests import MODULE, NAME, TOOLS, bare, make_deb, make_wheel
from vmp.testing.results import Report

SCRIPTS = REPO / "tools" / "tests" / "debian"
PLACE = "root/vmscan-policy"  # of the checkout in a tree
NEXT = f"{VERSION}+next"
DKMS = ("dkms", "build-essential", "libelf-dev")
STOCK_KERNEL = "linux-image-cloud-amd64"
STOCK_HEADERS = "linux-headers-cloud-amd64"
FIRST = "**On a test machine that runs Debian 13**"  # how README begins to tell what to do
README_TIMEOUT, UPGRADE_TIMEOUT = 5400, 3600  # seconds: an emulated machine compiles there
TOOK = re.compile(r"^took .*", re.MULTILINE)


def readme_commands(text: str) -> list[str]:
    """Return what README has root type on a machine that runs Debian 13."""
    block = text.partition(FIRST)[2].partition("```console\n")[2].partition("```")[0]
    commands = [line.removeprefix("# ") for line in block.splitlines() if line.startswith("# ")]
    if not commands:
        raise Failure(f"README has no commands after {FIRST}")
    return commands


def put(tree: Path, files: list[Path]) -> None:
    """Copy files into root's directory of a tree."""
    for path in files:
        shutil.copy(path, tree / "root")


def apt_install(tree: Path, *names: str) -> str:
    """Install packages in a tree, with no more than they need; returns what was said."""
    return inside(tree, "apt-get", "install", "-y", "--no-install-recommends", *names)


def next_version(directory: Path) -> Path:
    """Return the module's package of a next version, made in a copy of the checkout."""
    copy = directory / "next"
    copy_checkout(copy)
    config = copy / "dkms.conf"
    config.write_text(config.read_text().replace(f'"{VERSION}"', f'"{NEXT}"'))
    return make_deb("module-deb", MODULE, NEXT, copy)


def left_behind(tree: Path) -> list[str]:
    """Return what is in a tree of the packages."""
    patterns = (f"usr/src/{NAME}*", f"var/lib/dkms/{NAME}*", f"lib/modules/**/{NAME}*",
                "etc/vmscan-policy*", "etc/systemd/system/**/vmscan-policy*",
                "usr/lib/systemd/system/vmscan-policy*", "usr/share/*/vmscan-policy*")  # fmt: skip
    return sorted(str(path.relative_to(tree)) for each in patterns for path in tree.glob(each))


def stock_only(report: Report) -> None:
    """Install the module's package where no kernel has the hooks, and take it away again."""
    with report.check("debian-13, stock kernel: the module's package is installed, and says why"):
        tree = copy_tree(make_tree("debian-13-plain", "trixie", STOCK_KERNEL), "stock") / "tree"
        deb = make_deb("module-deb", MODULE)
        put(tree, [deb])
        inside(tree, "apt-get", "update")
        said = apt_install(tree, STOCK_HEADERS, f"/root/{deb.name}")
        state = inside(tree, "dpkg-query", "-W", "-f", "${db:Status-Abbrev}", MODULE).strip()
        if state != "ii" or "there is no module yet" not in said:
            raise Failure(f"the package is in the state '{state}', and this was said:\n{said}")
        inside(tree, "apt-get", "purge", "-y", MODULE)
        if left := left_behind(tree):
            raise Failure(f"left behind: {', '.join(left)}")


def native_time(report: Report, described: Path, place: Path) -> None:
    """Report how long this machine takes for what an emulated one takes an hour for."""
    tree = copy_tree(place, "native") / "tree"
    copy_checkout(tree / PLACE)
    shutil.copytree(described, tree / PLACE / "described", dirs_exist_ok=True)
    release = (described / "release").read_text().strip()
    begin = time.monotonic()
    inside(tree, "apt-get", "update")
    apt_install(tree, *install.TOOLS, f"linux-headers-{release}")
    fetched = time.monotonic()
    inside(tree, f"/{PLACE}/tools/livepatch", "build", "--described", f"/{PLACE}/described")
    report.note(
        f"debian-13-plain: packages {fetched - begin:.0f} s, livepatch and module "
        f"{time.monotonic() - fetched:.0f} s, on this machine"
    )


def readme(report: Report) -> None:
    """Do on a stock Debian 13 what README says, from a clone to a policy that is switched."""
    with report.check("debian-13-plain: the commands of README, from git clone to uninstall"):
        place = make_tree("debian-13-plain", "trixie", STOCK_KERNEL)
        log = OUT / "test-readme.log"
        commands = OUT / "readme-commands"
        commands.write_text("\n".join(readme_commands((REPO / "README.md").read_text())) + "\n")
        more = {"commands": commands}
        result = run_script(installed(place), SCRIPTS / "readme.sh", log, README_TIMEOUT, more)
        for line in TOOK.findall(log.read_text()):
            report.note(f"debian-13-plain, emulated: {line}")
        native_time(report, result, place)


def hooked(directory: Path, kernel: str) -> list[Path]:
    """Return the packages of a kernel with the hooks that an emulated Debian boots in seconds."""
    config = directory / "config"
    parts = [build_kernel(kernel, "plain") / "config", CONFIG / "deb-guest.config"]
    config.write_text("".join(part.read_text() for part in parts))
    for old in OUT.glob("linux-*.deb"):
        old.unlink()
    settings = [f"KCONFIG={config}", f"KERNEL={kernel}"]
    run(["make", "-C", REPO, "kernel-deb", *settings], "make kernel-deb")
    return sorted(OUT.glob("linux-*.deb"))


def packaged(report: Report, directory: Path, kernel: str) -> None:
    """Boot a Debian 12 with packages of all: settings at boot, KUnit, upgrade, removal."""
    with report.check("debian-12, packages: settings at boot, KUnit, upgrade, removal"):
        kernels = hooked(directory, kernel)
        debs = [make_deb("module-deb", MODULE), make_deb("tools-deb", TOOLS)]
        following = next_version(directory)
        place = copy_tree(make_tree("debian-12", "bookworm", *DKMS), "packaged")
        tree = place / "tree"
        put(tree, [*kernels, *debs, following])
        inside(tree, "apt-get", "update")
        apt_install(tree, *(f"/root/{deb.name}" for deb in kernels))
        apt_install(tree, *(f"/root/{deb.name}" for deb in debs))
        release = next(tree.glob("boot/vmlinuz-*")).name.removeprefix("vmlinuz-")
        if not list(tree.glob(f"lib/modules/{release}/updates/dkms/{NAME}.ko*")):
            raise Failure(f"dkms has built no module for {release}")
        (tree / "etc/vmscan-policy.conf").write_text("flush=batch\nflsh=batch\nscan=budget\n")
        inside(tree, "systemctl", "enable", "vmscan-policy.service")
        copy_checkout(tree / PLACE)
        inside(tree, "make", "-C", f"/{PLACE}", f"KDIR=/lib/modules/{release}/build")
        make_disk(place)
        log = OUT / "test-packaged.log"
        run_script(installed(place), SCRIPTS / "packaged.sh", log, UPGRADE_TIMEOUT, {})
        for line in TOOK.findall(log.read_text()):
            report.note(f"debian-12, emulated: {line}")


def pip(report: Report, directory: Path) -> None:
    """Install the tools by pip on Debian 12 and 13, into an environment that has nothing else."""
    wheel = make_wheel(directory)
    for name, suite, others in (("debian-12", "bookworm", DKMS),
                                ("debian-13-plain", "trixie", (STOCK_KERNEL,))):  # fmt: skip
        with report.check(f"{name}: pip installs vmscanctl, and each command starts"):
            tree = copy_tree(make_tree(name, suite, *others), "pip") / "tree"
            put(tree, [wheel])
            inside(tree, "apt-get", "update")
            apt_install(tree, "python3-venv")
            inside(tree, *bare("/root", f"/root/{wheel.name}"))


def run_all(report: Report, _full: bool, kernel: str) -> None:
    """Install everything in every way that README has."""
    stock_only(report)
    directory = OUT / "install"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    pip(report, directory)
    packaged(report, directory, kernel)
    readme(report)
