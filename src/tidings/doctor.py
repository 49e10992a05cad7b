"""Examines an installation from the outside in, and stops where nothing further can be asked."""

import datetime
from collections.abc import AsyncIterator
from contextlib import suppress

from tidings.db.catalogue.operations import CatalogueOperations
from tidings.db.catalogue.spelling import differences, expected_lines
from tidings.db.engine import Engine
from tidings.db.migrations.files import newest_version
from tidings.db.migrations.migrator import Migrator
from tidings.db.names import Names
from tidings.db.rights import Right, grantees, wanted_rights
from tidings.decisions.diagnosing import (
    Finding,
    GateFacts,
    Health,
    OpenWriter,
    RouterFacts,
    TaskFacts,
    judge_boundary,
    judge_clock,
    judge_gates,
    judge_isolation,
    judge_migrations,
    judge_rights,
    judge_route_dead_letters,
    judge_routers,
    judge_schema,
    judge_settings,
    judge_tasks,
    right,
)
from tidings.errors import DatabaseUrlInvalid, TidingsError
from tidings.flow import OWNER, ROLE_NAMES
from tidings.model.endpoint_check import process_of
from tidings.roles.observer.depths import DepthObserver
from tidings.roles.observer.operations import ObserverOperations
from tidings.roles.observer.routing import RoutingObserver
from tidings.wiring import Installation

_DURABLE = "Without these a commit that was acknowledged can be lost. Set them on the server."
_DEAD_LETTERS_LOOKED_AT = 10_000
_ROUTERS_LOOKED_AT = 1_000
_IDS = "Routers hold back where they can't prove that no event is missing. See docs/operating."


async def examine(installation: Installation) -> AsyncIterator[Finding]:
    """One finding after the other, as they are made."""
    try:
        async with installation.engine("observer") as engine:
            yield right("connection", f"{engine.server}, as {installation.names.login('observer')}")
            async for finding in _examine_server(engine):
                yield finding
            version = await _schema_version(engine, installation)
            yield version
            if version.health is Health.RIGHT:
                for finding in await _routing(engine):
                    yield finding
                yield await _tasks(engine)
    except TidingsError as error:
        yield Finding("connection", Health.WRONG, error.what, error.remedy)
        return
    yield await _rights(installation)
    with suppress(DatabaseUrlInvalid):  # a role without any way in was named just now
        yield judge_boundary([role for role in ROLE_NAMES if installation.access(role).group])
    yield await _schema(installation)


async def _examine_server(engine: Engine) -> AsyncIterator[Finding]:
    yield judge_settings("durability", await ObserverOperations.step(engine, ObserverOperations.durability), _DURABLE)
    yield judge_isolation(await ObserverOperations.step(engine, ObserverOperations.isolation))
    asked = datetime.datetime.now(datetime.UTC)
    there = await ObserverOperations.step(engine, ObserverOperations.server_clock)
    here = asked + (datetime.datetime.now(datetime.UTC) - asked) / 2
    yield judge_clock((here - there).total_seconds())
    yield judge_settings("event ids", await ObserverOperations.step(engine, ObserverOperations.id_generation), _IDS)


async def _schema_version(engine: Engine, installation: Installation) -> Finding:
    try:
        missing = await Migrator(engine, installation.names).missing_steps()
    except TidingsError as error:
        return Finding("schema version", Health.WRONG, error.what, error.remedy)
    return judge_migrations(missing, newest_version(engine.dialect.family))


async def _routing(engine: Engine) -> list[Finding]:
    try:
        return await RoutingObserver.step(engine, _examine_routing)
    except TidingsError as error:
        return [Finding("routing", Health.WRONG, error.what, error.remedy)]


async def _examine_routing(observer: RoutingObserver) -> list[Finding]:
    has_events = await observer.newest_event() > 0
    gates = [
        GateFacts(gate["name"], gate["is_open"], gate["reason"], gate["changed_at"] is not None)
        for gate in await observer.gates()
    ]
    routers = [
        RouterFacts(
            router["worker_name"],
            router["event_domain"],
            router["position"],
            router["lag"],
            router["hole_ids"],
            router["oldest_hole_seconds"] or 0.0,
            router["knows_its_last_event"],
        )
        for router in await observer.routers(_ROUTERS_LOOKED_AT)
    ]
    writers = [OpenWriter(pid, seconds) for pid, seconds in await observer.open_writers()]
    unresolved, newest = await observer.unresolved_route_dead_letters(_DEAD_LETTERS_LOOKED_AT)
    return [
        judge_gates(gates, has_events),
        judge_routers(routers, writers, has_events),
        judge_route_dead_letters(unresolved, newest["error"] if newest else "", _DEAD_LETTERS_LOOKED_AT),
    ]


async def _tasks(engine: Engine) -> Finding:
    try:
        return judge_tasks(await DepthObserver.step(engine, _examine_tasks))
    except TidingsError as error:
        return Finding("tasks", Health.WRONG, error.what, error.remedy)


async def _examine_tasks(observer: DepthObserver) -> list[TaskFacts]:
    alive = await observer.alive()
    facts = []
    for one in await observer.tasks():
        process = process_of(one.biz_type)
        facts.append(TaskFacts(one.biz_type, one.due, one.oldest_seconds, process, alive.get(process, 0)))
    return facts


async def _rights(installation: Installation) -> Finding:
    """Each role is asked by its own way in: that is the connection its process will have."""
    missing: set[str] = set()
    excess: set[str] = set()
    for role in ROLE_NAMES:
        try:
            async with installation.engine(role) as engine:
                has, wanted = await _rights_of(engine, installation.names, role)
        except TidingsError as error:
            return Finding("rights", Health.WRONG, f"{role} can't connect: {error.what}", error.remedy)
        missing |= set(map(str, wanted - has))
        excess |= set(map(str, has - wanted))
    return judge_rights(sorted(missing), sorted(excess))


async def _rights_of(engine: Engine, names: Names, role: str) -> tuple[frozenset[Right], frozenset[Right]]:
    family = engine.dialect.family
    has: frozenset[Right] = frozenset()
    for grantee in grantees(names, role, engine.server):
        has |= await _granted(engine, names.schema, grantee)
    return has, frozenset(one for one in wanted_rights(names, family) if one.grantee == names.group(role))


async def _granted(engine: Engine, schema: str, grantee: str) -> frozenset[Right]:
    return await CatalogueOperations.step(engine, lambda catalogue: catalogue.granted_rights(schema, grantee))


async def _schema(installation: Installation) -> Finding:
    """Triggers are shown to the owner only."""
    try:
        async with installation.engine(OWNER) as engine:
            found = await CatalogueOperations.step(
                engine, lambda catalogue: catalogue.schema_lines(installation.names.schema)
            )
            return judge_schema(differences(expected_lines(engine.dialect.name), found))
    except TidingsError as error:
        return Finding(
            "tables and indexes",
            Health.DOUBTFUL,
            f"not looked at: {error.what}",
            "Give `doctor` the owner's login, TIDINGS_DATABASE_URL_SCHEMA_OWNER.",
        )
