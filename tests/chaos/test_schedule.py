"""A schedule of faults comes from its seed alone, and has in it what its tier promises."""

from collections import Counter

import pytest

from tests.chaos.schedule import COMMIT, MANY_TASKS, NIGHTLY, ROLES, SOAK, TASKS, Tier, names_of, schedule, shortened


def test_a_seed_is_always_the_same_schedule() -> None:
    """Ten replays of a seed give the same fault schedule."""
    first = schedule(COMMIT, 7)
    assert all(schedule(COMMIT, 7) == first for _ in range(10))
    assert schedule(COMMIT, 8) != first


@pytest.mark.parametrize("tier", [COMMIT, NIGHTLY, TASKS, MANY_TASKS], ids=lambda tier: tier.name)
@pytest.mark.parametrize("seed", range(20))
def test_every_role_is_killed_and_everything_else_is_broken_as_often_as_the_tier_says(tier: Tier, seed: int) -> None:
    faults = schedule(tier, seed)
    assert len(faults) == sum(tier.counts.values())
    killed = Counter(fault.target.rpartition("-")[0] for fault in faults if fault.kind == "kill")
    assert set(killed) == set(tier.roles)
    assert max(killed.values()) <= 2.5 * min(killed.values()) + 2
    assert [fault.at for fault in faults] == sorted(fault.at for fault in faults)
    assert all(fault.seconds > tier.lease for fault in faults if fault.kind in ("freeze", "part database"))


def test_the_tiers_are_as_large_as_promised() -> None:
    assert COMMIT.events >= 2_000
    assert COMMIT.counts["kill"] >= 10
    assert COMMIT.counts["freeze"] >= 2
    assert COMMIT.counts["database"] >= 1
    assert NIGHTLY.events >= 50_000
    assert NIGHTLY.counts["kill"] >= 200
    assert NIGHTLY.counts["freeze"] >= 40
    assert NIGHTLY.counts["database"] >= 20
    assert NIGHTLY.counts["part database"] >= 10
    assert NIGHTLY.sometimes >= 10


def test_every_way_to_restart_the_database_comes_up() -> None:
    quick = {fault.target for seed in range(3) for fault in schedule(COMMIT, seed) if fault.kind == "database"}
    assert quick == {"fast", "immediate", "kill -9"}
    assert {fault.target for fault in schedule(NIGHTLY, 1) if fault.kind == "database"} == quick | {"one backend"}


def test_a_tier_that_is_shortened_keeps_its_pace_and_leaves_nothing_out() -> None:
    short = shortened(SOAK, 600)
    assert short.events / short.seconds == pytest.approx(SOAK.events / SOAK.seconds, rel=0.01)
    assert {fault.kind for fault in schedule(short, 1)} == {fault.kind for fault in schedule(SOAK, 1)}


def test_endpoints_are_called_in_every_way_in_a_short_run() -> None:
    ways = {fault.target.rpartition(" ")[0] for fault in schedule(COMMIT, 1) if fault.kind == "check"}
    assert ways == {"verify, killed", "verify, twice", "test, killed"}


def test_there_are_several_of_every_role() -> None:
    assert all(len(names_of(role)) >= 2 for role in ROLES)
