# SPDX-License-Identifier: GPL-2.0
"""The torture command: a guest in which everything happens at once."""

import argparse
import re
import shlex
import time
from dataclasses import dataclass
from pathlib import Path

from vmp.common import LONGEST, OUT, Command, Failure, Parser, Words
from vmp.guest.bpf import SAMPLES, build_programs
from vmp.guest.kernel import build_kernel, kernel_version
from vmp.guest.log import STALE_BREAKPOINT
from vmp.guest.module import build_samples
from vmp.guest.sources import add_kernel, asked
from vmp.guest.suite import GUEST, GUESTS, PATIENCE, prepare, programs_of, tail, vm_once
from vmp.torture.actions import ACTIONS
from vmp.torture.options import add_actions, chosen, options
from vmp.torture.reduce import reduce

TEST = "torture"
OPERATION = "To pages that are checked."
LEAST = 10  # seconds that are worth a guest: one runs to its end, whatever others have done
TRIES = 2  # runs without a failure after which a list of actions is held for harmless
SAID = re.compile(r"^# (torture: (?!at ).*)$", re.MULTILINE)
GOES_ON = "# torture: at "
LANES_START = re.compile(r"^# torture: the lanes start at (\d+)$", re.MULTILINE)
SLOW = 10  # a guest's second takes no longer than so many of ours, however busy the machine
BEGUN = re.compile(r"^# torture: seed .*, actions (\S+)$", re.MULTILINE)


def arguments(parser: Parser) -> None:
    """Tell the parser what torture takes."""
    options(parser)
    add_actions(parser)
    add = parser.add_argument
    add("--list", action="store_true", help="print the actions and what they do, and exit")
    add("--reduce", action="store_true",
        help="when it fails, look for the shortest list of actions that still fails")  # fmt: skip
    add_kernel(add)
    kernels = parser.add_mutually_exclusive_group()
    kernels.add_argument("--debug", dest="variant", action="store_const", const="debug",
        default="plain", help="use the kernel with sanitizers and lock checking")  # fmt: skip
    kernels.add_argument("--kcsan", dest="variant", action="store_const", const="kcsan",
        help="use one that reports data races")  # fmt: skip
    kernels.add_argument("--bpf", dest="variant", action="store_const", const="bpf-debug",
        help="as --debug, and load BPF programs")  # fmt: skip
    add("--numa", choices=("1", "2", "4"), default="1", help="nodes of the guest (default: 1)")


@dataclass(frozen=True)
class Run:
    """What came of a run: whether it failed, the lines that say why, and the actions it had."""

    failed: bool
    said: str
    log: Path
    actions: list[str]


def words_for(args: argparse.Namespace, actions: list[str], seconds: float) -> str:
    """Return the options for the test."""
    time_ = f"{max(1, seconds):.0f}s"
    return shlex.join(["--seed", str(args.seed), "--for", time_, "--actions", ",".join(actions)])


def tell(line: str) -> None:
    """Print a line of the guest's that says how far it is."""
    if line.startswith(GOES_ON):
        print(line.removeprefix("# "), flush=True)


def in_guests(args: argparse.Namespace, kernel: Path, actions: list[str], name: str) -> Run:
    """Run in a guest, and for what is left in another where QEMU has lost one."""
    version = kernel_version(kernel)
    prepare(version)
    tests = programs_of(version.architecture)
    samples = build_samples(kernel)
    programs = build_programs(kernel, SAMPLES) if args.variant == "bpf-debug" else None
    left = args.for_
    for number in range(1, GUESTS + 1):
        log = OUT / f"torture-{name}-{number}.log"
        limit = int(3 * left + 1800)
        environment = [f"VMP_TEST_BIN={tests}", f"VMP_SAMPLES={samples}", f"VMP_LIMIT={limit}",
                       f"VMP_TORTURE={words_for(args, actions, left)}"]  # fmt: skip
        environment += [f"VMP_BPF={programs}"] if programs else []
        words: Words = ["--kernel", kernel, "--numa", args.numa,
                        *PATIENCE, "--timeout", str(min(LONGEST, SLOW * limit))]  # fmt: skip
        status, text = vm_once([*words, "--", "env", *environment, GUEST / "run", TEST], log, tell)
        if status != STALE_BREAKPOINT:
            return judged(status, text, log)
        print(f"torture: QEMU lost the guest: {log}", flush=True)
        if started := LANES_START.search(text):
            left = max(LEAST, left - max(0, time.time() - int(started[1])))
    raise Failure(f"QEMU has lost {GUESTS} guests: {log}")


def judged(status: int, text: str, log: Path) -> Run:
    """Return what came of a run by what it has said; raises Failure where it has not begun."""
    begun, said = BEGUN.search(text), "\n".join(SAID.findall(text))
    if not begun:
        raise Failure(f"it has not begun: {log}\n{tail(text)}")
    said += f"\n{tail(text)}" if status else ""
    return Run(bool(status), said, log, begun[1].split(","))


def reduced(args: argparse.Namespace, kernel: Path, actions: list[str]) -> list[str]:
    """Return the shortest list of actions that still fails."""
    tries = 0

    def fails(part: list[str]) -> bool:
        nonlocal tries
        tries += 1
        for again in range(1, TRIES + 1):
            found = in_guests(args, kernel, part, f"{args.seed}-try{tries}-{again}")
            if found.failed:
                break
        print(f"torture: {'fails' if found.failed else 'holds'}: {','.join(part)}", flush=True)
        return found.failed

    return reduce(actions, fails)


def torture(args: argparse.Namespace) -> int:
    """Run what is asked for."""
    actions = chosen(args.actions)
    if args.list:
        width = max(map(len, ACTIONS))
        for name, action in ACTIONS.items():
            print(f"{name:{width}}  {action.run.__doc__ if action.run else OPERATION}")
        return 0
    kernel = build_kernel(asked(args), args.variant)
    OUT.mkdir(exist_ok=True)
    print(f"torture: seed {args.seed}: {args.for_:.0f} s, then a look at what is left", flush=True)
    found = in_guests(args, kernel, actions, str(args.seed))
    print(found.said)
    print(f"torture: log: {found.log}")
    if not found.failed:
        return 0
    if args.reduce:
        actions = reduced(args, kernel, found.actions)
    again = f"tools/torture --seed {args.seed} --for {max(1, args.for_):.0f}s"
    again += f" --{args.variant.partition('-')[0]}" if args.variant != "plain" else ""
    again += f" --numa {args.numa}" if args.numa != "1" else ""
    again += f" --kernel {args.kernel}" if args.kernel else ""
    again += f" --arch {args.arch}" if args.arch else ""
    again += "" if actions == list(ACTIONS) else f" --actions {','.join(actions)}"
    print(f"torture: it has failed; to do the same: {again}", flush=True)
    return 1


COMMAND = Command(
    "torture",
    "Do everything at once to module and kernel, at random, while data are checked.",
    arguments,
    torture,
)
