# SPDX-License-Identifier: GPL-2.0
"""Switch, watch and compare the reclaim policies of a running machine."""

import argparse
import json
import sys
from pathlib import Path

import vmp.ab.command
import vmp.control.conf
import vmp.doctor.command
import vmp.record.command
import vmp.report.command
import vmp.report.shark
from vmp.common import Command, Failure, Parser, Usage, parse, run_command, run_tool
from vmp.control.debugfs import Assignment, Control, locate, parse_assignments, parse_choices

try:
    from argcomplete import autocomplete
except ImportError:

    def autocomplete(_parser: Parser) -> None:  # type: ignore[misc]
        """Complete nothing: the library is missing."""


try:
    from vmp.livepatch.install import INSTALL, UNINSTALL

    OF_A_CHECKOUT: tuple[Command, ...] = (INSTALL, UNINSTALL)
except ImportError:  # installed without what they build from
    OF_A_CHECKOUT = ()

EPILOG = "Changes hold until the module is unloaded. Each command has a --help of its own."


def no_arguments(_parser: Parser) -> None:
    """Take nothing."""


def status(_args: argparse.Namespace) -> int:
    """Print the versions, the profile and every point with its policies and parameters."""
    control = Control(locate())
    for name, value in control.abi().items():
        print(f"{name:<24} {value}")
    for name in control.names():
        print(f"{'  ' * name.count('.') + name:<24} {control.text(name)}{control.idle(name)}")
    return 0


def offered(**_: object) -> list[str]:
    """Return what can be set on this machine, for completion: names, with the policies of each."""
    try:
        control = Control(locate())
    except Failure:
        return []
    values = {name: parse_choices(control.text(name)) for name in control.names()}
    return [
        f"{name}={value}"
        for name, (current, choices) in values.items()
        for value in (choices if current else [""])
    ]


def set_arguments(parser: Parser) -> None:
    """Take settings."""
    taken = parser.add_argument("assignments", nargs="+", metavar="POINT[.PARAMETER]=VALUE")
    taken.completer = offered  # type: ignore[attr-defined]


def set_policies(args: argparse.Namespace) -> int:
    """Check all assignments, then write them in order."""
    try:
        assignments = parse_assignments(args.assignments)
    except Failure as failure:
        raise Usage(str(failure)) from None
    assign(assignments)
    return 0


def assign(assignments: list[Assignment]) -> None:
    """Write settings, if all of them can be."""
    control = Control(locate())
    control.check(assignments)
    control.write(assignments)


def profiles(**_: object) -> list[str]:
    """Return the names of the profiles on this machine, for completion."""
    try:
        return parse_choices(Control(locate()).text("profile"))[1]
    except Failure:
        return []


def profile_arguments(parser: Parser) -> None:
    """Take a name."""
    taken = parser.add_argument(
        "name",
        metavar="NAME",
        help="stock; recommended, the policies that were no worse than stock with the multi-gen "
        "LRU, under the loads of docs/results/recommended.md; or max: each point does all it can",
    )
    taken.completer = profiles  # type: ignore[attr-defined]


def set_profile(args: argparse.Namespace) -> int:
    """Set all points."""
    assign([Assignment("profile", args.name)])
    return 0


def stats_arguments(parser: Parser) -> None:
    """Take the form."""
    parser.add_argument("--json", action="store_true", help="as one JSON object")


def stats(args: argparse.Namespace) -> int:
    """Print the counters of every point."""
    counted = Control(locate()).stats()
    if args.json:
        print(json.dumps(counted, indent=2))
        return 0
    for point, counters in counted.items():
        for name, value in counters.items():
            print(f"{point + '.' + name:<32} {value}")
    return 0


COMMANDS = {
    command.name: command
    for command in (
        Command("status", "Show versions, and each point's policies and parameters.",
                no_arguments, status),
        Command("set", "Set policies and parameters, in the order given.",
                set_arguments, set_policies),
        Command("profile", "Set the policies of all points at once.",
                profile_arguments, set_profile),
        vmp.control.conf.COMMAND,
        Command("stats", "Show the counters of each point.", stats_arguments, stats),
        vmp.doctor.command.COMMAND,
        vmp.ab.command.COMMAND,
        vmp.record.command.COMMAND,
        vmp.report.command.COMMAND,
        vmp.report.shark.COMMAND,
        *OF_A_CHECKOUT,
    )
}  # fmt: skip
OF_A_COMMAND = ("ab", "record")  # those that run another command, given after --


def make_parser() -> Parser:
    """Return the parser of the whole command line."""
    parser = Parser(prog="vmscanctl", description=__doc__, epilog=EPILOG)
    choices = parser.add_subparsers(dest="chosen", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        what = command.what[0].lower() + command.what[1:].rstrip(".")
        command.arguments(choices.add_parser(name, help=what, description=command.what))
    return parser


def main() -> int:
    """Do what the command line asks for."""
    parser = make_parser()
    autocomplete(parser)
    args = parse(parser, sys.argv[1:])
    if args.command and args.chosen not in OF_A_COMMAND:
        raise Usage(f"{args.chosen} runs no command: leave out what is behind --")
    return COMMANDS[args.chosen].run(args)


def entry() -> None:
    """Be the program, or in a checkout the one command that it was called by the name of."""
    called = Path(sys.argv[0]).name
    if called in COMMANDS:
        run_command(COMMANDS[called])
    asked = COMMANDS.get(sys.argv[1]) if len(sys.argv) > 1 else None
    run_tool("vmscanctl", main, asked.failed if asked else 1)
