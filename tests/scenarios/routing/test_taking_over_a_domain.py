"""A router takes its domain over in the middle of everything: at the same position, with the same holes."""

from tests.scenarios.routing.free_running import DOMAIN_ROUTER
from tests.scenarios.routing.scene import Scene
from tests.scenarios.routing.stage import Verdict
from tidings.roles.routes import routers


async def test_open_transactions_of_both_domains_are_routed_once_by_whom_their_domain_belongs_to(scene: Scene) -> None:
    late = await scene.producer()
    await late.run("BEGIN")
    before = {domain: await scene.publish(2, by=late, domain=domain) for domain in ("default", DOMAIN_ROUTER)}
    await scene.publish(domain="default")
    await scene.publish(domain=DOMAIN_ROUTER)
    await scene.step(2)
    await routers.add(await scene.database.open("route_admin"), DOMAIN_ROUTER, DOMAIN_ROUTER, "test")
    assert (await scene.cursor(DOMAIN_ROUTER)) == (await scene.cursor())
    successor = await scene.new_router(DOMAIN_ROUTER)
    after = {domain: await scene.publish(2, domain=domain) for domain in ("default", DOMAIN_ROUTER)}
    await scene.step(2)
    await late.run("COMMIT")
    assert await scene.drain(scene.router, successor) == Verdict()
    by_router = await routed_by(scene)
    assert {by_router[id] for id in (*before["default"], *after["default"])} == {"default"}
    assert {by_router[id] for id in (*before[DOMAIN_ROUTER], *after[DOMAIN_ROUTER])} == {DOMAIN_ROUTER}


async def routed_by(scene: Scene) -> dict[int, str]:
    rows = await scene.database.sql("SELECT event_id, worker_name FROM route_attempts")
    return {row["event_id"]: row["worker_name"] for row in rows}
