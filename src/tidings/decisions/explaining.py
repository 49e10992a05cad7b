"""Why something is where it is, in plain words, from what the tables say about it."""

import datetime
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidings.decisions.routing import NO_ROUTE, NO_SUBSCRIPTION
from tidings.model.endpoint_check import OWN_TASKS
from tidings.model.explanation import Explanation, Reason
from tidings.model.job import JobStatus
from tidings.model.route import EVERY_DOMAIN, RouteAttemptStatus
from tidings.model.saga import SagaStatus
from tidings.model.task import TaskStatus

Row = Mapping[str, Any]
Moment = datetime.datetime

_NO_PROCESS = "No {process} is running."


@dataclass(frozen=True)
class SagaFacts:
    """One delivery: `jobs` are its attempts, the last first; `held_by` the audit row of whoever paused it."""

    saga: Row
    jobs: Sequence[Row]
    subscription: Row | None
    limit: int
    now: Moment
    alive: Mapping[str, int]
    lane: Row | None = None
    held_by: Row | None = None
    requeued_as: int | None = None


@dataclass(frozen=True)
class RoutingFacts:
    """How the routers stand: `routers` with position and gates, `holes` those that hold the event's id."""

    routers: Sequence[Row]
    gates: Mapping[str, Row]
    holes: Sequence[Row] = ()
    alive: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class EventFacts:
    event: Row
    attempts: Sequence[Row]
    dead_letters: Sequence[Row]
    routing: RoutingFacts
    sagas: Sequence[SagaFacts]


# --- events ----------------------------------------------------------------------------------------------------------


def explain_event(facts: EventFacts) -> Explanation:
    event = facts.event
    subject = f"event:{event['id']}"
    if not facts.attempts:
        reasons = (Reason("It was accepted.", event["created_at"]), *_why_unrouted(facts))
        return Explanation(subject, "It has not been routed yet.", is_over=False, reasons=reasons)
    parts = tuple(explain_saga(saga) for saga in facts.sagas)
    reasons = (Reason("It was accepted.", event["created_at"]), *_decisions(facts))
    return Explanation(subject, _headline(parts, facts.attempts), all(p.is_over for p in parts), reasons, parts)


def explain_absent_event(id: int, routing: RoutingFacts, writers: Sequence[Row]) -> Explanation:
    """An id that is not in the log: never drawn, given up, or drawn by a transaction that is still open."""
    subject = f"event:{id}"
    if not routing.holes:
        reached = max((router["position"] for router in routing.routers), default=0)
        if id <= reached:
            text = "No such event: the transaction that drew this number was undone, or the event has been removed."
        else:
            text = "No such event: nobody has committed one under this number."
        return Explanation(subject, text, is_over=True)
    reasons = [
        Reason(f"Router {hole['worker_name']} watches for it and routes it as soon as it appears.", hole["seen_at"])
        for hole in routing.holes
    ]
    headline = "Its number was drawn by a transaction that may still be open. Other events do not wait for it."
    return Explanation(subject, headline, is_over=False, reasons=(*reasons, *explain_writers(writers)))


def explain_writers(writers: Sequence[Row]) -> tuple[Reason, ...]:
    """Whose transactions may still bring events, as far as a server shows that."""
    return tuple(
        Reason(
            f"Session {one['pid']} ({one['application'] or 'no name'}) has had a transaction open that writes events"
            f" for {one['open_seconds'] or 0:.0f} s.",
            remedy=f"To end it, and lose what it has not committed: SELECT pg_terminate_backend({one['pid']})",
        )
        for one in writers
        if one["pid"]
    )


def _headline(parts: Sequence[Explanation], attempts: Sequence[Row]) -> str:
    if not parts:
        sent = any(one["status"] == RouteAttemptStatus.SENT for one in attempts)
        return "It was routed, to a task." if sent else "It was routed, and nothing is to be delivered."
    waiting = sum(not part.is_over for part in parts)
    if waiting:
        return f"{waiting} of its {len(parts)} deliveries are not over yet."
    return f"All of its {len(parts)} deliveries are over."


def _why_unrouted(facts: EventFacts) -> Iterator[Reason]:
    domain, id, routing = facts.event["event_domain"], facts.event["id"], facts.routing
    responsible = [one for one in routing.routers if one["event_domain"] == domain]
    responsible = responsible or [one for one in routing.routers if one["event_domain"] == EVERY_DOMAIN]
    if not responsible:
        yield Reason(f"No router covers the domain {domain}.", remedy=f"tidings routers add NAME --domain {domain}")
    for router in responsible:
        name = router["worker_name"]
        closed = [*_closed(routing.gates, "routing"), *_closed(routing.gates, f"router:{name}")]
        yield from closed
        if closed:
            continue
        if not routing.alive.get("router"):
            yield Reason(_NO_PROCESS.format(process="router"), remedy="tidings run router")
        elif any(hole["worker_name"] == name for hole in routing.holes):
            yield Reason(f"It was committed late; router {name} will find it within a pass.")
        elif router["position"] < id:
            yield Reason(f"Router {name} has come to event {router['position']}.", router["updated_at"])
        else:
            yield Reason(
                f"Router {name} has passed it at {router['position']} without a decision. That must not be.",
                remedy="tidings reconcile",
            )


def _closed(gates: Mapping[str, Row], name: str) -> Iterator[Reason]:
    gate = gates.get(name)
    if gate is not None and gate["is_open"]:
        return
    if gate is None or gate["changed_at"] is None:
        text = f"The gate {name} was never opened."
        yield Reason(text, remedy=f"tidings gates open {name}")
        return
    why = f": {gate['reason']}" if gate["reason"] else "."
    yield Reason(
        f"The gate {name} was closed by {gate['changed_by'] or 'somebody'}{why}",
        gate["changed_at"],
        f"tidings gates open {name}",
    )


def _decisions(facts: EventFacts) -> Iterator[Reason]:
    for attempt in facts.attempts:
        yield Reason(_decision(attempt), attempt["created_at"], _decision_remedy(attempt, facts))


def _decision(attempt: Row) -> str:
    by = f"route {attempt['route_id']}" if attempt["route_id"] else f"router {attempt['worker_name']}"
    left_out = f" ({attempt['detail']})" if attempt["detail"] else ""
    things = "task" if attempt["route_kind"] == "task" else "deliveries"
    return {
        RouteAttemptStatus.SENT: f"By {by} it became {attempt['matched']} {things}{left_out}.",
        RouteAttemptStatus.DRY_RUN: f"By {by}, a dry run, it would be {attempt['matched']} {things}{left_out}.",
        RouteAttemptStatus.DISABLED: f"Its route, {by}, is switched off.",
        RouteAttemptStatus.SKIPPED: _skipped(attempt, by, left_out),
        RouteAttemptStatus.FAILED: f"It could not be routed by {by}: {attempt['reason']}",
    }[RouteAttemptStatus(attempt["status"])]


def _skipped(attempt: Row, by: str, left_out: str) -> str:
    known = {
        NO_ROUTE: "No route matched it.",
        NO_SUBSCRIPTION: f"By {by} nobody was to get it: no verified and active subscription matched{left_out}.",
    }
    return known.get(attempt["reason"], f"By {by} it was skipped: {attempt['reason']}.")


def _decision_remedy(attempt: Row, facts: EventFacts) -> str:
    if attempt["status"] == RouteAttemptStatus.FAILED:
        waiting = [one["id"] for one in facts.dead_letters if one["resolved_at"] is None]
        return f"tidings route-dead-letters replay {waiting[0]}" if waiting else ""
    if attempt["reason"] == NO_ROUTE:
        return f"tidings routes add --type {facts.event['event_type']} --target webhook"
    if attempt["reason"] == NO_SUBSCRIPTION:
        return "tidings subscriptions replay ID --since …, once there is one"
    return ""


# --- tasks -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TaskFacts:
    """One task, in the queue or in the history."""

    task: Row
    now: Moment
    alive: Mapping[str, int]


def explain_task(facts: TaskFacts) -> Explanation:
    task = facts.task
    subject, kind = f"task:{task['id']}", task["biz_type"]
    match TaskStatus(task["status"]):
        case TaskStatus.SUCCESS:
            return Explanation(subject, f"Done: {kind}.", True, (Reason("It is over.", task["updated_at"]),))
        case TaskStatus.FAIL_TERMINAL:
            remedy = f"tidings tasks retry {task['id']}"
            reasons = (Reason(f"{task['result_msg']}", task["updated_at"], remedy),)
            return Explanation(subject, f"Given up: {kind}.", True, reasons)
        case TaskStatus.PROCESSING:
            text = f"Worker {task['worker_id']} gave its last sign of life."
            headline = f"Run {task['retry_count'] + 1} of {kind} is under way."
            return Explanation(subject, headline, False, (Reason(text, task["updated_at"]),))
    return Explanation(subject, f"Waits to be run: {kind}.", False, tuple(_why_task_waits(facts)))


def _why_task_waits(facts: TaskFacts) -> Iterator[Reason]:
    task, process = facts.task, "verifier" if facts.task["biz_type"] in OWN_TASKS else "task-worker"
    if task["status"] == TaskStatus.FAIL_RETRY:
        runs = f"Run {task['retry_count']} of {task['max_retries'] + 1} failed"
        yield Reason(f"{runs}: {task['result_msg']}", task["updated_at"])
    due = task["next_run_time"]
    if due > facts.now:
        yield Reason(f"It is due in {_span((due - facts.now).total_seconds())}, at {_at(due)}.")
        return
    yield Reason("It is due.", due)
    if not facts.alive.get(process):
        yield Reason(_NO_PROCESS.format(process=process), remedy=f"tidings run {process}")
    else:
        yield Reason(f"It waits for a {process} that handles {task['biz_type']} and has a free slot.")


# --- sagas -----------------------------------------------------------------------------------------------------------


def explain_saga(facts: SagaFacts) -> Explanation:
    saga = facts.saga
    subject = f"saga:{saga['id']}"
    to = f"to subscription {saga['subscription_id']}"
    status = SagaStatus(saga["status"])
    if status is SagaStatus.COMPLETED:
        tries = f"at attempt {saga['attempt_count']}"
        before = (Reason(f"Before it went right: {saga['final_error_code']}."),) if saga["final_error_code"] else ()
        return Explanation(
            subject, f"Delivered {to}, {tries}.", True, (Reason("It is over.", saga["updated_at"]), *before)
        )
    if status is SagaStatus.DEAD_LETTERED:
        return Explanation(subject, f"Given up {to}: {saga['final_error_code']}.", True, tuple(_why_dead(facts)))
    if status is SagaStatus.IN_PROGRESS:
        headline = f"Attempt {saga['attempt_count'] + 1} {to} is under way."
        return Explanation(subject, headline, False, tuple(_why_under_way(facts)))
    return Explanation(subject, f"Waits to be sent {to}.", False, (*_last_failure(facts), *_why_waiting(facts)))


def _why_dead(facts: SagaFacts) -> Iterator[Reason]:
    saga = facts.saga
    requeue = f"tidings dead-letters requeue {saga['dead_letter_id']}" if not facts.requeued_as else ""
    yield Reason(f"After {saga['attempt_count']} of {facts.limit} attempts.", saga["updated_at"], requeue)
    if facts.requeued_as:
        yield Reason(f"It was requeued as saga {facts.requeued_as}.", remedy=f"tidings why saga:{facts.requeued_as}")


def _last_failure(facts: SagaFacts) -> Iterator[Reason]:
    saga = facts.saga
    if saga["status"] == SagaStatus.PENDING_RETRY:
        text = f"Attempt {saga['attempt_count']} of {facts.limit} failed: {saga['final_error_code']}."
        yield Reason(text, saga["updated_at"])


def _why_waiting(facts: SagaFacts) -> Iterator[Reason]:
    held = [*_why_held(facts)]
    yield from held
    due = facts.saga["next_attempt_at"]
    if due > facts.now:
        yield Reason(f"The next attempt is due in {_span((due - facts.now).total_seconds())}, at {_at(due)}.")
    elif not held:
        yield Reason("It is due.", due)
        if not facts.alive.get("orchestrator"):
            yield Reason(_NO_PROCESS.format(process="orchestrator"), remedy="tidings run orchestrator")
        elif facts.lane is not None:
            yield Reason(_lane(facts.lane))


def _why_held(facts: SagaFacts) -> Iterator[Reason]:
    subscription = facts.subscription
    if subscription is None:
        yield Reason("Its subscription is not there. That must not be.", remedy="tidings reconcile")
        return
    name = f"Subscription {subscription['id']}"
    if subscription["paused"]:
        by = f" by {facts.held_by['actor']}{_why_paused(facts.held_by)}" if facts.held_by else ""
        since = facts.held_by["created_at"] if facts.held_by else None
        yield Reason(f"{name} was paused{by}.", since, f"tidings subscriptions resume {subscription['id']}")
    if not subscription["active"]:
        yield Reason(f"{name} is not active.", remedy=f"tidings subscriptions activate {subscription['id']}")
    if not subscription["verified"]:
        yield Reason(f"{name} is not verified.", remedy=f"tidings subscriptions verify {subscription['id']}")


def _why_paused(deed: Row) -> str:
    reason = json.loads(deed["detail"] or "{}").get("reason")
    return f" ({reason})" if reason else ""


def _lane(lane: Row) -> str:
    failures = f", after {lane['failures']} failures in a row" if lane["failures"] else ""
    return f"At most {lane['window_size']} of its subscription are sent at a time{failures}; it waits for its turn."


def _why_under_way(facts: SagaFacts) -> Iterator[Reason]:
    job = facts.jobs[0] if facts.jobs else None
    if job is None:
        yield Reason("It has no job. That must not be.", remedy="tidings reconcile")
        return
    status = JobStatus(job["status"])
    if status is JobStatus.LEASED:
        yield from _why_leased(job, facts)
    elif status is JobStatus.PENDING:
        yield from _why_not_leased(job, facts)
    else:
        code = job["error_code"] or "success"
        yield Reason(f"The worker reported {code}; the orchestrator takes it in next.", job["finished_at"])
        if not facts.alive.get("orchestrator"):
            yield Reason(_NO_PROCESS.format(process="orchestrator"), remedy="tidings run orchestrator")


def _why_leased(job: Row, facts: SagaFacts) -> Iterator[Reason]:
    left = (job["lease_until"] - facts.now).total_seconds()
    if left > 0:
        yield Reason(f"Worker {job['worker_id']} has it until {_at(job['lease_until'])}, {_span(left)} from now.")
        return
    yield Reason(f"The lease of worker {job['worker_id']} ended without a result.", job["lease_until"])
    if not facts.alive.get("cleaner"):
        yield Reason(_NO_PROCESS.format(process="cleaner"), remedy="tidings run cleaner")


def _why_not_leased(job: Row, facts: SagaFacts) -> Iterator[Reason]:
    left = (job["lease_until"] - facts.now).total_seconds()
    held = [*_why_held(facts)]
    yield from held
    if left > 0:
        yield Reason(f"A worker gave it back unsent; it may be claimed again in {_span(left)}.")
    elif not facts.alive.get("worker"):
        yield Reason(_NO_PROCESS.format(process="worker"), remedy="tidings run worker")
    elif not held:
        yield Reason("It waits for a worker with a free slot.", job["lease_until"])


def _at(moment: Moment) -> str:
    return moment.astimezone(datetime.UTC).strftime("%H:%M:%S UTC")


def _span(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
