# SPDX-License-Identifier: GPL-2.0
"""Running a command as root in a guest with a hooked kernel, on the host's file system."""

import argparse
import os
import re
import signal
import sys
import tempfile
import time
from pathlib import Path

from vmp.common import (
    CACHE,
    ICOUNT,
    KEPT,
    OUT,
    Command,
    Failure,
    Parser,
    Usage,
    parse_positive_duration,
)
from vmp.guest.kernel import find_kernel, kernel_architecture, kernel_inputs
from vmp.guest.log import (
    MAX_CPUS,
    NO_PORTS,
    PORTS,
    STALE_BREAKPOINT,
    STARTED,
    find_splat,
    guest_script,
    read_log,
    stale_breakpoint,
)
from vmp.guest.module import build_module
from vmp.guest.qemu import Machine, qemu_command, run_guest
from vmp.guest.sources import add_kernel, architecture_of, asked
from vmp.programs import compile_workloads

NO_GUEST = 125
SPLAT = 99
BOOT_TRIES = 3
SIZE = "([1-9][0-9]{0,6}M|[1-9][0-9]{0,3}G)"  # less than 10 TB
IOPS = "[1-9][0-9]{0,8}"


def options(parser: Parser) -> None:
    """Tell the parser what vm takes."""
    parser.usage = "%(prog)s [OPTION]... -- CMD [ARG]..."
    parser.epilog = (
        "The exit status is CMD's; 125: no guest; 99: the guest's kernel log shows trouble; "
        "98: QEMU ran a breakpoint that the guest had patched away, which ended it."
    )
    add = parser.add_argument
    add_kernel(add, ", or a built kernel's directory")
    add("--debug", action="store_true", help="use the kernel with sanitizers and lock checking")
    add("--cpus", type=int, default=4, metavar="N", help="virtual CPUs (default: 4)")
    add("--numa", type=int, default=1, metavar="N",
        help="nodes that share CPUs and memory evenly (default: 1)")  # fmt: skip
    add("--slow-node", action="store_true",
        help="the last node has no CPU, and slow memory: to it reclaim can demote")  # fmt: skip
    add("--memory", default="2G", metavar="SIZE", help="memory, as in 2G (default) or 512M")
    add("--disk", metavar="SIZE[:IOPS]", action="append", default=[],
        help="an empty disk /dev/vda, with a limit of requests/s; again: /dev/vdb")  # fmt: skip
    add("--icount", action="store_true", help="let the guest's clocks count instructions")
    add("--module", type=Path, metavar="DIR", help="load the module that was built there")
    add("--no-load", action="store_true", help="don't build and load the module")
    add("--timeout", type=parse_positive_duration, default="10m", metavar="TIME",
        help="end the guest after that time (default: 10m)")  # fmt: skip
    add("--silence", type=parse_positive_duration, metavar="TIME",
        help="end the guest when CMD prints nothing for that time")  # fmt: skip


def check(arguments: argparse.Namespace) -> None:
    """Raise Usage for a guest that can't be."""
    if not arguments.command:
        raise Usage("give the command to run after --")
    if not 1 <= arguments.cpus <= MAX_CPUS:
        raise Usage(f"--cpus {arguments.cpus}: give 1 to {MAX_CPUS}")
    if not 1 <= arguments.numa <= arguments.cpus:
        raise Usage(f"--numa {arguments.numa}: give 1 to the number of CPUs, {arguments.cpus}")
    if arguments.slow_node and arguments.numa < 2:
        raise Usage("--slow-node: give 2 nodes at least, as in --numa 2")
    if not re.fullmatch(SIZE, arguments.memory):
        raise Usage(
            f"--memory '{arguments.memory}': give a number with M or G, as in 512M, up to 9999G"
        )
    for disk in arguments.disk:
        if not re.fullmatch(f"{SIZE}(:{IOPS})?", disk):
            raise Usage(
                f"--disk '{disk}': give SIZE or SIZE:IOPS, as in 1G or 512M:200, "
                "up to 9999G:999999999"
            )
    if arguments.no_load and arguments.module:
        raise Usage("--module names a module to load: leave --no-load out")
    if arguments.module and not (arguments.module / "vmscan_policy.ko").exists():
        raise Usage(f"--module {arguments.module}: it holds no vmscan_policy.ko")


def attempt(
    arguments: argparse.Namespace, kernel: Path, module: Path | None, log: Path
) -> int | str:
    """Run the command in one guest and return the exit status; a reason: boot it again."""
    leaks = kernel_inputs(kernel)["variant"].endswith("debug")
    runs = CACHE / "run"
    runs.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=runs, prefix="") as temporary:
        directory = Path(temporary)
        environment = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": str(Path.home()),
            "XDG_CACHE_HOME": str(CACHE.parent),
            "VMP_RUN": str(directory),
            KEPT: str(Path.cwd()),
        }
        if module:
            environment["VMP_MODULE_DIR"] = str(module)
        if arguments.icount:
            environment[ICOUNT] = "1"
        if not kernel_architecture(kernel).native:
            environment["PYTHONDONTWRITEBYTECODE"] = "1"  # it would take the guest's memory
        load = not arguments.no_load
        script = guest_script(arguments.command, environment, Path.cwd(), load, leaks)
        (directory / "script").write_text(PORTS + script)
        log.touch()
        machine = Machine(
            arguments.cpus,
            arguments.memory,
            arguments.numa,
            arguments.slow_node,
            tuple(arguments.disk),
            arguments.icount,
        )
        command = qemu_command(machine, kernel, directory, log)
        qemu_status = run_guest(command, directory, arguments.timeout, arguments.silence)
        status_file = directory / "status"
        status = status_file.read_text().strip() if status_file.exists() else ""
        qemu_log = (directory / "qemu.log").read_text(errors="replace").strip().splitlines()
    lines = read_log(log)
    started = any(STARTED in line for line in lines)
    splat = find_splat(lines)
    stale = stale_breakpoint(splat)
    if not started and stale:
        return "it died of a stale breakpoint"
    if not started and any(NO_PORTS in line for line in lines):
        return f"it has {NO_PORTS}"
    if splat:
        what = "a breakpoint that had been patched away, QEMU's fault" if stale else "trouble"
        print(*splat, f"vm: the guest's kernel log shows {what}: {log}", sep="\n", file=sys.stderr)
        return STALE_BREAKPOINT if stale else SPLAT
    if isinstance(qemu_status, str):
        raise Failure(f"the guest was ended after {qemu_status}: {log}")
    if not status:
        when = "before the command ended" if started else "before the command started"
        why = f", QEMU died of {signal.Signals(-qemu_status).name}" if qemu_status < 0 else ""
        why += f" ({qemu_log[-1]})" if qemu_log else ""
        raise Failure(f"the guest stopped {when}{why}: {log}")
    return int(status)


def run(arguments: argparse.Namespace) -> int:
    """Build what is missing, then run the command."""
    check(arguments)
    name = asked(arguments)
    architecture = kernel_architecture(Path(name)) if "/" in name else architecture_of(name)
    if arguments.slow_node and not architecture.hmat:
        raise Usage(f"--slow-node: guests of {architecture.name} have none, those of amd64 do")
    kernel = find_kernel(name, "debug" if arguments.debug else None)
    module = arguments.module and arguments.module.resolve()
    if not module and not arguments.no_load:
        module = build_module(kernel)
    if not architecture.native:
        compile_workloads(architecture.machine)  # it has no compiler
    OUT.mkdir(exist_ok=True)
    stamp = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    for number in range(1, BOOT_TRIES + 1):
        log = OUT / f"vm-{stamp}-{number}.log"
        status = attempt(arguments, kernel, module, log)
        if isinstance(status, int):
            return status
        print(f"vm: boot {number} of {BOOT_TRIES} failed, {status}: {log}", file=sys.stderr)
    raise Failure(f"the guest doesn't boot, {status}")


COMMAND = Command(
    "vm",
    "Run a command as root in a guest with a hooked kernel, on the host's file system.",
    options,
    run,
    NO_GUEST,
)
