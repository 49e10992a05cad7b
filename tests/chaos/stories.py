"""Short stories with the product's real steps, in one process: each is told in a second and judged as a run is."""

import asyncio
import json
import secrets
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from tests.chaos.checker import Verdict, Witness, judge
from tests.chaos.checker.deliveries import LONGEST_STEP
from tests.chaos.checker.requests import THAWED, TICK
from tests.chaos.receiver import WELL, Answer, Exchange, Ledger, behaviour, reply
from tests.support.database import Database
from tests.support.sessions import connect
from tests.support.waiting import eventually, pause
from tidings.courier import Courier, Guard
from tidings.decisions.advancing import RetryPolicy
from tidings.decisions.destinations import DestinationRules
from tidings.decisions.pacing import FlowLimits
from tidings.decisions.retrying import Backoff
from tidings.decisions.verifying import LONGEST_ANSWER
from tidings.flow import OWNER
from tidings.processes import endpoint_calls
from tidings.roles.archiver.archiver import Archiver
from tidings.roles.cleaner.cleaner import Cleaner
from tidings.roles.orchestrator.orchestrator import Orchestrator
from tidings.roles.rescuer.rescuer import Rescuer
from tidings.roles.router.router import Router
from tidings.roles.subscriptions import actions
from tidings.roles.task_worker.worker import TaskLimits, TaskWorker
from tidings.roles.verifier.asking import ask_verification
from tidings.roles.verifier.calling import EndpointCaller
from tidings.roles.worker.worker import Worker, WorkerLimits
from tidings.tasks import Handlers
from tidings.tasks.handlers import Terms
from tidings.tasks.signals import TaskContext
from tidings.vault import Vault, seal_secret

BACKOFF = Backoff(base=0.1, longest=0.2, jitter=0)
POLICY = RetryPolicy(4, BACKOFF)
FLOW = FlowLimits(1000, 100, 100)
WORK = WorkerLimits(lease_seconds=60, slots=16, max_in_flight=4, timeout=10, margin=1)
TASKS = TaskLimits(slots=4, threads=1, grace=1, terms=Terms(4, 10, 60, BACKOFF))
# On a busy machine; only a story that a planted bug keeps from its end takes as long.
PATIENCE = 10.0
HELD = ("held", "declines")
HERE = ip_network("127.0.0.0/8")
RULES = DestinationRules(http_hosts=["127.0.0.1"], networks=[HERE])
HERE_ALLOWED = Guard(allow_networks=[HERE], allow_http_hosts=["127.0.0.1"])


class Telling:
    """The stage of one story: ledgers in `folder`, an installation, a receiver, and roles that are stepped by hand."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.database, self.folder = database, folder
        self.witness = Witness(database.admin_url, database.names.schema)
        self.held: list[asyncio.Event] = []
        self._are_all_released = False
        self.vault = Vault(["the key of the stories"])
        self._subscriptions: list[dict[str, Any]] = []
        self._published = 0
        self._couriers: list[Courier] = []
        self.workers: list[Worker] = []
        self.task_workers: list[TaskWorker] = []

    async def begin(self) -> None:
        for gate in ("routing", "router:default"):
            await self.database.sql(f"INSERT INTO gates (name, is_open) VALUES ('{gate}', true)")
        await self.database.sql("INSERT INTO routes (event_type, target) VALUES ('*', 'webhook')")
        await asyncio.to_thread(self.witness.watch)
        loop, counts = asyncio.get_running_loop(), dict[tuple[str, str, int], int]()
        ledger = Ledger(self.folder / "received.jsonl")
        self._server = await loop.create_server(lambda: Held(ledger, counts, self.hold), "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        limits = {"max_lease_resets": 1, "base_delay": 0.1, "max_delay": 0.2, "busy_seconds": 1}
        (self.folder / "limits.json").write_text(json.dumps(limits), encoding="utf-8")
        (self.folder / "logs").mkdir()
        self.router = Router(await self.database.open("event_router", size=3), "default")
        self.orchestrator = Orchestrator(await self.database.open("saga_orchestrator"), POLICY, FLOW)
        self.cleaner = Cleaner(await self.database.open("lease_cleaner"), 1, patience=0)

    async def end(self) -> None:
        self.release_all()
        closing: list[Worker | TaskWorker] = [*self.workers, *self.task_workers]
        for worker in closing:
            await asyncio.wait_for(worker.close(), 20)
        for courier in self._couriers:
            await courier.close()
        await self.router.close()
        self._server.close()
        await asyncio.to_thread(self.witness.stop_watching)

    async def judged(self) -> Verdict:
        (self.folder / "subscriptions.json").write_text(json.dumps(self._subscriptions), encoding="utf-8")
        return await asyncio.to_thread(judge, self.folder, self.witness)

    async def subscribe(self, kind: str, limit: int = 4, *, verified: bool = True) -> int:
        id, path = len(self._subscriptions) + 1, f"/{kind}"
        secret = "whsec_" + b64encode(secrets.token_bytes(24)).decode()
        sealed = seal_secret(self.vault, id, secret, created_at=0, overlap=0).hex()
        literal = f"'\\x{sealed}'" if self.database.family == "postgresql" else f"x'{sealed}'"
        await self.database.sql(
            "INSERT INTO subscriptions (event_type, callback_url, active, verified, verification, max_retry_limit,"
            f" secrets) VALUES ('{kind}', 'http://127.0.0.1:{self.port}{path}', true, {str(verified).lower()}, 'echo',"
            f" {limit}, {literal})"
        )
        told = {"id": id, "path": path, "kind": kind, "event_type": kind, "max_retry_limit": limit, "relayed": False}
        self._subscriptions.append({**told, "secrets": [[0.0, secret]]})
        return id

    async def publish(self, kind: str, count: int = 1) -> None:
        for event in self.new_events(kind, count):
            await self.database.sql(self.insert(event), "event_ingest_writer")
            self.committed(event)

    def new_events(self, kind: str, count: int) -> list[dict[str, str]]:
        made = range(self._published, self._published + count)
        self._published += count
        return [{"event_type": kind, "correlation_id": f"s{n}", "payload": f'{{"n":  {n}, "a": 1.0}}'} for n in made]

    @staticmethod
    def insert(event: dict[str, str]) -> str:
        values = ", ".join(f"'{value}'" for value in event.values())
        return f"INSERT INTO events ({', '.join(event)}) VALUES ({values})"

    def committed(self, line: dict[str, Any], kind: str = "event") -> None:
        self.write("produced.jsonl", {"kind": kind, "outcome": "committed", "at": time.time(), **line})

    def broken(self, kind: str, pid: int, at: float, until: float) -> None:
        self.write("broken.jsonl", {"kind": kind, "pid": pid, "at": at, "until": until})

    def write(self, name: str, line: dict[str, Any]) -> None:
        with (self.folder / name).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    async def worker(self, **limits: Any) -> Worker:
        """Its pid in the ledgers is its number."""
        self._couriers.append(Courier(HERE_ALLOWED))
        engine, number = await self.database.open("job_worker", size=3), len(self.workers) + 1
        made = WorkerLimits(**{**vars(WORK), **limits})
        self.workers.append(Worker(engine, self._couriers[-1], self.vault, f"worker:story:{number}:x", made))
        return self.workers[-1]

    async def verifier(self) -> TaskWorker:
        """Who calls endpoints that are to prove themselves."""
        self._couriers.append(Courier(HERE_ALLOWED, excerpt_size=LONGEST_ANSWER + 1))
        engine = await self.database.open("subscription_verifier", size=3)
        calls = endpoint_calls(EndpointCaller(engine, self._couriers[-1], self.vault, timeout=5))
        self.task_workers.append(TaskWorker(engine, calls, "verifier:story:1:x", TASKS))
        return self.task_workers[-1]

    async def ask(self, id: int) -> None:
        """Whether it wants what it gets."""
        engine = await self.database.open("subscription_verifier", size=1)
        check = await ask_verification(engine, id, actor="asker", rules=RULES)
        self.write("orders.jsonl", {"order": "check", "subscription": id, "checks": [check]})

    async def rounds(self, *workers: Worker, times: int = 1) -> None:
        """Everybody has a turn."""
        for _ in range(times):
            await self.router.step()
            await self.orchestrator.step()
            for worker in workers:
                await worker.step()
            await pause(0.01)

    async def settle(self, *workers: Worker) -> None:
        """Until all has come to its end, or should have long ago."""
        deadline = time.monotonic() + PATIENCE
        while await asyncio.to_thread(self.witness.unfinished) and time.monotonic() < deadline:
            await self.rounds(*workers, times=3)

    async def until_requests(self, count: int) -> None:
        ledger = self.folder / "received.jsonl"
        await eventually(lambda: ledger.read_bytes().count(b"\n") >= count, 10, f"{count} requests")

    def hold(self) -> asyncio.Event:
        """What one more request waits for."""
        self.held.append(asyncio.Event())
        if self._are_all_released:
            self.held[-1].set()
        return self.held[-1]

    def release_all(self) -> None:
        """Also those requests that come from now on."""
        self._are_all_released = True
        for released in self.held:
            released.set()

    async def expire(self) -> None:
        """Moves time by data: every lease ended long ago."""
        await self.database.sql("UPDATE webhook_delivery_jobs SET lease_until = created_at WHERE status = 'Leased'")

    async def submit(self, count: int) -> None:
        for number in range(count):
            key = f"k{number}"
            await self.database.sql(
                "INSERT INTO sys_pending_tasks (biz_type, biz_key, payload, max_retries) VALUES"
                f" ('HELD', '{key}', '{{}}', 2)"
            )
            self.committed({"biz_key": key, "biz_type": "HELD", "max_retries": 2}, "task")

    async def task_worker(self) -> tuple[TaskWorker, asyncio.Event]:
        """And what lets its handlers end."""
        number, release = len(self.task_workers) + 1, asyncio.Event()
        handlers = Handlers()

        @handlers.task("HELD")
        async def held(payload: object, context: TaskContext) -> None:
            self.write("runs.jsonl", {"task": context.id, "what": "begun", "pid": number, "at": time.time()})
            await release.wait()
            self.write("runs.jsonl", {"task": context.id, "what": "done", "pid": number, "at": time.time()})

        engine = await self.database.open("task_worker", size=3)
        self.task_workers.append(TaskWorker(engine, handlers, f"task-worker:story:{number}:x", TASKS))
        return self.task_workers[-1], release

    async def until_begun(self, count: int) -> None:
        runs = self.folder / "runs.jsonl"
        await eventually(lambda: runs.exists() and runs.read_text().count("begun") >= count, 10, f"{count} runs")


class Held(Exchange):
    """The receiver of the stories: a path in HELD answers when it is told to, each request by itself."""

    def __init__(
        self, ledger: Ledger, counts: dict[tuple[str, str, int], int], hold: Callable[[], asyncio.Event]
    ) -> None:
        super().__init__(ledger, counts)
        self._hold = hold

    def behaviour(self, kind: str, attempt: int, message: str, nth: int) -> tuple[int | None, Answer]:
        if kind == "flaps":
            return behaviour("broken" if attempt == 1 else "well", attempt, message, nth)
        if kind == "is-busy":
            return (429, reply(429, b"", "retry-after: 1\r\n")) if attempt == 1 else (200, reply(200, b"ok"))
        if kind not in HELD:
            return behaviour(kind, attempt, message, nth)
        released = self._hold()

        async def answer(transport: asyncio.Transport) -> None:
            await released.wait()
            transport.write(reply(WELL[nth], b"ok"))

        return WELL[nth], answer


async def plain(tell: Telling) -> None:
    """Some that go well, some that go well the second time, some that never do."""
    for kind, limit in (("well", 4), ("flaps", 4), ("broken", 2)):
        await tell.subscribe(kind, limit)
        await tell.publish(kind, 2)
    await tell.settle(await tell.worker())


async def busy(tell: Telling) -> None:
    await tell.subscribe("is-busy")
    await tell.publish("is-busy", 2)
    await tell.settle(await tell.worker())


async def zombie(tell: Telling) -> None:
    """A's lease is taken over while its request is under way; it reports while B is sending (catalogue A5)."""
    await tell.subscribe("held")
    await tell.publish("held")
    a, b = await tell.worker(), await tell.worker()
    frozen_at = time.time()
    await tell.rounds(a, times=2)
    await tell.until_requests(1)
    await tell.expire()
    await tell.cleaner.step()
    tell.broken("freeze", 1, frozen_at, time.time())
    await tell.rounds(b)
    await tell.until_requests(2)
    tell.held[0].set()

    async def has_reported() -> bool:
        rows = await tell.database.sql("SELECT id FROM webhook_delivery_jobs WHERE finished_at IS NOT NULL")
        return a.lost_leases > 0 or bool(rows)

    await eventually(has_reported, 10, "the late report")
    tell.held[1].set()
    await tell.settle(b)


async def zombie_gives_back(tell: Telling) -> None:
    """A has leased two and sent one; when B is sending both, A stops, and gives back what it has not sent."""
    await tell.subscribe("held")
    await tell.publish("held", 2)
    a, b = await tell.worker(max_in_flight=1), await tell.worker()
    frozen_at = time.time()
    await tell.rounds(a, times=2)
    await tell.until_requests(1)
    await tell.expire()
    await tell.cleaner.step()
    tell.broken("freeze", 1, frozen_at, time.time())
    # What is sent sooner may be its own, to the checker.
    await pause(THAWED + 0.1)
    await tell.rounds(b)
    await tell.until_requests(3)
    tell.held[0].set()
    tell.workers.remove(a)
    await asyncio.wait_for(a.close(), 20)
    tell.release_all()
    await tell.settle(b)


async def expiring(tell: Telling) -> None:
    """Nobody ever reports: every lease of the job expires."""
    await tell.subscribe("held", limit=1)
    await tell.publish("held")
    for number in range(1, 5):
        worker, began = await tell.worker(), time.time()
        await tell.rounds(worker, times=2)
        await tell.expire()
        await tell.cleaner.step()
        tell.broken("kill", number, began, time.time())
    await tell.rounds()
    tell.release_all()
    await tell.settle()


async def live_lease(tell: Telling) -> None:
    """The cleaner looks on while a request is under way, and nothing is wrong."""
    await tell.subscribe("held")
    await tell.publish("held")
    a, b = await tell.worker(), await tell.worker()
    await tell.rounds(a, times=2)
    await tell.until_requests(1)
    await tell.cleaner.step()
    await tell.rounds(b, times=2)
    tell.release_all()
    await tell.settle(a)


async def hole(tell: Telling) -> None:
    """One producer has drawn a number and not committed when the next one's event is routed."""
    await tell.subscribe("well")
    first, second = tell.new_events("well", 2)
    session = await connect(tell.database.url(OWNER))
    try:
        await session.run("START TRANSACTION")
        await session.run(tell.insert(first))
        await tell.database.sql(tell.insert(second), "event_ingest_writer")
        tell.committed(second)
        await tell.rounds(times=3)
        await session.run("COMMIT")
        tell.committed(first)
    finally:
        await session.close()
    await tell.settle(await tell.worker())


async def paused(tell: Telling) -> None:
    """Nothing starts while it is paused, and everything afterwards."""
    id = await tell.subscribe("well")
    admin = await tell.database.open("subscription_admin")
    await actions.pause(admin, id, actor="chaos")
    # What is made shortly afterwards may have been begun before.
    since = time.time() - LONGEST_STEP
    await tell.publish("well", 2)
    worker = await tell.worker()
    await tell.rounds(worker, times=3)
    until = time.time()
    await actions.resume(admin, id, actor="chaos")
    audited = ["subscription.paused", "subscription.resumed"]
    tell.write("orders.jsonl", {"order": "pause", "subscription": id, "held": [since, until], "audited": audited})
    await tell.settle(worker)


async def task_zombie(tell: Telling) -> None:
    """A falls silent, is rescued, B runs, and A comes back with its result (seed 003)."""
    await tell.submit(1)
    (a, release_a), (b, release_b) = await tell.task_worker(), await tell.task_worker()
    began = time.time()
    await a.step()
    await tell.until_begun(1)
    await tell.database.sql("UPDATE sys_pending_tasks SET updated_at = created_at - INTERVAL '1' HOUR")
    rescuer = Rescuer(await tell.database.open("task_rescuer"), 60, every=0, patience=0)
    await rescuer.step()
    tell.broken("freeze", 1, began, time.time())
    await b.step()
    await tell.until_begun(2)
    release_a.set()
    await asyncio.wait_for(a.close(), 20)
    tell.task_workers.remove(a)
    # Longer than what the checker takes for one moment: B has not done it when A says so.
    await pause(2 * TICK)
    release_b.set()
    await tell.settle()


async def task_alive(tell: Telling) -> None:
    """The rescuer looks on while a handler runs."""
    await tell.submit(1)
    worker, release = await tell.task_worker()
    await worker.step()
    await tell.until_begun(1)
    await Rescuer(await tell.database.open("task_rescuer"), 60, every=0, patience=0).step()
    release.set()
    await worker.step()
    await tell.settle()


async def task_archived(tell: Telling) -> None:
    await tell.submit(2)
    worker, release = await tell.task_worker()
    release.set()
    await worker.step()
    await tell.settle()
    await Archiver(await tell.database.open("task_archiver"), 0).step()


async def proving(tell: Telling) -> None:
    """One says what it must; the other never does, and is asked once more while it is being asked."""
    agrees, declines = await tell.subscribe("agrees", verified=False), await tell.subscribe("declines", verified=False)
    verifier = await tell.verifier()
    for id in (agrees, declines):
        await tell.ask(id)
    await verifier.step()
    await tell.until_requests(2)
    await tell.ask(declines)
    await verifier.step()
    tell.release_all()
    await tell.settle()


STORIES: dict[str, Callable[[Telling], Awaitable[None]]] = {
    "plain": plain,
    "busy": busy,
    "zombie": zombie,
    "zombie gives back": zombie_gives_back,
    "expiring": expiring,
    "live lease": live_lease,
    "hole": hole,
    "paused": paused,
    "task zombie": task_zombie,
    "task alive": task_alive,
    "task archived": task_archived,
    "proving": proving,
}


async def told(name: str, database: Database, folder: Path) -> Verdict:
    """The story, and what the checker says of it."""
    tell = Telling(database, folder)
    await tell.begin()
    try:
        await STORIES[name](tell)
        return await tell.judged()
    finally:
        await tell.end()
