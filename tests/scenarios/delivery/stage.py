"""Real processes of every role on one installation, a receiver, a producer with a ledger, and the checker."""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.chaos.checker import Witness, compare
from tests.chaos.checker.ledgers import Broken, Ledgers, Request, Subscription
from tests.roles.worker.scene import SECRET, Scene
from tests.support.database import Database
from tests.support.processes import Process, hurried
from tests.support.receiver import Received, Receiver
from tests.support.sessions import connect
from tests.support.waiting import eventually, pause
from tidings.vault import Vault

KEY = "the-key-of-the-scenarios"
# A lease must expire, its job be reset, and all be sent again; on a busy machine.
LONGEST_RECOVERY = 60.0
# Leases end when the test says so, and not before: a machine that has too much to do is no fault.
LONG_LEASE = {"TIDINGS_LEASE_SECONDS": "60", "TIDINGS_TIMEOUT_SECONDS": "30"}
SHORT_LEASE_SECONDS = 2
# For stories in which leases end by themselves.
SHORT_LEASE = {"TIDINGS_LEASE_SECONDS": f"{SHORT_LEASE_SECONDS}s", "TIDINGS_TIMEOUT_SECONDS": "1500ms"}
LIMIT = 3
LIMITS = {"max_lease_resets": 3, "base_delay": 0.1, "max_delay": 1.0, "busy_seconds": 1}


@dataclass(frozen=True)
class Committed:
    """An event as its producer knows it: the correlation id is its own, and never used twice."""

    correlation_id: str
    event_type: str
    payload: str


@dataclass
class Stage:
    """`requeued`: sagas that somebody asked a next generation for. `broken`: what explains that leases were lost."""

    database: Database
    receiver: Receiver
    start: Callable[[Process], Process]
    settings: dict[str, str] = field(default_factory=dict)
    subscribers: list[Subscription] = field(default_factory=list)
    committed: list[Committed] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    requeued: list[int] = field(default_factory=list)
    broken: list[Broken] = field(default_factory=list)
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.witness = Witness(self.database.admin_url, self.database.names.schema)

    async def set(self) -> None:
        for gate in ("routing", "router:default"):
            await self.database.sql(f"INSERT INTO gates (name, is_open) VALUES ('{gate}', true)")
        await self.database.sql("INSERT INTO routes (event_type, target) VALUES ('*', 'webhook')")
        await asyncio.to_thread(self.witness.watch)

    async def clear(self) -> None:
        for process in self.processes:
            process.kill()
        await asyncio.to_thread(self.witness.stop_watching)

    async def subscriber(self, path: str, event_type: str = "*", **columns: Any) -> Subscription:
        scene = Scene(self.database, self.receiver, Vault([KEY]))
        id = await scene.subscription(path, event_type=event_type, **columns)
        limit = int(str(columns.get("max_retry_limit", LIMIT)))
        made = Subscription(id, path, "well", event_type, limit, relayed=False, secrets=((0.0, SECRET),))
        self.subscribers.append(made)
        return made

    def strike(self, kind: str) -> None:
        """Something is broken now. In these short stories that explains whatever leases are lost from then on."""
        self.broken.append(Broken(kind, time.time(), float("inf")))

    def run(self, *roles: str, **environment: str) -> Process:
        """A process of these roles; a later word about the environment wins."""
        process = self.start(hurried("run", *roles, **self.environment() | environment))
        self.processes.append(process)
        return process

    def environment(self) -> dict[str, str]:
        return {
            **self.database.environment(),
            "TIDINGS_SECRET_KEYS": KEY,
            "TIDINGS_PORT": "0",
            "TIDINGS_ALLOW_HTTP_HOSTS": "127.0.0.1",
            "TIDINGS_ALLOW_NETWORKS": "127.0.0.0/8",
            **LONG_LEASE,
            "TIDINGS_BASE_DELAY_SECONDS": "100ms",
            "TIDINGS_MAX_DELAY_SECONDS": "1s",
            "TIDINGS_MAX_RETRY_LIMIT": str(LIMIT),
            **self.settings,
        }

    async def publish(self, count: int = 1, event_type: str = "order.paid") -> list[Committed]:
        """Events in one transaction of the producer's own; the ledger gets them when they are committed."""
        made = self.new_events(count, event_type)
        await self.commit(made)
        return made

    def new_events(self, count: int, event_type: str = "order.paid") -> list[Committed]:
        numbers = [next(self._numbers) for _ in range(count)]
        return [Committed(f"c{number}", event_type, f'{{"n":  {number}}}') for number in numbers]

    async def commit(self, events: list[Committed]) -> None:
        values = ", ".join(f"('{one.event_type}', '{one.correlation_id}', '{one.payload}')" for one in events)
        session = await connect(self.database.url("event_ingest_writer"))
        try:
            await session.run(f"INSERT INTO events (event_type, correlation_id, payload) VALUES {values}")
        finally:
            await session.close()
        self.committed += events

    def kill(self, process: Process) -> None:
        """SIGKILL, with no word to anybody."""
        self.strike("kill")
        self.processes.remove(process)
        process.kill()

    async def freeze(self, process: Process, seconds: float) -> None:
        """SIGSTOP for so long, and on."""
        self.strike("freeze")
        process.freeze()
        await pause(seconds)
        process.thaw()

    async def is_dead(self, process: Process) -> None:
        """Waits for a death that somebody else has caused."""
        self.strike("kill")
        await eventually(lambda: not process.is_running(), 30, "the process to die")
        self.processes.remove(process)

    async def expire_leases(self) -> None:
        """Moves time by data: every lease that there is now ended long ago."""
        await self.database.sql("UPDATE webhook_delivery_jobs SET lease_until = created_at WHERE status = 'Leased'")

    async def until_jobs(self, count: int, status: str) -> None:
        """So many jobs, at least, are in this state."""

        async def are_so() -> bool:
            text = f"SELECT COUNT(*) FROM webhook_delivery_jobs WHERE status = '{status}'"
            return bool(await self.database.value(text) >= count)

        await eventually(are_so, 30, f"{count} jobs to be {status}")

    def arrived(self) -> Counter[str]:
        """How often each event came, by its correlation id."""
        return Counter(one.headers["tidings-correlation-id"] for one in self.receiver.requests)

    async def stop(self, process: Process) -> int:
        """SIGTERM; its exit code."""
        self.processes.remove(process)
        process.terminate()
        return await asyncio.to_thread(process.wait, 30)

    async def restart_database(self) -> None:
        """SIGKILL for the server, and up again on the same data."""
        self.strike("database")
        await asyncio.to_thread(self.database.server.kill)
        await asyncio.to_thread(self.database.server.start)

    async def until_requests(self, count: int, path: str | None = None, timeout: float = 30) -> None:
        def are_there() -> bool:
            self.are_well()
            return len(self.receiver.requests if path is None else self.receiver.at(path)) >= count

        await eventually(are_there, timeout, f"{count} requests")

    async def until_at_rest(self, timeout: float = LONGEST_RECOVERY) -> None:
        async def is_so() -> bool:
            self.are_well()
            things = await asyncio.to_thread(self.witness.open_things)
            return not things["events not routed"] and not things["sagas open"]

        await eventually(is_so, timeout, "everything to come to its end")

    def are_well(self) -> None:
        for process in self.processes:
            assert process.is_running(), process.output
            assert "Traceback" not in process.output, process.output

    async def problems(self) -> list[str]:
        tables = await asyncio.to_thread(self.witness.read)
        return compare(self._ledgers(), tables).problems

    def _ledgers(self) -> Ledgers:
        ledgers = Ledgers(Path("no-logs"), limits=LIMITS)
        ledgers.events = {
            one.correlation_id: {"event_type": one.event_type, "payload": one.payload} for one in self.committed
        }
        ledgers.subscriptions = {one.id: one for one in self.subscribers}
        ledgers.requests = [_request(one) for one in self.receiver.requests]
        ledgers.broken = self.broken
        ledgers.orders = [{"order": "requeue", "sagas": self.requeued}]
        return ledgers


def _request(one: Received) -> Request:
    return Request(
        # The receiver counts from when the machine was begun.
        at=one.at + time.time() - time.monotonic(),
        path=one.path,
        message=one.message,
        timestamp=one.headers["webhook-timestamp"],
        signature=one.headers["webhook-signature"],
        correlation_id=one.headers["tidings-correlation-id"],
        event_type=one.headers["tidings-event-type"],
        attempt=one.attempt,
        body=one.body.decode(),
        says=one.answered,
    )
