"""`/v1/sagas`: the delivery of one event to one subscription, with its attempts."""

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
    Id,
    Limit,
    Moment,
    PageOf,
    Shown,
    about,
    in_utc,
    shown,
)
from tidings.api.generations import Generation, one_generation
from tidings.api.jobs import Job
from tidings.api.paging import paged
from tidings.api.problems import Refused
from tidings.model.id import BIGGEST_ID
from tidings.model.key import Scope
from tidings.model.saga import SAGA_MOVES, SagaStatus
from tidings.roles.observer.filters import SagaFilter
from tidings.roles.observer.pages import PageObserver

router = APIRouter(tags=["sagas"])


class Saga(Shown):
    """The delivery of one event to one subscription."""

    id: int = Field(description="Its id.", examples=[34])
    event_id: int = Field(description="Of which event.")
    subscription_id: int = Field(description="To whom.")
    generation: int = Field(description="0 as routed; one more for each requeue or resend.")
    status: SagaStatus = Field(description="Where it stands.")
    attempt_count: int = Field(description="How many attempts have ended.")
    next_attempt_at: Moment = Field(description="When the next one is due, if there is one.")
    final_error_code: str | None = Field(description="The last error; it stays when a later attempt succeeds.")
    correlation_id: str = Field(description="That of the event.")
    created_at: Moment = Field(description="When it was made.")
    updated_at: Moment = Field(description="When it last changed.")


class SagaWithJobs(Saga):
    """A delivery with its attempts."""

    event_type: str | None = Field(description="The event's type.")
    dead_letter_id: int | None = Field(description="Its dead letter, if it was given up.")
    jobs: list[Job] = Field(description="Its attempts, the last first.")


@router.get("/sagas", summary="List deliveries", **about(Scope.VIEWER, PageOf[Saga], "bad_cursor"))
async def list_sagas(
    api: Has,
    own: Domain,
    event_id: Annotated[int | None, Query(ge=1, le=BIGGEST_ID, description="Only those of this event.")] = None,
    correlation_id: Annotated[str, Query(max_length=128, pattern=VISIBLE, description="Only of such events.")] = "",
    status: Annotated[SagaStatus | None, Query(description="Only these.")] = None,
    subscription_id: Annotated[int | None, Query(ge=1, le=BIGGEST_ID, description="Only to this one.")] = None,
    event_type: Annotated[str, Query(max_length=100, pattern=VISIBLE, description="Only of events of it.")] = "",
    since: Annotated[Moment | None, Query(description="Made then or later; UTC where no zone is said.")] = None,
    until: Annotated[Moment | None, Query(description="Made then or before.")] = None,
    limit: Limit = 50,
    cursor: CursorText = None,
) -> Answer:
    """Newest first; those of one status that is not final, the longest due first."""
    filter = SagaFilter(own, status or "", subscription_id or 0, event_type, in_utc(since), in_utc(until))
    if (event_id and correlation_id) or ((event_id or correlation_id) and filter != SagaFilter(own)):
        raise Refused(
            "invalid", "event_id and correlation_id can't be combined with others: these have few deliveries."
        )
    waits = status is not None and bool(SAGA_MOVES[status])
    by_due = waits and filter == SagaFilter(status=status or "", subscription_id=subscription_id or 0)

    async def read(observer: PageObserver, place: Any) -> Any:
        if event_id:
            return await observer.sagas_of_event(event_id, own, limit, place)
        if correlation_id:
            return await observer.sagas_with_correlation_id(correlation_id, own, limit, place)
        if status is not None and by_due:
            return await observer.open_sagas(status, subscription_id or 0, limit, place)
        return await observer.sagas(filter, limit, place)

    filters = {**vars(filter), "event": event_id, "correlation_id": correlation_id}
    return Answer(await paged(api, "sagas", filters, cursor, PageObserver, read, lambda row: shown(Saga, row)))


@router.get("/sagas/{id}", summary="One delivery with its attempts", **about(Scope.VIEWER, SagaWithJobs, "not_found"))
async def show_saga(id: Id, api: Has, own: Domain) -> Answer:
    """The last attempt comes first."""
    found = await api.observed(PageObserver, lambda observer: observer.saga(id, own))
    return Answer(shown(SagaWithJobs, found))


@router.post(
    "/sagas/{id}/resend",
    summary="Send once more what was delivered",
    **about(Scope.OPERATOR, Generation, "not_found", "conflict", status=202, of_all_domains=True),
)
async def resend(id: Id, api: Has, caller: By) -> Answer:
    """As a new delivery of the next generation. Asked twice, it is made once."""
    done = await requeues.resend(api, [id], caller.actor)
    return one_generation(done[0], f"saga {id}")
