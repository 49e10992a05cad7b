"""Every judgement of `doctor`, on facts that no healthy server would show."""

from dataclasses import replace

import pytest

from tidings.decisions import diagnosing
from tidings.decisions.diagnosing import Finding, GateFacts, Health, OpenWriter, RouterFacts, ServerSetting


def test_a_server_that_may_lose_commits_is_wrong_and_the_setting_is_named() -> None:
    settings = [ServerSetting("fsync", "off", "on"), ServerSetting("full_page_writes", "on", "on")]
    finding = diagnosing.judge_settings("durability", settings, "Set them.")
    assert finding == Finding("durability", Health.WRONG, "fsync is off, not on", "Set them.")


def test_any_of_the_wanted_values_is_right() -> None:
    settings = [ServerSetting("synchronous_commit", "remote_apply", "on|local|remote_write|remote_apply")]
    assert diagnosing.judge_settings("durability", settings, "").health is Health.RIGHT


@pytest.mark.parametrize(("level", "health"), [("read committed", Health.RIGHT), ("repeatable read", Health.WRONG)])
def test_only_read_committed_is_right(level: str, health: Health) -> None:
    assert diagnosing.judge_isolation(level).health is health


@pytest.mark.parametrize(
    ("difference", "health"), [(0.2, "right"), (-29.9, "right"), (31, "doubtful"), (-90, "doubtful")]
)
def test_a_clock_that_is_far_off_is_doubtful_not_wrong(difference: float, health: str) -> None:
    """Ruling 9: only the database's clock decides leases and due times."""
    assert diagnosing.judge_clock(difference).health == health


def test_missing_steps_are_counted_and_the_remedy_is_migrate() -> None:
    finding = diagnosing.judge_migrations([(1, "events"), (1, "gates")], 1)
    assert (finding.health, "2 steps" in finding.says) == (Health.WRONG, True)
    assert "tidings migrate" in finding.remedy


def test_rights_too_few_and_too_many_are_both_wrong() -> None:
    assert diagnosing.judge_rights([], []).health is Health.RIGHT
    finding = diagnosing.judge_rights(["SELECT on a for b"], ["DELETE on c for d"])
    assert finding.health is Health.WRONG
    assert finding.says == "missing: SELECT on a for b; too much: DELETE on c for d"


def test_a_long_list_is_cut_and_the_rest_is_counted() -> None:
    assert diagnosing.listed([str(n) for n in range(10)]).endswith("and 4 more")


def test_doubt_is_not_illness() -> None:
    doubtful = Finding("boundary", Health.DOUBTFUL, "")
    assert diagnosing.is_well([doubtful])
    assert not diagnosing.is_well([doubtful, Finding("rights", Health.WRONG, "")])


OPEN = GateFacts("routing", True, "", True)
NEVER_OPENED = GateFacts("router:default", False, "", False)
ROUTER = RouterFacts("default", "*", 7, 3, 0, 0.0, True)


def test_open_gates_are_right() -> None:
    assert diagnosing.judge_gates([OPEN], True) == Finding("gates", Health.RIGHT, "open: routing")


def test_a_closed_gate_is_doubtful_with_its_reason_and_the_way_to_open_it() -> None:
    finding = diagnosing.judge_gates([OPEN, GateFacts("router:shop", False, "stocktaking", True)], False)
    assert (finding.health, finding.says) == (Health.DOUBTFUL, "closed: router:shop (stocktaking)")
    assert "tidings gates open router:shop" in finding.remedy


@pytest.mark.parametrize(("has_events", "health"), [(False, Health.RIGHT), (True, Health.DOUBTFUL)])
def test_gates_that_nobody_opened_yet_are_right_until_an_event_waits(has_events: bool, health: Health) -> None:
    finding = diagnosing.judge_gates([NEVER_OPENED], has_events)
    assert finding.health is health
    assert "never opened" in finding.says
    assert "tidings gates open" in finding.remedy


@pytest.mark.parametrize(("has_events", "health"), [(False, Health.RIGHT), (True, Health.DOUBTFUL)])
def test_no_router_is_right_until_an_event_waits(has_events: bool, health: Health) -> None:
    assert diagnosing.judge_routers([], [], has_events).health is health


def test_a_router_is_shown_with_its_place_and_its_lag() -> None:
    finding = diagnosing.judge_routers([ROUTER], [], True)
    assert finding == Finding("routers", Health.RIGHT, "default (*) at 7, at most 3 behind")


@pytest.mark.parametrize(("age", "health"), [(299.0, Health.RIGHT), (301.0, Health.DOUBTFUL)])
def test_a_hole_is_doubtful_when_it_is_older_than_five_minutes(age: float, health: Health) -> None:
    finding = diagnosing.judge_routers([replace(ROUTER, hole_ids=2, oldest_hole_seconds=age)], [], True)
    assert finding.health is health
    assert f"2 missing ids, the oldest for {age:.0f} s" in finding.says


def test_what_old_holes_wait_for_is_said_as_far_as_it_is_shown() -> None:
    waiting = [replace(ROUTER, hole_ids=2, oldest_hole_seconds=900.0)]
    assert "An open transaction of a producer" in diagnosing.judge_routers(waiting, [], True).remedy
    writers = [OpenWriter(4711, 901.2), OpenWriter(4712, None), OpenWriter(None, None)]
    remedy = diagnosing.judge_routers(waiting, writers, True).remedy
    assert "process 4711, open for 901 s; process 4712; a prepared transaction" in remedy


def test_a_router_that_does_not_know_the_log_again_waits_for_a_person() -> None:
    finding = diagnosing.judge_routers([ROUTER, replace(ROUTER, name="shop", knows_its_last_event=False)], [], True)
    assert finding.health is Health.DOUBTFUL
    assert "tidings routers confirm shop" in finding.remedy


def test_unresolved_routing_dead_letters_are_doubtful_with_the_newest_error() -> None:
    assert diagnosing.judge_route_dead_letters(0, "", 10).health is Health.RIGHT
    finding = diagnosing.judge_route_dead_letters(2, "the row was too long", 10)
    assert (finding.health, "the row was too long" in finding.says) == (Health.DOUBTFUL, True)
    assert "tidings route-dead-letters list" in finding.remedy
