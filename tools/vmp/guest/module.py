# SPDX-License-Identifier: GPL-2.0
"""The module and the samples, built for a kernel; and faulty builds of module and kernel."""

import hashlib
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from vmp.common import CACHE, REPO, Failure, Words, appearing, locked, run
from vmp.guest.hooks import hook_patches
from vmp.guest.kernel import (
    copied_build,
    copy_build,
    kernel_architecture,
    kernel_inputs,
    kernel_version,
)
from vmp.guest.make import make, make_targets
from vmp.guest.patched import SOURCE, apply_patches

MODULE = CACHE / "module"


@dataclass(frozen=True)
class Edit:
    """One place of a source file changed, for a faulty build; `name` tells such builds apart."""

    name: str
    path: str
    old: str
    new: str

    def apply(self, top: Path) -> None:
        """Change the file below `top`; raise Failure where it has no such place, or several."""
        path = top / self.path
        text = path.read_text()
        if text.count(self.old) != 1:
            raise Failure(f"{self.name}: {self.path} has {text.count(self.old)} times:\n{self.old}")
        path.write_text(text.replace(self.old, self.new))


def build_edited_kernel(kernel: Path, edit: Edit) -> Path:
    """Return a copy of a built kernel's directory whose kernel has `edit` in its source.

    Modules of the one load into the other.
    """
    version = kernel_version(kernel)
    key = hashlib.sha256(repr(edit).encode()).hexdigest()[:8]
    result = kernel.with_name(f"{kernel.name}-{edit.name}-{key}")
    with locked(CACHE / "lock"):
        if result.exists():
            return result
        tree = apply_patches(version, hook_patches(version.series))
        build = copied_build(version, "edited")
        stamp = SOURCE / f"{version.package}.patches"
        applied, text = stamp.read_text(), (tree / edit.path).read_text()
        # Without it, a run that is interrupted makes the next one start anew.
        stamp.unlink()
        try:
            edit.apply(tree)
            architecture = version.architecture
            make_targets(tree, build, architecture, version.label, architecture.image)
        finally:
            (tree / edit.path).write_text(text)
            stamp.write_text(applied)
        with appearing(result) as part:
            run(["cp", "-alT", kernel, part], "copying a kernel")
            (part / "image").unlink()
            shutil.copy2(build / architecture.image_path, part / "image")
    return result


def modules_of(kernel: Path) -> Path:
    """Return where this checkout's modules for a built kernel are.

    A guest may load a module while another checkout builds its own.
    """
    checkout = hashlib.sha256(str(REPO).encode()).hexdigest()[:8]
    return MODULE / f"{kernel.resolve().name}-{checkout}"


def build_samples(kernel: Path) -> Path:
    """Build the modules of tools/samples against a built kernel; return a directory with them."""
    sources = REPO / "tools/samples"
    directory = Path(f"{modules_of(kernel)}-samples")
    with locked(MODULE / f"{directory.name}.lock"):
        run(["rsync", "-rlpc", f"{sources}/", directory], "copying the samples")
        with (MODULE / f"{directory.name}.log").open("w") as log:
            for sample in sorted(path.parent for path in directory.glob("*/Kbuild")):
                arguments: Words = ["-C", kernel / "headers", f"M={sample}"]
                arguments += [
                    f"VMSCAN_POLICY={REPO}",
                    "modules",
                    *kernel_architecture(kernel).words,
                ]
                make(arguments, log, f"building the sample {sample.name}", None)
    return directory


def build_module(kernel: Path, *edits: Edit) -> Path:
    """Build the module against a built kernel and return the directory with the .ko files.

    The `edits` change its source files before.  Warnings go to stderr.
    """
    release = kernel_inputs(kernel)["release"]
    sources = [REPO / name for name in ("Kbuild", "dkms.conf", "module", "kunit")]
    if not sources[0].exists():
        raise Failure(f"there is no {sources[0]}, so there is no module to build")
    base = modules_of(kernel)
    directory = MODULE / "-".join([base.name, *(edit.name for edit in edits)])
    with locked(MODULE / f"{directory.name}.lock"):
        if base != directory and base.exists() and not directory.exists():
            with locked(MODULE / f"{base.name}.lock"):  # another program may be building it
                copy_build(base, directory)
        directory.mkdir(exist_ok=True)
        # By content and without times: a file that changed is newer than its object.
        keep = ("*.o", "*.ko", ".*.cmd", "*.mod", "*.mod.c", ".module-common*", "modules.order")
        run(
            ["rsync", "-rlpc", "--delete", *(f"--exclude={name}" for name in keep)]
            + ["--exclude=Module.symvers", *(path for path in sources if path.exists()), directory],
            "copying the module's sources",
        )
        for edit in edits:
            edit.apply(directory)
        arguments: Words = ["-C", kernel / "headers", f"M={directory}", f"-j{os.cpu_count()}"]
        arguments += kernel_architecture(kernel).words
        with (MODULE / f"{directory.name}.log").open("w") as log:
            make([*arguments, "modules"], log, f"building the module for {release}", None)
        for line in Path(log.name).read_text().splitlines():
            if "warning: " in line:
                print(line, file=sys.stderr)
        if not (directory / "vmscan_policy.ko").exists():
            raise Failure(f"{sources[0]} makes no vmscan_policy.ko at its own level")
    return directory
