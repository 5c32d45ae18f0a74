# SPDX-License-Identifier: GPL-2.0
"""In the guest: an A/B run that prints each slice as soon as it is measured, a line of JSON."""

import os
import sys
from dataclasses import replace

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))

from vmp.ab.plan import arguments, make_plan
from vmp.ab.run import Run
from vmp.common import Parser, parse, run_tool
from vmp.control.debugfs import Control, locate
from vmp.result.file import run_text


class Told(Run):
    """A run whose result goes to stdout: with each slice a document that has it alone."""

    def save(self, *, summary: bool) -> None:
        """Print the last slice; the reader makes the summary."""
        if self.result:
            last = replace(self.result, slices=self.result.slices[-1:])
            print(run_text(last, summary=False), end="", flush=True)


def main() -> int:
    """Run what the command line, which is that of ab, asks for."""
    parser = Parser(prog="inside")
    arguments(parser)
    Told(make_plan(parse(parser, sys.argv[1:])), Control(locate())).measure_all()
    return 0


run_tool("ab", main)
