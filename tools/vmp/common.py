# SPDX-License-Identifier: GPL-2.0
"""Paths, errors and commands that the tools share."""

import argparse
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

VERSION = "0.1.0"  # the module's, too
REPO = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vmscan-policy"
INSTALLED = not (REPO / "tools/setup").exists()  # from a package: there is no checkout
OUT = Path("out") if INSTALLED else REPO / "out"
# What to do about something that is missing; installed tools have no setup.
SETUP = "install the package that has it" if INSTALLED else "run tools/setup"
# In the environment of a guest whose clocks count instructions, one as a nanosecond.
ICOUNT = "VMP_ICOUNT"
# In the environment of a guest: the directory below which files outlive it.
KEPT = "VMP_KEPT"

Words = list[str | Path]  # of a command
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
SECONDS = {"ms": 0.001, "s": 1, "": 1, "m": 60, "h": 3600}
LONGEST = 8760 * 3600  # a year, in seconds
SEEDS = 1 << 32  # of what is chosen at random: 0 to that, less one
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # that ask a tool to end


class Failure(Exception):
    """A failure told to the user as one sentence."""


class Usage(Failure):
    """A wrong command line; the tool's exit status is 2."""


def sources(name: str) -> Path:
    """Return the directory tools/NAME; raise Failure where the tools were installed without it."""
    path = REPO / "tools" / name
    if not path.is_dir():
        raise Failure(f"there is no tools/{name} here: run this from a checkout of vmscan-policy")
    return path


def read_data(module: str) -> dict[str, Any]:
    """Return the data beside a module, whose __file__ is given, in a file of its name."""
    return tomllib.loads(Path(module).with_suffix(".toml").read_text())


def result_file(name: str) -> Path:
    """Return the path of a file to write; raise Usage where it would be gone with the guest."""
    path, kept = Path(name), os.environ.get(KEPT)
    special = path.exists() and not path.is_file()  # such as /dev/stdout
    if kept and not special and (kept == "/" or not path.resolve().is_relative_to(kept)):
        stays = f"name a file below {kept}" if kept != "/" else "start tools/vm elsewhere than in /"
        raise Usage(f"{path} would be gone with the guest: {stays}")
    return path


def write_whole(path: Path, text: str) -> None:
    """Write a file that has all of the text, or what it had before, whatever comes in between."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(text)
    part.replace(path)


def parse_size(text: str) -> int:
    """Return a size such as 64M in bytes; raise ValueError for another form, no unit, or 0."""
    match = re.fullmatch(r"([0-9]{1,15})([KMGT])(?:i?B)?", text.strip(), re.IGNORECASE)
    size = int(match[1]) * UNITS[match[2].upper()] if match else 0
    if not size:
        raise ValueError(f"'{text}' is no size: write a number with K, M, G or T, as in 64M")
    return size


def size_text(size: int | None) -> str:
    """Return a size in MiB as it is told."""
    return f"{(size or 0) / (1 << 20):g} MiB"


def parse_duration(text: str) -> float:
    """Return a time such as 500ms, 2s, 10m or 1h in seconds, which a bare number is in.

    A `type` of argparse: raises ArgumentTypeError for another form and for more than a year.
    """
    match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)(ms|s|m|h|)", text.strip())
    seconds = float(match[1]) * SECONDS[match[2]] if match else LONGEST + 1
    if seconds > LONGEST:
        raise argparse.ArgumentTypeError(
            f"'{text}' is no time: write a number with ms, s, m or h, as in 30s, up to 8760h"
        )
    return seconds


def parse_positive_duration(text: str) -> float:
    """Return a time in seconds as parse_duration() does; raise ArgumentTypeError for 0, too."""
    seconds = parse_duration(text)
    if not seconds:
        raise argparse.ArgumentTypeError(f"'{text}' is no time to wait: write more than 0")
    return seconds


def parse_count(text: str) -> int:
    """Return a number from 1 on; a `type` of argparse: raises ArgumentTypeError for others."""
    if not re.fullmatch(r"0*[1-9][0-9]{0,8}", text):
        raise argparse.ArgumentTypeError(f"'{text}' is no count: write a whole number from 1 on")
    return int(text)


def emulated() -> bool:
    """Tell if the CPUs are QEMU's emulation, which can't run code that gets a probe meanwhile."""
    return "QEMU TCG" in Path("/proc/cpuinfo").read_text()


def mount_points(kind: str, mounts: str | None = None) -> list[Path]:
    """Return where file systems of a kind, such as debugfs, are mounted.

    `mounts` is the text of /proc/self/mounts, which is read if it is not given.
    """
    text = Path("/proc/self/mounts").read_text() if mounts is None else mounts
    fields = [line.split() for line in text.splitlines()]
    return [Path(field[1]) for field in fields if len(field) > 2 and field[2] == kind]


def find_tracefs() -> Path:
    """Return where tracefs is mounted; raise Failure when it is not."""
    mounted = mount_points("tracefs")
    if not mounted:
        raise Failure(
            "tracefs is not mounted: run `mount -t tracefs none /sys/kernel/tracing` first"
        )
    return mounted[0]


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are Failures, and that tells the version.

    Options can't be abbreviated: a new one would change what an old command line means.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)
        self.add_argument("--version", action="version", version=f"%(prog)s {VERSION}")

    def error(self, message: str) -> NoReturn:
        """Raise Usage instead of printing the usage and exiting."""
        raise Usage(f"{message}: see --help")

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """Refuse an option's value that is empty, as of a variable that a shell doesn't have.

        A list may be, and what is so by default.
        """
        may_be = action.metavar in ("KEYS", "NAMES") or action.default == ""
        if action.option_strings and not arg_string and not may_be:
            raise argparse.ArgumentError(action, "its value is empty")
        return super()._get_value(action, arg_string)


@dataclass(frozen=True)
class Command:
    """What a program does, and a command of vmscanctl of the same name."""

    name: str
    what: str  # one sentence, for --help
    arguments: Callable[[Parser], None]  # tells a parser what it takes
    run: Callable[[argparse.Namespace], int]  # returns the exit status
    failed: int = 1  # exit status after a Failure


def parse(parser: Parser, words: list[str]) -> argparse.Namespace:
    """Parse a command line. What is behind the first `--`, a command of its own, ends `command`."""
    end = words.index("--") if "--" in words else len(words)
    args = parser.parse_args(words[:end])
    args.command = [*getattr(args, "command", []), *words[end + 1 :]]
    return args


def run_command(command: Command) -> None:
    """Be the program of that name."""

    def main() -> int:
        parser = Parser(prog=command.name, description=command.what)
        command.arguments(parser)
        return command.run(parse(parser, sys.argv[1:]))

    run_tool(command.name, main, command.failed)


@contextmanager
def libraries() -> Iterator[None]:
    """Return a context for imports of libraries; raises Failure where one does not load."""
    try:
        yield
    except ImportError as error:
        raise Failure(f"a library does not load ({error}): {SETUP}") from None


def ignore_signals() -> None:
    """Have nothing interrupt what is left to do."""
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)


def drop_stdout() -> None:
    """Have what is still written to stdout go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def run_tool(name: str, main: Callable[[], int], status: int = 1) -> None:
    """Exit with main()'s status, or with `status` after a failure, told in one sentence on stderr.

    SIGINT, SIGTERM and SIGHUP unwind like an exception, so that clean-up is done. A reader of
    stdout that goes away, as `head` does, ends the tool without a word.
    """

    def stop(number: int, _frame: object) -> None:
        sys.exit(128 + number)

    if sys.stdout is None:  # it was closed
        drop_stdout()
        sys.stdout = os.fdopen(1, "w")
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGHUP, stop)
        try:
            code: str | int | None = main()
        except SystemExit as ended:  # as after --help
            code = ended.code
        sys.stdout.flush()
        sys.exit(code)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except BrokenPipeError:
        sys.exit(128 + signal.SIGPIPE)
    except Failure as failure:
        print(f"{name}: {failure}", file=sys.stderr)
        sys.exit(2 if isinstance(failure, Usage) else status)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"{name}: {where}{error.strerror or error}", file=sys.stderr)
        sys.exit(status)
    finally:
        # Python would complain, of another SIGINT and of what it can't write at its end.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        try:
            sys.stdout.flush()
        except OSError:
            drop_stdout()


def run(
    command: Sequence[str | Path],
    what: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> str:
    """Run a command quietly and return its stdout.

    Raises Failure ("WHAT: " and the last line it wrote to stderr) when it fails
    or isn't installed.
    """
    try:
        done = subprocess.run(
            [str(word) for word in command],
            check=False,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
    except FileNotFoundError:
        raise Failure(f"{what}: {command[0]} is not installed: {SETUP}") from None
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise Failure(f"{what}: {lines[-1] if lines else f'exit status {done.returncode}'}")
    return done.stdout


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on the file `path` (made if needed); waits and says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for another build that holds {path}", file=sys.stderr)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextmanager
def appearing(result: Path) -> Iterator[Path]:
    """Give an empty directory that becomes `result` at the end, so that this is there as a whole.

    What an attempt that failed has left is removed by the next one.
    """
    part = result.with_name(f".{result.name}")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    yield part
    part.rename(result)
