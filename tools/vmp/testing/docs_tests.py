# SPDX-License-Identifier: GPL-2.0
"""The commands of README and of the tutorial, as they stand in the text."""

from vmp.common import OUT, REPO, Failure, Words, run
from vmp.guest.sources import NAMED
from vmp.testing.results import Report

DOCUMENTS = ("docs/tutorial.md", "README.md")
DO = REPO / "tools" / "tests" / "docs.py"
SKIPPED = "make test"  # what runs this


def run_all(report: Report, _full: bool, kernel: str) -> None:
    """Do all steps of each document, as in a shell that names that kernel."""
    for document in DOCUMENTS:
        log = OUT / f"test-docs-{document.rpartition('/')[2]}.log"
        with report.check(f"the commands of {document}"):
            does: Words = ["env", f"{NAMED}={kernel}", DO, "--skip", SKIPPED, REPO / document]
            try:
                run(["bash", "-c", 'exec "$@" >"$0" 2>&1', log, *does], document)
            except Failure:
                raise Failure("\n".join([str(log), *log.read_text().splitlines()[-15:]])) from None
