# SPDX-License-Identifier: GPL-2.0
"""Child processes, and waiting for them and for signals at once without missing either."""

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from typing import IO

from vmp.common import SIGNALS, Failure

HELD = (*SIGNALS, signal.SIGCHLD)
LONGEST_WAIT = 3600  # seconds
# What ends a command, and the seconds that each gets to work.
LADDER = ((signal.SIGINT, 20), (signal.SIGTERM, 10), (signal.SIGKILL, 10))


def hold_signals() -> None:
    """From now on have the signals of HELD wait for `wait`, so that none cuts anything short."""
    signal.pthread_sigmask(signal.SIG_BLOCK, HELD)


def wait(seconds: float) -> int | None:
    """Wait so many seconds or less. Return the signal's number if one says to stop.

    A child that ends cuts it short. To be used after hold_signals().
    """
    arrived = signal.sigtimedwait(HELD, min(max(seconds, 0), LONGEST_WAIT))
    return arrived.si_signo if arrived and arrived.si_signo in SIGNALS else None


def release_signals() -> None:
    """Give a new child the signals that its parent holds, or ignores in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD)


def start(
    command: Sequence[str],
    stdin: int | None = None,
    stdout: int | None = None,
    stderr: IO[str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own; its streams are given as to Popen.

    A terminal's Ctrl-C does not reach it. Raises Failure if it can't be started.
    """
    try:
        return subprocess.Popen(
            command,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
            preexec_fn=release_signals,
        )
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise Failure(f"cannot start '{command[0]}': {reason}") from None


def group_lives(group: int) -> bool:
    """Tell if the process group has a member left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def end(child: subprocess.Popen[bytes]) -> None:
    """End a child that runs, and all of its process group, gently first; returns when it is gone.

    What a child that has ended by itself left behind stays.
    """
    if child.poll() is not None:
        return
    for number, seconds in LADDER:
        deadline = time.monotonic() + seconds
        try:
            os.killpg(child.pid, number)
        except ProcessLookupError:
            break
        while time.monotonic() < deadline and group_lives(child.pid):
            child.poll()  # a dead leader stays in its group until then
            time.sleep(0.05)
        if not group_lives(child.pid):
            break


def exit_status(returncode: int) -> int:
    """Return a child's exit status as a shell tells it: 128 plus the number of a signal."""
    return returncode if returncode >= 0 else 128 - returncode
