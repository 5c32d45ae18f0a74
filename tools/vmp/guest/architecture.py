# SPDX-License-Identifier: GPL-2.0
"""Architectures that kernels are built for, by Debian's names, and the guests that they have."""

import platform
from dataclasses import dataclass

from vmp.common import Failure
from vmp.programs import prefix


@dataclass(frozen=True)
class Architecture:
    """One that kernels can be compiled for; without an emulator it has no guest."""

    name: str  # Debian's
    machine: str  # what uname says
    kernel: str  # what the kernel's make calls it
    image: str  # which image of the kernel a guest starts
    emulator: str = ""
    emulated: tuple[str, ...] = ()  # the emulator's options: machine and processor
    options: tuple[str, ...] = ()  # the kernel's, in a guest
    hmat: bool = False  # a table of ACPI tells a guest's kernel how fast memory is

    @property
    def native(self) -> bool:
        """Tell if this machine runs its programs."""
        return self.machine == platform.machine()

    @property
    def prefix(self) -> str:
        """Return what the names of its compiler's programs begin with here."""
        return prefix(self.machine)

    @property
    def image_path(self) -> str:
        """Return where a build has the image."""
        return f"arch/{self.kernel}/boot/{self.image}"

    @property
    def settings(self) -> dict[str, str]:
        """Return the variables that the kernel's make has to be told."""
        return {} if self.native else {"ARCH": self.kernel, "CROSS_COMPILE": self.prefix}

    @property
    def words(self) -> list[str]:
        """Return these as words for make."""
        return [f"{name}={value}" for name, value in self.settings.items()]


AMD64 = Architecture(
    "amd64", "x86_64", "x86", "bzImage", "qemu-system-x86_64", ("-cpu", "max"),
    (
        # QEMU keeps translated code by page and address. With addresses that are random, a page of
        # the C library has so much of it in the end that to write to the page, once it is used for
        # something else, takes minutes: each store walks all that. Byte by byte (ERMS) eight times
        # that often.
        "norandmaps",
        "clearcpuid=erms",
        # QEMU 7.2's emulation can crash, or let the guest crash, when one CPU sets up PCI
        # devices or patches code while others run: the others join after that.
        "maxcpus=1",
        "noreplace-smp",
        "lpj=16000000",  # a CPU that joins would measure it, slowly; enough for 4 GHz
    ),
    hmat=True,
)  # fmt: skip
ARM64 = Architecture(
    "arm64", "aarch64", "arm64", "Image", "qemu-system-aarch64",
    # Signed pointers by the architecture's own algorithm take half of an emulator's time.
    ("-machine", "virt,gic-version=3", "-cpu", "max,pauth-impdef=on"),
    ("norandmaps",),
)  # fmt: skip
RISCV64 = Architecture("riscv64", "riscv64", "riscv", "Image")
ALL = {found.name: found for found in (AMD64, ARM64, RISCV64)}
GUESTS = [name for name, found in ALL.items() if found.emulator]


def own() -> Architecture:
    """Return this machine's."""
    for found in ALL.values():
        if found.native:
            return found
    raise Failure(f"this machine is {platform.machine()}; kernels can be built on {', '.join(ALL)}")
