# SPDX-License-Identifier: GPL-2.0
"""Switch, watch and compare the reclaim policies of a running machine."""

import argparse
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import vmp.ab.command
import vmp.control.conf
import vmp.control.programs
import vmp.control.show
import vmp.control.trial
import vmp.control.watch
import vmp.doctor.command
import vmp.record.command
import vmp.report.command
import vmp.report.shark
from vmp.common import Command, Failure, Parser, Usage, parse, run_command, run_tool
from vmp.control.cgroups import check_form, chosen
from vmp.control.debugfs import Assignment, parse_assignments

EPILOG = "Changes hold until the module is unloaded. Each command has a --help of its own."


def set_arguments(parser: Parser) -> None:
    """Take settings."""
    taken = parser.add_argument("assignments", nargs="+", metavar="POINT[.PARAMETER]=VALUE")
    taken.complete = {"bash": "_vmscanctl_settings"}  # type: ignore[attr-defined]


def set_policies(args: argparse.Namespace) -> int:
    """Check all assignments, then write them in order."""
    try:
        assignments = parse_assignments(args.assignments)
    except Failure as failure:
        raise Usage(str(failure)) from None
    assign(args, assignments)
    return 0


def assign(args: argparse.Namespace, assignments: list[Assignment]) -> None:
    """Write settings of the machine or of a cgroup, if all of them can be."""
    machine, cgroup = chosen(args)
    (cgroup or machine).assign(assignments)


def profile_arguments(parser: Parser) -> None:
    """Take a name."""
    taken = parser.add_argument(
        "name",
        metavar="NAME",
        help="stock; recommended, the policies that were better than stock under some loads with "
        "the multi-gen LRU, and worse under none, see docs/results/recommended.md; or max: each "
        "point does all it can",
    )
    taken.complete = {"bash": "_vmscanctl_profiles"}  # type: ignore[attr-defined]


def set_profile(args: argparse.Namespace) -> int:
    """Set all points."""
    assign(args, [Assignment("profile", args.name)])
    return 0


COMMANDS = {
    command.name: command
    for command in (
        *vmp.control.show.COMMANDS,
        Command("set", "Set policies and parameters, in the order given.",
                set_arguments, set_policies),
        Command("profile", "Set the policies of all points at once.",
                profile_arguments, set_profile),
        vmp.control.show.RESET,
        vmp.control.show.CLEAR,
        vmp.control.trial.COMMAND,
        *vmp.control.programs.COMMANDS,
        vmp.control.conf.COMMAND,
        vmp.control.watch.STATS,
        vmp.control.watch.TOP,
        vmp.doctor.command.COMMAND,
        vmp.ab.command.COMMAND,
        vmp.record.command.COMMAND,
        vmp.report.command.COMMAND,
        vmp.report.shark.COMMAND,
    )
}  # fmt: skip
OF_A_COMMAND = ("ab", "record")  # those that run another command, given after --
OF_A_CGROUP = (
    "list",
    "status",
    "set",
    "profile",
    "reset",
    "clear",
    "trial",
    "load",
    "apply",
    "stats",
    "top",
)


def make_parser(commands: Iterable[Command]) -> Parser:
    """Return the parser of the whole command line, with these commands."""
    parser = Parser(prog="vmscanctl", description=__doc__, epilog=EPILOG)
    who = parser.add_argument("--cgroup", metavar="WHO", dest="who",
                              help="the settings of a cgroup, by its path or its systemd unit, for "
                              + ", ".join(OF_A_CGROUP))  # fmt: skip
    who.complete = {"bash": "_vmscanctl_cgroups"}  # type: ignore[attr-defined]
    choices = parser.add_subparsers(dest="chosen", required=True, metavar="COMMAND")
    for command in commands:
        what = command.what[0].lower() + command.what[1:].rstrip(".")
        command.arguments(choices.add_parser(command.name, help=what, description=command.what))
    return parser


def main(commands: Mapping[str, Command]) -> int:
    """Do what the command line asks for."""
    parser = make_parser(commands.values())
    args = parse(parser, sys.argv[1:])
    if args.command and args.chosen not in OF_A_COMMAND:
        raise Usage(f"{args.chosen} runs no command: leave out -- and all behind it")
    if args.who is not None and args.chosen not in OF_A_CGROUP:
        own = ", which has a --cgroup of its own" if args.chosen == "ab" else ""
        raise Usage(f"--cgroup is for {', '.join(OF_A_CGROUP)}, not for {args.chosen}{own}")
    if args.who is not None:
        check_form(args.who)
    return commands[args.chosen].run(args)


def entry(*of_a_checkout: Command) -> None:
    """Be the program, or in a checkout the one command that it was called by the name of.

    `of_a_checkout` are commands whose code is not installed with this.
    """
    commands = COMMANDS | {command.name: command for command in of_a_checkout}
    called = Path(sys.argv[0]).name
    if called in commands:
        run_command(commands[called])
    asked = commands.get(sys.argv[1]) if len(sys.argv) > 1 else None
    run_tool("vmscanctl", lambda: main(commands), asked.failed if asked else 1)
