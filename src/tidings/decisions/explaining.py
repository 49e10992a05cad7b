"""Why something is where it is, in plain words, from what the tables say about it."""

import datetime
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidings.decisions.answers import say
from tidings.decisions.routing import NO_ROUTE, NO_SUBSCRIPTION
from tidings.model.endpoint_check import process_of
from tidings.model.explanation import Explanation, Reason
from tidings.model.job import JobStatus
from tidings.model.route import EVERY_DOMAIN, ROUTING_GATE, RouteAttemptStatus, router_gate
from tidings.model.saga import SagaStatus
from tidings.model.sentence import Sentence
from tidings.model.task import TaskStatus

Row = Mapping[str, Any]
Moment = datetime.datetime


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


def _nobody_runs(process: str) -> Reason:
    return Reason(say("no_process", process=process), remedy=f"tidings run {process}")


# --- events ----------------------------------------------------------------------------------------------------------


def explain_event(facts: EventFacts) -> Explanation:
    event = facts.event
    subject = f"event:{event['id']}"
    if not facts.attempts:
        reasons = (Reason(say("accepted"), event["created_at"]), *_why_unrouted(facts))
        return Explanation(subject, say("not_routed_yet"), is_over=False, reasons=reasons)
    parts = tuple(explain_saga(saga) for saga in facts.sagas)
    reasons = (Reason(say("accepted"), event["created_at"]), *_decisions(facts))
    return Explanation(subject, _headline(parts, facts.attempts), all(p.is_over for p in parts), reasons, parts)


def explain_absent_event(id: int, routing: RoutingFacts, writers: Sequence[Row]) -> Explanation:
    """An id that is not in the log: never drawn, given up, or drawn by a transaction that is still open."""
    subject = f"event:{id}"
    if not routing.holes:
        reached = max((router["position"] for router in routing.routers), default=0)
        text = say("undone") if id <= reached else say("not_committed")
        return Explanation(subject, text, is_over=True)
    reasons = [Reason(say("watched", router=hole["worker_name"]), hole["seen_at"]) for hole in routing.holes]
    return Explanation(subject, say("may_still_come"), False, (*reasons, *explain_writers(writers)))


def explain_writers(writers: Sequence[Row]) -> tuple[Reason, ...]:
    """Whose transactions may still bring events, as far as a server shows that."""
    return tuple(
        Reason(
            say(
                "open_session",
                pid=one["pid"],
                application=one["application"] or say("no_name"),
                seconds=f"{one['open_seconds'] or 0:.0f}",
            ),
            remedy=f"To end it, and lose what it has not committed: SELECT pg_terminate_backend({one['pid']})",
        )
        for one in writers
        if one["pid"]
    )


def _headline(parts: Sequence[Explanation], attempts: Sequence[Row]) -> str:
    if not parts:
        sent = any(one["status"] == RouteAttemptStatus.SENT for one in attempts)
        return say("to_a_task") if sent else say("nothing_to_deliver")
    waiting = sum(not part.is_over for part in parts)
    if waiting:
        return say("not_over", waiting=waiting, all=len(parts))
    return say("all_over", all=len(parts))


def _why_unrouted(facts: EventFacts) -> Iterator[Reason]:
    domain, id, routing = facts.event["event_domain"], facts.event["id"], facts.routing
    responsible = [one for one in routing.routers if one["event_domain"] == domain]
    responsible = responsible or [one for one in routing.routers if one["event_domain"] == EVERY_DOMAIN]
    if not responsible:
        yield Reason(say("no_router", domain=domain), remedy=f"tidings routers add NAME --domain {domain}")
    for router in responsible:
        name = router["worker_name"]
        closed = [*_closed(routing.gates, ROUTING_GATE), *_closed(routing.gates, router_gate(name))]
        yield from closed
        if closed:
            continue
        if not routing.alive.get("router"):
            yield _nobody_runs("router")
        elif any(hole["worker_name"] == name for hole in routing.holes):
            yield Reason(say("late", router=name))
        elif router["position"] < id:
            yield Reason(say("router_at", router=name, position=router["position"]), router["updated_at"])
        else:
            passed = say("router_passed", router=name, position=router["position"])
            yield Reason(passed, remedy="tidings reconcile")


def _closed(gates: Mapping[str, Row], name: str) -> Iterator[Reason]:
    gate = gates.get(name)
    if gate is not None and gate["is_open"]:
        return
    if gate is None or gate["changed_at"] is None:
        yield Reason(say("gate_never_opened", gate=name), remedy=f"tidings gates open {name}")
        return
    known = {"gate": name, "who": gate["changed_by"] or say("somebody")}
    text = say("gate_closed_why", **known, reason=gate["reason"]) if gate["reason"] else say("gate_closed", **known)
    yield Reason(text, gate["changed_at"], f"tidings gates open {name}")


def _decisions(facts: EventFacts) -> Iterator[Reason]:
    for attempt in facts.attempts:
        yield Reason(_decision(attempt), attempt["created_at"], _decision_remedy(attempt, facts))


def _decision(attempt: Row) -> Sentence:
    by = say("route", id=attempt["route_id"]) if attempt["route_id"] else say("router", name=attempt["worker_name"])
    left_out = say("left_out", detail=attempt["detail"]) if attempt["detail"] else ""
    status = RouteAttemptStatus(attempt["status"])
    match status:
        case RouteAttemptStatus.SENT | RouteAttemptStatus.DRY_RUN:
            things = "task" if attempt["route_kind"] == "task" else "deliveries"
            return say(f"{status}_{things}", by=by, count=attempt["matched"], left_out=left_out)
        case RouteAttemptStatus.DISABLED:
            return say("disabled", by=by)
        case RouteAttemptStatus.SKIPPED:
            return _skipped(attempt, by, left_out)
    return say("failed", by=by, reason=attempt["reason"])


def _skipped(attempt: Row, by: Sentence, left_out: str) -> Sentence:
    if attempt["reason"] == NO_ROUTE:
        return say("no_route")
    if attempt["reason"] == NO_SUBSCRIPTION:
        return say("no_subscription", by=by, left_out=left_out)
    return say("skipped", by=by, reason=attempt["reason"])


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
            return Explanation(subject, say("task_done", type=kind), True, (_over(task),))
        case TaskStatus.FAIL_TERMINAL:
            remedy = f"tidings tasks retry {task['id']}"
            reasons = (Reason(f"{task['result_msg']}", task["updated_at"], remedy),)
            return Explanation(subject, say("task_given_up", type=kind), True, reasons)
        case TaskStatus.PROCESSING:
            text = say("last_sign", worker=task["worker_id"])
            headline = say("task_under_way", run=task["retry_count"] + 1, type=kind)
            return Explanation(subject, headline, False, (Reason(text, task["updated_at"]),))
    return Explanation(subject, say("task_waits", type=kind), False, tuple(_why_task_waits(facts)))


def _over(row: Row) -> Reason:
    return Reason(say("is_over"), row["updated_at"])


def _why_task_waits(facts: TaskFacts) -> Iterator[Reason]:
    task, process = facts.task, process_of(facts.task["biz_type"])
    if task["status"] == TaskStatus.FAIL_RETRY:
        runs = {"run": task["retry_count"], "runs": task["max_retries"] + 1}
        yield Reason(say("run_failed", **runs, result=task["result_msg"]), task["updated_at"])
    due = task["next_run_time"]
    if due > facts.now:
        yield Reason(say("due_in", span=due - facts.now, at=due))
        return
    yield Reason(say("is_due"), due)
    if not facts.alive.get(process):
        yield _nobody_runs(process)
    else:
        yield Reason(say("waits_for_handler", process=process, type=task["biz_type"]))


# --- sagas -----------------------------------------------------------------------------------------------------------


def explain_saga(facts: SagaFacts) -> Explanation:
    saga = facts.saga
    subject, to, error = f"saga:{saga['id']}", saga["subscription_id"], saga["final_error_code"]
    match SagaStatus(saga["status"]):
        case SagaStatus.COMPLETED:
            before = (Reason(say("before", error=error)),) if error else ()
            headline = say("delivered", id=to, attempt=saga["attempt_count"])
            return Explanation(subject, headline, True, (_over(saga), *before))
        case SagaStatus.DEAD_LETTERED:
            return Explanation(subject, say("given_up", id=to, error=error), True, tuple(_why_dead(facts)))
        case SagaStatus.IN_PROGRESS:
            headline = say("under_way", attempt=saga["attempt_count"] + 1, id=to)
            return Explanation(subject, headline, False, tuple(_why_under_way(facts)))
    return Explanation(subject, say("waits", id=to), False, (*_last_failure(facts), *_why_waiting(facts)))


def _why_dead(facts: SagaFacts) -> Iterator[Reason]:
    saga = facts.saga
    requeue = f"tidings dead-letters requeue {saga['dead_letter_id']}" if not facts.requeued_as else ""
    yield Reason(say("after", count=saga["attempt_count"], limit=facts.limit), saga["updated_at"], requeue)
    if facts.requeued_as:
        yield Reason(say("requeued", id=facts.requeued_as), remedy=f"tidings why saga:{facts.requeued_as}")


def _last_failure(facts: SagaFacts) -> Iterator[Reason]:
    saga = facts.saga
    if saga["status"] == SagaStatus.PENDING_RETRY:
        known = {"attempt": saga["attempt_count"], "limit": facts.limit, "error": saga["final_error_code"]}
        yield Reason(say("attempt_failed", **known), saga["updated_at"])


def _why_waiting(facts: SagaFacts) -> Iterator[Reason]:
    held = [*_why_held(facts)]
    yield from held
    due = facts.saga["next_attempt_at"]
    if due > facts.now:
        yield Reason(say("next_due_in", span=due - facts.now, at=due))
    elif not held:
        yield Reason(say("is_due"), due)
        if not facts.alive.get("orchestrator"):
            yield _nobody_runs("orchestrator")
        elif facts.lane is not None:
            yield Reason(_lane(facts.lane))


def _why_held(facts: SagaFacts) -> Iterator[Reason]:
    subscription = facts.subscription
    if subscription is None:
        yield Reason(say("subscription_missing"), remedy="tidings reconcile")
        return
    id = subscription["id"]
    if subscription["paused"]:
        since = facts.held_by["created_at"] if facts.held_by else None
        yield Reason(_paused(id, facts.held_by), since, f"tidings subscriptions resume {id}")
    if not subscription["active"]:
        yield Reason(say("inactive", id=id), remedy=f"tidings subscriptions activate {id}")
    if not subscription["verified"]:
        yield Reason(say("unverified", id=id), remedy=f"tidings subscriptions verify {id}")


def _paused(id: int, deed: Row | None) -> Sentence:
    if deed is None:
        return say("paused", id=id)
    known = {"id": id, "who": deed["actor"]}
    reason = json.loads(deed["detail"] or "{}").get("reason")
    return say("paused_by_why", **known, reason=reason) if reason else say("paused_by", **known)


def _lane(lane: Row) -> Sentence:
    window, failures = lane["window_size"], lane["failures"]
    return say("window_after", window=window, failures=failures) if failures else say("window", window=window)


def _why_under_way(facts: SagaFacts) -> Iterator[Reason]:
    job = facts.jobs[0] if facts.jobs else None
    if job is None:
        yield Reason(say("job_missing"), remedy="tidings reconcile")
        return
    status = JobStatus(job["status"])
    if status is JobStatus.LEASED:
        yield from _why_leased(job, facts)
    elif status is JobStatus.PENDING:
        yield from _why_not_leased(job, facts)
    else:
        outcome = job["error_code"] or say("success")
        yield Reason(say("reported", outcome=outcome), job["finished_at"])
        if not facts.alive.get("orchestrator"):
            yield _nobody_runs("orchestrator")


def _why_leased(job: Row, facts: SagaFacts) -> Iterator[Reason]:
    worker, until = job["worker_id"], job["lease_until"]
    if until > facts.now:
        yield Reason(say("leased", worker=worker, at=until, span=until - facts.now))
        return
    yield Reason(say("lease_ended", worker=worker), until)
    if not facts.alive.get("cleaner"):
        yield _nobody_runs("cleaner")


def _why_not_leased(job: Row, facts: SagaFacts) -> Iterator[Reason]:
    left = job["lease_until"] - facts.now
    held = [*_why_held(facts)]
    yield from held
    if left > datetime.timedelta(0):
        yield Reason(say("given_back", span=left))
    elif not facts.alive.get("worker"):
        yield _nobody_runs("worker")
    elif not held:
        yield Reason(say("waits_for_worker"), job["lease_until"])
