"""Where one event goes: the most specific route of each target, and the subscriptions that want it.

A decision depends on type, domain and stream alone, so that a thousand events of one kind are decided once.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tidings.decisions.matching import matches, rank
from tidings.model.event import LoggedEvent
from tidings.model.route import Route, RouteAttemptStatus, RouteTarget

NO_ROUTE = "no_route"
NO_SUBSCRIPTION = "no_subscription"
ROUTE_DISABLED = "route_disabled"
ALREADY_SENT = "already_sent"

_KINDS_REMEMBERED = 10_000
_LONGEST_DETAIL = 500


@dataclass(frozen=True)
class Subscriber:
    """A subscription, as far as routing looks at it."""

    id: int
    event_domain: str
    event_type: str
    active: bool
    verified: bool

    @property
    def may_be_sent_to(self) -> bool:
        return self.active and self.verified


@dataclass(frozen=True)
class Decision:
    """What happens to an event by one route, or by none: `subscriptions` get a saga, `biz_type` a task."""

    route_id: int | None
    route_kind: str
    status: RouteAttemptStatus
    matched: int = 0
    reason: str = ""
    detail: str = ""
    subscriptions: tuple[int, ...] = ()
    biz_type: str = ""


@dataclass(frozen=True)
class Configuration:
    """Routes and subscriptions at one version; what was decided once is remembered."""

    version: int
    routes: Sequence[Route]
    subscribers: Sequence[Subscriber]
    _decided: dict[tuple[str, str, str], tuple[Decision, ...]] = field(default_factory=dict, compare=False, repr=False)

    def decide(self, event: LoggedEvent) -> tuple[Decision, ...]:
        kind = (event.event_domain, event.event_type, event.event_stream)
        if kind not in self._decided:
            if len(self._decided) >= _KINDS_REMEMBERED:
                self._decided.clear()
            self._decided[kind] = tuple(_decide(*kind, self.routes, self.subscribers))
        return self._decided[kind]


def _decide(
    domain: str, event_type: str, stream: str, routes: Iterable[Route], subscribers: Iterable[Subscriber]
) -> Iterator[Decision]:
    chosen = resolve(domain, event_type, stream, routes)
    if not chosen:
        yield Decision(None, "", RouteAttemptStatus.SKIPPED, reason=NO_ROUTE)
    for route in chosen:
        if route.target is RouteTarget.TASK:
            yield _by_task(route)
        else:
            wanting = [s for s in subscribers if _wants(s, domain, event_type)]
            yield _by_webhook(route, wanting)


def resolve(domain: str, event_type: str, stream: str, routes: Iterable[Route]) -> list[Route]:
    """The most specific webhook route, and for each type of task the most specific task route."""
    best: dict[tuple[RouteTarget, str], Route] = {}
    for route in routes:
        if not _fits(route, domain, event_type, stream):
            continue
        target = (route.target, route.task_biz_type)
        if target not in best or _specificity(route) > _specificity(best[target]):
            best[target] = route
    return sorted(best.values(), key=lambda route: (route.target is RouteTarget.TASK, route.task_biz_type))


def _fits(route: Route, domain: str, event_type: str, stream: str) -> bool:
    return (
        matches(route.event_type, event_type)
        and matches(route.event_domain, domain)
        and matches(route.event_stream, stream)
    )


def _specificity(route: Route) -> tuple[tuple[bool, int], ...]:
    return rank(route.event_type), rank(route.event_domain), rank(route.event_stream)


def _wants(subscriber: Subscriber, domain: str, event_type: str) -> bool:
    return matches(subscriber.event_domain, domain) and matches(subscriber.event_type, event_type)


def _by_task(route: Route) -> Decision:
    status = _status(route)
    return Decision(
        route.id,
        route.target.value,
        status,
        matched=0 if status is RouteAttemptStatus.DISABLED else 1,
        reason=ROUTE_DISABLED if status is RouteAttemptStatus.DISABLED else "",
        biz_type=route.task_biz_type if status is RouteAttemptStatus.SENT else "",
    )


def _by_webhook(route: Route, wanting: Sequence[Subscriber]) -> Decision:
    status = _status(route)
    if status is RouteAttemptStatus.DISABLED:
        return Decision(route.id, route.target.value, status, reason=ROUTE_DISABLED)
    ready = tuple(subscriber.id for subscriber in wanting if subscriber.may_be_sent_to)
    detail = _left_out([subscriber for subscriber in wanting if not subscriber.may_be_sent_to])
    if status is RouteAttemptStatus.DRY_RUN:
        return Decision(route.id, route.target.value, status, matched=len(ready), detail=detail)
    if not ready:
        return Decision(route.id, route.target.value, RouteAttemptStatus.SKIPPED, reason=NO_SUBSCRIPTION, detail=detail)
    return Decision(route.id, route.target.value, status, matched=len(ready), detail=detail, subscriptions=ready)


def _status(route: Route) -> RouteAttemptStatus:
    if not route.enabled:
        return RouteAttemptStatus.DISABLED
    return RouteAttemptStatus.DRY_RUN if route.dry_run else RouteAttemptStatus.SENT


def _left_out(subscribers: Sequence[Subscriber]) -> str:
    """Who would have wanted the event and gets nothing, in as many words as fit."""
    if not subscribers:
        return ""
    named = ", ".join(f"{s.id} ({'unverified' if s.active else 'inactive'})" for s in subscribers)
    text = f"left out: {named}"
    return text if len(text) <= _LONGEST_DETAIL else f"{text[: _LONGEST_DETAIL - 1]}…"


@dataclass(frozen=True)
class History:
    """What was decided about an event before, by any router: the newest word on each route, and how often."""

    rounds: int
    newest: Mapping[int | None, tuple[str, str]]
    was_failed: bool


@dataclass(frozen=True)
class Attempt:
    """A row of route_attempts, as far as a later decision looks at it."""

    event_id: int
    route_id: int | None
    status: str
    reason: str
    attempt_no: int


def histories(attempts: Iterable[Attempt]) -> dict[int, History]:
    """By event. A failure says nothing about a route: its dead letter waits to be replayed."""
    rounds: dict[int, int] = {}
    newest: dict[int, dict[int | None, tuple[str, str]]] = {}
    failed: set[int] = set()
    for attempt in sorted(attempts, key=lambda attempt: attempt.attempt_no):
        rounds[attempt.event_id] = attempt.attempt_no
        words = newest.setdefault(attempt.event_id, {})
        if attempt.status == RouteAttemptStatus.FAILED:
            failed.add(attempt.event_id)
        else:
            words[attempt.route_id] = (attempt.status, attempt.reason)
    return {event: History(rounds[event], newest[event], event in failed) for event in rounds}


NO_HISTORY = History(0, {}, was_failed=False)


@dataclass(frozen=True)
class Existing:
    """What an event has already come to: its subscriptions with a saga, its types of task, also archived ones."""

    subscriptions: frozenset[int] = frozenset()
    biz_types: frozenset[str] = frozenset()


NOTHING = Existing()


@dataclass(frozen=True)
class Planned:
    """One event and the decisions about it that are new; with none, it was decided before."""

    event: LoggedEvent
    decisions: tuple[Decision, ...] = ()
    attempt_no: int = 1

    @property
    def sagas(self) -> int:
        return sum(len(decision.subscriptions) for decision in self.decisions)


def plan(event: LoggedEvent, decisions: tuple[Decision, ...], history: History, existing: Existing) -> Planned:
    """What is new: effects that are there already happen no second time, also where the decision is another one."""
    if history.rounds == 0:
        return Planned(event, decisions)
    changed = tuple(
        decision
        for decision in decisions
        if history.newest.get(decision.route_id) != (decision.status, decision.reason)
    )
    return plan_anew(event, changed, history, existing)


def plan_anew(event: LoggedEvent, decisions: tuple[Decision, ...], history: History, existing: Existing) -> Planned:
    """The next attempt, whatever the last one was; also then no effect happens a second time."""
    return Planned(event, tuple(_with_new_effects(decision, existing) for decision in decisions), history.rounds + 1)


def _with_new_effects(decision: Decision, existing: Existing) -> Decision:
    if decision.status is not RouteAttemptStatus.SENT:
        return decision
    left = tuple(one for one in decision.subscriptions if one not in existing.subscriptions)
    task = "" if decision.biz_type in existing.biz_types else decision.biz_type
    if (left, task) == (decision.subscriptions, decision.biz_type):
        return decision
    matched = len(left) + bool(task)
    return replace(decision, matched=matched, detail=ALREADY_SENT, subscriptions=left, biz_type=task)


def attempt_key(worker_name: str, route_id: int | None, event_id: int) -> str:
    """The same decision of the same router about the same event has the same key."""
    return f"wrk:{worker_name}:{'-' if route_id is None else route_id}:{event_id}"
