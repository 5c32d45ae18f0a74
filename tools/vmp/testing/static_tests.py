# SPDX-License-Identifier: GPL-2.0
"""Checks of the sources that need no guest."""

import re
import tempfile
from pathlib import Path

from vmp.common import CACHE, OUT, REPO, Failure, Words, run
from vmp.guest.hooks import COMMON, hook_patches, series_names
from vmp.guest.kernel import build_kernel
from vmp.guest.module import build_module
from vmp.guest.patched import source
from vmp.guest.sources import find_version
from vmp.testing import package_tests
from vmp.testing.results import Report

TOOLS = REPO / "tools"
PACKAGES = TOOLS / "debian"


def first_lines(directory: Path, interpreter: str) -> list[Path]:
    """Return the scripts below `directory` whose first line names the interpreter."""
    found = []
    for path in sorted(directory.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.suffix in ("", ".sh"):
            with path.open("rb") as handle:
                line = handle.readline()
            if line.startswith(b"#!") and line.strip().endswith(interpreter.encode()):
                found.append(path)
    return found


def c_sources() -> list[Path]:
    """Return the C files of the module and of its KUnit tests."""
    directories = (REPO / name for name in ("module", "module/include", "kunit"))
    return sorted(path for directory in directories for path in directory.glob("*.[ch]"))


# What the macros of trace events look like to checkpatch.
TRACE_HEADER = REPO / "module" / "trace.h"
TRACE_IGNORED = "COMPLEX_MACRO,MACRO_ARG_REUSE,OPEN_ENDED_LINE,PARENTHESIS_ALIGNMENT"
# The one file that may ask for the kernel's version.
COMPAT_HEADER = REPO / "module" / "compat.h"
COMPAT_IGNORED = "LINUX_VERSION_CODE,CONSTANT_COMPARISON"
# Its macro stands for declarations.
PLUGIN_HEADER = REPO / "module" / "include" / "vmscan_policy_module.h"
PLUGIN_IGNORED = "MULTISTATEMENT_MACRO_USE_DO_WHILE"
# A macro of it takes the name of a member.
INTERNAL_HEADER = REPO / "module" / "internal.h"
INTERNAL_IGNORED = "MACRO_ARG_PRECEDENCE"
# Files without a line of their own for a license.
UNLICENSED = re.compile(r"COPYING|kernel-hooks/.*|.*\.(png|json|cast)")


def licenses() -> None:
    """Raise Failure with the tracked files that name no license in their first three lines."""
    names = run(["git", "-C", REPO, "ls-files"], "git ls-files").splitlines()
    texts = {
        name: (REPO / name).read_text()
        for name in names
        if not UNLICENSED.fullmatch(name) and (REPO / name).exists()
    }
    wanted = "SPDX-License-Identifier: "
    missing = [name for name, text in texts.items() if wanted not in "".join(text.split("\n")[:3])]
    if missing:
        raise Failure("\n".join(missing))


def checkpatch(tree: Path, arguments: list[str | Path]) -> None:
    """Run the kernel's checkpatch --strict; raises Failure with what it found."""
    script = tree / "scripts" / "checkpatch.pl"
    options = ["--strict", "--no-tree", "--no-summary", "--terse"]
    fail_on_output(["perl", script, *options, *arguments], "checkpatch")


SAID = '"$@" 2>&1 || echo "exit status $?"'
SAID_IF_IT_FAILED = 'said=$("$@" 2>&1) || echo "$said"'


def fail_on_output(command: list[str | Path], what: str, shell: str = SAID) -> None:
    """Run a checker; raise Failure with what it, run by a line of shell, has said."""
    output = run(["bash", "-c", shell, "check", *command], what).strip()
    if output:
        raise Failure(output)


def module_warnings(headers: Path) -> None:
    """Build module and KUnit with W=1 and sparse, in a copy; raises Failure with warnings."""
    with tempfile.TemporaryDirectory() as name:
        copies = [REPO / "Kbuild", REPO / "dkms.conf", REPO / "module", REPO / "kunit"]
        run(["cp", "-r", *copies, name], "copying the module's sources")
        command = ["make", "-C", str(headers), f"M={name}", "W=1", "C=2", "modules"]
        output = run(["bash", "-c", '"$@" 2>&1 || true', "make", *command], "building the module")
        warnings = [line for line in output.splitlines() if "warning:" in line or "error:" in line]
        if warnings or not (Path(name) / "vmscan_policy.ko").exists():
            raise Failure("\n".join(warnings) or output)


def warnings_without(kernel: Path, *options: str) -> None:
    """Do the same for a kernel without options and those whose names begin so."""
    with tempfile.TemporaryDirectory() as name:
        headers = Path(name) / "headers"
        run(["cp", "-r", kernel / "headers", headers], "copying the headers")
        # make reads the one, the compiler the other.
        for file in ("config/auto.conf", "generated/autoconf.h"):
            path = headers / "include" / file
            lines = path.read_text().splitlines(keepends=True)
            left = (line for line in lines if not any(option in line for option in options))
            path.write_text("".join(left))
        module_warnings(headers)


def trace_branches(kernel: Path) -> int:
    """Return how many static branches the trace events are, in a module with all of them.

    Raises Failure when an event has none: then something is done for it when it is off, too.
    """
    module = build_module(kernel) / "vmscan_policy.ko"
    table = run(["objdump", "-r", "-j", "__jump_table", module], "reading the module's branches")
    branches = re.findall(r"__tracepoint_(\w+)", table)
    events = re.findall(r"^TRACE_EVENT(?:_FN)?\((\w+),", TRACE_HEADER.read_text(), re.MULTILINE)
    missing = set(events) - set(branches)
    if missing or not events:
        raise Failure(f"no static branch for {', '.join(sorted(missing)) or 'any event'}")
    return len(branches)


def run_all(report: Report, _full: bool, kernel: str) -> None:
    """Run the static checks."""
    for series in series_names():
        release = source(find_version(series))
        for patch in hook_patches(series):
            with report.check(f"checkpatch --strict {series} {patch.name}"):
                checkpatch(release, [patch])
    tree = source(find_version(kernel))
    with report.check("checkpatch --strict module kunit"):
        special = {TRACE_HEADER: TRACE_IGNORED, COMPAT_HEADER: COMPAT_IGNORED,
                   PLUGIN_HEADER: PLUGIN_IGNORED, INTERNAL_HEADER: INTERNAL_IGNORED}  # fmt: skip
        checkpatch(tree, ["-f", *(path for path in c_sources() if path not in special)])
        for path, ignored in special.items():
            checkpatch(tree, ["--ignore", ignored, "-f", path])
    with report.check("kernel-doc of the hook header, module and kunit"):
        header = COMMON / "include" / "linux" / "vmscan_policy.h"
        fail_on_output(
            [tree / "scripts" / "kernel-doc", "-none", "-Wall", header, *c_sources()], "kernel-doc"
        )
    with report.check("each file names its license"):
        licenses()
    with report.check("shellcheck"):
        run_shell = first_lines(TOOLS, "bash") + [REPO / ".ci" / "run"]
        run_shell += [*PACKAGES.glob("*.postinst"), *PACKAGES.glob("*.prerm")]
        run_shell += [*PACKAGES.glob("bash-completion/*")]
        fail_on_output(["shellcheck", "-x", "-P", "SCRIPTDIR", *run_shell], "shellcheck")
    python = [TOOLS, *first_lines(TOOLS, "python3")]
    programs = CACHE / "venv" / "bin"
    ruff = programs / "ruff"
    config: Words = ["--config", TOOLS / "ruff.toml", "--no-cache", "-q"]
    with report.check("ruff check"):
        fail_on_output([ruff, "check", *config, *python], "ruff")
    with report.check("ruff format"):
        fail_on_output([ruff, "format", "--check", *config, *python], "ruff")
    with report.check("mypy --strict"):
        settings: Words = ["--config-file", TOOLS / "mypy.ini", "--no-error-summary"]
        fail_on_output([programs / "mypy", *settings, *python], "mypy")
    with report.check("man pages"):
        pages = sorted((TOOLS / "man").glob("*.1"))
        fail_on_output(["groff", "-man", "-ww", "-z", "-Tutf8", *pages], "groff")
    with report.check("unit tests of the tools"):
        fail_on_output([programs / "pytest", TOOLS / "tests"], "unit tests", SAID_IF_IT_FAILED)
    with report.check("KernelShark's plugin builds and pairs events"):
        plugin = OUT / "kernelshark"
        run(["make", "-s", "-C", TOOLS / "kernelshark", f"OUT={plugin}"], "building the plugin")
        run([plugin / "test_spans"], "pairing events")
    built = build_kernel(kernel, "plain")
    with report.check("module and kunit without a warning: W=1, sparse"):
        module_warnings(built / "headers")
    with report.check("module without a warning where the kernel has no KUnit: W=1, sparse"):
        warnings_without(built, "CONFIG_KUNIT")
    with report.check("module without a warning where the kernel has no memory cgroups"):
        warnings_without(built, "CONFIG_MEMCG", "CONFIG_CGROUP_WRITEBACK")
    with report.check("off, each trace event is a static branch"):
        report.note(f"all trace events of the module: {trace_branches(built)} static branches")
    with tempfile.TemporaryDirectory() as name:
        package_tests.run_all(report, built, Path(name))
