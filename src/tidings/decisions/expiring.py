"""Which old stories are finished in every part, so that they may go as a whole, and what is counted of them."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tidings.model.retention import FATES
from tidings.model.route import EVERY_DOMAIN, RouteAttemptStatus, RouteTarget
from tidings.model.saga import SagaStatus

WANTED = {RouteTarget.WEBHOOK: "wanted_deliveries", RouteTarget.TASK: "wanted_tasks"}
ENDED = {SagaStatus.COMPLETED: "delivered", SagaStatus.DEAD_LETTERED: "dead"}


@dataclass(frozen=True)
class OldEvent:
    """An event that was accepted on this `day`, long enough ago."""

    id: int
    event_domain: str
    day: str


@dataclass(frozen=True)
class RouterPlace:
    """How far a router has come; it knows its place again by the last event."""

    event_domain: str
    position: int
    last_event_id: int | None


@dataclass(frozen=True)
class Attempts:
    """Decisions of one kind and status about one event."""

    route_kind: str
    status: RouteAttemptStatus
    count: int
    matched: int
    is_recent: bool


@dataclass(frozen=True)
class Saga:
    id: int
    subscription_id: int
    generation: int
    status: SagaStatus
    is_recent: bool


@dataclass(frozen=True)
class Letters:
    """Routing dead letters of one event."""

    count: int
    unresolved: int
    is_recent: bool


@dataclass(frozen=True)
class Jobs:
    """Of one saga."""

    count: int
    unapplied: int


@dataclass(frozen=True)
class Facts:
    """All that stands about some events, by event, and of jobs by saga. `holes` are of any router."""

    routers: Sequence[RouterPlace]
    holes: Sequence[tuple[int, int]]
    attempts: Mapping[int, Sequence[Attempts]] = field(default_factory=dict)
    letters: Mapping[int, Letters] = field(default_factory=dict)
    sagas: Mapping[int, Sequence[Saga]] = field(default_factory=dict)
    jobs: Mapping[int, Jobs] = field(default_factory=dict)
    dead_letters: Mapping[int, int] = field(default_factory=dict)
    with_open_tasks: Collection[int] = ()


@dataclass(frozen=True)
class Story:
    """A finished one, with the sagas that go with it and what is counted of it."""

    event: OldEvent
    saga_ids: tuple[int, ...]
    counts: Mapping[str, int]


def finished_stories(events: Iterable[OldEvent], facts: Facts) -> list[Story]:
    """The others stay whole."""
    return [_story(event, facts) for event in events if _is_finished(event, facts)]


def totals_by_day(stories: Iterable[Story]) -> dict[str, Counter[str]]:
    totals: dict[str, Counter[str]] = {}
    for story in stories:
        totals.setdefault(story.event.day, Counter()).update(story.counts)
    return totals


def _is_finished(event: OldEvent, facts: Facts) -> bool:
    letters = facts.letters.get(event.id)
    return (
        _is_routed(event, facts)
        and not any(one.is_recent for one in facts.attempts[event.id])
        and (letters is None or not (letters.unresolved or letters.is_recent))
        and event.id not in facts.with_open_tasks
        and all(_has_ended(saga, facts.jobs.get(saga.id)) for saga in facts.sagas.get(event.id, ()))
    )


def _is_routed(event: OldEvent, facts: Facts) -> bool:
    """By the router of its domain, and no router will look for it, or by it, again."""
    scopes = {router.event_domain: router for router in facts.routers}
    router = scopes.get(event.event_domain, scopes.get(EVERY_DOMAIN))
    return (
        router is not None
        and event.id <= router.position
        and event.id in facts.attempts
        and all(event.id != other.last_event_id for other in facts.routers)
        and not any(lo <= event.id <= hi for lo, hi in facts.holes)
    )


def _has_ended(saga: Saga, jobs: Jobs | None) -> bool:
    return saga.status in ENDED and not saga.is_recent and not (jobs and jobs.unapplied)


def _story(event: OldEvent, facts: Facts) -> Story:
    attempts, sagas = facts.attempts[event.id], facts.sagas.get(event.id, ())
    letters = facts.letters.get(event.id)
    statuses = {one.status for one in attempts}
    counts = Counter(
        {
            "events": 1,
            "attempts": sum(one.count for one in attempts),
            "sagas": len(sagas),
            "jobs": sum(facts.jobs[saga.id].count for saga in sagas if saga.id in facts.jobs),
            "dead_letters": facts.dead_letters.get(event.id, 0),
            "route_dead_letters": letters.count if letters else 0,
            next(fate for fate in FATES if fate in statuses): 1,
        }
    )
    for one in attempts:
        if one.status is RouteAttemptStatus.SENT:
            counts[WANTED[RouteTarget(one.route_kind)]] += one.matched
    newest = {saga.subscription_id: saga for saga in sorted(sagas, key=lambda saga: saga.generation)}
    counts.update(ENDED[saga.status] for saga in newest.values())
    return Story(event, tuple(saga.id for saga in sagas), counts)
