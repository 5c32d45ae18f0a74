# SPDX-License-Identifier: GPL-2.0
"""The counters that not every kernel has: what brings each, and what stands for it."""

import platform
from collections.abc import Collection
from dataclasses import dataclass, replace

REMOTE = "vmstat.nr_tlb_remote_flush"
OBSERVED = tuple(
    f"stats.flush.observed_{what}"
    for what in ("dirty_flushes", "clean_flushes", "remote_flushes", "interrupts")
)
BROADCAST = (
    "No CPU is interrupted for a TLB flush here, as one CPU's invalidation reaches all: "
    "reclaim's own remote flushes count the barriers that wait for it."
)


@dataclass(frozen=True)
class Need:
    """Counters, by their names in a snapshot, and the option that brings them.

    `instead` says which row of ab's table, made of the counter `source`, stands for theirs.
    """

    title: str
    counters: tuple[str, ...]
    option: str
    instead: str
    source: str
    interrupts: bool = False  # of flushes that interrupt other CPUs

    def names(self) -> str:
        """Return the counters as the kernel or the module names them."""
        return ", ".join(name.rpartition(".")[2] for name in self.counters)

    def remedy(self) -> str:
        """Say what brings the counters, and what is used while they are not there."""
        return f"{self.option} brings {'it' if len(self.counters) == 1 else 'them'}; {self.instead}"

    def __str__(self) -> str:
        return f"The kernel does not count {self.names()}: {self.remedy()}."


# All other counters that rows are made of are there wherever the module and cgroup2 are.
NEEDS = (
    Need(
        "remote TLB flushes",
        (REMOTE,),
        "CONFIG_DEBUG_TLBFLUSH (x86)",
        "instead, TLB shootdowns count each CPU that a flush interrupts",
        "irq.TLB",
        interrupts=True,
    ),
    Need(
        "TLB interrupts",
        ("irq.TLB", "irq.CAL"),
        "CONFIG_SMP (x86)",
        "instead, dirty TLB flushes count what reclaim flushes, whatever that interrupts",
        OBSERVED[0],
        interrupts=True,
    ),
    Need(
        "reclaim's flushes",
        OBSERVED,
        "CONFIG_KPROBES",
        "instead, remote TLB flushes count those of the whole machine",
        REMOTE,
    ),
    Need(
        "reclaim events",
        (
            *(f"vmstat.{kind}_{lru}" for kind in ("pgscan", "pgsteal") for lru in ("anon", "file")),
            *(f"vmstat.{name}" for name in "pgrefill pswpin pswpout pgpgin oom_kill".split()),
        ),
        "CONFIG_VM_EVENT_COUNTERS",
        "instead, pgscan and pgsteal of the memcg count its pages",
        "memcg.pgsteal",
    ),
)


def interrupts(machine: str) -> bool:
    """Tell if a flush of other CPUs' TLBs interrupts them, on a machine as uname calls it."""
    return machine == "x86_64"


def needs(machine: str) -> list[Need]:
    """Return the needs on a machine: without the counters that have no meaning there."""
    if interrupts(machine):
        return list(NEEDS)
    return [
        replace(need, counters=tuple(name for name in need.counters if "interrupts" not in name))
        for need in NEEDS
        if not need.interrupts
    ]


def lacking(names: Collection[str], machine: str = platform.machine()) -> list[Need]:
    """Return the needs of which some counters are not among `names`, with these counters alone."""
    found = []
    for need in needs(machine):
        absent = tuple(name for name in need.counters if name not in names)
        instead = need.instead if need.source in names else "nothing here counts the like"
        if absent:
            found.append(replace(need, counters=absent, instead=instead))
    return found


def told(names: Collection[str], machine: str = platform.machine()) -> tuple[str, ...]:
    """Return what is to be said of counters that are not among `names`, in sentences."""
    said = () if interrupts(machine) else (BROADCAST,)
    return (*said, *map(str, lacking(names, machine)))
