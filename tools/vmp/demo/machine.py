# SPDX-License-Identifier: GPL-2.0
"""The demo's guest: Debian's kernel with the hooks as a livepatch, or a kernel that is built."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

from vmp.common import CACHE, REPO, Failure
from vmp.guest import initramfs
from vmp.guest.architecture import AMD64
from vmp.guest.log import find_splat, guest_script, read_log
from vmp.guest.qemu import KERNEL_OPTIONS, Machine, bare_command
from vmp.guest.stock import Stock
from vmp.livepatch.names import MODULE, NAME
from vmp.programs import WORKLOADS

HARDWARE = Machine(4, "2G")
PLACE = "vmscan-policy"  # of the checkout in the guest
INSIDE = "tools/vmp/demo/inside.py"
PARTS = ("dkms.conf", "tools/livepatch", "tools/workloads", "tools/vmp")
SHELL = ("sh", "env", "cat", "grep", "mount", "sleep", "stty")
NEEDED = (*SHELL, "insmod", "rmmod", "make", "mkswap", "swapon", "swapoff")
ENDED = "vmp-status "
TIMEOUT, TIMED_OUT = 1200, 124  # seconds, and the status of what has taken longer
# The hooks are loaded before the other CPUs join: the emulator is not at its best where one CPU
# patches the code of others.
INIT = f"""#!/bin/sh
export PATH=/usr/bin HOME=/root
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
exec </dev/null >/dev/ttyS1 2>&1
stty -F /dev/ttyS1 -onlcr
cd /{PLACE}
for module in /{initramfs.MODULES}/*; do insmod "$module"; done
python3 tools/livepatch load && sh /script
echo "{ENDED}$?"
sleep 1
echo o >/proc/sysrq-trigger
exec sleep inf
"""


def make_initramfs(target: Path, kernel: Stock, livepatch: Path, command: list[str]) -> None:
    """Write the initramfs of a guest that loads a livepatch and runs a command."""
    script = target.with_suffix(".script")
    script.write_text(guest_script(command, {}, Path("/", PLACE), load=False, leaks=False))
    cache = Path("root/.cache") / CACHE.name
    files = {f"{PLACE}/{part}": REPO / part for part in PARTS}
    files |= {str(cache / livepatch.relative_to(CACHE) / name): livepatch / name
              for name in (f"{NAME}.ko", f"{MODULE}.ko", "about.json")}  # fmt: skip
    files |= {str(cache / WORKLOADS.name): WORKLOADS, "script": script}
    initramfs.make(target, kernel, INIT, NEEDED, ["zram"], files)
    script.unlink()


def boot(kernel: Stock, initrd: Path, console: Path) -> list[str]:
    """Return the command of the guest, whose output is what its script says."""
    options = " ".join([*KERNEL_OPTIONS, *AMD64.options, "console=ttyS0", "panic=-1"])
    command = bare_command(HARDWARE, kernel.image, initrd, options)
    return [*command, "-serial", f"file:{console}", "-serial", "stdio"]


def lines(command: list[str]) -> Iterator[str]:
    """Run a guest, and yield what it says, line by line; it ends with us, too.

    Raises Failure if it hasn't said in the end that all went well.
    """
    bound = ["setpriv", "--pdeathsig", "KILL"]
    process = subprocess.Popen(
        [*bound, "timeout", str(TIMEOUT), *bound, *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        cwd=REPO,
        start_new_session=True,
    )
    assert process.stdout
    status, said, code = "", "", 0
    try:
        for line in process.stdout:
            if line.startswith(ENDED):
                status = line.removeprefix(ENDED).strip()
            else:
                said = line.strip() or said
                yield line
        code = process.wait()
    finally:
        process.terminate()  # timeout hands it on, and waits
        process.wait()
    if code or status != "0":
        what = f"took more than {TIMEOUT} s" if code == TIMED_OUT else "failed"
        raise Failure(f"the guest {what}: {said}")


def check_log(console: Path) -> None:
    """Raise Failure where a guest's kernel log shows trouble."""
    if splat := find_splat(read_log(console)):
        raise Failure(f"{console} shows trouble: {splat[0]}")
