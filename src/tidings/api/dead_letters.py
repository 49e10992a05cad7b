"""`/v1/dead-letters`: what was given up, and its way back: one by id, or many by a filter as a stored operation."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from tidings.api import requeues
from tidings.api.context import By, Has
from tidings.api.describing import (
    VISIBLE,
    Answer,
    CursorText,
    Domain,
    Given,
    Id,
    Limit,
    Moment,
    PageOf,
    Shown,
    about,
    in_utc,
    shown,
    stored_json,
)
from tidings.api.generations import Generation, one_generation
from tidings.api.paging import paged
from tidings.api.requeues import ROLE
from tidings.db.engine import Engine
from tidings.model.dead_letter import MassRequeueStatus
from tidings.model.id import BIGGEST_ID
from tidings.model.key import Scope
from tidings.roles.dead_letters import requeueing
from tidings.roles.dead_letters.operations import Filter, MassRequeue
from tidings.roles.observer.filters import LetterFilter
from tidings.roles.observer.letters import LetterObserver
from tidings.roles.observer.listing import EVER, NEVER
from tidings.roles.observer.pages import PageObserver

router = APIRouter(tags=["dead letters"])

ErrorCode = Annotated[str, Field(max_length=100, pattern=VISIBLE)]
EventType = Annotated[str, Field(max_length=100, pattern=VISIBLE)]


class DeadLetter(Shown):
    """A delivery that was given up."""

    id: int = Field(description="Its id.", examples=[3])
    saga_id: int = Field(description="Which delivery.")
    event_id: int = Field(description="Of which event.")
    subscription_id: int = Field(description="To whom.")
    final_error_code: str | None = Field(description="The last error.")
    failed_at: Moment = Field(description="When it was given up.")
    requeued_as: int | None = Field(description="The delivery that a requeue made of it.")
    requeued_status: str | None = Field(description="Where that one stands.")


class DeadLetterWithPayload(DeadLetter):
    """A dead letter with what would have been sent."""

    payload_snapshot: Any = Field(description="The event's payload.")


class RequeueFilter(Given):
    """Which dead letters; without anything, all there are now."""

    subscription_id: int | None = Field(None, ge=1, le=BIGGEST_ID, description="Only of this subscription.")
    error_code: ErrorCode | None = Field(None, description="Only with this last error.", examples=["http_503"])
    event_type: EventType | None = Field(None, description="Only of events of this type.", examples=["order.paid"])
    since: Moment | None = Field(None, description="Only given up then or later.")
    until: Moment | None = Field(None, description="Only given up then or before.")
    rate: int = Field(100, ge=1, le=10_000, description="How many a second.")
    preview: bool = Field(False, description="Only count; requeue nothing.")


class RefusedLetters(Shown):
    """Dead letters that a requeue would refuse."""

    subscription_id: int = Field(description="Of which subscription.")
    active: bool = Field(description="False: it is inactive. True: it is not verified.")
    letters: int = Field(description="How many.")


class RequeueOfMany(Shown):
    """A requeue of many, and how far it has come."""

    id: int | None = Field(description="Its id; null for a preview.")
    status: MassRequeueStatus | None = Field(description="running, done or cancelled; null for a preview.")
    total: int = Field(description="How many dead letters the filter finds.")
    started_count: int = Field(description="How many were requeued.")
    already_count: int = Field(description="How many had been before.")
    refused_count: int = Field(description="How many were refused.")
    refused: list[RefusedLetters] = Field(description="For a preview: what would be refused, by subscription.")


class StoredRequeue(Shown):
    """A requeue of many, as it is kept."""

    id: int = Field(description="Its id.")
    status: MassRequeueStatus = Field(description="running, done or cancelled.")
    filter: Any = Field(description="Which dead letters.")
    rate: int = Field(description="How many a second.")
    requested_by: str = Field(description="Who asked for it.")
    total: int = Field(description="How many the filter found.")
    started_count: int = Field(description="How many were requeued.")
    already_count: int = Field(description="How many had been before.")
    refused_count: int = Field(description="How many were refused.")
    created_at: Moment = Field(description="When it was asked for.")
    updated_at: Moment = Field(description="When it last went on.")
    finished_at: Moment | None = Field(description="When it ended.")


@router.get("/dead-letters", summary="List dead letters", **about(Scope.VIEWER, PageOf[DeadLetter], "bad_cursor"))
async def list_dead_letters(
    api: Has,
    own: Domain,
    subscription_id: Annotated[int | None, Query(ge=1, le=BIGGEST_ID, description="Only of this one.")] = None,
    error_code: Annotated[str, Query(max_length=100, pattern=VISIBLE, description="Only with this error.")] = "",
    event_type: Annotated[str, Query(max_length=100, pattern=VISIBLE, description="Only of this type.")] = "",
    since: Annotated[Moment | None, Query(description="Given up then or later; UTC where no zone is said.")] = None,
    until: Annotated[Moment | None, Query(description="Given up then or before.")] = None,
    limit: Limit = 50,
    cursor: CursorText = None,
) -> Answer:
    """Newest first, with what became of those that were requeued."""
    chosen = LetterFilter(own, subscription_id or 0, error_code, event_type, in_utc(since), in_utc(until))
    return Answer(
        await paged(
            api,
            "dead-letters",
            vars(chosen),
            cursor,
            PageObserver,
            lambda observer, place: observer.dead_letters(chosen, limit, place),
            lambda row: shown(DeadLetter, row),
        )
    )


@router.get(
    "/dead-letters/requeues",
    summary="List requeues of many",
    **about(Scope.VIEWER, PageOf[StoredRequeue], "bad_cursor", of_all_domains=True),
)
async def list_requeues(api: Has, limit: Limit = 50, cursor: CursorText = None) -> Answer:
    """Newest first."""
    return Answer(
        await paged(
            api,
            "requeues",
            {},
            cursor,
            LetterObserver,
            lambda observer, place: observer.mass_requeues(limit, place),
            lambda row: shown(StoredRequeue, row, filter=stored_json(row["filter"])),
        )
    )


@router.get("/dead-letters/{id}", summary="One dead letter", **about(Scope.VIEWER, DeadLetterWithPayload, "not_found"))
async def show_dead_letter(id: Id, api: Has, own: Domain) -> Answer:
    """With what would have been sent."""
    found = await api.observed(PageObserver, lambda observer: observer.dead_letter(id, own))
    return Answer(shown(DeadLetterWithPayload, found, payload_snapshot=stored_json(found["payload_snapshot"])))


@router.post(
    "/dead-letters/requeue",
    summary="Requeue by a filter",
    **about(Scope.OPERATOR, RequeueOfMany, "outcome_unknown", status=202, of_all_domains=True),
)
async def requeue_many(given: RequeueFilter, api: Has, caller: By) -> Answer:
    """A stored operation that goes on by itself at its rate, and that this or another server can resume."""
    chosen = Filter(
        in_utc(given.since) or EVER,
        in_utc(given.until) or NEVER,
        given.subscription_id or 0,
        given.error_code or "",
        given.event_type or "",
    )
    if given.preview:
        return Answer(await api.as_role(ROLE, lambda engine: _previewed(engine, chosen)), status_code=202)
    return Answer(_told(await requeues.begin(api, chosen, given.rate, caller.actor)), status_code=202)


@router.get(
    "/dead-letters/requeues/{id}",
    summary="How far a requeue of many has come",
    **about(Scope.VIEWER, RequeueOfMany, "not_found", of_all_domains=True),
)
async def show_requeue(id: Id, api: Has) -> Answer:
    """Its counts grow until it is done."""
    return Answer(_told(await requeues.look(api, id)))


@router.post(
    "/dead-letters/requeues/{id}/resume",
    summary="Go on with a requeue of many",
    **about(Scope.OPERATOR, RequeueOfMany, "not_found", status=202, of_all_domains=True),
)
async def resume_requeue(id: Id, api: Has) -> Answer:
    """After the server that worked on it was stopped. On one that is over this changes nothing."""
    return Answer(_told(await requeues.resume(api, id)), status_code=202)


@router.post(
    "/dead-letters/requeues/{id}/cancel",
    summary="End a requeue of many",
    **about(Scope.OPERATOR, RequeueOfMany, "not_found", of_all_domains=True),
)
async def cancel_requeue(id: Id, api: Has, caller: By) -> Answer:
    """What was requeued stays so, the rest stays dead."""
    return Answer(_told(await requeues.cancel(api, id, caller.actor)))


@router.post(
    "/dead-letters/{id}/requeue",
    summary="Requeue one dead letter",
    **about(Scope.OPERATOR, Generation, "not_found", "conflict", status=202, of_all_domains=True),
)
async def requeue(id: Id, api: Has, caller: By) -> Answer:
    """As a new delivery of the next generation. Asked twice, also at the same time, it is made once."""
    done = await requeues.requeue(api, [id], caller.actor)
    return one_generation(done[0], f"dead letter {id}")


async def _previewed(engine: Engine, chosen: Filter) -> dict[str, Any]:
    seen = await requeueing.preview(engine, chosen)
    refused = [
        {"subscription_id": id, "active": active, "letters": letters} for id, (active, letters) in seen.refused.items()
    ]
    counts = {"started_count": 0, "already_count": 0, "refused_count": 0}
    return {"id": None, "status": None, "total": seen.total, **counts, "refused": refused}


def _told(stands: MassRequeue) -> dict[str, Any]:
    return shown(RequeueOfMany, vars(stands), refused=[])
