"""`/v1/why`, `/v1/stats`, and what watches over a server: `/healthz`, `/readyz`, `/metrics`."""

import asyncio
from enum import StrEnum
from typing import Annotated, Any

from fastapi import APIRouter, Path, Response
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import Field

from tidings.api.context import Api, Has
from tidings.api.describing import Answer, Domain, Id, Moment, Shown, about, shown
from tidings.errors import NotFound, TidingsError
from tidings.model.key import Scope
from tidings.roles.observer.depths import DepthObserver
from tidings.roles.observer.operations import ObserverOperations
from tidings.roles.observer.pages import PageObserver
from tidings.roles.observer.why import why

router = APIRouter(tags=["looking"])
health = APIRouter(tags=["health"])
_SECONDS_TO_BE_READY = 3.0


class Kind(StrEnum):
    EVENT = "event"
    SAGA = "saga"
    TASK = "task"


About = Annotated[Kind, Path(description="What is asked about.", examples=["event"])]


class Reason(Shown):
    """One sentence of an explanation."""

    text: str = Field(description="What is so.")
    since: Moment | None = Field(description="Since when.")
    remedy: str = Field(description="A command that would change it.")


class Explanation(Shown):
    """Where something is, what it waits for, and what can be done."""

    subject: str = Field(description="What it is about.", examples=["event:12"])
    headline: str = Field(description="The answer in a line.")
    is_over: bool = Field(description="Nothing more will happen by itself.")
    reasons: list[Reason] = Field(description="Why it is so.")
    parts: list["Explanation"] = Field(description="Of what it came to.")


class Depth(Shown):
    """How much waits in one stage."""

    count: int = Field(description="How many; no more are counted than `counted_to`.")
    oldest_seconds: float = Field(description="For how long the oldest waits.")


class RouterLag(Shown):
    """How far a router is behind the log."""

    router: str = Field(description="Which one.")
    events: int = Field(description="By numbers, some of which may never have become an event.")
    oldest_seconds: float = Field(description="For how long the oldest waits.")
    holes: int = Field(description="Ranges of numbers that may still become events.")


class Stats(Shown):
    """How much there is to do at this moment."""

    queues: dict[str, Depth] = Field(description="What waits, by stage.")
    routers: list[RouterLag] = Field(description="How far each is behind.")
    processes: dict[str, int] = Field(description="Processes that gave a sign of life lately.")
    counted_to: int = Field(description="Where counting ends: so many or more.")


class Alive(Shown):
    """That this process answers."""

    status: str = Field(description="ok.", examples=["ok"])


class Readiness(Shown):
    """Whether this server can do its work, and if not, why."""

    ready: bool = Field(description="Whether all is well.")
    reasons: list[str] = Field(description="What is not.")


@router.get("/why/{kind}/{id}", summary="Why is it not there yet?", **about(Scope.VIEWER, Explanation, "not_found"))
async def explain(kind: About, id: Id, api: Has, own: Domain) -> Answer:
    """The same answer as `tidings why`."""
    if own and kind is Kind.TASK:
        raise NotFound(f"There is no task {id}.")  # tasks belong to no domain
    if own:
        look = PageObserver.event if kind is Kind.EVENT else PageObserver.saga
        await api.observed(PageObserver, lambda see: look(see, id, own))
    answer = await api.as_role("observer", lambda engine: why(engine, f"{kind}:{id}", api.retry_limit))
    return Answer(shown(Explanation, answer.as_dict()))


@router.get("/stats", summary="How much there is to do", **about(Scope.VIEWER, Stats, of_all_domains=True))
async def stats(api: Has) -> Answer:
    """A few reads along indexes; counts end at `counted_to`."""
    return Answer(shown(Stats, await api.observed(DepthObserver, DepthObserver.depths)))


@health.get("/healthz", summary="Is this process alive?", **about(None, Alive))
async def alive() -> Answer:
    """It answers; of the database nothing is said here."""
    return Answer({"status": "ok"})


_readiness = about(None, Readiness)
_readiness["responses"][503] = {"model": Readiness, "description": "Not now, and why."}
_counts = about(None, Any)
_counts["responses"][200] = {"description": "Counts.", "content": {"text/plain": {"schema": {"type": "string"}}}}
_counts["response_class"] = Response


@health.get("/readyz", summary="Can this server do its work?", **_readiness)
async def ready(api: Has) -> Answer:
    """503 with the reasons if not."""
    try:
        async with asyncio.timeout(_SECONDS_TO_BE_READY):
            reasons = await _reasons(api)
    except TimeoutError:
        reasons = [f"The database did not answer within {_SECONDS_TO_BE_READY:.0f} seconds."]
    return Answer({"ready": not reasons, "reasons": reasons}, status_code=503 if reasons else 200)


@health.get("/metrics", summary="Counts for Prometheus", **_counts)
async def metrics(api: Has) -> Response:
    """What this process counted, and how much waits in the database."""
    return Response(await api.metrics(), media_type=CONTENT_TYPE_LATEST)


async def _reasons(api: Api) -> list[str]:
    try:
        await api.observed(ObserverOperations, ObserverOperations.server_clock)
        missing = await api.missing_steps()
    except TidingsError as error:
        # Its own words may name hosts and users, which are nobody's business here.
        return [f"The database can't be used: {type(error).__name__}."]
    return [f"{missing} migration steps are missing; run `tidings migrate`."] if missing else []
