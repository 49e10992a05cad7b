"""Processes whose clocks are five minutes ahead or behind."""

from pathlib import Path

import pytest

from tests.machines.clocks import why_not, wrong
from tests.machines.sizes import SIZES

pytestmark = [pytest.mark.slow, pytest.mark.alone, pytest.mark.timeout(240)]


@pytest.fixture(autouse=True)
def _faketime() -> None:
    if reason := why_not():
        pytest.skip(reason)


@pytest.mark.quick_on("postgresql")
async def test_clocks_that_are_wrong_by_minutes_change_nothing(own_kind: str, tmp_path: Path) -> None:
    """Ruling 9: only the database's clock decides leases and due times."""
    report = await wrong(own_kind, SIZES["small"], tmp_path)
    assert not report.problems, report


@pytest.mark.full
@pytest.mark.timeout(600)
async def test_nor_do_they_with_thousands_of_events(own_kind: str, tmp_path: Path) -> None:
    report = await wrong(own_kind, SIZES["big"], tmp_path)
    assert not report.problems, report
