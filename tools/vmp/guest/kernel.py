# SPDX-License-Identifier: GPL-2.0
"""Hooked guest kernels: source, patches, configuration, build and result; module builds."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from vmp.common import CACHE, REPO, Failure, Words, locked, run, write_whole
from vmp.form import to_go
from vmp.guest.architecture import ALL, Architecture
from vmp.guest.hooks import hook_patches
from vmp.guest.sources import Version, find_version, say, unpack

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
SOURCE, BUILD, KERNEL, MODULE = (CACHE / name for name in ("source", "build", "kernel", "module"))
STEPS = CACHE / "steps"
# What these add changes every object: nothing to gain of plain's.
OWN_TREE = ("debug", "kcsan", "bpf", "bpf-debug")
USUAL = {"plain": 1900, **dict.fromkeys(OWN_TREE, 1900)}  # steps of a first build, about
ERROR_LINE = re.compile(r"\berror\b[: ]|\*\*\*|undefined reference|^ERROR: ", re.IGNORECASE)


def fragments(series: str, architecture: Architecture, variant: str) -> list[Path]:
    """Return a kernel's configuration fragments; a later one overrides an earlier."""
    names = [
        f"{name}{own}.config"
        for name in ("guest", *VARIANTS[variant])
        for own in ("", f"-{architecture.name}", f"-{series}")
    ]
    return [path for name in names if (path := CONFIG / name).exists()]


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


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


# Make must not see a caller's make flags, ARCH and the like: they would change the build.
def make_environment() -> dict[str, str]:
    """Return the environment of the kernel's make."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    return kept | {"LC_ALL": "C"}


def extract(version: Version) -> Path:
    """Return the source tree of a point release, extracted if it isn't there."""
    tree = SOURCE / version.package
    if not tree.exists():
        say(f"extracting the source of {version.point}")
        unpack(version, tree)
    return tree


def source(version: Version) -> Path:
    """Return the source tree of a point release, with any patches applied or none."""
    tree = SOURCE / version.package
    if tree.exists():
        return tree  # without the lock, which a build holds
    with locked(CACHE / "lock"):
        return extract(version)


def patched_files(tree: Path) -> set[str]:
    """Return the files that the patches applied to `tree` touch, relative to it."""
    backups = tree / ".pc"
    return {
        str(path.relative_to(backups / patch.name))
        for patch in (backups.iterdir() if backups.is_dir() else [])
        if patch.is_dir()
        for path in patch.rglob("*")
        if path.is_file() and path.name != ".timestamp"
    }


def file_states(tree: Path, names: set[str]) -> dict[str, tuple[str, int]]:
    """Return digest and modification time (ns) of those `names` that exist in `tree`."""
    paths = {name: tree / name for name in names}
    return {
        name: (file_digest(path), path.stat().st_mtime_ns)
        for name, path in paths.items()
        if path.is_file()
    }


def apply_patches(version: Version, patches: list[Path]) -> Path:
    """Bring the source tree to exactly `patches` and return it.

    A file whose content stays keeps its modification time, and one whose content
    changes gets a new one, so that the next build compiles what changed and no more.
    """
    stamp = SOURCE / f"{version.package}.patches"
    wanted = json.dumps([[path.name, file_digest(path)] for path in patches])
    tree = SOURCE / version.package
    if not stamp.exists() and (tree / ".pc").exists():
        # Nobody knows which state the objects were built from.
        say("an interrupted run left the source half patched: starting anew")
        shutil.rmtree(tree)
        shutil.rmtree(BUILD / version.builds, ignore_errors=True)
    tree = extract(version)
    if stamp.exists() and stamp.read_text() == wanted:
        return tree
    names = patched_files(tree)
    for path in patches:
        names |= set(re.findall(r"^\+\+\+ [^/\s]+/(\S+)", path.read_text(), re.MULTILINE))
    before = file_states(tree, names)
    stamp.unlink(missing_ok=True)
    pop(tree)
    failure = None
    try:
        if patches:
            say(f"applying hook patches to {version.point}: {len(patches)}")
            push(tree, patches)
    except Failure as error:
        failure, wanted = error, "[]"
        pop(tree)
    now = time.time_ns()
    for name, (digest, _) in file_states(tree, names).items():
        same = name in before and before[name][0] == digest
        os.utime(tree / name, ns=(now, before[name][1] if same else now))
    stamp.write_text(wanted)
    if failure:
        raise Failure(f"the hooks don't apply to {version.point}: {failure}")
    return tree


def quilt(tree: Path, command: str, *arguments: str, patches: Path | None = None) -> None:
    """Push patches of a directory onto a tree, never with fuzz, or pop those that are applied."""
    environment = os.environ | {"LC_ALL": "C"}
    if patches:
        environment["QUILT_PATCHES"] = str(patches)
    words = ["quilt", "--quiltrc", "-", command, "-q", *arguments]
    run(words, f"quilt {command}", cwd=tree, env=environment)


def push(tree: Path, patches: list[Path]) -> None:
    """Apply patches, the first ones of their directory."""
    quilt(tree, "push", "--fuzz=0", str(len(patches)), patches=patches[0].parent)


def pop(tree: Path) -> None:
    """Take back all patches."""
    state = tree / ".pc"
    applied = state / "applied-patches"
    if applied.exists() and applied.read_text():
        quilt(tree, "pop", "-a", "-f")
    shutil.rmtree(state, ignore_errors=True)


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


def usual_steps(variant: str) -> int:
    """Return how many steps the last whole build of a variant took, or one usually takes."""
    try:
        return int((STEPS / variant).read_text())
    except (FileNotFoundError, ValueError):  # there is none, or it was not written to its end
        return USUAL.get(variant, 0)


class Progress:
    """Shows on stderr how far a build is; one line that is rewritten on a terminal.

    The steps of the last whole build of a variant tell how many there will be.
    """

    def __init__(self, what: str, variant: str, build: Path):
        self.what = what
        self.last = STEPS / variant
        self.total = usual_steps(variant)
        self.start = time.monotonic()
        self.terminal = sys.stderr.isatty()
        self.shown = self.start
        self.before = self.done = sum(1 for _ in build.rglob("*.o"))

    def line(self, text: str) -> None:
        """Take one line of make's output."""
        self.done += text.startswith("  ")
        now = time.monotonic()
        if now - self.shown >= (0.2 if self.terminal else 30):
            self.shown = now
            self.show("\r\033[K" if self.terminal else "", "" if self.terminal else "\n")

    def show(self, before: str, after: str) -> None:
        """Print the state."""
        took = time.monotonic() - self.start
        minutes, seconds = divmod(int(took), 60)
        text = f"kernel: {self.what}: {self.done - self.before} steps, {minutes}:{seconds:02}"
        if self.before < self.done < self.total:
            left = took * (self.total - self.done) / (self.done - self.before)
            text += f", {100 * self.done // self.total} %, {to_go(left)}"
        print(before + text, end=after, file=sys.stderr, flush=True)

    def finish(self) -> None:
        """Print the final state, and keep the steps of a whole build."""
        self.total = 0
        if not self.before:
            STEPS.mkdir(exist_ok=True)
            write_whole(self.last, str(self.done))
        self.show("\r\033[K" if self.terminal else "", "\n")


def make(arguments: list[str | Path], log: IO[str], what: str, progress: Progress | None) -> None:
    """Run make with its output in `log`; raises Failure with the log's error lines."""
    process = subprocess.Popen(
        # Make must not outlive us, even when we are killed.
        ["setpriv", "--pdeathsig", "TERM", "make", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=make_environment(),
        start_new_session=True,
    )
    errors: list[str] = []
    assert process.stdout
    try:
        for line in process.stdout:
            log.write(line)
            if ERROR_LINE.search(line):
                errors.append(line.rstrip())
            if progress:
                progress.line(line)
        status = process.wait()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, 15)
            process.wait()
    log.flush()
    if status:
        if progress and progress.terminal:
            print(file=sys.stderr)
        excerpt = "\n".join(["", *errors[:20]])
        raise Failure(f"{what} failed, its log is {log.name}{excerpt}")


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
            build_locked(version, variant, patches, limit is not None, inputs, result)
    return result


def copy_build(source: Path, target: Path) -> None:
    """Make `target` a copy of a complete build tree in which an incremental build works."""
    part = target.with_name(f".{target.name}")
    shutil.rmtree(part, ignore_errors=True)
    run(["cp", "-a", "--reflink=auto", source, part], f"copying {source}")
    # What names the other tree would be made anew, objtool and so everything, or taken from it.
    for pattern in (".*.cmd", ".*.d", "*.mod", "modules.order"):
        for path in part.rglob(pattern):
            text = path.read_text()
            if f"{source}/" in text:
                path.write_text(text.replace(f"{source}/", f"{target}/"))
    part.rename(target)


def copied_build(version: Version, label: str) -> Path:
    """Return the build tree `label`, made from the plain kernel's if it isn't there."""
    build = BUILD / version.builds / label
    plain = BUILD / version.builds / "plain"
    if not build.exists() and (plain / ".complete").exists():
        copy_build(plain, build)
    build.mkdir(parents=True, exist_ok=True)
    return build


def make_targets(
    tree: Path, build: Path, architecture: Architecture, what: str, *targets: str
) -> Path:
    """Make targets of a source tree; return the log."""
    log_path = build.with_suffix(".log")
    base: Words = ["-C", tree, f"O={build}", "LOCALVERSION=", f"-j{os.cpu_count()}"]
    base += architecture.words
    with log_path.open("w") as log:
        make([*base, *targets], log, f"making {' '.join(targets)} of {what}", None)
    return log_path


def build_locked(
    version: Version,
    variant: str,
    patches: list[Path],
    partial: bool,
    inputs: dict[str, Any],
    result: Path,
) -> None:
    """Build a kernel into `result`, which appears only when it is complete."""
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
        part = KERNEL / f".{result.name}"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
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
    part.rename(result)


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
        part = result.with_name(f".{result.name}")
        shutil.rmtree(part, ignore_errors=True)
        run(["cp", "-al", kernel, part], "copying a kernel")
        (part / "image").unlink()
        shutil.copy2(build / architecture.image_path, part / "image")
        part.rename(result)
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
