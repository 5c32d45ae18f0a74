# SPDX-License-Identifier: GPL-2.0
"""Faulty builds of the module that tests need, from tools/tests/faults.toml."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass

from vmp.common import REPO
from vmp.guest.module import Edit


@dataclass(frozen=True)
class Fault(Edit):
    """An edit of the module that guest tests need."""

    tests: tuple[str, ...] = ()

    @property
    def variable(self) -> str:
        """Return the variable that tells a guest test where the faulty module is."""
        return f"VMP_FAULT_{self.name.upper().replace('-', '_')}"


def fault(
    name: str, path: str, old: str, new: str, code: str = "", tests: Iterable[str] = ()
) -> Fault:
    """Return the fault that a table of the file describes."""
    before = (REPO / code).read_text() if code else ""
    return Fault(name, path, old, before + new, tuple(tests))


TABLES = tomllib.loads((REPO / "tools/tests/faults.toml").read_text())["fault"]
FAULTS = {table["name"]: fault(**table) for table in TABLES}
NEEDED = {test: each for each in FAULTS.values() for test in each.tests}
