# SPDX-License-Identifier: GPL-2.0
"""The file of results: one format, of one run or of the runs of an experiment.

A run is an object with "settings", "environment", "slices", "lacks", "complete", "ended", and, for
other programs, what follows from these: "summary" and "turnover_seconds". The file has "format" and
"kind" besides: 'run'; 'experiment', with "runs" by name, each a list of boots; or 'recording',
which nothing here reads.
"""

import json
import os
from contextlib import ExitStack
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from vmp.common import Failure, Usage
from vmp.result.model import Result, Results, Settings, Slice

FORMAT = 3
SLICES_TEST = "exact two-sided Wilcoxon signed-rank over neighbouring slices, after Holm"
TWINS_TEST = "two-sided t over periods, with the place in the model, after Holm"
SETTINGS = {field.name for field in fields(Settings)}
NAMES = ("kernel", "lru", "commit")  # of an environment
MOST = 2**64  # no counter of the kernel has more


def convert(document: Any) -> dict[str, Any]:
    """Return a document in the present format.

    One of format 1 did not tell its kind, and one of format 2 had a single boot of each run. Raises
    KeyError, TypeError or ValueError for what is no document of these tools.
    """
    if document["format"] == FORMAT:
        return {**document}
    if document["format"] not in (1, 2):
        raise ValueError
    found = {**document, "format": FORMAT}
    if "experiment" in document:
        runs = {name: [convert(run)] for name, run in document["runs"].items()}
        return found | {"kind": "experiment", "runs": runs}
    if document["format"] == 2:
        return found
    found["kind"] = "recording"
    if "slices" in document:
        return found | {"kind": "run", "complete": True, "ended": ""}
    return found


def is_number(value: Any) -> bool:
    """Tell if a value is a number that can be reckoned with: none beyond MOST, and not nan."""
    return isinstance(value, int | float) and -MOST <= value <= MOST


def slice_of(piece: dict[str, Any]) -> Slice:
    """Return a slice of a file; raises ValueError for one that is none."""
    stalls = piece.get("stalls")
    found = Slice(piece["side"], piece["counters"], None if stalls is None else tuple(stalls),
                  piece.get("events_lost", 0), piece.get("place", 0),
                  piece.get("void", False))  # fmt: skip
    values = (*found.counters.values(), *(found.stalls or ()), found.events_lost, found.place)
    fine = found.side in ("A", "B") and isinstance(found.void, bool)
    if not fine or not all(map(is_number, values)):
        raise ValueError
    return replace(found, void=True) if found.fallen() else found


def run_of(document: dict[str, Any]) -> Result:
    """Return the result of a run in a document of the present format."""
    given = document["settings"]
    known: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value
             for name, value in given.items() if name in SETTINGS}  # fmt: skip
    result = Result(
        Settings(**known),
        document["environment"],
        tuple(slice_of(piece) for piece in document["slices"]),
        tuple(document.get("lacks", ())),
        document.get("ended", ""),
    )
    check(result)
    return result


def check(result: Result) -> None:
    """Raise ValueError for a result that can't be judged or told."""
    what, sides = result.settings, [piece.side for piece in result.whole]
    words = (*result.lacks, *what.primary, what.a, what.b, what.both, what.title, result.ended)
    whole = (what.memory_bytes or 0, what.slices, what.aa)
    numbers = (*whole, what.slice_seconds, what.settle_seconds, what.turnovers)
    fine = (
        result.pairs > 0
        and all(a != b for a, b in zip(sides[::2], sides[1::2], strict=True))
        and all(isinstance(word, str) for word in words)
        and all(is_number(number) and number >= 0 for number in numbers)
        and all(isinstance(number, int) for number in whole)
        and what.slices % 2 == 0
        and isinstance(result.environment.get("abi", {}), dict)
        and all(isinstance(result.environment.get(name, ""), str) for name in NAMES)
        and {"kernel", "lru", "cpus"} <= result.environment.keys()
        and len({piece.stalls is None for piece in result.slices}) == 1
    )
    if not fine:
        raise ValueError


def load(path: Path) -> Result | Results:
    """Return what a file has; raises Failure for one that has no results."""
    try:
        document = convert(json.loads(path.read_text()))
        if document["kind"] == "run":
            return run_of(document)
        runs = {name: tuple(map(run_of, boots)) for name, boots in document["runs"].items()}
        if not runs or not all(runs.values()):
            raise ValueError
        names = {field.name for field in fields(Results)} - {"runs"}
        found = Results(**{n: v for n, v in document.items() if n in names}, runs=runs)
        words = (found.experiment, found.command, found.vm, found.superseded)
        if not all(isinstance(word, str) for word in (*words, *found.commands.values())):
            raise ValueError
        return found
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        raise Failure(f"{path} has no results: name a file of `ab --json` or `bench run`") from None


def load_run(path: Path) -> Result:
    """Return the result of one run; raises Failure for another file."""
    if isinstance(found := load(path), Result):
        return found
    raise Failure(f"{path} has the runs of an experiment: name a file of `ab --json`")


def load_results(path: Path) -> Results:
    """Return the results of an experiment; raises Failure for another file."""
    if isinstance(found := load(path), Results):
        return found
    raise Failure(f"{path} is of a single run: name a file that `bench run` saved")


def named(path: Path) -> dict[str, Result]:
    """Return the runs of a file by name: its path, and run and boot where there are several."""
    found = load(path)
    if isinstance(found, Result):
        return {str(path): found}
    return {
        f"{path}, {name}{f', boot {number}' if len(boots) > 1 else ''}": boot
        for name, boots in found.runs.items()
        for number, boot in enumerate(boots, 1)
    }


def test(result: Result) -> str:
    """Return the test of a run's primary figures in words."""
    return TWINS_TEST if result.settings.twins else SLICES_TEST


def slice_document(piece: Slice) -> dict[str, Any]:
    """Return a slice for a file."""
    found: dict[str, Any] = {"side": piece.side, "counters": piece.counters}
    if piece.stalls is not None:
        found |= {"stalls": list(piece.stalls), "events_lost": piece.events_lost}
    if piece.place:
        found["place"] = piece.place
    if piece.void:
        found["void"] = True
    return found


def run_document(result: Result, *, summary: bool = True) -> dict[str, Any]:
    """Return a run for a file, with its rows if there is a `summary`."""
    found: dict[str, Any] = {
        "format": FORMAT,
        "kind": "run",
        "complete": not result.ended,
        "ended": result.ended,
        "settings": asdict(result.settings),
        "environment": result.environment,
        "lacks": list(result.lacks),
        "slices": [slice_document(piece) for piece in result.slices],
    }
    if summary:
        found["turnover_seconds"] = result.turnover()
        found["summary"] = {title: [row.as_json() for row in rows]
                            for title, rows in result.rows.items()}  # fmt: skip
        found["test"] = test(result)
    return found


END = "]}\n"  # of a file without a summary: its slices come last


def run_text(result: Result, *, summary: bool) -> str:
    """Return a run as the text of a file: for readers with its `summary`, or in short."""
    document = run_document(result, summary=summary)
    return json.dumps(document, indent=1 if summary else None) + "\n"


def append_slice(path: Path, piece: Slice) -> None:
    """Add a slice to a file of run_text() without a summary, at a cost that does not grow with it.

    Raises OSError; then the file is as it was.
    """
    with path.open("r+b", buffering=0) as handle:
        end = handle.seek(-len(END), os.SEEK_END)
        try:
            added = f", {json.dumps(slice_document(piece))}{END}".encode()
            while added:
                added = added[handle.write(added) :]
        except OSError:
            handle.seek(end)
            handle.write(END.encode())
            handle.truncate()
            raise


def results_document(results: Results) -> dict[str, Any]:
    """Return the runs of an experiment for a file."""
    runs = {name: [run_document(boot, summary=False) for boot in boots]
            for name, boots in results.runs.items()}  # fmt: skip
    return {"format": FORMAT, "kind": "experiment", **results.heading(), "runs": runs}


def unwritten(path: Path) -> Path:
    """Return the name that a file has while it is written."""
    return path.with_name(f".{path.name}.{os.getpid()}")


def check_writable(path: Path) -> None:
    """Raise Usage if a file can't be written, before there is something to write."""
    if path.is_dir():
        raise Usage(f"{path} is a directory: name a file")
    if path.exists() and not path.is_file():
        return  # such as /dev/stdout
    try:
        unwritten(path).open("x").close()
        unwritten(path).unlink()
    except OSError as error:
        raise Usage(f"cannot write {path}: {error.strerror}") from None


def write(texts: dict[Path, str]) -> None:
    """Write all files or none: each under another name first. Raises Failure."""
    with ExitStack() as stack:
        for path, text in texts.items():
            if path.is_dir():
                raise Failure(f"{path} is a directory: name a file")
            if path.exists() and not path.is_file():
                path.write_text(text)  # such as /dev/stdout
                continue
            try:
                with unwritten(path).open("x") as handle:
                    stack.callback(unwritten(path).unlink, missing_ok=True)
                    handle.write(text)
            except OSError as error:
                raise Failure(f"cannot write {path}: {error.strerror}") from None
        for path in texts:
            if unwritten(path).exists():
                unwritten(path).replace(path)
