"""Another transaction that holds an external id, not committed yet, keeps up nobody but those who need that very id."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from tests.roles.ingest.conftest import WRITER
from tests.roles.ingest.events import event, stored
from tests.support.database import Database
from tests.support.locks import somebody_waits
from tests.support.sessions import Session, connect
from tests.support.waiting import eventually
from tidings.errors import LockTimedOut
from tidings.model.event import Published
from tidings.roles.ingest.service import BatchLimits, Ingest

# The shortest that both engines know.
PATIENCE = 1.0


@pytest.fixture
async def ingest(engine: Database) -> AsyncIterator[Ingest]:
    limits = BatchLimits(lock_patience=PATIENCE, apart_patience=3 * PATIENCE)
    ingest = Ingest(await engine.open(WRITER, size=3), limits)
    yield ingest
    await ingest.close()


@pytest.fixture
async def holder(engine: Database) -> AsyncIterator[Session]:
    """A producer's own transaction, open, with the external id `held`."""
    session = await connect(engine.url(WRITER))
    await session.run("BEGIN")
    await session.run("INSERT INTO events (event_type, payload, external_id) VALUES ('a', '1', 'held')")
    yield session
    await session.close()


@pytest.mark.slow
async def test_neighbours_go_on_and_the_held_one_is_told_that_nothing_was_stored(
    ingest: Ingest, holder: Session, engine: Database
) -> None:
    held = asyncio.create_task(ingest.publish([event("2", "held")]))
    others = [ingest.publish([event(str(n), f"x{n}" if n % 2 else None)]) for n in range(30)]
    answers = await asyncio.wait_for(asyncio.gather(*others), 5 * PATIENCE)
    assert not held.done()
    assert not any(one.duplicate for (one,) in answers)
    with pytest.raises(LockTimedOut):
        await asyncio.wait_for(held, 10 * PATIENCE)
    await holder.run("ROLLBACK")
    assert {one.id for (one,) in answers} == set(await stored(engine))
    # Nothing is left of it: the same one again is stored at once.
    (again,) = await ingest.publish([event("2", "held")])
    assert again == Published(again.id)


@pytest.mark.slow
async def test_those_who_come_later_with_an_id_known_to_be_held_do_not_stop_the_others_again(
    ingest: Ingest, holder: Session
) -> None:
    first = asyncio.create_task(ingest.publish([event("2", "held")]))
    await asyncio.gather(*(ingest.publish([event(str(n), f"x{n}")]) for n in range(5)))

    async def quick(n: int) -> float:
        began = time.monotonic()
        await ingest.publish([event(str(n), f"y{n}")])
        return time.monotonic() - began

    await eventually(lambda: ingest._apart._held_keys, what="the id to be known to be held")
    second = asyncio.create_task(ingest.publish([event("2", "held")]))
    assert max(await asyncio.gather(*map(quick, range(10)))) < PATIENCE
    await holder.run("COMMIT")
    for one in await asyncio.gather(first, second):
        assert (one[0].duplicate, one[0].payload_differs) == (True, True)


async def test_who_waits_gets_the_event_of_the_other_when_that_commits(
    ingest: Ingest, holder: Session, engine: Database
) -> None:
    held = asyncio.create_task(ingest.publish([event("1", "held")]))
    await somebody_waits(engine)
    await holder.run("COMMIT")
    (answer,) = await held
    (row,) = (await stored(engine)).values()
    assert answer == Published(row["id"], duplicate=True)
