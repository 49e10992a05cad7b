"""A plan that was made while the tables were empty, and known to be, is still good when they are not.

PostgreSQL keeps plans for as long as a session lasts. On a table of at most one row, reading it whole looks as good as
its index; kept, such a plan reads a whole table for each row of another. MySQL and MariaDB make each plan anew.
"""

import json
from typing import Any

import asyncpg
import pytest

from tests.support.database import Database
from tidings.db.dialect import POSTGRESQL
from tidings.db.postgresql import numbered_text
from tidings.db.statements import Statement, load_statements
from tidings.tables import tables_of

# Those whose sessions keep plans and never rest.
PACKAGES = {
    "router": "event_router",
    "orchestrator": "saga_orchestrator",
    "worker": "job_worker",
    "cleaner": "lease_cleaner",
    "ingest": "event_ingest_writer",
    "task_producer": "task_producer",
    "task_worker": "task_worker",
    "rescuer": "task_rescuer",
    "archiver": "task_archiver",
    "retention": "retention",
    "verifier": "subscription_verifier",
}
GROWING = {
    "events",
    "webhook_delivery_sagas",
    "webhook_delivery_jobs",
    "dead_letters",
    "route_attempts",
    "route_dead_letters",
    "sys_pending_tasks",
    "sys_pending_tasks_history",
    "audit_log",
}


@pytest.fixture
async def empty(throwaway: Database) -> Database:
    await throwaway.sql("ANALYZE", role="admin")
    return throwaway


def test_every_table_that_grows_is_one_of_ours() -> None:
    assert set(tables_of("postgresql")) >= GROWING


@pytest.mark.one_engine("postgresql", reason="MySQL and MariaDB keep no plans")
@pytest.mark.parametrize("package", PACKAGES)
async def test_no_role_keeps_a_plan_that_reads_a_table_for_each_row_of_another(empty: Database, package: str) -> None:
    session = await asyncpg.connect(empty.url(PACKAGES[package]))
    await session.execute("SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off")
    await session.execute("SET plan_cache_mode = force_generic_plan")
    statements = load_statements(f"tidings.roles.{package}", POSTGRESQL)
    bad = {name: read for name, one in statements.items() if (read := read_whole(await plan_of(session, one)))}
    await session.close()
    assert bad == {}


@pytest.mark.one_engine("postgresql", reason="MySQL and MariaDB keep no plans")
async def test_whoever_answers_people_plans_each_time(empty: Database) -> None:
    session = await asyncpg.connect(empty.url("observer"))
    assert await session.fetchval("SHOW plan_cache_mode") == "force_custom_plan"
    await session.close()


async def plan_of(session: Any, statement: Statement) -> dict[str, Any]:
    nothing = ", ".join(["NULL"] * len(statement.parameters))
    await session.execute(f"PREPARE it AS {numbered_text(statement)}")
    said = await session.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE it{f'({nothing})' if nothing else ''}")
    await session.execute("DEALLOCATE it")
    plan: dict[str, Any] = json.loads(said)[0]["Plan"]
    return plan


def read_whole(plan: dict[str, Any], *, is_joined: bool = False) -> set[str]:
    """The growing tables that are read without an index condition, once for each row of something else."""
    if is_joined and plan.get("Relation Name") in GROWING and "Scan" in plan["Node Type"] and "Index Cond" not in plan:
        return {plan["Relation Name"]}
    found = set[str]()
    for child in plan.get("Plans", ()):
        is_again = plan["Node Type"] in {"Hash Join", "Merge Join"} or (
            plan["Node Type"] == "Nested Loop" and child["Parent Relationship"] == "Inner"
        )
        found |= read_whole(child, is_joined=is_joined or is_again)
    return found
