"""The story of an event as steps on one line of time."""

import datetime
from typing import Any

from tidings.console.story import KINDS, deliveries_of, steps_of
from tidings.roles.observer.stories import Deed, Story

NOW = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)


def at(second: float) -> datetime.datetime:
    return NOW + datetime.timedelta(seconds=second)


def job(id: int, second: float, status: str = "Failed") -> dict[str, Any]:
    is_done = status in ("Completed", "Failed")
    return {"id": id, "status": status, "created_at": at(second - 1), "finished_at": at(second) if is_done else None}


def saga(id: int, subscription: int, generation: int, second: float, status: str, *jobs: Any) -> dict[str, Any]:
    return {
        "id": id,
        "subscription_id": subscription,
        "generation": generation,
        "status": status,
        "created_at": at(second),
        "next_attempt_at": at(second),
        "jobs": jobs,
    }


def story(
    *sagas: Any, letters: Any = (), deeds: Any = (), attempts: Any = (), set_aside: Any = (), tasks: Any = ()
) -> Story:
    event = {"id": 1, "created_at": at(0), "route_dead_letters": set_aside, "route_attempts": attempts, "tasks": tasks}
    return Story({**event, "sagas": sagas}, letters, {}, deeds)


def kinds(made: Story, subscription_id: int = 0, now: datetime.datetime = NOW) -> list[str]:
    return [step.kind for step in steps_of(made, now, subscription_id)]


def test_steps_come_in_the_order_in_which_things_happened() -> None:
    first = saga(5, 1, 0, 1, "DeadLettered", job(1, 3), job(2, 8))
    again = saga(6, 1, 1, 20, "Completed", job(3, 22, "Completed"))
    made = story(
        again,
        first,
        letters=[{"id": 9, "saga_id": 5, "failed_at": at(8)}],
        attempts=[{"id": 1, "status": "sent", "created_at": at(1)}],
    )
    wanted = ["accepted", "decided", "planned", "attempt", "attempt", "buried", "again", "attempt"]
    assert kinds(made) == wanted


def test_what_waits_is_the_last_step() -> None:
    waiting = saga(5, 1, 0, 1, "PendingRetry", job(1, 3))
    assert kinds(story(waiting), now=at(30))[-2:] == ["attempt", "due"]
    assert "due" not in kinds(story(saga(5, 1, 0, 1, "InProgress", job(1, 3, "Leased"))))


def test_a_next_generation_says_who_asked_for_it_if_somebody_is_named() -> None:
    first, again = saga(5, 1, 0, 1, "DeadLettered"), saga(6, 1, 1, 20, "Pending")
    letters = [{"id": 9, "saga_id": 5, "failed_at": at(8)}]
    deeds = [Deed("him", "dead_letters.requeued", frozenset({8})), Deed("her", "dead_letters.requeued", frozenset({9}))]
    (step,) = [s for s in steps_of(story(again, first, letters=letters, deeds=deeds), NOW) if s.kind == "again"]
    assert step.more == {"was_dead": True, "by": "her"}
    (step,) = [s for s in steps_of(story(again, first, letters=letters), NOW) if s.kind == "again"]
    assert step.more == {"was_dead": True, "by": ""}
    resent = [Deed("her", "sagas.resent", frozenset({5}))]
    (step,) = [s for s in steps_of(story(again, first, deeds=resent), NOW) if s.kind == "again"]
    assert step.more == {"was_dead": False, "by": "her"}


def test_of_one_subscription_only_what_concerns_it_and_all() -> None:
    made = story(saga(5, 1, 0, 1, "Completed"), saga(6, 2, 0, 1, "Completed", job(1, 2)))
    assert kinds(made, 1) == ["accepted", "planned"]
    assert kinds(made, 2) == ["accepted", "planned", "attempt"]


def test_a_delivery_is_its_last_generation() -> None:
    letters = [{"id": 9, "saga_id": 6, "failed_at": at(8)}]
    made = story(saga(6, 1, 1, 20, "DeadLettered"), saga(5, 1, 0, 1, "Completed"), letters=letters)
    (delivery,) = deliveries_of(made)
    assert (delivery.saga["id"], delivery.dead_letter_id) == (6, 9)
    assert delivery.may_be_requeued
    assert not delivery.may_be_resent


def test_every_kind_has_its_place_among_those_of_the_same_moment() -> None:
    made = story(
        saga(6, 1, 1, 0, "Pending"),
        saga(5, 1, 0, 0, "DeadLettered", job(1, 0)),
        letters=[{"id": 9, "saga_id": 5, "failed_at": NOW}],
        attempts=[{"id": 1, "status": "sent", "created_at": NOW}],
        set_aside=[{"id": 1, "created_at": NOW, "resolved_at": NOW}],
        tasks=[{"id": 1, "status": 2, "updated_at": NOW}],
    )
    routed = ["accepted", "decided", "set_aside", "set_right"]
    assert kinds(made) == [*routed, "planned", "again", "attempt", "buried", "task", "due"] == [*KINDS]
