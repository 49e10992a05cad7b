"""What every handler can reach: the pools, the rules of the settings, and whose request it is."""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Annotated, TypeVar

from fastapi import Depends, Request

from tidings.api.background import Background
from tidings.api.cursors import Cursors
from tidings.api.pools import Pools
from tidings.api.problems import Refused
from tidings.api.throttle import Throttle
from tidings.db.engine import Engine
from tidings.db.operations import Operations
from tidings.decisions.addresses import Network
from tidings.decisions.subscribing import SubscriptionRules
from tidings.model.event import EventLimits
from tidings.model.key import Caller, Scope
from tidings.roles.ingest.service import Ingest
from tidings.roles.key_checker.checking import KeyChecker
from tidings.vault import Vault

T = TypeVar("T")
Observer = TypeVar("Observer", bound=Operations)


@dataclass(frozen=True)
class Api:
    """`ingest` is opened with the first event. `metrics` is the text of /metrics.

    `ring` wakes a process, by its name: there is something for it to do. Called after a commit.
    """

    pools: Pools
    checker: KeyChecker
    ingest: Callable[[], Awaitable[Ingest]]
    limits: EventLimits
    rules: SubscriptionRules
    vault: Callable[[], Vault]
    retry_limit: int
    missing_steps: Callable[[], Awaitable[int]]
    metrics: Callable[[], Awaitable[bytes]]
    background: Background
    ring: Callable[[str], None] = lambda process: None
    throttle: Throttle = field(default_factory=Throttle)
    proxies: Collection[Network] = ()

    async def as_role(self, role: str, work: Callable[[Engine], Awaitable[T]], *, wakes: str = "") -> T:
        """`wakes` is the process that has something to do then; it would notice by itself, a little later."""
        done = await work(await self.pools.engine(role))
        if wakes:
            self.ring(wakes)
        return done

    async def observed(self, observer: type[Observer], look: Callable[[Observer], Awaitable[T]]) -> T:
        """What a part of the observer sees, in one transaction."""
        return await self.as_role("observer", lambda engine: observer.step(engine, look))

    async def cursors(self) -> Cursors:
        return Cursors(await self.checker.installation_id())


# Not plain functions: FastAPI would call each of those in a thread.
async def api_of(request: Request) -> Api:
    api: Api = request.scope["tidings.api"]
    return api


async def caller_of(request: Request) -> Caller:
    """Who was let in by the front."""
    caller: Caller = request.scope["tidings.caller"]
    return caller


def refuse_unless(caller: Caller, scope: Scope) -> None:
    if not caller.may(scope):
        raise Refused("forbidden", f"This needs a key with the scope {scope}.")


Has = Annotated[Api, Depends(api_of)]
By = Annotated[Caller, Depends(caller_of)]
