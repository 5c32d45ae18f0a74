# SPDX-License-Identifier: GPL-2.0
"""What has to be there for policies to have an effect, and for figures to tell it."""

import os
import re
from functools import partial
from typing import NamedTuple

from vmp.control.counters import IRQ, VMSTAT, parse_interrupts, parse_pairs
from vmp.control.needs import NEEDS, OBSERVED, Need, interrupts, lacking
from vmp.doctor.machine import (
    MISSING,
    NONE,
    OK,
    UNSEEN,
    WARN,
    Check,
    Finding,
    Machine,
    UnseenError,
    build_with,
)

LRU_GEN = "/sys/kernel/mm/lru_gen/enabled"
CPUID = "/dev/cpu/0/cpuid"
EXTENDED, INVLPGB = 0x80000008, 1 << 3  # the leaf, and the bit in its EBX
FIRST_INVLPGB = (6, 15)  # the first kernel that uses it


def mglru(machine: Machine) -> Finding:
    """Look which LRU is on."""
    text = machine.text(LRU_GEN)
    what = "scan, aging and writeback have no effect"
    if not text:
        return Finding(WARN, f"not in this kernel: {what}", build_with("CONFIG_LRU_GEN"))
    if not int(text, 16) & 1:
        return Finding(WARN, f"off: {what}", f"echo y >{LRU_GEN}")
    return Finding(OK, "on")


def swap(machine: Machine) -> Finding:
    """Look for swap, without which no anonymous page is reclaimed."""
    text = machine.text("/proc/swaps")
    areas = [line.split()[0] for line in text.splitlines()[1:]]
    what = "no anonymous page is reclaimed, and flush has nothing to do"
    if not text:
        return Finding(WARN, f"not in this kernel: {what}", build_with("CONFIG_SWAP"))
    if not areas:
        return Finding(WARN, f"none: {what}", "vmscanctl ab --zram 1G, for a run; or swapon")
    return Finding(OK, ", ".join(areas))


def cgroup2(machine: Machine) -> Finding:
    """Look for the memory controller, which ab needs."""
    mounts = machine.mounted("cgroup2")
    for mount in mounts:
        if "memory" in machine.text(mount / "cgroup.controllers").split():
            return Finding(OK, f"memory controller on {mount}")
    if any(machine.has(mount / "memory.stat") for mount in machine.mounted("cgroup")):
        mend = "boot with systemd.unified_cgroup_hierarchy=1 cgroup_no_v1=all"
        return Finding(MISSING, "the memory controller is on cgroup v1: ab can't use it", mend)
    if not mounts and machine.knows("cgroup2"):
        mend = "mount -t cgroup2 none /sys/fs/cgroup"
        return Finding(MISSING, "not mounted: ab needs it", mend)
    mend = f"boot without cgroup_disable=memory, or {build_with('CONFIG_MEMCG')}"
    return Finding(MISSING, "this kernel has no memory controller: ab needs it", mend)


def tracefs(machine: Machine) -> Finding:
    """Look for what traces."""
    mounts = machine.mounted("tracefs")
    if mounts:
        return Finding(OK, f"mounted on {mounts[0]}")
    what = "record and ab --stalls need it"
    if not machine.knows("tracefs"):
        return Finding(MISSING, f"not in this kernel: {what}", build_with("CONFIG_FTRACE"))
    return Finding(MISSING, f"not mounted: {what}", "mount -t tracefs none /sys/kernel/tracing")


def counters(machine: Machine) -> set[str]:
    """Return the counters of the machine, as a snapshot of ab names them."""
    names = {f"vmstat.{name}" for name in parse_pairs(machine.text("/proc/vmstat"), VMSTAT)}
    names |= {f"irq.{name}" for name in parse_interrupts(machine.text("/proc/interrupts"), IRQ)}
    probed = "arch_tlbbatch_flush" if interrupts(machine.arch) else "try_to_unmap_flush"
    if {"register_kprobe", probed} <= machine.symbols.keys():
        names |= set(OBSERVED)
    return names | {"memcg.pgsteal"}


def counted(need: Need, machine: Machine) -> Finding:
    """Look which of the counters are there."""
    if need.interrupts and not interrupts(machine.arch):
        return Finding(NONE, "no CPU is interrupted for a TLB flush here")
    known = lacking(counters(machine), machine.arch)
    lack = [found for found in known if found.option == need.option]
    if lack:
        return Finding(WARN, f"no {lack[0].names()}: {lack[0].instead}", build_with(lack[0].option))
    return Finding(OK, "counted")


class Feature(NamedTuple):
    """What needs something of the kernel, the file that is there if it has it, and the option."""

    user: str
    file: str
    option: str


FEATURES = {
    "function profiler": Feature(
        "ab --functions",
        "/sys/kernel/tracing/function_profile_enabled",
        "CONFIG_FUNCTION_PROFILER",
    ),
    "zram": Feature("ab --zram", "/sys/class/zram-control", "CONFIG_ZRAM"),
    "large folios": Feature(
        "unmap, young and the workloads large-*",
        "/sys/kernel/mm/transparent_hugepage",
        "CONFIG_TRANSPARENT_HUGEPAGE",
    ),
}


def has_feature(feature: Feature, machine: Machine) -> Finding:
    """Look for the option, or for the file."""
    value = machine.config.get(feature.option)
    if value or machine.has(feature.file):
        return Finding(OK, "there is a module for it" if value == "m" else "in this kernel")
    if machine.config:
        seen = f"not in this kernel: {feature.user} can't do without"
        return Finding(MISSING, seen, build_with(feature.option))
    return Finding(UNSEEN, f"no file has the kernel's options; {feature.user} can't do without it")


def uses_invlpgb(machine: Machine) -> bool | None:
    """Tell if the kernel flushes the TLBs of other CPUs by INVLPGB; None where nobody tells.

    /proc/cpuinfo does not show that flag.
    """
    release = re.match(r"(\d+)\.(\d+)", machine.release)
    old = release and tuple(map(int, release.groups())) < FIRST_INVLPGB
    if old or not re.search(r"^vendor_id\s*: AuthenticAMD$", cpuinfo(machine), re.MULTILINE):
        return False
    if not machine.has(CPUID):
        return None
    try:
        with machine.path(CPUID).open("rb") as registers:
            found = os.pread(registers.fileno(), 16, EXTENDED)
    except PermissionError:
        raise UnseenError(CPUID) from None
    return bool(int.from_bytes(found[4:8], "little") & INVLPGB)


def cpuinfo(machine: Machine) -> str:
    """Return what the kernel says of the CPUs."""
    return machine.text("/proc/cpuinfo")


def remote_flushes(machine: Machine) -> Finding:
    """Look if a flush of other CPUs' TLBs interrupts them, which is what batching saves."""
    count = len(re.findall(r"^processor\s*:", cpuinfo(machine), re.MULTILINE))
    instead = "look at the system time and the operations"
    if count == 1:
        return Finding(WARN, "one CPU: no flush interrupts another", instead)
    saves = "interrupts no CPU: batching saves flushes alone"
    if machine.arch in ("aarch64", "arm64"):
        return Finding(WARN, f"{count} CPUs: a flush on arm64 {saves}", instead)
    if machine.arch != "x86_64":
        return Finding(NONE, f"{count} CPUs; not known for {machine.arch}")
    invlpgb = uses_invlpgb(machine)
    if invlpgb is None:
        return Finding(UNSEEN, f"{count} CPUs; {CPUID}, which tells of INVLPGB, is not there",
                       f"modprobe cpuid, or {build_with('CONFIG_X86_CPUID')}")  # fmt: skip
    if invlpgb:
        seen = f"{count} CPUs: a flush by INVLPGB {saves}"
        return Finding(WARN, seen, f"look at dirty TLB flushes; {instead}")
    return Finding(OK, f"{count} CPUs: a flush interrupts those that it is for")


CHECKS: dict[str, Check] = {
    "multi-gen LRU": mglru,
    "swap": swap,
    "cgroup v2": cgroup2,
    "tracefs": tracefs,
    "CPUs": remote_flushes,
    **{need.title: partial(counted, need) for need in NEEDS},
    **{name: partial(has_feature, feature) for name, feature in FEATURES.items()},
}
