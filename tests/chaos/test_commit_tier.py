"""Real processes of every role under fire, from half a minute to a night, and everything adds up in the end."""

from pathlib import Path

import pytest

from tests.chaos.plants import PLANTS
from tests.chaos.run import run
from tests.chaos.schedule import COMMIT, NIGHTLY, QUIET, TIERS

SEED, RUNS = 1, 3


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_nothing_is_lost_doubled_or_left_under_fire(own_kind: str, tmp_path: Path) -> None:
    """2,000 events × 3 subscriptions, ≥ 10 kills, 2 zombies, 1 database restart; in every ordinary run."""
    missing: set[str] | None = None
    for number in range(RUNS):
        report = await run(own_kind, COMMIT, SEED + number, tmp_path / str(number))
        assert not report.problems, report
        assert report.kills >= 10
        assert report.restarts >= 1
        # Whether a deadlock comes about depends on the machine, too: what one run lacks one of the next must have.
        missing = set(report.rare) if missing is None else missing & set(report.rare)
        if not missing:
            return
    pytest.fail(f"in none of {RUNS} runs: {', '.join(missing or ())}")


@pytest.mark.full
@pytest.mark.alone
@pytest.mark.timeout(240)
async def test_without_faults_nothing_comes_twice(own_kind: str, tmp_path: Path) -> None:
    """Exactly 0 duplicates in a fault-free run of the same size."""
    report = await run(own_kind, QUIET, SEED, tmp_path)
    assert not report.problems, report
    assert report.verdict is not None
    assert report.verdict.figures["duplicates"] == 0


@pytest.mark.full
@pytest.mark.alone
@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", PLANTS)
async def test_a_bug_planted_into_the_processes_is_found_under_fire(own_kind: str, tmp_path: Path, name: str) -> None:
    report = await run(own_kind, TIERS[PLANTS[name].fire], SEED, tmp_path, name)
    assert any(PLANTS[name].told in problem for problem in report.problems), report


@pytest.mark.full
@pytest.mark.alone
@pytest.mark.timeout(240)
@pytest.mark.parametrize("tier", sorted({plant.fire for plant in PLANTS.values()}))
async def test_without_a_planted_bug_the_same_runs_have_nothing_wrong_in_them(
    own_kind: str, tmp_path: Path, tier: str
) -> None:
    report = await run(own_kind, TIERS[tier], SEED, tmp_path)
    assert not report.problems, report


@pytest.mark.full
@pytest.mark.alone
@pytest.mark.timeout(2400)
async def test_nothing_is_lost_doubled_or_left_in_a_night(own_kind: str, tmp_path: Path) -> None:
    """≥ 50,000 events, ≥ 200 kills, ≥ 20 restarts, and each of the rare things at least ten times."""
    report = await run(own_kind, NIGHTLY, SEED, tmp_path)
    assert not report.problems, report
    assert not report.rare, report
    assert report.kills >= 200
    assert report.restarts >= 20
