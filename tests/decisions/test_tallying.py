"""What came of attempts, counted by subscription and hour, and of all together by minute."""

import datetime

import pytest

from tidings.decisions.advancing import Buried, Completed, Ignored, Retried
from tidings.decisions.tallying import Tallied, bound_of, tally
from tidings.model.totals import ALL_TOGETHER, DURATIONS, HOURS_KEPT, Total, TotalOf

NOW = datetime.datetime(2026, 5, 4, 13, 37, 59, 999, tzinfo=datetime.UTC)
MINUTE = datetime.datetime(2026, 5, 4, 13, 37, tzinfo=datetime.UTC)
HOUR = datetime.datetime(2026, 5, 4, 13, tzinfo=datetime.UTC)


def test_a_burial_is_a_failed_attempt_and_a_dead_delivery() -> None:
    results = [Tallied(7, Completed()), Tallied(7, Retried(1.0, "timeout")), Tallied(7, Buried("http_500"))]
    totals = [found.total for found in tally(results, NOW)]
    assert [(total.delivered, total.failed, total.dead) for total in totals] == [(1, 2, 1)] * 2


def test_who_was_given_up_without_an_attempt_is_dead_and_failed_nothing() -> None:
    found = tally([Tallied(7, Buried("timeout"), is_attempt=False)], NOW)[1].total
    assert (found.delivered, found.failed, found.dead) == (0, 0, 1)


def test_all_together_are_counted_by_minute_and_each_by_hour_in_the_order_of_their_keys() -> None:
    found = tally([Tallied(id, Completed()) for id in (9, 3, 9)], NOW)
    assert [(one.subscription_id, one.began_at, one.total.delivered) for one in found] == [
        (ALL_TOGETHER, MINUTE, 3),
        (3, HOUR, 1),
        (9, HOUR, 2),
    ]


def test_what_was_ignored_counts_nowhere() -> None:
    assert tally([Tallied(7, Ignored())], NOW) == []
    assert tally([], NOW) == []


@pytest.mark.parametrize(
    ("milliseconds", "bound"),
    [(0, "within_100ms"), (100, "within_100ms"), (101, "within_300ms"), (10_000, "within_10s"), (10_001, "slower")],
)
def test_an_attempt_counts_at_the_first_bound_that_it_kept(milliseconds: int, bound: str) -> None:
    assert bound_of(milliseconds) == bound
    (total, _) = tally([Tallied(7, Completed(), milliseconds)], NOW)
    assert total.total.durations == dict.fromkeys(DURATIONS, 0) | {bound: 1}


def test_without_a_duration_nothing_is_said_of_it() -> None:
    assert sum(tally([Tallied(7, Retried(1, "lease_expired"))], NOW)[0].total.durations.values()) == 0


def test_places_are_used_again_after_three_days_and_not_before() -> None:
    def places(of: int, step: datetime.timedelta, count: int) -> list[int]:
        return [TotalOf(of, HOUR + step * number, Total()).place for number in range(count)]

    minutes = places(ALL_TOGETHER, datetime.timedelta(minutes=1), 60 * HOURS_KEPT + 1)
    hours = places(7, datetime.timedelta(hours=1), HOURS_KEPT + 1)
    for found in (minutes, hours):
        assert found[0] == found[-1]
        assert len(set(found)) == len(found) - 1
