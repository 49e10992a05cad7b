"""Claim, rescue, archive and retention at once under load, everybody killed at random: one place and one outcome."""

from pathlib import Path

import pytest

from tests.chaos.run import run
from tests.chaos.schedule import MANY_TASKS, TASKS, Tier


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "tier",
    [TASKS, pytest.param(MANY_TASKS, marks=[pytest.mark.full, pytest.mark.alone, pytest.mark.timeout(900)])],
    ids=lambda tier: tier.name,
)
async def test_every_task_ends_in_exactly_one_place_with_one_outcome(own_kind: str, tmp_path: Path, tier: Tier) -> None:
    """Two real processes of each role; the submitters', the handlers' and the tables' words agree.

    No task is lost, none ends twice, none runs more often than its retries say, none is in two places at any commit.
    """
    report = await run(own_kind, tier, 1, tmp_path)
    assert not report.problems, report
    assert not report.rare, report
    assert report.kills >= tier.counts["kill"] - 2
