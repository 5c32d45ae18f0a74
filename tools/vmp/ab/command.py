# SPDX-License-Identifier: GPL-2.0
"""Comparing two settings of the reclaim policies under one workload that never stops."""

import argparse
import signal
import sys

from vmp.ab.plan import arguments, figures_text, make_plan
from vmp.ab.run import Run, say
from vmp.common import SIGNALS, Command, Failure, ignore_signals
from vmp.control.debugfs import Control, locate
from vmp.result.table import render, turnover


def on_signal(signum: int, _frame: object) -> None:
    """Leave through the clean-up."""
    ignore_signals()
    sys.exit(128 + signum)


def reason(error: BaseException) -> tuple[str, int]:
    """Return in words what ended a run, and the exit status."""
    if isinstance(error, SystemExit):
        status = int(error.code or 0)
        return f"it was stopped by {signal.Signals(status - 128).name}", status
    return (isinstance(error, OSError) and error.strerror) or str(error), 1


def run(args: argparse.Namespace) -> int:
    """Run, print the table; the file has what is measured all the while."""
    if args.list_figures:
        print(figures_text())
        return 0
    plan = make_plan(args)
    for each in SIGNALS:
        signal.signal(each, on_signal)
    run, status = Run(plan, Control(locate())), 0
    try:
        run.measure_all()
    except (Failure, OSError, SystemExit) as error:
        if not run.result or len(run.result.slices) < 2:
            raise
        why, status = reason(error)
        if run.result.ended:
            run.end(why)
        say(f"{len(run.result.slices)} of {len(plan.order())} slices were measured: {why}")
    result = run.result
    if not result:
        raise Failure("nothing was measured")
    for sentence in turnover(result):
        say(sentence)
    print(render(result), flush=True)
    if run.unsaved:
        raise Failure(run.unsaved)
    return status


COMMAND = Command(
    "ab",
    "Compare two settings of the reclaim policies under one workload that never stops.",
    arguments,
    run,
)
