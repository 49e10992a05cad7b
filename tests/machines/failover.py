"""The primary is killed under load and its standby takes over: processes find the new one by themselves."""

import asyncio
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

from tests.chaos.schedule import Tier
from tests.machines.sizes import CREW
from tests.machines.standbys import PAIRS, Pair
from tests.machines.trial import Report, Trial, TrialGround, under_way
from tests.support.database import Database
from tests.support.ports import LOOPBACK
from tests.support.servers import MariaDBServer, PostgresServer
from tests.support.waiting import eventually, pause
from tidings.roles.routes import routers

# How long after it is there everybody has found it.
AFTERMATH = 4.0
STOPPED = "is gone or is another one"


class PairDatabase(Database):
    """Each role's URL names both servers, the standby first: whoever connects finds out which one takes writes."""

    def __init__(self, pair: Pair, server: PostgresServer | MariaDBServer) -> None:
        super().__init__(server)
        self._pair = pair

    def url(self, role: str) -> str:
        parts = urlsplit(super().url(role))
        account = parts.netloc.rpartition("@")[0]
        # Unknown before it is attached; by then only the first one is asked for anything.
        servers = [self._pair.standby, self._pair.primary] if self._pair.standby.has_data else [self._pair.primary]
        hosts = ",".join(f"{LOOPBACK}:{server.port}" for server in servers)
        return parts._replace(netloc=f"{account}@{hosts}").geturl()


@dataclass
class FailoverGround(TrialGround):
    """With the API, by which one of the producers publishes."""

    names: ClassVar[tuple[str, ...]] = (*CREW, "api-1", "api-2")
    is_synchronous: bool = True
    pair: Pair = field(init=False)

    def _new_server(self) -> PostgresServer | MariaDBServer:
        self.pair = PAIRS[self.kind]()
        return self.pair.primary

    def _new_database(self) -> Database:
        return PairDatabase(self.pair, self.pair.primary)

    async def lay(self) -> None:
        self.tier = replace(self.tier, roles=(*self.tier.roles, "api"))
        await super().lay()
        await asyncio.to_thread(self.pair.attach)
        if self.is_synchronous:
            await asyncio.to_thread(self.pair.be_synchronous)

    async def clear(self) -> None:
        await super().clear()
        if hasattr(self, "pair"):
            await asyncio.to_thread(self.pair.clear)


async def _fail_over(trial: Trial, pair: Pair) -> float:
    """When the primary died."""
    died = time.time()
    await asyncio.to_thread(pair.primary.kill)
    await asyncio.to_thread(pair.promote)
    database = PairDatabase(pair, pair.standby)
    database.passwords = trial.ground.database.passwords
    trial.move_to(pair.standby, database)
    return died


async def synchronous(kind: str, tier: Tier, folder: Path) -> Report:
    """Nothing that was acknowledged is lost, and nobody has to do anything."""
    report = Report(f"failover to a synchronous standby on {kind}")
    ground = FailoverGround(kind, tier, 1, folder)
    async with under_way(ground, report) as trial:
        await trial.half_way()
        died = await _fail_over(trial, ground.pair)
        report.figures["seconds until the standby had taken over"] = time.time() - died
        trial.broken("database", died, time.time() + AFTERMATH)
        await trial.producers_end()
        report.figures["seconds until all had come to its end"] = await trial.drained()
        await trial.judged(report)
        if _says(trial, "router", STOPPED):
            report.problems.append("a router stopped, and nothing was lost")
    return report


async def asynchronous(kind: str, tier: Tier, folder: Path) -> Report:
    """The standby has less than was routed: the router stops, says so, and goes on when a person has confirmed."""
    report = Report(f"failover to a standby that lagged on {kind}")
    # Tasks that are lost may have run, and their ids are used again: of those a ledger by ids tells nothing.
    ground = FailoverGround(kind, replace(tier, tasks=0), 1, folder, is_synchronous=False)
    async with under_way(ground, report) as trial:
        await trial.half_way(0.3)
        await asyncio.to_thread(ground.pair.stop_following)
        await trial.half_way(0.7)
        # Until more than that was routed, too.
        await eventually(lambda: _position(trial) >= 0.6 * tier.events, 30, "the router to go on")
        died = await _fail_over(trial, ground.pair)
        trial.broken("database", died, time.time() + AFTERMATH)
        await eventually(lambda: _says(trial, "router", STOPPED), 30, "the router to say why")
        await trial.producers_end()
        stands = _position(trial)
        await pause(1)
        if _position(trial) != stands:
            report.problems.append("the router went on, and nobody had confirmed")
        await _confirm(trial)
        report.figures["seconds until all had come to its end"] = await trial.drained()
        lost = trial.committed() - _stored(trial)
        report.figures["events lost"] = len(lost)
        if not lost:
            report.problems.append("nothing was lost, so that nothing was tried")
        await trial.judged(report, lambda problem: _is_of_the_loss(problem, lost))
    return report


def _position(trial: Trial) -> int:
    (row,) = trial.ground.witness.rows("SELECT position FROM route_worker_cursors WHERE worker_name = 'default'")
    return int(row["position"])


def _stored(trial: Trial) -> set[str]:
    return {row["correlation_id"] for row in trial.ground.witness.rows("SELECT correlation_id FROM events")}


def _says(trial: Trial, role: str, words: str) -> bool:
    return any(words in path.read_text("utf-8") for path in (trial.folder / "logs").glob(f"{role}-*.log"))


async def _confirm(trial: Trial) -> None:
    """As a person does; ids that were given to lost events are not given to others."""
    database = trial.ground.database
    counter = {
        "postgresql": "SELECT setval(pg_get_serial_sequence('tidings.events', 'id'),"
        " (SELECT GREATEST(max(last_event_id), max(position)) FROM route_worker_cursors) + 1000)",
        "mysql": "ALTER TABLE events AUTO_INCREMENT = 100000",
    }
    await database.sql(counter[database.family])
    engine = await database.open("route_admin")
    await routers.confirm(engine, "default", "failed over with loss", "test")


def _is_of_the_loss(problem: str, lost: set[str]) -> bool:
    """What was lost is missing, what was sent of it has no event, and what was undone is done again."""
    if any(one in problem for one in lost):
        return True
    return any(words in problem for words in ("are explained", "webhook id"))
