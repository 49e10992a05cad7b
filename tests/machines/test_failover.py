"""A standby takes over under load."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.chaos.schedule import Tier
from tests.machines.failover import asynchronous, synchronous
from tests.machines.sizes import SIZES
from tests.machines.trial import Report

pytestmark = [pytest.mark.slow, pytest.mark.alone, pytest.mark.timeout(240)]


@pytest.mark.quick_on("postgresql")
async def test_a_synchronous_standby_that_takes_over_has_everything_that_was_acknowledged(
    own_kind: str, tmp_path: Path
) -> None:
    """0 acknowledged events lost, roles reconnect by themselves, no confirmation needed."""
    report = await synchronous(own_kind, SIZES["small"], tmp_path)
    assert not report.problems, report


@pytest.mark.quick_on("postgresql")
async def test_after_a_failover_with_loss_the_router_stops_until_a_person_has_confirmed_it(
    own_kind: str, tmp_path: Path
) -> None:
    """The last event that it passed is missing or another one, as after a restore: to go on would skip events."""
    report = await asynchronous(own_kind, SIZES["small"], tmp_path)
    assert not report.problems, report
    assert report.figures["events lost"] > 0


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize("trial", [synchronous, asynchronous])
async def test_the_same_with_thousands_of_events(
    own_kind: str, tmp_path: Path, trial: Callable[[str, Tier, Path], Awaitable[Report]]
) -> None:
    report = await trial(own_kind, SIZES["big"], tmp_path)
    assert not report.problems, report
