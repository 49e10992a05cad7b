"""What is sent again, for the API and for the console: a few, or many, stored and gone on with beside the answer."""

from collections.abc import Sequence

from tidings.api.context import Api
from tidings.model.dead_letter import MassRequeueStatus, Requeued
from tidings.roles.dead_letters import requeueing
from tidings.roles.dead_letters.operations import Filter, MassRequeue

ROLE = "dead_letter_operator"
_WAKES = "orchestrator"


async def requeue(api: Api, ids: Sequence[int], actor: str) -> list[Requeued]:
    return await api.as_role(ROLE, lambda engine: requeueing.requeue(engine, ids, actor), wakes=_WAKES)


async def resend(api: Api, ids: Sequence[int], actor: str) -> list[Requeued]:
    return await api.as_role(ROLE, lambda engine: requeueing.resend(engine, ids, actor), wakes=_WAKES)


async def begin(api: Api, chosen: Filter, rate: int, actor: str) -> MassRequeue:
    """Whatever stops it, it can be resumed."""
    engine = await api.pools.engine(ROLE)
    mass_id = await requeueing.begin(engine, chosen, rate, actor)
    await _go_on(api, mass_id)
    return await requeueing.look(engine, mass_id)


async def look(api: Api, mass_id: int) -> MassRequeue:
    return await api.as_role(ROLE, lambda engine: requeueing.look(engine, mass_id))


async def resume(api: Api, mass_id: int) -> MassRequeue:
    """After the server that worked on it was stopped. On one that is over this changes nothing."""
    stands = await look(api, mass_id)
    if stands.status is MassRequeueStatus.RUNNING:
        await _go_on(api, mass_id)
    return stands


async def cancel(api: Api, mass_id: int, actor: str) -> MassRequeue:
    """What was requeued stays so, the rest stays dead."""
    return await api.as_role(ROLE, lambda engine: requeueing.cancel(engine, mass_id, actor))


async def _go_on(api: Api, mass_id: int) -> None:
    engine = await api.pools.engine(ROLE)
    api.background.begin(f"requeue {mass_id}", requeueing.run(engine, mass_id, lambda stands: api.ring(_WAKES)))
