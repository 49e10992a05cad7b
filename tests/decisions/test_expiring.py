"""What is finished, part by part, and what is counted of it."""

from dataclasses import replace

import pytest

from tidings.decisions.expiring import (
    Attempts,
    Facts,
    Jobs,
    Letters,
    OldEvent,
    RouterPlace,
    Saga,
    finished_stories,
    totals_by_day,
)
from tidings.model.route import RouteAttemptStatus
from tidings.model.saga import SagaStatus

EVENT = OldEvent(5, "default", "2020-01-01")
SENT = Attempts("webhook", RouteAttemptStatus.SENT, 1, 2, is_recent=False)
DELIVERED = Saga(11, 1, 0, SagaStatus.COMPLETED, is_recent=False)
DEAD = Saga(12, 2, 0, SagaStatus.DEAD_LETTERED, is_recent=False)
FINISHED = Facts(
    routers=[RouterPlace("*", 10, 10)],
    holes=[(1, 4), (6, 9)],
    attempts={5: [SENT]},
    sagas={5: [DELIVERED, DEAD]},
    jobs={11: Jobs(1, 0), 12: Jobs(16, 0)},
    dead_letters={5: 1},
)


def test_a_story_that_is_finished_in_every_part_goes_with_all_its_sagas() -> None:
    (story,) = finished_stories([EVENT], FINISHED)
    assert (story.event, story.saga_ids) == (EVENT, (11, 12))
    assert {name: count for name, count in story.counts.items() if count} == {
        "events": 1,
        "sent": 1,
        "attempts": 1,
        "wanted_deliveries": 2,
        "sagas": 2,
        "delivered": 1,
        "dead": 1,
        "jobs": 17,
        "dead_letters": 1,
    }


@pytest.mark.parametrize(
    ("what", "facts"),
    [
        ("no router has come so far", replace(FINISHED, routers=[RouterPlace("*", 4, 4)])),
        ("no router is for its domain", replace(FINISHED, routers=[RouterPlace("shop", 10, 10)])),
        (
            "its own router has not come so far",
            replace(FINISHED, routers=[*FINISHED.routers, RouterPlace("default", 4, 4)]),
        ),
        ("a router knows its place by it", replace(FINISHED, routers=[*FINISHED.routers, RouterPlace("shop", 5, 5)])),
        ("a router may still look for it", replace(FINISHED, holes=[(5, 5)])),
        ("nothing was decided about it", replace(FINISHED, attempts={})),
        ("it was decided lately", replace(FINISHED, attempts={5: [SENT, replace(SENT, is_recent=True)]})),
        ("it waits to be routed again", replace(FINISHED, letters={5: Letters(1, 1, is_recent=False)})),
        ("it was routed again lately", replace(FINISHED, letters={5: Letters(1, 0, is_recent=True)})),
        ("a task of it is there", replace(FINISHED, with_open_tasks={5})),
        ("a result was not taken in", replace(FINISHED, jobs={11: Jobs(1, 0), 12: Jobs(16, 1)})),
        ("a saga ended lately", replace(FINISHED, sagas={5: [DELIVERED, replace(DEAD, is_recent=True)]})),
        *(
            (f"a saga is {status}", replace(FINISHED, sagas={5: [DELIVERED, replace(DEAD, status=status)]}))
            for status in (SagaStatus.PENDING, SagaStatus.IN_PROGRESS, SagaStatus.PENDING_RETRY)
        ),
    ],
)
def test_a_story_with_anything_unfinished_stays_whole(what: str, facts: Facts) -> None:
    """Ruling 17: "never one with anything unfinished"."""
    assert finished_stories([EVENT], facts) == []


def test_what_was_requeued_counts_once_by_its_newest_generation() -> None:
    again = Saga(13, 2, 1, SagaStatus.COMPLETED, is_recent=False)
    (story,) = finished_stories([EVENT], replace(FINISHED, sagas={5: [again, DELIVERED, DEAD]}))
    assert (story.counts["sagas"], story.counts["delivered"], story.counts["dead"]) == (3, 2, 0)


@pytest.mark.parametrize(
    ("statuses", "fate"),
    [
        (("skipped", "sent", "failed"), "sent"),
        (("failed", "dry_run"), "dry_run"),
        (("disabled", "failed"), "failed"),
        (("skipped", "disabled"), "disabled"),
        (("skipped",), "skipped"),
    ],
)
def test_an_event_counts_once_whatever_it_came_to(statuses: tuple[str, ...], fate: str) -> None:
    attempts = [Attempts("webhook", RouteAttemptStatus(status), 1, 0, is_recent=False) for status in statuses]
    (story,) = finished_stories([EVENT], replace(FINISHED, attempts={5: attempts}, sagas={}))
    assert {name for name in ("sent", "dry_run", "failed", "disabled", "skipped") if story.counts[name]} == {fate}


def test_totals_are_by_the_day_on_which_the_event_was_accepted() -> None:
    facts = replace(FINISHED, attempts={4: [SENT], 5: [SENT], 3: [SENT]}, sagas={}, holes=[])
    events = [OldEvent(3, "default", "2020-01-01"), EVENT, OldEvent(4, "default", "2020-01-02")]
    totals = totals_by_day(finished_stories(events, facts))
    assert {day: counts["events"] for day, counts in totals.items()} == {"2020-01-01": 2, "2020-01-02": 1}
