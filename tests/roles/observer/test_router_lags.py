"""How far each router is behind the log, and since when the first event waits for it."""

import pytest

from tests.support.database import Database
from tidings.roles.observer.depths import DepthObserver


async def test_each_router_waits_for_as_long_as_the_first_event_above_its_place(engine: Database) -> None:
    for position, when in ((1, "2020-01-01"), (2, "2021-01-01"), (3, "2022-01-01")):
        await engine.sql(
            f"INSERT INTO events (event_type, payload, created_at) VALUES ('a{position}', '{{}}', '{when}')"
        )
    for name, position in (("at_start", 0), ("behind", 1), ("done", 3), ("same", 1)):
        await engine.sql(
            "INSERT INTO route_worker_cursors (worker_name, event_domain, position)"
            f" VALUES ('{name}', '{name}', {position})"
        )
    depths = await DepthObserver.step(await engine.open("observer"), DepthObserver.depths)
    lags = {lag.router: lag for lag in depths.routers}
    assert {name: lag.events for name, lag in lags.items()} == {"at_start": 3, "behind": 2, "done": 0, "same": 2}
    assert lags["done"].oldest_seconds == 0
    assert lags["behind"].oldest_seconds == lags["same"].oldest_seconds
    leap_year = 366 * 86_400
    assert lags["at_start"].oldest_seconds - lags["behind"].oldest_seconds == pytest.approx(leap_year, abs=1)


async def test_where_there_is_no_router_nobody_is_behind(engine: Database) -> None:
    depths = await DepthObserver.step(await engine.open("observer"), DepthObserver.depths)
    assert depths.routers == ()
