# SPDX-License-Identifier: GPL-2.0
"""Marks in the trace, so that a recording tells what a run was doing."""

from contextlib import suppress

from vmp.common import mount_points

RECORDING = "instances/vmscan-policy-record"  # in tracefs: what record records in


class Marker:
    """Writes to the trace_marker of the top-level buffer and to that of a recording, if there are.

    Without effect where the kernel does not trace, or not for this user.
    """

    def __init__(self) -> None:
        mounted = mount_points("tracefs")[:1]
        self.paths = [root / part / "trace_marker" for root in mounted for part in ("", RECORDING)]

    def write(self, text: str) -> None:
        """Leave a mark."""
        for path in self.paths:
            with suppress(OSError):
                path.write_text(text)
