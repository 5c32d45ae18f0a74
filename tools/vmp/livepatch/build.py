# SPDX-License-Identifier: GPL-2.0
"""A livepatch of the hooks for a kernel of Debian's, and the module for it.

What the series touches is compiled against the kernel's headers, with and without it. kpatch's
tools put the functions that differ into a module. Files that the series brings are compiled as
parts of such that there are: only those may use what the kernel doesn't export.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from vmp.common import REPO, Failure, Words, appearing, locked, run
from vmp.guest.configuration import OPTION
from vmp.guest.hooks import hook_patches
from vmp.guest.make import make_environment
from vmp.guest.module import Edit
from vmp.guest.patched import push
from vmp.guest.trial import original_files, touched
from vmp.livepatch.kernel import Target
from vmp.livepatch.kpatch import Kpatch, find_kpatch
from vmp.livepatch.names import BUILT, MODULE, NAME
from vmp.livepatch.symbols import Kernel, place, read_kernel, read_object, table

# As the kernel was compiled; and without the series and with it, each function in a section.
PLAIN, STOCK, HOOKED = "plain", "stock", "hooked"
NEW = "vmp_"  # how a function's name begins that the livepatch has for itself
PREFIX = "__pfx_"  # of the symbol at the nops before a function
UNTRACED = re.compile(r"function (\S+) has no fentry/mcount call")
REGISTRY = "vmscan_policy.c"
# A new file, and the one that it becomes a part of.
PARTS = {REGISTRY: "vmscan.c", "vmscan_rmap.c": "rmap.c"}
# A section of all that is read mostly can't be told apart, exports are for the module to make, and
# it is the module that begins the registry, and ends its works.
BEFORE_REGISTRY = """
#undef pr_fmt
#undef __read_mostly
#define __read_mostly
#undef EXPORT_SYMBOL_NS_GPL
#define EXPORT_SYMBOL_NS_GPL(...)
#undef __init
#define __init
#undef late_initcall
#define late_initcall(fn) int fn##_now(void); int fn##_now(void) { return fn(); }
"""
AFTER_REGISTRY = """
void vmscan_policy_exit(void);
void vmscan_policy_exit(void)
{
	unregister_module_notifier(&module_notifier);
	cancel_work_sync(&on_work);
	cancel_delayed_work_sync(&off_work);
}
"""
GLUE = """// SPDX-License-Identifier: GPL-2.0
#include <linux/module.h>
#include <linux/vmscan_policy.h>
#include "vmscan_stock.h"

int vmscan_policy_init_now(void);
void vmscan_policy_exit(void);

#undef pr_fmt
#undef module_init
#undef module_exit
#define module_init(fn) \\
	int init_module(void) \\
	{ \\
		int err = vmscan_policy_init_now() ?: fn(); \\
\\
		if (err) \\
			vmscan_policy_exit(); \\
		return err; \\
	}
#define module_exit(fn) \\
	void cleanup_module(void) \\
	{ \\
		vmscan_policy_exit(); \\
		fn(); \\
	}
#include "patch-hook.c"

"""
# kpatch's tools take the sizes of the entries of these tables from the environment.
SIZES = {
    "ALT": ("asm/alternative.h", "struct alt_instr"),
    "BUG": ("linux/bug.h", "struct bug_entry"),
    "EX": ("asm/extable.h", "struct exception_table_entry"),
    "JUMP": ("linux/jump_label.h", "struct jump_entry"),
    "ORC": ("asm/orc_types.h", "struct orc_entry"),
    "STATIC_CALL": ("linux/static_call.h", "struct static_call_site"),
}
# What the kernel runs on vmlinux as a whole runs on each object here.
OBJTOOL = ["delay-objtool=", "objtool-args=$(filter-out --ibt,$(objtool-args-y))"]


def key(target: Target) -> str:
    """Return what names a build: of this kernel, hooks and module, which has its types or not."""
    digest = hashlib.sha256(target.build_id.encode())
    paths = [path for name in ("module", "kunit") for path in (REPO / name).glob("*.[ch]")]
    for path in [*hook_patches(target.version.series), REPO / "Kbuild", *sorted(paths)]:
        digest.update(path.read_bytes())
    digest.update(Path(__file__).read_bytes())
    digest.update(b"types" if shutil.which("pahole") else b"")
    return f"{target.release}-{digest.hexdigest()[:12]}"


def kbuild(target: Target, directory: Path, *words: str) -> None:
    """Run the kernel's make in a directory."""
    command: Words = ["make", "-s", f"-j{os.cpu_count()}", "-C", target.headers]
    what = f"compiling {directory.name}"
    run([*command, f"M={directory}", *words], what, env=make_environment())


def compile_state(target: Target, directory: Path, state: str) -> dict[str, Path]:
    """Compile what the series touches, with it or without; returns the objects by their name."""
    patches = hook_patches(target.version.series)
    files = touched(patches)
    tree = directory / state
    shutil.copytree(original_files(target.version), tree)
    if state == HOOKED:
        push(tree, patches)
        for path in files.new:
            if path.endswith(".c") and Path(path).name in PARTS:
                include(tree / "mm" / PARTS[Path(path).name], Path(path).name)
    names = [Path(path).name for path in files.objects]
    flags = [] if state == PLAIN else ["-ffunction-sections", "-fdata-sections"]
    flags += [f"-D{OPTION}=1"] if state == HOOKED else []
    if state == STOCK:
        names.append(sizes_source(tree / "mm"))
    (tree / "mm" / "Makefile").unlink(missing_ok=True)
    # What UBSAN adds has numbers, which kpatch's tools take for differences.
    (tree / "mm" / "Kbuild").write_text(
        f"obj-y := {' '.join(names)}\n"
        f"UBSAN_SANITIZE := {'y' if state == PLAIN else 'n'}\n"
        f"LINUXINCLUDE := -I{tree}/include $(LINUXINCLUDE)\n"
        f"ccflags-y := {' '.join(flags)}\n"
    )
    kbuild(target, tree / "mm", *OBJTOOL, *names)
    return {name: tree / "mm" / name for name in names}


def include(host: Path, part: str) -> None:
    """Make a new file a part of one that there is."""
    text = f'#include "{part}"\n'
    if part == REGISTRY:
        text = BEFORE_REGISTRY + text + AFTER_REGISTRY
    with host.open("a") as handle:
        handle.write(text)


def sizes_source(directory: Path) -> str:
    """Write a file whose symbols have the sizes of SIZES; returns its object's name."""
    lines = [f"#include <{header}>\n" for header, _ in SIZES.values()]
    lines += [f"char vmp_{name}[sizeof({kind})];\n" for name, (_, kind) in SIZES.items()]
    (directory / "vmp_sizes.c").write_text("".join(lines))
    return "vmp_sizes.o"


def sizes(binary: Path) -> dict[str, str]:
    """Return the environment that tells kpatch's tools the sizes."""
    found = {symbol.name: symbol.size for symbol in read_object(binary).symbols}
    return {f"{name}_STRUCT_SIZE": str(found[f"vmp_{name}"]) for name in SIZES}


def make_local(stock: Path, hooked: Path) -> None:
    """Make functions local that the series has made global, for files that are parts here."""
    local = {symbol.name for symbol in read_object(stock).symbols if symbol.local}
    names = [s.name for s in read_object(hooked).symbols if not s.local and s.name in local]
    words: Words = ["objcopy", *(f"--localize-symbol={name}" for name in names), hooked]
    if names:
        run(words, f"preparing {hooked.name}")


def make_new(kernel: Kernel, stock: Path, hooked: Path) -> None:
    """Rename functions that are inlined in the kernel and not here: the livepatch has its own."""
    inlined = {
        symbol.name
        for symbol in read_object(stock).symbols
        if symbol.kind == "FUNC" and symbol.local and symbol.name not in kernel.addresses
    }
    if inlined:
        rename(hooked, inlined)


def rename(hooked: Path, functions: set[str]) -> None:
    """Rename functions, with which the livepatch has them for itself."""
    words: Words = ["objcopy"]
    for name in sorted(functions):
        begin = PREFIX if name.startswith(PREFIX) else ""
        new = f"{begin}{NEW}{name.removeprefix(begin)}"
        words += [f"--redefine-sym={name}={new}", f"--rename-section=.text.{name}=.text.{new}"]
    run([*words, hooked], f"preparing {hooked.name}")


def compare(command: Words, hooked: Path, environment: dict[str, str]) -> str:
    """Run kpatch's comparison with an object; returns what it has said.

    What is no function that can be traced, as the compiler's own copy of an inline one, can't be
    replaced: the livepatch has its own, which those that call it in the kernel don't see.
    """
    while True:
        done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
        if not done.returncode:
            return done.stdout
        names = set(UNTRACED.findall(done.stdout))
        if not names or any(name.startswith(NEW) for name in names):
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()
            raise Failure(
                f"comparing {hooked.name} with and without the hooks: {' '.join(said[-1:])}"
            )
        rename(hooked, names | {f"{PREFIX}{name}" for name in names})


def differences(target: Target, kpatch: Kpatch, directory: Path) -> list[str]:
    """Write objects with the functions that differ; returns the names of those that change."""
    kernel = read_kernel(target.symbols)
    plain = compile_state(target, directory, PLAIN)
    places = {name: place(kernel, read_object(binary)) for name, binary in plain.items()}
    stock = compile_state(target, directory, STOCK)
    hooked = compile_state(target, directory, HOOKED)
    environment = os.environ | sizes(stock.pop("vmp_sizes.o"))
    (directory / "objects").mkdir()
    changed = []
    for name, binary in stock.items():
        make_local(binary, hooked[name])
        make_new(kernel, binary, hooked[name])
        symbols = directory / f"{name}.symbols"
        symbols.write_text(table(kernel, read_object(binary), places[name]))
        command: Words = [kpatch.tools / "create-diff-object", binary, hooked[name], "vmlinux"]
        command += [symbols, target.headers / "Module.symvers", NAME, directory / "objects" / name]
        said = compare(command, hooked[name], environment)
        symbols.unlink()
        changed += re.findall(r"changed function: (\S+)", said)
    for state in (PLAIN, STOCK):
        shutil.rmtree(directory / state)
    return changed


def link(target: Target, kpatch: Kpatch, directory: Path) -> None:
    """Make the livepatch of the objects."""
    parts = directory / "livepatch"
    shutil.copytree(kpatch.glue, parts)
    mm = directory / HOOKED / "mm"
    exports = re.findall(r"^EXPORT_SYMBOL_NS_GPL\(.*\n", (mm / REGISTRY).read_text(), re.MULTILINE)
    (parts / "hooks.c").write_text(GLUE + "".join(exports))
    (parts / "Makefile").unlink()
    (parts / "Kbuild").write_text(
        f"obj-m := {NAME}.o\n{NAME}-y := hooks.o output.o\n"
        f"ldflags-y += -T $(src)/kpatch.lds\ntargets += kpatch.lds\n"
        f"$(obj)/{NAME}.o: $(obj)/kpatch.lds\n"
        f"ccflags-y := -I$(src) -I{mm} -I{directory / HOOKED / 'include'} -D{OPTION}=1\n"
    )
    objects = sorted((directory / "objects").glob("*.o"))
    run(["ld", "-r", "-o", parts / "output.o", *objects], "linking what differs")
    (parts / ".output.o.cmd").touch()
    kbuild(target, parts, *OBJTOOL, "modules")
    words: Words = [kpatch.tools / "create-klp-module", "--no-klp-arch-sections"]
    run([*words, parts / f"{NAME}.ko", directory / f"{NAME}.ko"], "making the livepatch")


def build_policies(target: Target, directory: Path, place: Path, *edits: Edit) -> Path:
    """Build the module of the policies in `place`, against a livepatch; returns where it is.

    The `edits` change its source files before.
    """
    place.mkdir(parents=True)
    for name in ("Kbuild", "dkms.conf", "module", "kunit"):
        run(["cp", "-r", REPO / name, place], "copying the module's sources")
    for edit in edits:
        edit.apply(place)
    kbuild(
        target,
        place,
        f"{OPTION}=y",
        f"KBUILD_EXTRA_SYMBOLS={directory / 'livepatch' / 'Module.symvers'}",
        f"KCFLAGS=-I{directory / HOOKED / 'include'} -D{OPTION}=1",
        "modules",
    )
    run(["strip", "--strip-debug", place / f"{MODULE}.ko"], f"stripping {MODULE}.ko")
    return place / f"{MODULE}.ko"


def build(target: Target) -> Path:
    """Return the directory with the livepatch and the module; builds them if needed."""
    result = BUILT / key(target)
    with locked(BUILT / f"{result.name}.lock"):
        if not result.exists():
            with appearing(result) as part:
                build_into(target, part)
    return result


def build_into(target: Target, part: Path) -> None:
    """Build the livepatch and the module into an empty directory."""
    kpatch = find_kpatch()
    changed = differences(target, kpatch, part)
    if not changed:
        raise Failure("no function differs with the hooks: is the option known?")
    link(target, kpatch, part)
    run(["strip", "--strip-debug", part / f"{NAME}.ko"], f"stripping {NAME}.ko")
    shutil.copyfile(build_policies(target, part, part / "module"), part / f"{MODULE}.ko")
    about = {
        "release": target.release,
        "build_id": target.build_id,
        "compiler": target.compiler,
        "functions": sorted(changed),
    }
    (part / "about.json").write_text(json.dumps(about, indent=2) + "\n")
