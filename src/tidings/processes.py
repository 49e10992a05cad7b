"""What each process of the product is made of: its role, its step, and how it ends."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from tidings.courier import Courier, Guard
from tidings.db.engine import Engine
from tidings.decisions.advancing import RetryPolicy
from tidings.decisions.pacing import FlowLimits
from tidings.decisions.retrying import Backoff
from tidings.model.route import DEFAULT_ROUTER
from tidings.roles.cleaner.cleaner import Cleaner
from tidings.roles.orchestrator.orchestrator import Orchestrator
from tidings.roles.router.router import Router
from tidings.roles.worker.worker import Worker, WorkerLimits
from tidings.runtime.loop import keep_going
from tidings.runtime.presence import new_worker_id, show_presence
from tidings.runtime.supervisor import Activity
from tidings.settings import Settings
from tidings.wiring import Installation

Step = Callable[[], Awaitable[bool]]
_SESSIONS = 3


@dataclass(frozen=True)
class Process:
    """`work` makes the step out of an engine of this role, and tidies up after the last one."""

    role: str
    work: Callable[[Installation, Engine, str], AbstractAsyncContextManager[Step]]


def seconds_to_stop(settings: Settings) -> float:
    """What is under way ends within its lease; a little more to say goodbye."""
    return settings.worker.lease_seconds + 10


def activities(found: Installation, names: list[str], router: str = DEFAULT_ROUTER) -> list[Activity]:
    """What is to be run, for the supervisor."""
    return [Activity(name, partial(_run, found, name, _process(name, router))) for name in names]


def _process(name: str, router: str) -> Process:
    return Process("event_router", partial(_routing, router=router)) if name == "router" else PROCESSES[name]


async def _run(found: Installation, name: str, process: Process, stopping: asyncio.Event) -> None:
    worker_id = new_worker_id(name)
    async with (
        found.engine(process.role, size=_SESSIONS) as engine,
        _present(engine, worker_id, name),
        process.work(found, engine, worker_id) as step,
    ):
        await keep_going(name, step, stopping)


@asynccontextmanager
async def _present(engine: Engine, worker_id: str, name: str) -> AsyncIterator[None]:
    """Seen by others until the end, also until that of a crash."""
    ended = asyncio.Event()
    showing = asyncio.create_task(show_presence(engine, worker_id, name, ended))
    try:
        yield
    finally:
        ended.set()
        await asyncio.wait([showing])


@asynccontextmanager
async def _routing(
    found: Installation, engine: Engine, worker_id: str, router: str = DEFAULT_ROUTER
) -> AsyncIterator[Step]:
    one = Router(engine, router)

    async def step() -> bool:
        return (await one.step()).did_work

    try:
        yield step
    finally:
        await one.close()


@asynccontextmanager
async def _orchestrating(found: Installation, engine: Engine, worker_id: str) -> AsyncIterator[Step]:
    flow = found.settings.flow_control
    one = Orchestrator(engine, retry_policy(found.settings), FlowLimits(flow.active_jobs_max, flow.window_max))

    async def step() -> bool:
        return (await one.step()).did_work

    yield step


@asynccontextmanager
async def _working(found: Installation, engine: Engine, worker_id: str) -> AsyncIterator[Step]:
    settings = found.settings
    slots = settings.worker.worker_slots
    courier = Courier(guard(found), connections=2 * slots, per_host=max(64, slots // 4))
    limits = WorkerLimits(
        settings.worker.lease_seconds,
        slots,
        settings.worker.max_in_flight,
        settings.sending.timeout_seconds,
        settings.worker.send_margin,
        settings.worker.claim_hint,
    )
    one = Worker(engine, courier, found.vault(), worker_id, limits)
    try:
        yield one.step
    finally:
        await one.close()
        await courier.close()


@asynccontextmanager
async def _cleaning(found: Installation, engine: Engine, worker_id: str) -> AsyncIterator[Step]:
    one = Cleaner(engine, found.settings.worker.max_lease_resets)

    async def step() -> bool:
        return (await one.step()).did_work

    yield step


def retry_policy(settings: Settings) -> RetryPolicy:
    retries = settings.retries
    return RetryPolicy(
        retries.max_retry_limit, Backoff(retries.base_delay_seconds, retries.max_delay_seconds, retries.jitter)
    )


def guard(found: Installation) -> Guard:
    """Who may be called: nobody on private networks, unless the settings say so."""
    sending = found.settings.sending
    return Guard(
        allow_networks=sending.allow_networks,
        allow_http_hosts=sending.allow_http_hosts,
        allow_ports=sending.allow_ports,
        forbidden=found.own_places(),
    )


PROCESSES = {
    "router": Process("event_router", _routing),
    "orchestrator": Process("saga_orchestrator", _orchestrating),
    "worker": Process("job_worker", _working),
    "cleaner": Process("lease_cleaner", _cleaning),
}
