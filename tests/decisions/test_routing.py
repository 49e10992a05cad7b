"""Where an event goes: one decision for each target, and no effect a second time."""

import random
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tidings.decisions.matching import matches
from tidings.decisions.routing import (
    ALREADY_SENT,
    NO_HISTORY,
    NOTHING,
    Attempt,
    Configuration,
    Decision,
    Existing,
    Subscriber,
    attempt_key,
    histories,
    plan,
    plan_anew,
    resolve,
)
from tidings.model.event import LoggedEvent
from tidings.model.route import Route, RouteAttemptStatus, RouteTarget

EVENT = LoggedEvent(7, "shop", "order.paid", "eu", "c-7")
SENT, DRY_RUN, DISABLED, SKIPPED = (
    RouteAttemptStatus.SENT,
    RouteAttemptStatus.DRY_RUN,
    RouteAttemptStatus.DISABLED,
    RouteAttemptStatus.SKIPPED,
)


def webhook(id: int, event_type: str = "*", domain: str = "*", stream: str = "*", **flags: Any) -> Route:
    return Route(id, domain, event_type, stream, RouteTarget.WEBHOOK, **flags)


def task(id: int, biz_type: str, event_type: str = "*", **flags: Any) -> Route:
    return Route(id, "*", event_type, "*", RouteTarget.TASK, biz_type, **flags)


def subscriber(
    id: int, event_type: str = "*", domain: str = "*", active: bool = True, verified: bool = True
) -> Subscriber:
    return Subscriber(id, domain, event_type, active, verified)


def decide(routes: list[Route], subscribers: list[Subscriber] | None = None) -> tuple[Decision, ...]:
    return Configuration(1, routes, [subscriber(1)] if subscribers is None else subscribers).decide(EVENT)


def chosen(*routes: Route) -> list[int]:
    return [route.id for route in resolve("shop", "order.paid", "eu", routes)]


def test_each_target_has_its_own_most_specific_route() -> None:
    routes = [webhook(1), webhook(2, "order.*"), task(3, "report"), task(4, "mail", "order.*"), task(5, "mail")]
    assert chosen(*routes) == [2, 4, 3]


def test_exact_goes_before_longer_prefix_before_shorter_before_any() -> None:
    routes = [webhook(1), webhook(2, "order.*"), webhook(3, "order.paid"), webhook(4, "order.paid.*")]
    assert [chosen(*left) for left in (routes, routes[:2], routes[:1])] == [[3], [2], [1]]


def test_the_type_decides_before_the_domain_and_the_domain_before_the_stream() -> None:
    by_type = webhook(1, "order.*", "*", "*")
    by_domain = webhook(2, "*", "shop", "*")
    by_stream = webhook(3, "*", "*", "eu")
    assert chosen(by_stream, by_domain, by_type) == [1]
    assert chosen(by_stream, by_domain) == [2]
    assert chosen(webhook(4), by_stream) == [3]


PATTERNS = st.sampled_from(["*", "a.*", "a.b.*", "a", "a.b", "a.b.c", "b"])
ROUTES = st.builds(
    Route,
    id=st.integers(1, 99),
    event_domain=PATTERNS,
    event_type=PATTERNS,
    event_stream=PATTERNS,
    target=st.just(RouteTarget.TASK),
    task_biz_type=st.sampled_from("xy"),
)


@given(
    st.lists(ROUTES, max_size=12, unique_by=lambda r: (r.task_biz_type, r.event_domain, r.event_type, r.event_stream)),
    st.sampled_from(["a", "a.b", "a.b.c", "b"]),
    st.sampled_from(["a", "a.b"]),
    st.sampled_from(["", "a.b.c"]),
    st.randoms(use_true_random=False),
)
def test_the_choice_is_one_that_matches_for_each_target_whatever_the_order(
    routes: list[Route], domain: str, event_type: str, stream: str, chance: random.Random
) -> None:
    found = resolve(domain, event_type, stream, routes)
    fitting = [
        route
        for route in routes
        if matches(route.event_type, event_type)
        and matches(route.event_domain, domain)
        and matches(route.event_stream, stream)
    ]
    assert [route.task_biz_type for route in found] == sorted({route.task_biz_type for route in fitting})
    assert all(route in fitting for route in found)
    assert resolve(domain, event_type, stream, chance.sample(routes, len(routes))) == found
    for route in found:
        rivals = [other for other in fitting if other.task_biz_type == route.task_biz_type]
        if any(other.event_type == event_type for other in rivals):
            assert route.event_type == event_type


def test_without_a_route_the_event_is_skipped() -> None:
    assert decide([webhook(1, "invoice.*")]) == (Decision(None, "", SKIPPED, reason="no_route"),)


def test_without_a_subscriber_the_event_is_skipped_and_those_left_out_are_named() -> None:
    waiting = [subscriber(4, verified=False), subscriber(5, active=False), subscriber(6, "invoice.*")]
    (decision,) = decide([webhook(1)], waiting)
    assert (decision.status, decision.reason, decision.matched) == (SKIPPED, "no_subscription", 0)
    assert decision.detail == "left out: 4 (unverified), 5 (inactive)"


def test_a_list_of_those_left_out_never_outgrows_its_column() -> None:
    (decision,) = decide([webhook(1)], [subscriber(number, verified=False) for number in range(1, 400)])
    assert len(decision.detail) == 500
    assert decision.detail.endswith("…")


def test_only_active_and_verified_subscribers_of_type_and_domain_get_it() -> None:
    """Seed 002, phase 4: "event_type matches and active = 1 and verified = 1"."""
    everybody = [
        subscriber(1, "order.paid", "shop"),
        subscriber(2, "order.*"),
        subscriber(3, domain="other"),
        subscriber(4, "order"),
        subscriber(5, active=False),
        subscriber(6, verified=False),
    ]
    (decision,) = decide([webhook(1)], everybody)
    assert (decision.status, decision.subscriptions, decision.matched) == (SENT, (1, 2), 2)


def test_a_disabled_route_that_is_the_most_specific_leaves_nothing_to_the_next_one() -> None:
    assert decide([webhook(1), webhook(2, "order.*", enabled=False)]) == (
        Decision(2, "webhook", DISABLED, reason="route_disabled"),
    )
    assert decide([task(3, "mail", enabled=False)])[0].biz_type == ""


def test_a_dry_run_counts_what_it_would_make_and_makes_nothing() -> None:
    by_webhook, by_task = decide(
        [webhook(1, dry_run=True), task(2, "mail", dry_run=True)], [subscriber(1), subscriber(2)]
    )
    assert (by_webhook.status, by_webhook.matched, by_webhook.subscriptions) == (DRY_RUN, 2, ())
    assert (by_task.status, by_task.matched, by_task.biz_type) == (DRY_RUN, 1, "")


def test_disabled_is_stronger_than_dry_run() -> None:
    assert decide([webhook(1, enabled=False, dry_run=True)])[0].status is DISABLED


def test_what_was_decided_for_one_kind_of_event_is_decided_once() -> None:
    configuration = Configuration(1, [webhook(1)], [subscriber(1)])
    assert configuration.decide(EVENT) is configuration.decide(replace(EVENT, id=8, correlation_id="c-8"))
    assert configuration.decide(EVENT) is not configuration.decide(replace(EVENT, event_stream="us"))


def attempt(status: str, route_id: int | None = 1, attempt_no: int = 1, reason: str = "") -> Attempt:
    return Attempt(EVENT.id, route_id, status, reason, attempt_no)


SENT_TO_TWO = Decision(1, "webhook", SENT, matched=2, subscriptions=(1, 2))


def test_what_was_never_decided_is_the_first_attempt() -> None:
    assert plan(EVENT, (SENT_TO_TWO,), NO_HISTORY, NOTHING).attempt_no == 1


def test_the_same_decision_again_is_nothing_new() -> None:
    history = histories([attempt("sent")])[EVENT.id]
    assert plan(EVENT, (SENT_TO_TWO,), history, NOTHING).decisions == ()


def test_another_decision_is_the_next_attempt_with_what_is_still_missing() -> None:
    history = histories([attempt("disabled", reason="route_disabled")])[EVENT.id]
    planned = plan(EVENT, (SENT_TO_TWO,), history, Existing(frozenset({1})))
    assert planned.attempt_no == 2
    (decision,) = planned.decisions
    assert (decision.subscriptions, decision.matched, decision.detail) == ((2,), 1, ALREADY_SENT)


def test_a_task_that_is_there_is_not_made_again() -> None:
    mail = Decision(3, "task", SENT, matched=1, biz_type="mail")
    history = histories([attempt("dry_run", 3)])[EVENT.id]
    (decision,) = plan(EVENT, (mail,), history, Existing(biz_types=frozenset({"mail"}))).decisions
    assert (decision.status, decision.biz_type, decision.matched) == (SENT, "", 0)


def test_only_the_routes_whose_decision_is_another_one_are_written_again() -> None:
    history = histories([attempt("sent"), attempt("dry_run", 3)])[EVENT.id]
    mail = Decision(3, "task", SENT, matched=1, biz_type="mail")
    assert [one.route_id for one in plan(EVENT, (SENT_TO_TWO, mail), history, NOTHING).decisions] == [3]


def test_the_newest_word_on_a_route_counts() -> None:
    history = histories([attempt("sent", attempt_no=3), attempt("sent"), attempt("dry_run", attempt_no=2)])[EVENT.id]
    assert history.rounds == 3
    assert plan(EVENT, (SENT_TO_TWO,), history, NOTHING).decisions == ()


def test_a_failure_says_nothing_about_a_route() -> None:
    history = histories([attempt("failed", None, reason="refused")])[EVENT.id]
    assert history.was_failed
    planned = plan(EVENT, (SENT_TO_TWO,), history, NOTHING)
    assert (planned.attempt_no, planned.decisions) == (2, (SENT_TO_TWO,))


def test_a_failure_leaves_the_last_word_on_an_event_without_route_as_it_was() -> None:
    skipped = Decision(None, "", SKIPPED, reason="no_route")
    history = histories([attempt("skipped", None, reason="no_route"), attempt("failed", None, 2, "refused")])[EVENT.id]
    assert plan(EVENT, (skipped,), history, NOTHING).decisions == ()


def test_a_replay_is_the_next_attempt_whatever_the_last_one_was() -> None:
    history = histories([attempt("sent")])[EVENT.id]
    planned = plan_anew(EVENT, (SENT_TO_TWO,), history, Existing(frozenset({1, 2})))
    assert planned.attempt_no == 2
    assert (planned.sagas, planned.decisions[0].matched) == (0, 0)


def test_the_key_names_router_route_and_event() -> None:
    assert attempt_key("default", 5, 7) == "wrk:default:5:7"
    assert attempt_key("default", None, 7) == "wrk:default:-:7"
