"""Opens and closes gates. When a closing returns, no router writes any more that had not noticed it."""

from dataclasses import asdict

from tidings.db.engine import Engine
from tidings.errors import DuplicateRow
from tidings.roles.routes.input import check_actor, check_gate_name, check_reason
from tidings.roles.routes.operations import Gate, RouteAdminOperations


async def open(engine: Engine, name: str, reason: str, actor: str) -> Gate:
    return await _change(engine, Gate(name, True, reason), actor)


async def close(engine: Engine, name: str, reason: str, actor: str) -> Gate:
    gate = await _change(engine, Gate(name, False, reason), actor)
    # A router reads the gates when it has locked its cursor, so whoever still holds one may have seen this gate open.
    await RouteAdminOperations.step(engine, RouteAdminOperations.await_routers)
    return gate


async def _change(engine: Engine, gate: Gate, actor: str) -> Gate:
    check_gate_name(gate.name)
    check_reason(gate.reason)
    check_actor(actor)

    async def work(operations: RouteAdminOperations) -> Gate:
        before = await operations.lock_gate(gate.name)
        # No upsert: MariaDB would ask for the right to change the name, too.
        await (operations.update_gate if before else operations.insert_gate)(gate, actor)
        detail = {"before": asdict(before) if before else None, "after": asdict(gate)}
        await operations.audit(actor, "gate.opened" if gate.is_open else "gate.closed", f"gate:{gate.name}", detail)
        return gate

    try:
        return await RouteAdminOperations.step(engine, work)
    except DuplicateRow:
        # Somebody made it at the same moment; now it is there.
        return await RouteAdminOperations.step(engine, work)
