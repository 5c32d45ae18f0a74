# SPDX-License-Identifier: GPL-2.0
"""Opening a recording of vmscan_policy's trace events in KernelShark, with the plugin."""

import argparse
import os
import shutil
from pathlib import Path

from vmp.common import OUT, Command, Failure, Parser, Usage, parse_positive_duration, run, sources

BUILT = OUT / "kernelshark"


def arguments(parser: Parser) -> None:
    """Tell the parser what shark takes."""
    add = parser.add_argument
    add("trace", type=Path, metavar="TRACE.DAT", help="a recording by trace-cmd")
    add("--switch", type=int, default=0, metavar="N", help="begin at the N-th policy switch")
    add("--for", type=parse_positive_duration, dest="shown", default="400ms", metavar="TIME",
        help="length of the part to show (default: 400ms)")  # fmt: skip
    add(
        "--tasks",
        type=int,
        default=6,
        metavar="N",
        help="rows for the N busiest tasks (default: 6)",
    )
    add(
        "--session",
        type=Path,
        metavar="FILE",
        help="the session to write (default: TRACE.DAT.session.json)",
    )
    add(
        "--session-only", action="store_true", help="write the session, but don't start KernelShark"
    )


def check(args: argparse.Namespace) -> None:
    """Raise Usage for what can't be opened; fill in the name of the session."""
    if not args.trace.is_file():
        raise Usage(f"{args.trace}: no such file")
    if args.switch < 0 or args.tasks < 0:
        raise Usage("--switch and --tasks take numbers from 0 on")
    if args.shown < 0.001:
        raise Usage("--for takes 1ms at least")
    if args.session is None:
        args.session = args.trace.with_name(f"{args.trace.name}.session.json")


def write_session(args: argparse.Namespace) -> None:
    """Build the plugin if needed, and write the session."""
    run(
        ["make", "-s", "-C", sources("kernelshark"), f"OUT={BUILT}"],
        "building KernelShark's plugin",
    )
    numbers = [args.tasks, args.switch, round(1000 * args.shown)]
    run(
        [BUILT / "session", BUILT / "plugin-vmscan_policy.so", args.trace, args.session]
        + [str(number) for number in numbers],
        "writing the session",
    )


def open_recording(args: argparse.Namespace) -> int:
    """Write the session and open it."""
    check(args)
    if not args.session_only:
        if not shutil.which("kernelshark"):
            raise Failure("KernelShark is not installed: install the package kernelshark")
        if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            raise Failure("there is no display: --session-only writes the session alone")
    write_session(args)
    command = ["kernelshark", "-s", str(args.session.resolve())]
    if not args.session_only:
        os.execvp(command[0], command)
    print("to open it:", *command)
    return 0


COMMAND = Command(
    "shark",
    "Open a recording of vmscan_policy's trace events in KernelShark, with the plugin.",
    arguments,
    open_recording,
)
