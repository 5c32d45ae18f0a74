# SPDX-License-Identifier: GPL-2.0
"""What a report is made of."""

from dataclasses import dataclass
from typing import Any

from vmp.report.aggregate import Picture
from vmp.report.verdict import Verdict
from vmp.result.model import Result


@dataclass
class Contents:
    """The picture of a recording, ab's results with their titles, and what belongs together.

    `files` are the paths of these results' files.

    `kernel` is '' and `cpus` 0 where the recording does not tell. `matched` has the index of its
    report for each run of the recording, and `compared` the rows of match.beside() by side for
    each of these runs; `module` has those of match.beside_module(). `verdicts` has one for each of
    the reports, or one on the recording without them.
    """

    picture: Picture | None
    source: str
    kernel: str
    cpus: int
    reports: list[tuple[str, Result]]
    files: list[str]
    matched: dict[int, int]
    compared: dict[int, dict[str, list[dict[str, Any]]]]
    module: list[dict[str, Any]]
    verdicts: list[Verdict]
