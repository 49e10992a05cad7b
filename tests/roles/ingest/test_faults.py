"""A connection that is cut anywhere: stored once and answered, or said to be unknown. Never a wrong answer."""

import asyncio
from typing import Any

import pytest

from tests.roles.ingest.conftest import WRITER
from tests.roles.ingest.events import bad_event, event, stored
from tests.support.database import Database
from tests.support.fault_proxy import CUT, Fault, FaultProxy
from tests.support.waiting import eventually
from tidings.db.engine import Engine
from tidings.errors import EventRefused, OutcomeUnknown, ServerUnreachable, StatementFailed
from tidings.model.event import Published
from tidings.roles.ingest.service import BatchLimits, Ingest

pytestmark = pytest.mark.usefixtures("hurried")
COMMIT = f"{WRITER}.commit"


@pytest.mark.parametrize("statement", [f"{WRITER}.begin", "ingest.find_events", "ingest.insert_events"])
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_connection_cut_before_commit_is_not_noticed(
    through_proxy: Engine, proxy: FaultProxy, engine: Database, statement: str, when: Any
) -> None:
    ingest = Ingest(through_proxy)
    proxy.arm(Fault(statement, CUT, when))
    answers = await asyncio.gather(*(ingest.publish([event(str(n), f"x{n}")]) for n in range(5)))
    assert len(proxy.fired) == 1
    assert {one.id for (one,) in answers} == set(await stored(engine))
    assert not any(one.duplicate for (one,) in answers)
    await ingest.close()


@pytest.mark.parametrize(("when", "rows"), [("before", 0), ("after", 5)])
async def test_a_connection_lost_in_commit_is_said_to_be_unknown_and_nothing_is_sent_again(
    through_proxy: Engine, proxy: FaultProxy, engine: Database, when: Any, rows: int
) -> None:
    """Never as success or failure."""
    ingest = Ingest(through_proxy)
    proxy.arm(Fault(COMMIT, CUT, when))
    answers = await asyncio.gather(*(ingest.publish([event("{}", f"x{n}")]) for n in range(5)), return_exceptions=True)
    assert [type(answer) for answer in answers] == [OutcomeUnknown] * 5
    assert len(set(map(id, answers))) == 5
    assert proxy.seen.count(COMMIT) == 1
    await eventually(lambda: settled(engine), what="the server to notice the cut")
    assert len(await stored(engine)) == rows
    # Who publishes again under the same external id is answered, and it is stored once.
    again = await asyncio.gather(*(ingest.publish([event("{}", f"x{n}")]) for n in range(5)))
    assert [one.duplicate for (one,) in again] == [rows > 0] * 5
    assert len(await stored(engine)) == 5
    await ingest.close()


async def test_of_what_was_refused_before_a_lost_commit_the_outcome_is_known(
    through_proxy: Engine, proxy: FaultProxy
) -> None:
    ingest = Ingest(through_proxy, BatchLimits(writers=1))
    proxy.arm(Fault(COMMIT, CUT))
    answers = await asyncio.gather(
        ingest.publish([event()]), ingest.publish([bad_event()]), ingest.publish([event()]), return_exceptions=True
    )
    assert [type(answer) for answer in answers[::2]] == [OutcomeUnknown] * 2
    assert isinstance(answers[1], EventRefused | StatementFailed)
    await ingest.close()


async def test_while_nobody_answers_everybody_is_told_and_afterwards_it_goes_on(
    through_proxy: Engine, proxy: FaultProxy
) -> None:
    ingest = Ingest(through_proxy)
    proxy.refuse_connections(True)
    proxy.cut_all()
    answers = await asyncio.gather(*(ingest.publish([event()]) for _ in range(3)), return_exceptions=True)
    assert [type(answer) for answer in answers] == [ServerUnreachable] * 3
    proxy.refuse_connections(False)
    (published,) = await ingest.publish([event()])
    assert published == Published(published.id)
    await ingest.close()


async def settled(engine: Database) -> bool:
    """No transaction of the writer is open any more."""
    text = {
        "postgresql": f"SELECT count(*) FROM pg_stat_activity WHERE usename = '{engine.names.login(WRITER)}'"
        " AND xact_start IS NOT NULL",
        "mariadb": "SELECT COUNT(*) FROM information_schema.innodb_trx",
    }
    return not await engine.value(text[engine.kind], "admin")
