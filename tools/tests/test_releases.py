# SPDX-License-Identifier: GPL-2.0
"""Which releases of the kernel nobody has tested."""

from pathlib import Path

import pytest
from vmp.common import Failure
from vmp.guest import sources
from vmp.guest.sources import Version
from vmp.testing import releases

OFFERED = {"7.2": ["7.2.13"], "7.3": ["7.3.4", "7.3.9", "7.3.10"], "7.4": ["7.4.1", "7.4.2"]}


def offered(series: str, wide: bool = False) -> list[Version]:
    """Return what the archive has of a series."""
    assert wide
    return [Version(point, f"{point}-1") for point in OFFERED[series]]


def test_newer_than_those_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    """Releases are ordered by number; of a series without a test it is the newest."""
    monkeypatch.setattr(releases, "archive_series", lambda: list(OFFERED))
    monkeypatch.setattr(releases, "versions", offered)
    found = releases.untested({"6.12.117", "7.2.13", "7.3.4"})
    assert [version.point for version in found] == ["7.3.9", "7.3.10", "7.4.2"]
    assert not releases.untested({"7.2.13", "7.3.10", "7.4.2"})


def test_tested_is_what_is_kept(tmp_path: Path) -> None:
    """Of two directories, one of which need not be there."""
    (tmp_path / "7.3.4.json").write_text("{}")
    assert releases.tested(tmp_path, tmp_path / "none") == {"7.3.4"}


def test_series_of_the_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those with hooks, and what came after them; no other package."""
    names = ["linux-source", "linux-source-6.1", "linux-source-7.10", "linux-source-7.3",
             "linux-source-6.12", "linux-source-6.19", "linux-source-7.4-rt"]  # fmt: skip
    monkeypatch.setattr(sources, "refresh", lambda series, wide: "")
    monkeypatch.setattr(sources, "run", lambda *_, **__: "\n".join(names))
    assert sources.archive_series() == ["6.12", "7.3", "7.10"]


def test_no_network_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then nobody knows what is new."""
    monkeypatch.setattr(sources, "refresh", lambda series, wide: "updating: no network")
    with pytest.raises(Failure, match="no network"):
        sources.archive_series()
