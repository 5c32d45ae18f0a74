# SPDX-License-Identifier: GPL-2.0
"""Which kernels are tested: what runs of tools/test have kept, as a table for the README."""

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vmp.checkout import checkout
from vmp.common import OUT, REPO, write_whole
from vmp.testing.results import Counts, read_kept

NEW = OUT / "tested"  # what runs write
KEPT = REPO / "docs" / "results" / "tested"  # what the table is of
# The groups that say something about one kernel, and their columns.
COLUMNS = {
    "plain": "KUnit, guest tests",
    "debug": "the same, sanitizers",
    "slow": "slow disks",
    "recording": "recording",
    "releases": "boots of each patch",
    "mutants": "faulty builds caught",
    "watch": "tried when it appeared",
}


def keep(directory: Path, point: str, full: bool, counts: dict[str, Counts]) -> None:
    """Note what the groups of a run found with the point release `point`, and at which commit."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{point}.json"
    groups = read_kept(path)
    date = time.strftime("%Y-%m-%d", time.gmtime())
    run = {"full": full, "date": date, **checkout()}
    for name, found in counts.items():
        if name in COLUMNS:
            groups[name] = asdict(found) | run
    write_whole(path, json.dumps(groups, indent=1) + "\n")


def cell(group: dict[str, Any] | None) -> str:
    """Return what a group found, in a few characters."""
    if group is None:
        return "-"
    tests = group["passed"] + group["failed"]
    text = f"{group['passed']} of {tests}"
    if group["skipped"]:
        text += f", {group['skipped']} skipped"
    return text


def order(label: str) -> tuple[list[int], str]:
    """Return what kernels are sorted by: a point release, and an architecture if it is another."""
    point, _, architecture = label.partition(":")
    return [int(part) for part in point.split(".")], architecture


def table(directory: Path) -> str:
    """Return the Markdown table of what is kept in a directory, oldest kernel first."""
    paths = sorted(directory.glob("*.json"), key=lambda path: order(path.stem))
    kernels = {path.stem: read_kept(path) for path in paths}
    used = [name for name in COLUMNS if any(name in groups for groups in kernels.values())]
    rows = [["Linux", *(COLUMNS[name] for name in used), "run"]]
    for point, groups in kernels.items():
        dates = [group["date"] for group in groups.values()]
        when = " to ".join(sorted({min(dates), max(dates)})) if dates else "-"
        rows.append([point, *(cell(groups.get(name)) for name in used), when])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines)
