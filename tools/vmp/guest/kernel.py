# SPDX-License-Identifier: GPL-2.0
"""Hooked guest kernels: what decides one, its build and the result."""

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

from vmp.common import CACHE, Failure, Words, appearing, locked, run
from vmp.guest.architecture import ALL, Architecture
from vmp.guest.configuration import configure, fragments
from vmp.guest.hooks import hook_patches
from vmp.guest.make import OWN_TREE, Progress, make
from vmp.guest.patched import BUILD, apply_patches, file_digest
from vmp.guest.sources import Version, find_version

KERNEL = CACHE / "kernel"


def compiler(architecture: Architecture) -> str:
    """Return which compiler there is for an architecture."""
    name = f"{architecture.prefix}gcc"
    return run([name, "--version"], f"asking {name} for its version").splitlines()[0]


def build_inputs(version: Version, variant: str, patches: list[Path]) -> dict[str, Any]:
    """Return all that decides what a built kernel is."""
    parts = fragments(version.series, version.architecture, variant)
    return {
        "package": version.package,
        "release": version.point,
        "architecture": version.architecture.name,
        "variant": variant,
        "patches": [[path.name, file_digest(path)] for path in patches],
        "config": [[path.name, file_digest(path)] for path in parts],
        "compiler": compiler(version.architecture),
    }


def inputs_key(inputs: dict[str, Any]) -> str:
    """Return the name of the result that is built from `inputs`."""
    return hashlib.sha256(json.dumps(inputs).encode()).hexdigest()[:16]


def build_kernel(name: str, variant: str, limit: int | None = None) -> Path:
    """Return the directory of a built kernel; builds it if its inputs changed.

    `name` is what find_version() takes; `limit` the number of hook
    patches to apply, or None for all.
    """
    version = find_version(name)
    patches = hook_patches(version.series, limit)
    inputs = build_inputs(version, variant, patches)
    result = KERNEL / inputs_key(inputs)
    if result.exists():
        return result
    with locked(CACHE / "lock"):
        if not result.exists():
            with appearing(result) as part:
                build_into(version, variant, patches, limit is not None, inputs, part)
    return result


def copy_build(source: Path, target: Path) -> None:
    """Make `target` a copy of a complete build tree in which an incremental build works."""
    with appearing(target) as part:
        run(["cp", "-aT", "--reflink=auto", source, part], f"copying {source}")
        # What names the other tree would be made anew, objtool and so everything, or taken from it.
        for pattern in (".*.cmd", ".*.d", "*.mod", "modules.order"):
            for path in part.rglob(pattern):
                text = path.read_text()
                if f"{source}/" in text:
                    path.write_text(text.replace(f"{source}/", f"{target}/"))


def copied_build(version: Version, label: str) -> Path:
    """Return the build tree `label`, made from the plain kernel's if it isn't there."""
    build = BUILD / version.builds / label
    plain = BUILD / version.builds / "plain"
    if not build.exists() and (plain / ".complete").exists():
        copy_build(plain, build)
    build.mkdir(parents=True, exist_ok=True)
    return build


def build_into(
    version: Version,
    variant: str,
    patches: list[Path],
    partial: bool,
    inputs: dict[str, Any],
    part: Path,
) -> None:
    """Build a kernel, and put what is used of it into an empty directory."""
    tree = apply_patches(version, patches)
    label = f"{variant}-steps" if partial else variant
    build = BUILD / version.builds / label
    if variant in OWN_TREE:
        build.mkdir(parents=True, exist_ok=True)
    else:
        copied_build(version, label)
    complete = build / ".complete"
    complete.unlink(missing_ok=True)
    architecture = version.architecture
    parts = fragments(version.series, architecture, variant)
    configure(tree, build, architecture, parts, bool(patches))
    what = f"{version.label} {label}"
    progress = Progress(f"building {what}", variant, build)
    with (build.parent / f"{label}.log").open("w", buffering=1) as log:
        base: Words = ["-C", tree, f"O={build}", "LOCALVERSION=", *architecture.words]
        jobs = f"-j{os.cpu_count()}"
        make([*base, jobs, architecture.image, "modules"], log, f"building {what}", progress)
        progress.finish()
        complete.touch()
        make(
            [*base, f"INSTALL_MOD_PATH={part / 'modules'}", "modules_install"],
            log,
            f"installing the modules of {what}",
            None,
        )
        # For another compiler it would make programs that run on what that is for.
        script = f"CC=$(HOSTCC) $(srctree)/scripts/package/install-extmod-build {part / 'headers'}"
        make(
            [*base, "run-command", f"KBUILD_RUN_COMMAND={script}"],
            log,
            f"installing the headers of {what}",
            None,
        )
    for source, name in {
        architecture.image_path: "image",
        "vmlinux": "vmlinux",
        "System.map": "System.map",
        ".config": "config",
        "include/config/kernel.release": "release",
    }.items():
        shutil.copy2(build / source, part / name)
    if variant.startswith("bpf"):
        # It has the types that a module's refer to.
        (part / "headers/vmlinux").symlink_to("../vmlinux")
    (part / "inputs.json").write_text(json.dumps(inputs, indent=2) + "\n")


def kernel_inputs(kernel: Path) -> dict[str, Any]:
    """Return what a built kernel was built from."""
    try:
        inputs: dict[str, Any] = json.loads((kernel / "inputs.json").read_text())
        texts = (inputs["variant"], inputs["release"])
        whole = inputs["architecture"] in ALL and all(isinstance(text, str) for text in texts)
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError):
        whole = False
    if not whole:
        raise Failure(
            f"{kernel} holds no built kernel: give a directory that `tools/kernel build` printed"
        )
    return inputs


def kernel_version(kernel: Path) -> Version:
    """Return the release that a built kernel is of."""
    inputs = kernel_inputs(kernel)
    return find_version(f"{inputs['release']}:{inputs['architecture']}")


def kernel_architecture(kernel: Path) -> Architecture:
    """Return what a built kernel is built for."""
    return ALL[kernel_inputs(kernel)["architecture"]]


def find_kernel(name: str, variant: str | None) -> Path:
    """Return the directory of a built kernel: the one of that name, or what is built by it.

    `name` is what find_version() takes, or a directory; `variant` what a directory must be.
    """
    if "/" not in name:
        return build_kernel(name, variant or "plain")
    kernel = Path(name).resolve()
    found = kernel_inputs(kernel)["variant"]
    if variant not in (None, found):
        raise Failure(f"{kernel} is a {found} kernel, no {variant} one: name another")
    return kernel


def decide(name: str) -> str:
    """Return the name of a kernel, for --kernel of all tools that this one runs.

    A series becomes the release that it means now. A wrong name is an error here, not in one of
    them.
    """
    if "/" in name:
        kernel_inputs(Path(name))
        return str(Path(name).resolve())
    version = find_version(name)
    return name if name == version.exact else version.label
