# SPDX-License-Identifier: GPL-2.0
"""Which guest tests are run under the livepatch."""

import json

from vmp.common import REPO
from vmp.testing.guest_tests import names
from vmp.testing.livepatch_tests import FAILED, GROUP, KEPT, LATER, PASSED, reasons, table

SAID = """\
KTAP version 1
1..4
# 25 rounds
ok 1 - modules
# not there: CONFIG_KUNIT
# kunit: 0 s
ok 2 - kunit # SKIP
# a process was killed
not ok 3 - idle
# not there: CONFIG_KUNIT
ok 4 - kunit-slow # SKIP
"""


def test_what_is_not_there_is_told() -> None:
    found = reasons(SAID)
    assert found == {
        "modules": "pass",
        "kunit": "CONFIG_KUNIT",
        "idle": "fail",
        "kunit-slow": "CONFIG_KUNIT",
    }
    assert table(found).splitlines()[2:] == [
        "| modules | pass |",
        "| kunit, kunit-slow | not there: CONFIG_KUNIT |",
        "| idle | fail |",
    ]


def test_the_docs_have_the_table_of_all_guest_tests() -> None:
    kept = json.loads(KEPT.read_text())
    assert list(kept) == names("all")
    assert {test for test in kept if kept[test] in (PASSED, FAILED, LATER)} == set(names(GROUP))
    assert table(kept) in (REPO / "docs" / "results" / "livepatch.md").read_text()
