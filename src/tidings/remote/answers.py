"""What the API answers, field by field, under the names of its OpenAPI document. New fields of a newer server are
left out."""

import datetime
import json
from typing import Any, Generic, TypeVar

import msgspec

T = TypeVar("T")
Moment = datetime.datetime


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Of everything that is answered."""


class Page(Answer, Generic[T], frozen=True):
    items: list[T]
    next_cursor: str | None


class PublishedEvent(Answer, frozen=True):
    """`duplicate`: it was there before, and nothing was stored now."""

    id: int
    duplicate: bool
    payload_differs: bool


class Event(Answer, frozen=True):
    id: int
    event_domain: str
    event_type: str
    event_stream: str
    external_id: str | None
    correlation_id: str
    created_at: Moment


class Job(Answer, frozen=True):
    id: int
    attempt_no: int
    status: str
    attempt_at: Moment
    worker_id: str | None
    lease_until: Moment | None
    lease_resets: int
    response_status: int | None
    error_code: str | None
    response_excerpt: str | None
    duration_ms: int | None
    created_at: Moment
    finished_at: Moment | None
    applied_at: Moment | None


class RouteAttempt(Answer, frozen=True):
    id: int
    worker_name: str
    route_id: int | None
    route_kind: str | None
    status: str
    matched: int
    reason: str | None
    attempt_no: int
    created_at: Moment


class TraceRouteDeadLetter(Answer, frozen=True):
    id: int
    worker_name: str
    created_at: Moment
    resolved_at: Moment | None


class TraceSaga(Answer, frozen=True):
    id: int
    subscription_id: int
    generation: int
    status: str
    attempt_count: int
    next_attempt_at: Moment
    final_error_code: str | None
    created_at: Moment
    updated_at: Moment
    jobs: list[Job]


class TraceTask(Answer, frozen=True):
    id: int
    biz_type: str
    biz_key: str
    status: int
    retry_count: int
    result_msg: str | None
    updated_at: Moment


class WithPayload:
    """`payload_text` is the very text that was published; `payload` is what it says."""

    __slots__ = ()
    raw_payload: msgspec.Raw

    @property
    def payload_text(self) -> str:
        return bytes(self.raw_payload).decode()

    @property
    def payload(self) -> Any:
        return json.loads(bytes(self.raw_payload))


class TracedEvent(Event, WithPayload, frozen=True):
    raw_payload: msgspec.Raw = msgspec.field(name="payload")
    route_attempts: list[RouteAttempt]
    route_dead_letters: list[TraceRouteDeadLetter]
    sagas: list[TraceSaga]
    tasks: list[TraceTask]


class Subscription(Answer, frozen=True):
    id: int
    event_domain: str
    event_type: str
    callback_url: str
    pending_callback_url: str | None
    active: bool
    verified: bool
    verification: str
    state: str
    paused: bool
    description: str
    max_retry_limit: int | None
    base_delay_seconds: float | None
    timeout_seconds: float | None
    max_in_flight: int | None
    config_version: int
    created_at: Moment
    updated_at: Moment


class CreatedSubscription(Subscription, frozen=True):
    """`secret` is shown only now."""

    secret: str

    def __repr__(self) -> str:
        return f"CreatedSubscription(id={self.id})"


class NewSecret(Answer, frozen=True):
    id: int
    secret: str

    def __repr__(self) -> str:
        return f"NewSecret(id={self.id})"


class Asked(Answer, frozen=True):
    check_id: int | None
    state: str


class SubscriptionReplay(Answer, frozen=True):
    looked_at: int
    made: int
    refused: int
    is_done: bool


class Saga(Answer, frozen=True):
    id: int
    event_id: int
    subscription_id: int
    generation: int
    status: str
    attempt_count: int
    next_attempt_at: Moment
    final_error_code: str | None
    correlation_id: str
    created_at: Moment
    updated_at: Moment


class SagaWithJobs(Saga, frozen=True):
    event_type: str | None
    dead_letter_id: int | None
    jobs: list[Job]


class Generation(Answer, frozen=True):
    id: int
    saga_id: int
    generation: int
    already_requeued: bool


class DeadLetter(Answer, frozen=True):
    id: int
    saga_id: int
    event_id: int
    subscription_id: int
    final_error_code: str | None
    failed_at: Moment
    requeued_as: int | None
    requeued_status: str | None


class DeadLetterWithPayload(DeadLetter, frozen=True):
    payload_snapshot: Any


class RefusedLetters(Answer, frozen=True):
    subscription_id: int
    active: bool
    letters: int


class RequeueOfMany(Answer, frozen=True):
    id: int | None
    status: str | None
    total: int
    started_count: int
    already_count: int
    refused_count: int
    refused: list[RefusedLetters]


class StoredRequeue(Answer, frozen=True):
    id: int
    status: str
    filter: Any
    rate: int
    requested_by: str
    total: int
    started_count: int
    already_count: int
    refused_count: int
    created_at: Moment
    updated_at: Moment
    finished_at: Moment | None


class Route(Answer, frozen=True):
    id: int
    event_domain: str
    event_type: str
    event_stream: str
    target: str
    task_biz_type: str
    enabled: bool
    dry_run: bool
    version: str


class Gate(Answer, frozen=True):
    name: str
    is_open: bool
    reason: str
    changed_by: str
    changed_at: Moment | None


class Router(Answer, frozen=True):
    worker_name: str
    event_domain: str
    position: int
    lag: int
    hole_ranges: int
    hole_ids: int
    oldest_hole_seconds: float | None
    knows_its_last_event: bool
    runs: int
    sent_count: int
    dry_run_count: int
    disabled_count: int
    skipped_count: int
    failed_count: int
    updated_at: Moment


class Hole(Answer, frozen=True):
    lo: int
    hi: int
    seen_at: Moment


class RouterWithHoles(Router, frozen=True):
    holes: list[Hole]


class RouteDeadLetter(Answer, frozen=True):
    id: int
    event_id: int
    worker_name: str
    error: str
    created_at: Moment
    resolved_at: Moment | None
    resolution: str | None


class RouteDeadLetterWithEvent(RouteDeadLetter, frozen=True):
    event_snapshot: Any


class RouteReplay(Answer, frozen=True):
    dead_letter_id: int
    event_id: int
    statuses: list[str]
    is_resolved: bool
    was_resolved: bool


class SubmittedTask(Answer, frozen=True):
    id: int
    status: int
    duplicate: bool
    payload_differs: bool


class Task(Answer, frozen=True):
    """`status`: 0 pending, 1 processing, 2 success, 3 to be retried, 4 failed for good."""

    id: int
    biz_type: str
    biz_key: str
    status: int
    priority: int
    retry_count: int
    max_retries: int
    next_run_time: Moment
    result_msg: str | None
    created_at: Moment
    updated_at: Moment


class TaskDeed(Answer, frozen=True):
    actor: str
    action: str
    detail: Any
    created_at: Moment


class WholeTask(Task, WithPayload, frozen=True):
    raw_payload: msgspec.Raw = msgspec.field(name="payload")
    correlation_id: str
    worker_id: str | None
    archived_at: Moment | None
    audit: list[TaskDeed]


class Commanded(Answer, frozen=True):
    id: int
    task_id: int | None
    outcome: str


class Reason(Answer, frozen=True):
    text: str
    since: Moment | None
    remedy: str


class Explanation(Answer, frozen=True):
    subject: str
    headline: str
    is_over: bool
    reasons: list[Reason]
    parts: list["Explanation"]


class Depth(Answer, frozen=True):
    count: int
    oldest_seconds: float


class RouterLag(Answer, frozen=True):
    router: str
    events: int
    oldest_seconds: float
    holes: int


class Stats(Answer, frozen=True):
    queues: dict[str, Depth]
    routers: list[RouterLag]
    processes: dict[str, int]
    counted_to: int
