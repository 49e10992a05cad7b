"""Every change of routes and subscriptions is counted by the database, whoever makes it: routers reload by it."""

import pytest

from tests.roles.routes.scene import rolled_back
from tests.support.database import Database
from tidings.errors import StatementFailed

VERSION = "SELECT version FROM config_version"
ROUTE = "INSERT INTO routes (event_type, target) VALUES ('order.*', 'webhook')"
SUBSCRIPTION = "INSERT INTO subscriptions (event_type, callback_url) VALUES ('order.*', 'https://a.example')"
CHANGES = {
    "a route is added": ("", "route_admin", ROUTE),
    "a route is changed": (ROUTE, "route_admin", "UPDATE routes SET enabled = false"),
    "a route is removed": (ROUTE, "route_admin", "DELETE FROM routes"),
    "the owner changes a route": (ROUTE, "schema_owner", "UPDATE routes SET dry_run = true"),
    "a subscription is added": ("", "subscription_admin", SUBSCRIPTION),
    "a subscription is paused": (SUBSCRIPTION, "subscription_admin", "UPDATE subscriptions SET paused = true"),
    "a subscription is verified": (SUBSCRIPTION, "subscription_verifier", "UPDATE subscriptions SET verified = true"),
    "the owner removes a subscription": (SUBSCRIPTION, "schema_owner", "DELETE FROM subscriptions"),
}


@pytest.mark.parametrize("what", CHANGES)
async def test_a_change_is_counted(engine: Database, what: str) -> None:
    before_it, role, change = CHANGES[what]
    if before_it:
        await engine.sql(before_it, role="admin")
    before = await engine.value(VERSION)
    await engine.sql(change, role=role)
    assert await engine.value(VERSION) > before


async def test_a_change_that_is_undone_is_not_counted(engine: Database) -> None:
    before = await engine.value(VERSION)
    await rolled_back(engine, "route_admin", ROUTE)
    assert await engine.value(VERSION) == before


@pytest.mark.parametrize("role", ["route_admin", "subscription_admin", "event_router"])
async def test_nobody_counts_by_hand(engine: Database, role: str) -> None:
    with pytest.raises(StatementFailed, match="denied"):
        await engine.sql("UPDATE config_version SET version = 1", role=role)
