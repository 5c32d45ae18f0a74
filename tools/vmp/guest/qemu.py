# SPDX-License-Identifier: GPL-2.0
"""QEMU: the command that starts a guest, and running it with the guest's streams copied to ours."""

import itertools
import os
import re
import shlex
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from vmp.common import CACHE, Failure, run
from vmp.guest.architecture import AMD64, Architecture, own
from vmp.guest.foreign import inside, make_root
from vmp.guest.kernel import kernel_architecture

MAX_COMMAND_LINE = 2047
# Writable copies in memory; all else of the host but the current directory is read-only.
OVERLAYS = ("/etc", "/home", "/opt", "/root", "/srv", "/tmp", "/usr", "/var")
KERNEL_OPTIONS = (
    "ignore_loglevel",
    "oops=panic",
    # An emulated CPU may get little of a busy host.
    "watchdog_thresh=60",  # the most there is: a soft lockup is reported after twice that
    "rcupdate.rcu_cpu_stall_timeout=120",
)


@dataclass(frozen=True)
class Machine:
    """What a guest is to have."""

    cpus: int
    memory: str  # as in 2G
    nodes: int = 1
    slow_node: bool = False  # the last node has no CPU, and slow memory
    disks: tuple[str, ...] = ()  # each SIZE[:IOPS]
    icount: bool = False  # its clocks count instructions


def kvm_usable() -> bool:
    """Tell if the host's CPUs virtualize; on x86 /dev/kvm alone can be there and not work."""
    flags = r"^flags\s*:.*\b(svm|vmx)\b"
    if own() is AMD64 and not re.search(flags, Path("/proc/cpuinfo").read_text(), re.MULTILINE):
        return False
    return os.access("/dev/kvm", os.R_OK | os.W_OK)


def with_kvm(machine: Machine, architecture: Architecture) -> bool:
    """Tell if a guest has KVM, whose clocks can't count instructions."""
    return architecture.native and kvm_usable() and not machine.icount


def disk_options(disk: str, image: Path) -> list[str]:
    """Return QEMU's options for an empty disk of SIZE[:IOPS], made sparse at `image`."""
    size, _, iops = disk.partition(":")
    with image.open("wb") as handle:
        handle.truncate(int(size[:-1]) << {"M": 20, "G": 30}[size[-1]])
    drive = f"if=none,id={image.name},format=raw,file={str(image).replace(',', ',,')}"
    limit = f",throttling.iops-total={iops}" if iops else ""
    return ["-drive", drive + limit, "-device", f"virtio-blk-pci,drive={image.name}"]


def numa_options(machine: Machine) -> list[str]:
    """Return QEMU's options for the nodes of a machine, each with its share of the memory.

    Each has its share of the CPUs, too, but a slow one.
    """
    nodes, cpus = machine.nodes, machine.cpus
    kib = int(machine.memory[:-1]) * {"M": 1 << 10, "G": 1 << 20}[machine.memory[-1]]
    each = kib // nodes // 4 * 4  # A node's size has to be a multiple of 4 KiB.
    fast = nodes - machine.slow_node
    options = ["-machine", "hmat=on"] if machine.slow_node else []
    for node in range(nodes):
        last = node == nodes - 1
        share = kib - each * node if last else each
        first, end = cpus * node // fast, cpus * (node + 1) // fast
        what = f"cpus={first}-{end - 1}" if node < fast else "initiator=0"
        options += ["-object", f"memory-backend-ram,id=node{node},size={share}K"]
        options += ["-numa", f"node,nodeid={node},memdev=node{node},{what}"]
    return options + (distances(fast, nodes) if machine.slow_node else [])


def distances(fast: int, nodes: int) -> list[str]:
    """Return QEMU's options that tell the kernel of slow memory, on the nodes from `fast` on."""
    options = []
    for initiator, target in itertools.product(range(fast), range(nodes)):
        path = f"hmat-lb,initiator={initiator},target={target},hierarchy=memory"
        latency, bandwidth = (10, "10G") if target < fast else (100, "1G")
        options += ["-numa", f"{path},data-type=access-latency,latency={latency}"]
        options += ["-numa", f"{path},data-type=access-bandwidth,bandwidth={bandwidth}"]
    return options


def bare_command(hardware: Machine, kernel: Path, initrd: Path, options: str) -> list[str]:
    """Return the QEMU command of a guest without any disk, network or serial line.

    `options` is the kernel's command line.
    """
    command = ["qemu-system-x86_64", "-nodefaults", "-no-reboot", "-display", "none"]
    # One thread for all CPUs: QEMU 7.2 may run code that another CPU has just patched.
    accelerator = "kvm" if with_kvm(hardware, AMD64) else "tcg,thread=single"
    command += ["-accel", accelerator, "-cpu", "max"]
    # A socket for each node: Debian's kernels warn of one that spans two.
    command += ["-smp", f"{hardware.cpus},sockets={hardware.nodes}", "-m", hardware.memory]
    command += ["-kernel", str(kernel), "-initrd", str(initrd), "-append", options]
    return [*command, *(["-icount", "shift=0,sleep=off"] if hardware.icount else [])]


def qemu_command(machine: Machine, kernel: Path, directory: Path, log: Path) -> list[str]:
    """Return the QEMU command, made by virtme-ng, of a guest that runs `directory`/script."""
    virtme = CACHE / "venv" / "bin" / "virtme-run"
    if not virtme.exists():
        raise Failure(f"{virtme} is missing: run tools/setup")
    release = (kernel / "release").read_text().strip()
    architecture = kernel_architecture(kernel)
    command = [str(virtme), "--dry-run", "--show-command", "--kimg", str(kernel / "image")]
    command += ["--mods", "none", "--cpus", str(machine.cpus), "--memory", machine.memory]
    command += ["--force-9p", "--disable-microvm", "--script-sh", f"sh '{directory}/script'"]
    kvm = with_kvm(machine, architecture)
    command += [] if kvm else ["--disable-kvm"]
    here = Path.cwd()
    for overlay in OVERLAYS:
        if Path(overlay).is_dir() and Path(overlay) != here:
            command += ["--overlay-rwdir", overlay]
    wrapped: list[str] = []
    if not architecture.native:
        root = make_root(architecture)
        command += ["--arch", architecture.machine, "--root", str(root)]
        wrapped = inside(root)
    # At the same places in the guest, whatever its root is.
    command += [f"--rwdir={here}={here}"] if here != Path("/") else []
    command += [f"--rwdir={directory}={directory}"]
    options = [*KERNEL_OPTIONS, *architecture.options]
    options += [f"virtme_link_mods={kernel}/modules/lib/modules/{release}"]
    for option in options:
        command += ["--kopt", option]
    # virtme-ng's own channels, each to a place of its own.
    channels = {
        "console": log,
        "stdout": directory / "stdout",
        "stderr": directory / "stderr",
        "dev_stdout": directory / "stdout",
        "dev_stderr": directory / "stderr",
        "ret": directory / "status",
    }
    command += ["--qemu-opts"]
    for channel, path in channels.items():
        command += ["-set", f"chardev.{channel}.path={path}"]
    command += ["-icount", "shift=0,sleep=off"] if machine.icount else []
    for number, disk in enumerate(machine.disks):
        command += disk_options(disk, directory / f"disk{number}")
    if machine.nodes > 1:
        command += numa_options(machine)
    environment = os.environ | {"TMPDIR": str(directory)}
    shown = run([*wrapped, *command], "preparing the guest", env=environment)
    qemu = shlex.split(shown.splitlines()[-1])
    qemu += [] if kvm else architecture.emulated  # the last of two options is the one that counts
    if len(qemu[qemu.index("-append") + 1]) > MAX_COMMAND_LINE:
        raise Failure(f"the paths of {CACHE} and {here} are too long for a kernel command line")
    return wrapped + qemu


@dataclass
class Ear:
    """Knows when something was heard last."""

    last: float = field(default_factory=time.monotonic)


def copy_stream(source: int, target: int, ear: Ear) -> None:
    """Copy a stream to its end; when `target` is gone the rest is dropped."""
    while data := os.read(source, 65536):
        ear.last = time.monotonic()
        while data:
            try:
                data = data[os.write(target, data) :]
            except BrokenPipeError:
                target = os.open(os.devnull, os.O_WRONLY)


def wait_for(
    process: subprocess.Popen[bytes], ear: Ear, timeout: float, silence: float | None
) -> int | str:
    """Wait for the end of a process, and return its exit status or why it has to be ended."""
    end = time.monotonic() + timeout
    while True:
        quiet = ear.last + silence if silence else end
        left = min(end, quiet) - time.monotonic()
        if left <= 0:
            return (
                f"{timeout:g} s (--timeout)"
                if quiet >= end
                else f"{silence:g} s without a word (--silence)"
            )
        try:
            return process.wait(left)
        except subprocess.TimeoutExpired:
            pass


def run_guest(
    command: list[str], directory: Path, timeout: float, silence: float | None = None
) -> int | str:
    """Run QEMU to its end, with the guest's streams copied to ours.

    Returns its exit status (negative: the signal it died of), or after what it was ended.
    """
    ear = Ear()
    writers, copiers = [], []
    for name, target in (("stdout", 1), ("stderr", 2)):
        fifo = directory / name
        os.mkfifo(fifo)
        # A reader needs a writer before it reads, or it finds the end.
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        writers.append(os.open(fifo, os.O_WRONLY))
        os.set_blocking(reader, True)
        copiers.append(
            threading.Thread(target=copy_stream, args=(reader, target, ear), daemon=True)
        )
    for copier in copiers:
        copier.start()
    # QEMU would set a terminal to raw mode, and nothing in the guest needs one.
    stdin = subprocess.DEVNULL if os.isatty(0) else 0
    with (directory / "qemu.log").open("w") as output:
        # A guest must not outlive us, even when we are killed.
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *command],
            stdin=stdin,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            return wait_for(process, ear, timeout, silence)
        finally:
            process.kill()
            process.wait()
            for writer in writers:
                os.close(writer)
            for copier in copiers:
                copier.join()
