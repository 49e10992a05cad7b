"""A worker that freezes past its lease with a request under way, and reports while another one is sending."""

import asyncio
from typing import Any

from tests.scenarios.delivery.stage import Stage
from tests.support.receiver import Answer, Received
from tests.support.waiting import eventually

LATE = "lease is another's"


async def outlive_a_lease(stage: Stage, **environment: str) -> dict[str, Any]:
    """The job as it was when the zombie had reported its 500, and the other, who will hear 200, was still sending."""
    first, second = asyncio.Event(), asyncio.Event()

    def slow(_: Received) -> Answer:
        return Answer(500, hold=first) if len(stage.receiver.requests) == 1 else Answer(hold=second)

    stage.receiver.answer("/hook", slow)
    await stage.subscriber("/hook")
    await stage.publish()
    zombie = stage.run("worker", **environment)
    stage.run("router", "orchestrator", "cleaner")
    await stage.until_requests(1)
    zombie.freeze()
    stage.strike("freeze")
    await stage.expire_leases()
    stage.run("worker")
    await stage.until_requests(2)
    first.set()
    zombie.thaw()

    async def has_reported() -> bool:
        finished = "SELECT COUNT(*) FROM webhook_delivery_jobs WHERE finished_at IS NOT NULL"
        return LATE in zombie.output or bool(await stage.database.value(finished))

    await eventually(has_reported, 30, "the late report")
    row, *_ = await stage.database.sql("SELECT * FROM webhook_delivery_jobs ORDER BY id")
    second.set()
    await stage.until_at_rest()
    return dict(row)
