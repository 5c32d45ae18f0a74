# SPDX-License-Identifier: GPL-2.0
"""The kernel command: builds of kernels, packages and modules, and what there is to build."""

import argparse
from pathlib import Path
from typing import Any

from vmp.common import Parser, Usage
from vmp.guest.bpf import build_programs
from vmp.guest.configuration import VARIANTS
from vmp.guest.deb import build_packages, own_config
from vmp.guest.hooks import series_names, write_series
from vmp.guest.kernel import build_kernel, find_kernel
from vmp.guest.module import build_module
from vmp.guest.porting import check, nearest, source_trial
from vmp.guest.sources import (
    KERNEL_HELP,
    add_kernel,
    architecture_of,
    asked,
    find_version,
    versions,
)
from vmp.guest.trial import release_trial


def arguments(parser: Parser) -> Any:
    """Tell the parser what kernel takes; return its commands, to which others can be added."""
    commands = parser.add_subparsers(dest="what", required=True, metavar="COMMAND")
    build = commands.add_parser("build", help="build a kernel if needed and print its directory")
    module = commands.add_parser("module", help="build the module and print its directory")
    programs = commands.add_parser("programs", help="build BPF programs, print their directory")
    deb = commands.add_parser("deb", help="build packages of a kernel for this machine, in out/")
    listing = commands.add_parser("versions", help="print the point releases, oldest first")
    patches = commands.add_parser("patches", help="write a series' patches, for quilt")
    check = commands.add_parser("check", help="try a series on a kernel's source")
    for command in (build, programs, deb):
        add_kernel(command.add_argument)
    for command in (patches, check):  # the same for all architectures, and for this machine's alone
        command.add_argument("--kernel", metavar="V", help=KERNEL_HELP)
        command.set_defaults(arch=None)
    add_kernel(module.add_argument, ", or a built kernel's directory")
    for command in (build, module):
        command.add_argument("--variant", choices=VARIANTS, help="configuration (default: plain)")
    build.add_argument("--patches", type=int, metavar="N", help="apply only the first N patches")
    programs.add_argument("sources", metavar="DIR", type=Path,
        help="has the programs, each NAME.bpf.c")  # fmt: skip
    deb.add_argument("--config", type=Path, metavar="FILE", default=own_config(),
        help="the distribution's configuration (%(default)s)")  # fmt: skip
    listing.add_argument("series", nargs="?", help="only this series")
    patches.add_argument("directory", type=Path, help="where to write them")
    check.add_argument("--source", type=Path, metavar="DIR", help="a tree, in place of a release")
    check.add_argument("--series", metavar="S", help="the series to try (default: the nearest)")
    return commands


def run(args: argparse.Namespace) -> int:
    """Run one command."""
    if args.what == "build":
        if args.patches is not None and args.patches < 0:
            raise Usage(f"--patches {args.patches}: give a number from 0 on")
        print(build_kernel(asked(args), args.variant or "plain", args.patches))
    elif args.what == "module":
        print(build_module(find_kernel(asked(args), args.variant)))
    elif args.what == "programs":
        print(build_programs(build_kernel(asked(args), "bpf"), args.sources))
    elif args.what == "deb":
        print(*build_packages(asked(args), args.config), sep="\n")
    elif args.what == "versions":
        for series in [args.series] if args.series else series_names():
            print(*(version.point for version in versions(series)), sep="\n")
    elif args.what == "patches":
        write_series(find_version(asked(args)).series, args.directory)
    elif args.what == "check":
        return try_series(args)
    return 0


def try_series(args: argparse.Namespace) -> int:
    """Try a series on a tree or a release."""
    if args.source and args.kernel:
        raise Usage("--source names a tree: leave --kernel out")
    if args.series and args.series not in series_names():
        raise Usage(f"there is no series '{args.series}': choose {', '.join(series_names())}")
    if args.source:
        fits = check(str(args.source), source_trial(args.source.resolve(), args.series))
    else:
        name = asked(args)
        if not architecture_of(name).native:
            raise Usage(
                f"check compiles for this machine's architecture alone: '{name}' has another"
            )
        version = find_version(name, hooked=False)
        fits = check(version.point, release_trial(version, args.series or nearest(version.series)))
    return 0 if fits else 1
