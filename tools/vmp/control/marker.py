"""Marks in the trace, so that a recording tells what a run was doing."""

from vmp.common import mount_points


class Marker:
    """Writes to the trace_marker of the top-level buffer, if this machine has one to write to."""

    def __init__(self) -> None:
        mounted = mount_points("tracefs")
        self.path = mounted[0] / "trace_marker" if mounted else None

    def write(self, text: str) -> None:
        """Leave a mark; without effect where the kernel does not trace, or not for this user."""
        if not self.path:
            return
        try:
            self.path.write_text(text)
        except OSError:
            self.path = None
