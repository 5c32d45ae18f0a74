# SPDX-License-Identifier: GPL-2.0
"""The livepatch command."""

import argparse
import json
import os
from pathlib import Path

from vmp.common import Command, Failure, Parser
from vmp.livepatch.build import build
from vmp.livepatch.kernel import describe, find_target
from vmp.livepatch.names import MODULE, NAME
from vmp.livepatch.transition import (
    LIVEPATCH,
    PATCHED,
    UNPATCHED,
    add_options,
    find_built,
    held_up_by,
    in_force,
    load,
    loaded,
    moving,
    unload,
)


def arguments(parser: Parser) -> None:
    """Tell the parser what livepatch takes."""
    commands = parser.add_subparsers(dest="what", required=True, metavar="COMMAND")
    build_parser = commands.add_parser("build", help="build it, and print its directory")
    build_parser.add_argument(
        "--described", type=Path, metavar="DIR",
        help="build for the kernel of another machine, on which `describe` was run",
    )  # fmt: skip
    description = commands.add_parser(
        "describe", help="write what another machine needs to know to build for this kernel"
    )
    description.add_argument("directory", type=Path, metavar="DIR")
    load_parser = commands.add_parser("load", help="load the hooks, then the module")
    unload_parser = commands.add_parser("unload", help="unload the module, then the hooks")
    for taken in (load_parser, unload_parser):
        add_options(taken)
    commands.add_parser("status", help="show what is built and loaded")


def as_root() -> None:
    """Raise Failure if we are not root."""
    if os.geteuid():
        raise Failure("this needs root")


def status() -> None:
    """Print what is built and loaded."""
    try:
        built = find_built()
        about = json.loads((built / "about.json").read_text())
        print(f"built     {built}: {len(about['functions'])} functions of {about['release']}")
    except Failure as failure:
        print(f"built     no: {failure}")
    if in_force():
        print(f"hooks     loaded, {NAME}")
    elif moving():
        on = (LIVEPATCH / "enabled").read_text().strip() == "1"
        tasks = held_up_by(PATCHED if on else UNPATCHED)
        print(f"hooks     {'on' if on else 'off'} for all but {', '.join(tasks) or 'no task'}")
    else:
        print("hooks     not in force")
    print(f"module    {'loaded' if loaded(MODULE) else 'not loaded'}")


def run(args: argparse.Namespace) -> int:
    """Run one command."""
    if args.what == "status":
        status()
        return 0
    as_root()
    if args.what == "build":
        print(build(find_target(args.described)))
    elif args.what == "describe":
        describe(args.directory)
    elif args.what == "load":
        load(args.limit, args.freeze)
    else:
        unload(args.limit, args.freeze)
    return 0


COMMAND = Command(
    "livepatch",
    "Bring the hooks into an unmodified, running kernel of Debian's, and take them out again.",
    arguments,
    run,
)
