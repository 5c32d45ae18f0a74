# SPDX-License-Identifier: GPL-2.0
"""Making one page with plots of a recording of trace-cmd and of the results of ab."""

import argparse
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from vmp.common import CACHE, SETUP, Command, Failure, Parser, Usage, Words, libraries, result_file
from vmp.report import aggregate, match, trace, verdict
from vmp.report.contents import Contents
from vmp.report.text import figures_json, render
from vmp.result.file import named, write
from vmp.result.model import Result

VENV = CACHE / "venv"
LIBRARIES = ("matplotlib", "jinja2")
DEFAULT_PAGE = "report.html"


def use_venv() -> None:
    """Start anew under the Python that has the libraries, unless this one has them.

    Raises Failure when there is none.
    """
    missing = [name for name in LIBRARIES if not find_spec(name)]
    if not missing:
        return
    python = VENV / "bin" / "python3"
    if Path(sys.prefix).resolve() == VENV.resolve() or not python.exists():
        raise Failure(f"{missing[0]} is not installed: {SETUP}")
    os.execv(python, [str(python), *sys.argv])


def arguments(parser: Parser) -> None:
    """Tell the parser what report takes."""
    add = parser.add_argument
    add("-o", "--output", metavar="FILE", type=result_file, default=DEFAULT_PAGE,
        help=f"the page to write ({DEFAULT_PAGE})")  # fmt: skip
    add("--json", metavar="FILE", type=result_file,
        help="save the figures of the recording as JSON")  # fmt: skip
    add("files", metavar="FILE", type=Path, nargs="+",
        help="a trace.dat of trace-cmd, JSON files of `ab --json`, or both")  # fmt: skip


def check(args: argparse.Namespace) -> None:
    """Raise Usage if a file is to be written that is named for something else, too."""
    written = [path for path in (args.output, args.json) if path]
    for number, path in enumerate(written):
        if path.resolve() in {other.resolve() for other in args.files + written[:number]}:
            raise Usage(f"{path} is given twice: name another file to write")


def sort_files(paths: list[Path]) -> tuple[Path | None, list[Path]]:
    """Return the recording, if there is one, and the others; raises Failure for two."""
    recordings = [path for path in paths if trace.is_recording(path)]
    if len(recordings) > 1:
        raise Failure("give one trace.dat only: a page shows one recording")
    return (recordings[0] if recordings else None), [p for p in paths if p not in recordings]


def kernel_of(path: Path) -> str:
    """Return the release of the kernel that a recording names; '' if it names none."""
    command: Words = ["trace-cmd", "report", "--uname", "-i", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"Linux \S+ (\d\S+)", done.stdout)
    return found[1] if found else ""


def cpus_of(path: Path) -> int:
    """Return the number of CPUs that a recording is of; 0 if it does not tell."""
    command: Words = ["trace-cmd", "report", "--cpus", "-i", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = re.findall(r"^\s*\d+$", done.stdout, re.MULTILINE)  # its heading has the path
    return len(lines) if not done.returncode else 0


def read_recording(path: Path) -> aggregate.Picture:
    """Return the picture of the recording at `path`."""
    with trace.report_lines(path) as lines:
        found = aggregate.read(trace.events(lines))
    aggregate.require_own(found, str(path))
    return found


def compare_runs(
    shown: aggregate.Picture | None, results: list[Result]
) -> tuple[dict[int, int], dict[int, dict[str, list[dict[str, Any]]]]]:
    """Return which result belongs to each run of the recording, and both side by side."""
    if not shown:
        return {}, {}
    matched = match.pair(shown, results)
    compared = {}
    for run, index in matched.items():
        slices = shown.slices(run)
        sides = {side: [span for span in slices if span.side == side] for side in "AB"}
        compared[run] = {
            side: match.beside(shown, spans, results[index])
            for side, spans in sides.items()
            if spans
        }
    return matched, compared


def read(path: Path) -> dict[str, Result]:
    """Return the runs of a file by name; raises Failure for one that has none."""
    try:
        return named(path)
    except Failure:
        raise Failure(
            f"{path} is neither a trace.dat of trace-cmd nor a file of `ab --json` or `bench run`"
        ) from None


def run(args: argparse.Namespace) -> int:
    """Read the files, write the page, print the summary."""
    check(args)
    use_venv()
    recording, others = sort_files(args.files)
    runs = {name: run for path in others for name, run in read(path).items()}
    results = list(runs.values())
    shown = read_recording(recording) if recording else None
    matched, compared = compare_runs(shown, results)
    names = verdict.titles(results)
    verdicts = [verdict.of_run(*each) for each in zip(names, results, strict=True)]
    if recording and shown and not verdicts:
        verdicts = [verdict.of_recording(recording.name, shown)]
    contents = Contents(
        picture=shown,
        source=recording.name if recording else "",
        kernel=kernel_of(recording) if recording else "",
        cpus=cpus_of(recording) if recording else 0,
        reports=list(zip(names, results, strict=True)),
        files=list(runs),
        matched=matched,
        compared=compared,
        module=match.beside_module(shown) if shown else [],
        verdicts=verdicts,
    )
    with libraries():
        from vmp.report import page  # noqa: PLC0415 - a mistake is told before matplotlib is loaded
    text, left_out = page.render(contents)
    texts = {args.output: text}
    if args.json:
        texts[args.json] = figures_json(contents, left_out)
    write(texts)
    print(f"{render(contents, left_out)}\n\nSaved as {args.output}", flush=True)
    return 0


COMMAND = Command(
    "report",
    "Make one page with plots of a recording of trace-cmd and of the results of ab.",
    arguments,
    run,
)
