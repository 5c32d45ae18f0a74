# SPDX-License-Identifier: GPL-2.0
"""What a kernel has policies for: that depends on what stock does by itself, so ask it."""

from vmp.common import REPO, Words, run

ASK = "cd /sys/kernel/debug/vmscan_policy && grep . */policy"


def policies(*options: str) -> dict[str, list[str]]:
    """Return the policies of each point, as a guest started with these options shows them."""
    command: Words = [REPO / "tools" / "vm", *options, "--", "sh", "-c", ASK]
    found = {}
    for line in run(command, "asking a guest for its policies").splitlines():
        point, _, names = line.partition("/policy:")
        found[point] = names.replace("[", "").replace("]", "").split()
    return found


def only(settings: str, offered: dict[str, list[str]]) -> str:
    """Return those of some settings, as in flush=batch,scan=budget, whose points exist."""
    words = settings.split(",")
    return ",".join(word for word in words if word.partition("=")[0] in offered)
