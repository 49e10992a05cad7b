"""The bounds of the other tests can be broken: what a role reads is counted, in rows and in pages."""

from tests.plans.counters import Counters, reads_of
from tests.support.database import Database
from tests.support.engine_words import Words
from tidings.db.engine import Engine
from tidings.db.statements import Statement

ROWS = 10_000
LEAST_PAGES = 10
WHOLE = Statement("test.whole", "/* test.whole */ SELECT COUNT(payload) AS n FROM events", ())


async def test_a_table_that_is_read_whole_shows_in_rows_and_in_pages(throwaway: Database, counters: Counters) -> None:
    numbers = Words(throwaway).numbers(ROWS)
    await throwaway.sql(f"INSERT INTO events (event_type, payload) SELECT 'a', '{{}}' FROM {numbers}")

    async def read(engine: Engine) -> None:
        await engine.step(lambda transaction: transaction.rows(WHOLE))

    found = await reads_of(counters, await throwaway.open("observer"), read)
    assert found.rows >= ROWS
    assert found.pages >= LEAST_PAGES
