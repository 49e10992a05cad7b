"""Whatever order transactions commit in, the router skips nothing and stalls nothing: seeded histories, step by step.

Two readers with the usual mistakes watch the same histories; where they lose nothing, the test was blind.
"""

import pytest

from tests.scenarios.routing.seeds import chosen_seed, repeat
from tests.scenarios.routing.stage import ROUTER, set_up
from tests.scenarios.routing.stepping import Result, theatre
from tests.support.database import Database
from tidings.roles.router.router import Router

HISTORIES = 40
MANY_HISTORIES = 1_000
BATCH = 400
KINDS = {"single", "commit", "rollback", "prepare", "hung", "selected", "duplicate", "ignored", "killed"}


async def play(database: Database, seed: int, histories: int) -> list[Result]:
    await set_up(database)
    engine = await database.open(ROUTER, size=2)
    async with theatre(database, lambda: Router(engine, batch=BATCH)) as stage:
        results = [await stage.play(seed + number) for number in range(histories)]
        assert not stage.journal.unexpected_errors(), repeat(seed)
        assert stage.journal.done.keys() >= KINDS, f"the producers did not do all they should: {stage.journal.done}"
    return results


async def expect_nothing_skipped(database: Database, histories: int) -> None:
    seed = chosen_seed()
    results = await play(database, seed, histories)
    complaints = [complaint for result in results for complaint in result.complaints()]
    assert not complaints, "\n".join([repeat(seed), *complaints])
    assert any(result.late for result in results), f"blind: nothing was committed late, {repeat(seed)}"
    assert any(result.skipped_by_last_id for result in results), f"blind: reading by last id passes, {repeat(seed)}"
    assert any(result.skipped_by_forgetful for result in results), f"blind: giving up holes passes, {repeat(seed)}"


@pytest.mark.slow
async def test_no_history_makes_the_router_skip_or_stall(engine: Database) -> None:
    """No event is ever skipped, and no open transaction of one producer delays the events of the others."""
    await expect_nothing_skipped(engine, HISTORIES)


@pytest.mark.full
@pytest.mark.timeout(3600)
async def test_not_one_of_a_thousand_histories_makes_the_router_skip_or_stall(engine: Database) -> None:
    await expect_nothing_skipped(engine, MANY_HISTORIES)
