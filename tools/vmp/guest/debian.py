# SPDX-License-Identifier: GPL-2.0
"""Guests that are stock installations of Debian: its own kernel and init, on their own disk."""

import os
import shutil
import tarfile
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from vmp.common import CACHE, OUT, REPO, Failure, Words, appearing, locked, run
from vmp.guest.bootstrap import bootstrap
from vmp.guest.qemu import Machine, bare_command, disk_options, numa_options
from vmp.guest.sources import say

DEBIAN = CACHE / "debian"
DISK_SIZE, RESULT_SIZE = "6G", 64 << 20
HARDWARE = Machine(4, "3G")
# Also what a machine that is tested on has: a load, and what a checkout is made with.
PACKAGES = ("ca-certificates", "dbus", "git", "kmod", "initramfs-tools", "iproute2", "procps",
            "python3", "stress-ng", "systemd-sysv", "udev")  # fmt: skip
# Runs what it finds on the second disk, with the second serial line as its output.
SERVICE = """[Unit]
After=network-online.target
Wants=network-online.target
[Service]
Type=simple
Environment=HOME=/root
ExecStart=/bin/sh -c 'exec >/dev/ttyS1 2>&1; stty -F /dev/ttyS1 -onlcr; \
	mkdir /root/job; cd /root/job; tar xf /dev/vdb; bash ./run; echo %s$$?; \
	[ ! -d result ] || tar cf /dev/vdc result'
ExecStopPost=/bin/systemctl --no-block poweroff
[Install]
WantedBy=multi-user.target
"""
ENDED = "vmp-status "
NETWORK = "[Match]\nName=e*\n[Network]\nDHCP=yes\n"


@dataclass(frozen=True)
class Installation:
    """A directory tree, a disk with the same, and the kernel and initrd that are on it."""

    tree: Path
    disk: Path
    kernel: Path
    initrd: Path


def customize() -> Words:
    """Return what mmdebstrap does in the end, in $1."""
    settings = run(["apt-config", "dump", "Acquire::Check-Valid-Until"], "reading apt's settings")
    files = {
        "etc/systemd/system/vmp.service": SERVICE % ENDED,
        "etc/systemd/network/vmp.network": NETWORK,
        "etc/resolv.conf": "nameserver 10.0.2.3\n",
        "etc/apt/apt.conf.d/90vmp": settings,
    }
    words: Words = []
    for path, text in files.items():
        quoted = text.replace("'", "'\\''")
        words.append(f"--customize-hook=printf %s '{quoted}' >\"$1/{path}\"")
    units = "vmp.service systemd-networkd.service systemd-networkd-wait-online.service"
    return [*words, f'--customize-hook=chroot "$1" systemctl enable {units}']


def make_disk(place: Path) -> None:
    """Make a disk of the tree that is in a directory."""
    (place / "disk").unlink(missing_ok=True)
    words: Words = ["mkfs.ext4", "-q", "-d", place / "tree", place / "disk", DISK_SIZE]
    run(words, f"making the disk of {place.name}")


def installed(place: Path) -> Installation:
    """Return the installation in a directory, with the newest of its kernels."""
    boot = place / "tree" / "boot"
    kernels, initrds = (sorted(boot.glob(f"{name}-*")) for name in ("vmlinuz", "initrd.img"))
    return Installation(place / "tree", place / "disk", kernels[-1], initrds[-1])


def make_tree(name: str, suite: str, *packages: str) -> Path:
    """Return the directory with a tree of a suite and a disk of that, made if needed."""
    place = DEBIAN / name
    if os.geteuid():
        raise Failure("a Debian of its own can be installed by root alone")
    chosen = ",".join([*PACKAGES, *packages])
    with locked(DEBIAN / f"{name}.lock"):
        known = place / "packages"
        if not known.exists() or known.read_text() != chosen:
            shutil.rmtree(place, ignore_errors=True)
            say(f"installing {name}, a Debian of its own")
            with appearing(place) as part:
                (part / "packages").write_text(chosen)
                options = ["--variant=minbase", f"--include={chosen}", *customize()]
                bootstrap(suite, part / "tree", f"making {name}", *options, lists=part / "sources")
                make_disk(part)
    return place


def install(name: str, suite: str, *packages: str) -> Installation:
    """Return an installation of a suite with more packages, a kernel's too, made if needed."""
    return installed(make_tree(name, suite, *packages))


def copy_tree(place: Path, name: str) -> Path:
    """Return a directory with a copy of a tree, to change: what the last one left is gone."""
    copy = DEBIAN / name
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir()
    run(["cp", "-a", "--reflink=auto", place / "tree", copy], f"copying {place.name}")
    return copy


def entered(tree: Path, *words: str) -> Words:
    """Return a command that runs another one in a tree, on this machine's kernel."""
    enter = 'cd "$0"; for name in proc sys dev; do mount --rbind "/$name" "$name"; done; '
    enter += "mount --bind /etc/resolv.conf etc/resolv.conf; "
    enter += 'exec chroot . env -i "$@"'
    given = ["DEBIAN_FRONTEND=noninteractive", "HOME=/root", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"]
    return ["unshare", "--mount", "sh", "-ec", enter, tree, *given, *words]


def inside(tree: Path, *words: str) -> str:
    """Run a command in a tree; returns its stdout."""
    return run(entered(tree, *words), words[0])


def checkout() -> list[Path]:
    """Return the files that git knows."""
    names = run(["git", "-C", REPO, "ls-files"], "listing the checkout").splitlines()
    return [path for name in names if (path := REPO / name).exists()]


def copy_checkout(place: Path) -> None:
    """Copy the checkout into a directory."""
    for path in checkout():
        target = place / path.relative_to(REPO)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)


def console(log: Path) -> Path:
    """Return the file that gets what the kernel says, beside that of a script's output."""
    return log.with_suffix(".console")


def run_script(
    machine: Installation,
    script: Path,
    log: Path,
    timeout: int,
    more: dict[str, Path],
    hardware: Machine = HARDWARE,
) -> Path:
    """Run a script in a guest, next to a checkout and `more`, files and directories by name.

    Its empty disk is /dev/vdd. Returns the directory with what the script has put into `result`.
    Raises Failure with the end of its output if it fails.
    """
    with tempfile.TemporaryDirectory(dir=OUT) as name:
        job, result = Path(name) / "job", Path(name) / "result"
        with tarfile.open(job, "w") as archive:
            for path in checkout():
                archive.add(path, f"vmscan-policy/{path.relative_to(REPO)}")
            for place, path in {"run": script, **more}.items():
                archive.add(path, place)
        with result.open("wb") as handle:
            handle.truncate(RESULT_SIZE)
        boot(machine, hardware, job, result, log, timeout)
        said = log.read_text(errors="replace")
        if f"{ENDED}0" not in said:
            raise Failure("\n".join([str(log), *said.splitlines()[-25:]]))
        taken = log.with_suffix(".result")
        shutil.rmtree(taken, ignore_errors=True)
        taken.mkdir()
        with suppress(tarfile.ReadError), tarfile.open(result) as archive:
            archive.extractall(taken, filter="data")
    return taken / "result"


def boot(
    machine: Installation, hardware: Machine, job: Path, result: Path, log: Path, timeout: int
) -> None:
    """Run a guest to its end."""
    booted = "root=/dev/vda rw console=ttyS0 norandmaps oops=panic panic=-1"
    command: Words = [*bare_command(hardware, machine.kernel, machine.initrd, booted)]
    command += ["-serial", f"file:{console(log)}", "-serial", f"file:{log}"]
    command += ["-drive", f"file={machine.disk},if=virtio,format=raw,snapshot=on"]
    command += ["-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net"]
    for drive in (job, result):
        command += ["-drive", f"file={drive},if=virtio,format=raw"]
    for number, disk in enumerate(hardware.disks):
        *options, device = disk_options(disk, job.parent / f"disk{number}")
        command += [*options, f"{device},addr={0x1E + number:#x}"]  # behind the others
    if hardware.nodes > 1:
        command += numa_options(hardware)
    run(["timeout", str(timeout), "setpriv", "--pdeathsig", "KILL", *command], "the guest")
