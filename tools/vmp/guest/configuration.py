# SPDX-License-Identifier: GPL-2.0
"""The configuration of a guest's kernel, from fragments."""

import re
from pathlib import Path

from vmp.common import REPO, Failure, Words, run
from vmp.guest.architecture import Architecture
from vmp.guest.make import make_environment

CONFIG = REPO / "tools" / "config"
# The fragments that a variant adds to guest.config.
VARIANTS = {
    "plain": [],
    "debug": ["debug"],
    "kcsan": ["kcsan"],
    "bpf": ["bpf"],
    "bpf-debug": ["debug", "bpf"],
    "off": ["off"],
}
OPTION = "CONFIG_VMSCAN_POLICY"


def fragments(series: str, architecture: Architecture, variant: str) -> list[Path]:
    """Return a kernel's configuration fragments; a later one overrides an earlier."""
    names = [
        f"{name}{own}.config"
        for name in ("guest", *VARIANTS[variant])
        for own in ("", f"-{architecture.name}", f"-{series}")
    ]
    return [path for name in names if (path := CONFIG / name).exists()]


def merge_config(
    tree: Path, build: Path, architecture: Architecture, parts: list[Path], *options: str
) -> None:
    """Write the build's .config from configurations, a later one overriding an earlier."""
    merge: Words = [tree / "scripts/kconfig/merge_config.sh", *options, "-O", build, *parts]
    environment = make_environment() | architecture.settings
    run(merge, "configuring the kernel", cwd=tree, env=environment)


def configure(
    tree: Path, build: Path, architecture: Architecture, parts: list[Path], hooked: bool
) -> None:
    """Write the build's .config from fragments and check that all was taken.

    What they set to n may be unknown to the kernel.
    """
    merge_config(tree, build, architecture, parts, "-n")
    assignment = re.compile(r"^(CONFIG_\w+)=(.*)$", re.MULTILINE)
    actual = dict(assignment.findall((build / ".config").read_text()))
    requested: dict[str, str] = {}
    for fragment in parts:
        requested |= assignment.findall(fragment.read_text())
    refused = [
        f"{name}={value}"
        for name, value in requested.items()
        if actual.get(name, "n") != value and (hooked or name != OPTION)
    ]
    if refused:
        names = ", ".join(path.name for path in parts)
        raise Failure(
            f"the kernel's configuration by {names} refuses {', '.join(refused)}: "
            "add what they depend on, in tools/config"
        )
