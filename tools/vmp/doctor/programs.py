# SPDX-License-Identifier: GPL-2.0
"""What has to be installed: a compiler for the module, and the programs that the tools run."""

import re
from functools import partial

from vmp.doctor.machine import MISSING, OK, WARN, Check, Finding, Machine

# "(x86_64-linux-gnu-gcc-12 (Debian 12.2.0-14) 12.2.0, ...", "(Debian clang version 19.1.7 ..."
COMPILER = re.compile(r"(gcc|clang)\b.*?(?:\)|version) (\d+)\.")


def compiler(machine: Machine) -> Finding:
    """Compare the compiler with the one that has built the kernel."""
    built = COMPILER.search(machine.text("/proc/version"))
    kind, major = built.groups() if built else ("gcc", "")
    if major and machine.program(f"{kind}-{major}"):
        return Finding(OK, f"{kind}-{major}, as for the kernel")
    found = machine.said(kind, "-dumpversion").partition(".")[0]
    package = f"{kind}-{major}" if major else kind
    if not found:
        return Finding(MISSING, f"no {kind}: the module can't be built", f"apt install {package}")
    if major and found != major:
        seen = f"{kind} {found}, while the kernel was built with {kind} {major}"
        return Finding(WARN, seen, f"apt install {package}")
    return Finding(OK, f"{kind} {found}, as for the kernel" if major else f"{kind} {found}")


def headers(machine: Machine) -> Finding:
    """Look for what a module is built against."""
    build = f"/lib/modules/{machine.release}/build"
    if machine.has(f"{build}/Makefile"):
        return Finding(OK, build)
    return Finding(
        MISSING,
        f"none in {build}: the module can't be built",
        f"apt install linux-headers-{machine.release}, or the package that make bindeb-pkg makes",
    )


# What needs each program, and its Debian package.
PROGRAMS = {
    "make": ("building the module", "make"),
    "modprobe": ("loading the module", "kmod"),
    "dkms": ("building the module for each new kernel", "dkms"),
    "trace-cmd": ("record and report", "trace-cmd"),
    "stress-ng": ("ab's workload vm", "stress-ng"),
    "fio": ("ab's workload zipf", "fio"),
    "mkfs.ext4": ("ab's workloads with a disk", "e2fsprogs"),
    "mkfs.xfs": ("ab's workloads large-file*", "xfsprogs"),
}


def installed(name: str, machine: Machine) -> Finding:
    """Look for a program."""
    user, package = PROGRAMS[name]
    path = machine.program(name)
    if path:
        return Finding(OK, path)
    return Finding(MISSING, f"not installed: {user} can't do without", f"apt install {package}")


CHECKS: dict[str, Check] = {
    "compiler": compiler,
    "kernel headers": headers,
    **{name: partial(installed, name) for name in PROGRAMS},
}
