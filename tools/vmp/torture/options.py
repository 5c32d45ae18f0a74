# SPDX-License-Identifier: GPL-2.0
"""The options that the tool hands on to what it runs in the guest."""

import argparse
import random
import re

from vmp.common import SEEDS, Parser, Usage, parse_positive_duration
from vmp.torture.actions import ACTIONS, KNOWN


def parse_seed(text: str) -> int:
    """Return a seed; a `type` of argparse: raises ArgumentTypeError for what is none."""
    if not re.fullmatch("[0-9]{1,10}", text) or int(text) >= SEEDS:
        raise argparse.ArgumentTypeError(f"'{text}' is no seed: write one from 0 to {SEEDS - 1}")
    return int(text)


def options(parser: Parser) -> None:
    """Tell a parser what says what is done at random, and for how long."""
    add = parser.add_argument
    add("--seed", type=parse_seed, metavar="N", default=random.randrange(SEEDS),
        help="do the actions of an earlier run")  # fmt: skip
    add("--for", dest="for_", type=parse_positive_duration, metavar="TIME", default="2m",
        help="go on for that time (default: %(default)s)")  # fmt: skip


def add_actions(parser: Parser) -> None:
    """Tell a parser what says which actions are done."""
    parser.add_argument("--actions", metavar="A,B", default=",".join(ACTIONS),
                        help="only these actions, of those that --list names")  # fmt: skip


def chosen(text: str) -> list[str]:
    """Return the actions that a list names; raises Usage for one that is not known, or for none."""
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in KNOWN:
            raise Usage(f"there is no action '{name}': choose from {', '.join(ACTIONS)}")
    if not names:
        raise Usage(f"--actions names none: choose from {', '.join(ACTIONS)}")
    return [name for name in KNOWN if name in names]
