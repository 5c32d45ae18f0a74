# SPDX-License-Identifier: GPL-2.0
"""The demo: one load, the policy switched while it runs, on Debian's own kernel."""

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vmp.common import OUT, REPO, Command, Failure, Parser
from vmp.demo import machine, suite, told
from vmp.demo.goals import THREADS
from vmp.demo.page import page
from vmp.guest.hooks import series_names
from vmp.guest.kernel import decide
from vmp.guest.sources import add_kernel, asked
from vmp.guest.steps import step
from vmp.guest.stock import FLAVOUR, Stock, fetch, offered
from vmp.guest.trial import original_files
from vmp.livepatch.build import build
from vmp.livepatch.kernel import unpacked_target
from vmp.programs import compile_workloads
from vmp.result.file import run_text, write
from vmp.result.model import Result

AB = [*THREADS.split()[1:], "--lru", "mglru", "--settle", "1"]
RESULT, PAGE, VERDICT, CONSOLE = "threads.json", "report.html", "summary.txt", "console.log"
INITRAMFS = "initramfs"


class NoStock(Exception):
    """Why no prebuilt kernel can be taken."""


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Say what is done, and then how long it took."""
    print(f"demo: {what}", file=sys.stderr, flush=True)
    begin = time.monotonic()
    yield
    print(f"demo:    done in {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)


def find_stock(name: str) -> Stock:
    """Return the newest prebuilt kernel of a series, or that of a point release or package.

    Raises NoStock where the machine's apt knows none.
    """
    for series in series_names():
        if name == series or name.startswith(f"{series}."):
            for kernel in reversed(offered(series)):
                if name in (series, kernel.version.point, kernel.version.package):
                    return kernel
    raise NoStock(f"apt knows no linux-image-{name}*{FLAVOUR} with its headers and its source")


def prepare_stock(name: str, out: Path) -> list[str]:
    """Return the command of a guest with a prebuilt kernel, and the hooks as a livepatch.

    Raises NoStock where there is no kernel of Debian's that takes the livepatch.
    """
    kernel = find_stock(name)
    with timed(f"1 of 5: unpacking {kernel.release}, 50 MB to download the first time"):
        fetch(kernel)
        try:
            target = unpacked_target(kernel)
        except Failure as failure:
            raise NoStock(str(failure)) from None
    with timed("2 of 5: unpacking what the hooks change, 155 MB to download the first time"):
        original_files(kernel.version)
    with timed("3 of 5: building the hooks as a livepatch; a minute or two the first time"):
        livepatch = build(target)
    with timed("4 of 5: packing what the guest needs, some seconds"):
        compile_workloads()
        command = ["python3", machine.INSIDE, *AB]
        machine.make_initramfs(out / INITRAMFS, kernel, livepatch, command)
    return machine.boot(kernel, out / INITRAMFS, out / CONSOLE)


def prepare_built(name: str, why: str) -> list[str]:
    """Return the command of a guest with a kernel that is built here, hooks and all."""
    kernel = ["--kernel", decide(name)]
    step(f"{why}installing what the build of a kernel needs", ["tools/setup"])
    what = "building kernel and module, half an hour the first time"
    step(what, ["tools/kernel", "module", *kernel])
    size = ["--cpus", str(machine.HARDWARE.cpus), "--memory", machine.HARDWARE.memory]
    guest = ["tools/vm", *kernel, *size, "--timeout", "20m", "--"]
    script = f'"$@"; echo "{machine.ENDED}$?"'
    return [*guest, "sh", "-c", script, "sh", "python3", machine.INSIDE, *AB]


def prepare(name: str, out: Path) -> list[str]:
    """Return the command of the guest; says so if it is not Debian's kernel."""
    if "/" in name:
        return prepare_built(name, "")
    try:
        return prepare_stock(name, out)
    except NoStock as reason:
        return prepare_built(name, f"{reason}, so a kernel is built: ")


def measure(command: list[str], parts: list[Result]) -> None:
    """Run the guest, show each slice as it ends, and add it to `parts`."""
    for line in machine.lines(command):
        if line.startswith("{"):
            parts.append(told.read_slice(line))
            if len(parts) == 1:
                print(told.heading())
            print(told.live(len(parts), parts[-1]), flush=True)


def finish(out: Path, parts: list[Result], ended: str) -> None:
    """Write and print what the slices say, if two can be compared."""
    if len(parts) < told.FEW:
        return
    result = told.joined(parts, ended)
    verdict = "\n".join(told.verdict(result))
    shown = out.relative_to(REPO)
    texts = {RESULT: run_text(result, summary=True), PAGE: page(result), VERDICT: f"{verdict}\n"}
    write({out / name: text for name, text in texts.items()})
    where = f"{shown}/{PAGE} is a page for a browser; all counters are beside it, in {RESULT}"
    print(f"\n{verdict}\n\n{where}", flush=True)


def arguments(parser: Parser) -> None:
    """Tell the parser what it takes."""
    add_kernel(parser.add_argument, ", or a built kernel's directory")
    parser.add_argument(
        "--all", action="store_true", help="all policies, on a kernel that is built here"
    )
    parser.epilog = "Takes about four minutes the first time; with --all fifteen, and the build."


def run(args: argparse.Namespace) -> int:
    """Get a kernel, run the guest, print the verdict."""
    if args.all:
        return suite.run(asked(args))
    out = OUT / time.strftime("demo-%Y%m%d-%H%M%S")
    out.mkdir(parents=True)
    parts: list[Result] = []
    try:
        command = prepare(asked(args), out)
        with timed("5 of 5: booting, and measuring slices of 2 s; about a minute"):
            measure(command, parts)
        if (out / CONSOLE).exists():
            machine.check_log(out / CONSOLE)
    except BaseException as error:
        finish(out, parts, str(error) if isinstance(error, Failure) else "it was interrupted")
        raise
    else:
        finish(out, parts, "")
    finally:
        (out / INITRAMFS).unlink(missing_ok=True)
        if not any(out.iterdir()):
            out.rmdir()
    return 0


COMMAND = Command(
    "demo",
    "Show what a policy does: one load, and the policy switched while it runs, in a guest.",
    arguments,
    run,
)
