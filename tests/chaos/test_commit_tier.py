"""The `commit` tier: real processes of every role under fire for half a minute, and everything adds up in the end."""

from pathlib import Path

import pytest

from tests.chaos.run import run
from tests.chaos.schedule import COMMIT, NIGHTLY, QUIET, SMOKE

SEED = 1


@pytest.mark.full
@pytest.mark.timeout(300)
async def test_nothing_is_lost_doubled_or_left_under_fire(engine_kind: str, tmp_path: Path) -> None:
    """Issue 10: 2,000 events × 3 subscriptions, ≥ 10 kills, 2 zombies, 1 database restart."""
    report = await run(engine_kind, COMMIT, SEED, tmp_path)
    assert not report.problems, report
    assert not report.rare, report
    assert report.kills >= 10
    assert report.restarts >= 1


@pytest.mark.full
@pytest.mark.timeout(240)
async def test_without_faults_nothing_comes_twice(engine_kind: str, tmp_path: Path) -> None:
    """reliability.md §5.2, 8: exactly 0 duplicates in a fault-free run of the same size."""
    report = await run(engine_kind, QUIET, SEED, tmp_path)
    assert not report.problems, report
    assert report.verdict is not None
    assert report.verdict.figures["duplicates"] == 0


@pytest.mark.full
@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", ["report-without-token", "holes-forgotten", "payload-rewritten", "rescue-not-counted"])
async def test_a_bug_planted_into_the_processes_is_found_under_fire(
    engine_kind: str, tmp_path: Path, name: str
) -> None:
    report = await run(engine_kind, SMOKE, SEED, tmp_path, name)
    assert report.problems


@pytest.mark.full
@pytest.mark.timeout(2400)
async def test_nothing_is_lost_doubled_or_left_in_a_night(engine_kind: str, tmp_path: Path) -> None:
    report = await run(engine_kind, NIGHTLY, SEED, tmp_path)
    assert not report.problems, report
    assert not report.rare, report
