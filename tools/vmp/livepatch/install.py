# SPDX-License-Identifier: GPL-2.0
"""Install and uninstall: the way to policies that the running kernel leaves open.

A kernel with the hooks needs the module alone, which dkms builds. A stock kernel of Debian's gets
the hooks as a livepatch. What is done is said before.
"""

import argparse
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from vmp.common import REPO, Command, Failure, Parser, run
from vmp.doctor.machine import Machine
from vmp.livepatch.names import MODULE
from vmp.livepatch.transition import LIVEPATCH, add_options, load, loaded, unload

# What a build of the livepatch takes, by a file of each.
TOOLS = {
    "gcc": "/usr/bin/gcc",
    "make": "/usr/bin/make",
    "quilt": "/usr/bin/quilt",
    "xz-utils": "/usr/bin/xz",
    "libelf-dev": "/usr/include/gelf.h",
    "pahole": "/usr/bin/pahole",
}


@dataclass(frozen=True)
class Step:
    """Something to do, and how it is said."""

    what: str
    do: Callable[[], object]


def command(*words: str) -> Step:
    """Return the step of running a command, whose output is shown."""

    def do() -> None:
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        done = subprocess.run(words, check=False, cwd=REPO, env=environment)
        if done.returncode:
            raise Failure(f"`{' '.join(words)}` failed: see its messages above")

    return Step(" ".join(words), do)


def options_of(release: str) -> dict[str, str]:
    """Return the options of the running kernel."""
    options = Machine().config
    if not options:
        raise Failure(
            f"nothing tells how {release} was configured: boot a kernel of Debian's, or one that "
            "`make kernel-deb` has made"
        )
    return options


def packages(release: str) -> list[str]:
    """Return the packages that a build lacks."""
    lacks = [name for name, path in TOOLS.items() if not Path(path).exists()]
    if not Path(f"/lib/modules/{release}/build/.config").exists():
        lacks.append(f"linux-headers-{release}")
    return lacks


def steps(args: argparse.Namespace) -> list[Step]:
    """Return what brings policies to the running kernel; raise Failure if nothing does."""
    # Here, since vmscanctl takes in these commands at each start.
    from vmp.guest.configuration import OPTION  # noqa: PLC0415
    from vmp.livepatch.build import build  # noqa: PLC0415
    from vmp.livepatch.kernel import check_options, find_target  # noqa: PLC0415

    release = os.uname().release
    options = options_of(release)
    if options.get(OPTION) == "y":
        lacks = [*packages(release), *([] if Path("/usr/sbin/dkms").exists() else ["dkms"])]
        found = [command("make", "dkms-install"), command("modprobe", MODULE)]
    else:
        try:
            check_options(release, options)
        except Failure as failure:
            raise Failure(f"{failure}, which `make kernel-deb` makes") from None
        lacks = packages(release)
        found = [
            Step("build a livepatch of the hooks, and the module", lambda: build(find_target())),
            Step("load both", lambda: load(args.limit, args.freeze)),
        ]
    install = ["apt-get", "install", "-y", "--no-install-recommends", *lacks]
    return [*([command(*install)] if lacks else []), *found]


def arguments(parser: Parser) -> None:
    """Tell the parser what both take."""
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would be done, and do nothing"
    )
    add_options(parser)


def follow(todo: list[Step], dry: bool) -> None:
    """Say all steps, then do them."""
    for number, step in enumerate(todo, 1):
        print(f"{number}. {step.what}", flush=True)
    if dry:
        return
    if os.geteuid():
        raise Failure("this needs root")
    for number, step in enumerate(todo, 1):
        print(f"step {number} of {len(todo)}", flush=True)
        step.do()


def install(args: argparse.Namespace) -> int:
    """Bring policies to the running kernel."""
    if loaded(MODULE):
        print("the module is loaded: nothing to do")
        return 0
    follow(steps(args), args.dry_run)
    if not args.dry_run:
        print("policies can be switched: `tools/vmscanctl status` shows them")
    return 0


def uninstall(args: argparse.Namespace) -> int:
    """Take back what install has done, but for packages of Debian's."""
    if LIVEPATCH.exists():
        todo = [Step("unload the module and the hooks", lambda: unload(args.limit, args.freeze))]
    else:
        todo = [Step(f"rmmod {MODULE}", unload_module)] if loaded(MODULE) else []
        if Path("/var/lib/dkms/vmscan_policy").exists():
            todo.append(command("make", "dkms-remove"))
    if not todo:
        print("nothing is installed")
    follow(todo, args.dry_run)
    return 0


def unload_module() -> None:
    """Unload the module, which gives all decisions back."""
    run(["rmmod", MODULE], "unloading the module")


INSTALL = Command(
    "install", "Bring policies to the running kernel, without a reboot.", arguments, install
)
UNINSTALL = Command("uninstall", "Take back what install has done.", arguments, uninstall)
