"""Deliveries, and what was given up."""

import datetime

from tidings.remote import answers as a
from tidings.remote.calling import PAGE_SIZE, Call, get, post

Moment = datetime.datetime


def sagas(
    *,
    event_id: int | None = None,
    correlation_id: str = "",
    status: str = "",
    subscription_id: int | None = None,
    event_type: str = "",
    since: Moment | None = None,
    until: Moment | None = None,
    page_size: int = PAGE_SIZE,
) -> Call[a.Page[a.Saga]]:
    """All deliveries that fit."""
    return get(
        "/v1/sagas",
        a.Page[a.Saga],
        event_id=event_id,
        correlation_id=correlation_id,
        status=status,
        subscription_id=subscription_id,
        event_type=event_type,
        since=since,
        until=until,
        limit=page_size,
    )


def saga(id: int) -> Call[a.SagaWithJobs]:
    """One delivery with its attempts."""
    return get(f"/v1/sagas/{id}", a.SagaWithJobs)


def resend(id: int) -> Call[a.Generation]:
    """Send once more what was delivered. Asked twice, it is made once."""
    return post(f"/v1/sagas/{id}/resend", a.Generation)


def dead_letters(
    *,
    subscription_id: int | None = None,
    error_code: str = "",
    event_type: str = "",
    since: Moment | None = None,
    until: Moment | None = None,
    page_size: int = PAGE_SIZE,
) -> Call[a.Page[a.DeadLetter]]:
    """All dead letters that fit, newest first."""
    return get(
        "/v1/dead-letters",
        a.Page[a.DeadLetter],
        subscription_id=subscription_id,
        error_code=error_code,
        event_type=event_type,
        since=since,
        until=until,
        limit=page_size,
    )


def dead_letter(id: int) -> Call[a.DeadLetterWithPayload]:
    """One dead letter, with what would have been sent."""
    return get(f"/v1/dead-letters/{id}", a.DeadLetterWithPayload)


def requeue(id: int) -> Call[a.Generation]:
    """Requeue one dead letter. Asked twice, also at the same time, it is made once."""
    return post(f"/v1/dead-letters/{id}/requeue", a.Generation)


def requeue_many(
    *,
    subscription_id: int | None = None,
    error_code: str | None = None,
    event_type: str | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
    rate: int = 100,
    preview: bool = False,
) -> Call[a.RequeueOfMany]:
    """Requeue all that fit, as an operation that goes on by itself; `requeue_of_many` tells how far it has come."""
    given = {
        "subscription_id": subscription_id,
        "error_code": error_code,
        "event_type": event_type,
        "since": since,
        "until": until,
        "rate": rate,
        "preview": preview,
    }
    return post("/v1/dead-letters/requeue", a.RequeueOfMany, given, is_repeatable=preview)


def requeues_of_many(*, page_size: int = PAGE_SIZE) -> Call[a.Page[a.StoredRequeue]]:
    """All requeues of many, newest first."""
    return get("/v1/dead-letters/requeues", a.Page[a.StoredRequeue], limit=page_size)


def requeue_of_many(id: int) -> Call[a.RequeueOfMany]:
    """How far it has come."""
    return get(f"/v1/dead-letters/requeues/{id}", a.RequeueOfMany)


def resume_requeue(id: int) -> Call[a.RequeueOfMany]:
    """Go on with one whose server was stopped."""
    return post(f"/v1/dead-letters/requeues/{id}/resume", a.RequeueOfMany)


def cancel_requeue(id: int) -> Call[a.RequeueOfMany]:
    """End one; what was requeued stays so."""
    return post(f"/v1/dead-letters/requeues/{id}/cancel", a.RequeueOfMany)
