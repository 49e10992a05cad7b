"""Every judgement of `doctor`, on facts that no healthy server would show."""

import pytest

from tidings.decisions import diagnosing
from tidings.decisions.diagnosing import Finding, Health, ServerSetting


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
