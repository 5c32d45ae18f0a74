# SPDX-License-Identifier: GPL-2.0
"""Policies that BPF programs are: `load` and `unload`.

bpftool attaches them. What holds one is a link, pinned in bpffs by the names of point and policy.
"""

import argparse
import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from vmp.common import Command, Failure, Parser, Words, mount_points
from vmp.control.cgroups import chosen
from vmp.control.debugfs import Assignment, Control, locate
from vmp.control.plugins import plugins

PINS = "vmscan-policy"  # in bpffs
TYPES = Path("/sys/kernel/btf/vmscan_policy")
GONE = 30  # seconds after which a policy is no longer offered, unless the machine hangs
TOLD = 3  # lines of what bpftool says


def pins() -> Path:
    """Return the directory of the links; raise Failure where there is no bpffs."""
    mounts = mount_points("bpf")
    if not mounts:
        raise Failure("bpffs is not mounted: mount -t bpf bpf /sys/fs/bpf")
    return mounts[0] / PINS


def require() -> str:
    """Return bpftool; raise Failure for what is missing."""
    if not TYPES.exists():
        raise Failure(
            "the module takes no BPF programs: it was built without BTF, or this kernel has no "
            "CONFIG_BPF_JIT and CONFIG_DEBUG_INFO_BTF_MODULES"
        )
    found = shutil.which("bpftool")
    if not found:
        raise Failure("bpftool is not installed: apt-get install bpftool")
    return found


def attach(bpftool: str, program: Path, directory: Path) -> list[Path]:
    """Attach what a file has; return the new links.

    bpftool, that of Linux 7.3 too, crashes when it has attached a map of a type that is a
    module's, and is to print the type.
    """
    directory.mkdir(mode=0o700, exist_ok=True)
    before = set(directory.iterdir())
    command: Words = [bpftool, "struct_ops", "register", program, directory]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    links = sorted(set(directory.iterdir()) - before)
    crashed_at_the_end = links and done.returncode == -signal.SIGSEGV
    if not links or (done.returncode and not crashed_at_the_end):
        said = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        told = "; ".join(said[-TOLD:]) or f"exit status {done.returncode}"
        for link in links:
            link.unlink()
        raise Failure(f"{program} can't be loaded: {told}")
    return links


def load_arguments(parser: Parser) -> None:
    """Take a file."""
    parser.add_argument("program", metavar="FILE", type=Path,
                        help="object file with one policy: a struct vmscan_bpf_policy")  # fmt: skip


def load(args: argparse.Namespace) -> int:
    """Offer the policy of a file; with --cgroup, choose it there."""
    machine, cgroup = chosen(args)
    bpftool = require()
    if not args.program.is_file():
        raise Failure(f"{args.program} is no file")
    before = plugins(machine.root).keys()
    links = attach(bpftool, args.program, pins())
    try:
        new = plugins(machine.root).keys() - before
        if len(new) != 1 or len(links) != 1:
            raise Failure(f"{args.program} has {len(links)} policies: load one at a time")
        point, name = next(iter(new))
        links = [links[0].rename(links[0].with_name(f"{point}={name}"))]
        if cgroup:
            cgroup.assign([Assignment(point, name)])
    except BaseException:
        for link in links:
            link.unlink()
        raise
    print(f"loaded: {point}={name}" + (f", in force in {cgroup.path}" if cgroup else ""))
    return 0


def unload_arguments(parser: Parser) -> None:
    """Take a name."""
    parser.add_argument("policy", metavar="POINT=POLICY", help="as list shows them")


def unload(args: argparse.Namespace) -> int:
    """Offer a policy no longer: who has it chosen has stock."""
    machine = Control(locate())
    offered = machine.root / "plugins" / args.policy.replace("=", ".", 1)
    loaded = {each.name: each for each in sorted(pins().glob("*=*"))}
    if args.policy not in loaded:
        there = f"loaded are {', '.join(loaded)}" if loaded else "none is loaded"
        raise Failure(f"no BPF program is {args.policy}: {there}")
    link = loaded[args.policy]
    link.unlink()
    with suppress(OSError):
        os.rmdir(link.parent)
    end = time.monotonic() + GONE
    while offered.exists():
        if time.monotonic() > end:
            raise Failure(f"{args.policy} is still there after {GONE} s: another program holds it")
        time.sleep(0.05)
    print(f"unloaded: {args.policy}")
    return 0


COMMANDS = (
    Command("load", "Load a policy that is a BPF program.", load_arguments, load),
    Command("unload", "Unload a policy that is a BPF program.", unload_arguments, unload),
)
