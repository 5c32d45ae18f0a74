# SPDX-License-Identifier: GPL-2.0
"""Delta debugging: the shortest list of actions that still fails."""

from collections.abc import Callable


def reduce(actions: list[str], fails: Callable[[list[str]], bool]) -> list[str]:
    """Return a part of `actions` that fails, and no longer does without any one of them.

    The whole list has failed already. `fails` is called with parts of it, each once at most.
    """
    tried: dict[frozenset[str], bool] = {}

    def still(part: list[str]) -> bool:
        key = frozenset(part)
        if key not in tried:
            tried[key] = fails(part)
        return tried[key]

    pieces = 2
    while len(actions) > 1:
        size = -(-len(actions) // pieces)
        parts = [actions[first : first + size] for first in range(0, len(actions), size)]
        rests = [[name for name in actions if name not in part] for part in parts]
        smaller = next((part for part in [*parts, *rests] if part and still(part)), None)
        if smaller:
            pieces = 2 if smaller in parts else max(2, pieces - 1)
            actions = smaller
        elif pieces >= len(actions):
            break
        else:
            pieces = min(len(actions), 2 * pieces)
    return actions
