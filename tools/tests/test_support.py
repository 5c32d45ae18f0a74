# SPDX-License-Identifier: GPL-2.0
"""The table of tested kernels."""

import json
import re
import time
from pathlib import Path

from vmp.checkout import checkout
from vmp.common import REPO
from vmp.testing import releases
from vmp.testing.results import Counts
from vmp.testing.support import KEPT, keep, table


def test_table(tmp_path: Path) -> None:
    """Kernels in their order, groups that ran, and what a later run found."""
    keep(tmp_path, "7.3.4", False, {"plain": Counts(20, 1, 0)})
    keep(tmp_path, "6.12.117", False, {"plain": Counts(45), "static": Counts(22)})
    keep(tmp_path, "7.3.4", True, {"plain": Counts(30, 0, 8), "slow": Counts(2)})
    kept = json.loads((tmp_path / "7.3.4.json").read_text())
    assert kept["slow"].items() >= checkout().items()
    (tmp_path / "6.12.117.json").write_text("{")  # as on a disk that was full
    keep(tmp_path, "6.12.117", False, {"plain": Counts(45), "static": Counts(22)})
    old = tmp_path / "7.3.4.json"
    old.write_text(old.read_text().replace(time.strftime("%Y", time.gmtime()), "1999", 1))
    assert re.search(r"\| 1999-\d\d-\d\d to [2-9]\d{3}-\d\d-\d\d \|$", table(tmp_path))
    lines = [line.rsplit("|", 2)[0] for line in table(tmp_path).splitlines()]
    assert lines[0] == "| Linux | KUnit, guest tests | slow disks "
    assert lines[2] == "| 6.12.117 | 45 of 45 | - "
    assert lines[3] == "| 7.3.4 | 30 of 30, 8 skipped | 2 of 2 "
    keep(tmp_path, "6.12.117:arm64", False, {"plain": Counts(40)})
    assert "\n| 6.12.117:arm64 | 40 of 40 | - " in table(tmp_path)
    assert releases.tested(tmp_path) == {"6.12.117", "7.3.4"}


def test_readme() -> None:
    """README has the table as it is printed."""
    assert table(KEPT) in (REPO / "README.md").read_text()
