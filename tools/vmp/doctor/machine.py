# SPDX-License-Identifier: GPL-2.0
"""What the doctor looks at: files of the running machine, its kernel's options and symbols."""

import gzip
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from vmp.common import mount_points

# Of these, MISSING alone keeps policies from being switched, or a tool from running. UNSEEN is what
# this user can't see, NONE what does not concern this machine.
OK, WARN, MISSING, UNSEEN, NONE = STATES = ("ok", "warn", "missing", "unseen", "n.a.")
SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin"  # an ordinary user's PATH may lack these


class Finding(NamedTuple):
    """How something is, what was seen, and the command or the option that mends it, if any."""

    state: str
    seen: str
    mend: str = ""


Check = Callable[["Machine"], Finding]


class UnseenError(Exception):
    """The file of that name is for root alone."""


def build_with(option: str) -> str:
    """Return what mends the lack of an option."""
    return f"build the kernel with {option}"


class Machine:
    """A machine below `root`, which runs the kernel `release`."""

    def __init__(self, root: Path = Path("/"), release: str = "", arch: str = "") -> None:
        self.root = root
        self.release = release or os.uname().release
        self.arch = arch or os.uname().machine

    def path(self, name: str | Path) -> Path:
        """Return where the file `name`, as in /proc/swaps, is."""
        return self.root / str(name).lstrip("/")

    def has(self, name: str | Path) -> bool:
        """Tell if there is such a file; raise UnseenError where the user may not know."""
        try:
            self.path(name).stat()
        except PermissionError:
            raise UnseenError(str(name)) from None
        except OSError:
            return False
        return True

    def data(self, name: str | Path) -> bytes:
        """Return what is in a file, nothing where there is none; raise UnseenError as `has`."""
        try:
            return self.path(name).read_bytes()
        except PermissionError:
            raise UnseenError(str(name)) from None
        except OSError:
            return b""

    def text(self, name: str | Path) -> str:
        """Return the text of a file, as `data` does."""
        return self.data(name).decode(errors="replace").strip()

    def mounted(self, kind: str) -> list[Path]:
        """Return where file systems of a kind are mounted."""
        return mount_points(kind, self.text("/proc/self/mounts"))

    def knows(self, kind: str) -> bool:
        """Tell if the kernel has a file system built in or loaded."""
        return kind in self.text("/proc/filesystems").split()

    @cached_property
    def symbols(self) -> dict[str, str]:
        """Return the kernel's functions, with the module that each is in, '' for the kernel."""
        found = re.findall(
            r"^\S+ [TtWw] (\w+)(?:\s+\[(\w+)\])?$", self.text("/proc/kallsyms"), re.MULTILINE
        )
        return dict(found)

    @cached_property
    def config(self) -> dict[str, str]:
        """Return the kernel's options that are set, with their values; nothing if none tells."""
        modules = f"/lib/modules/{self.release}"
        for name in (f"/boot/config-{self.release}", f"{modules}/build/.config",
                     f"{modules}/config", "/proc/config.gz"):  # fmt: skip
            try:
                data = self.data(name)
            except UnseenError:
                continue
            if data:
                text = gzip.decompress(data) if name.endswith(".gz") else data
                lines = text.decode(errors="replace")
                return dict(re.findall(r"^(CONFIG_\w+)=(.*)$", lines, re.MULTILINE))
        return {}

    def program(self, name: str) -> str | None:
        """Return where a program is, None if it is not installed."""
        return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:{SYSTEM_PATH}")

    def said(self, *command: str) -> str:
        """Return what a program prints, '' where it fails or is not there."""
        program = self.program(command[0])
        if not program:
            return ""
        done = subprocess.run(
            [program, *command[1:]],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            errors="replace",
        )
        return "" if done.returncode else done.stdout.strip()
