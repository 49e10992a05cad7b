"""What each process of the product is made of: its role, its step, and how it ends."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

from tidings.courier import Courier, Guard
from tidings.db.engine import Engine
from tidings.decisions.advancing import RetryPolicy
from tidings.decisions.pacing import FlowLimits
from tidings.decisions.retrying import Backoff
from tidings.decisions.verifying import LONGEST_ANSWER
from tidings.model.endpoint_check import TASK_OF
from tidings.model.route import DEFAULT_ROUTER
from tidings.roles.archiver.archiver import Archiver
from tidings.roles.cleaner.cleaner import Cleaner
from tidings.roles.observer.depths import DepthObserver
from tidings.roles.orchestrator.orchestrator import Orchestrator
from tidings.roles.rescuer.rescuer import Rescuer
from tidings.roles.retention.retention import Retention
from tidings.roles.router.passes import Pass
from tidings.roles.router.router import Router
from tidings.roles.task_worker.worker import TaskLimits, TaskWorker
from tidings.roles.verifier.calling import EndpointCaller
from tidings.roles.worker.worker import Worker, WorkerLimits
from tidings.runtime.exposing import Exposition
from tidings.runtime.loop import Pace, Work, keep_going
from tidings.runtime.presence import SECONDS_TO_LEAVE, new_worker_id, show_presence
from tidings.runtime.supervisor import Activity
from tidings.runtime.wakeups import Wakeups
from tidings.settings import Settings
from tidings.tasks.handlers import Handlers, Terms
from tidings.tasks.loading import load_app
from tidings.tasks.signals import TaskContext
from tidings.telemetry.metrics import Metrics
from tidings.wiring import Installation

Ring = Callable[[str], None]
"""Wakes another process, by its name: there is something for it to do. Called after a commit."""

# Shortly after the orchestrator, whose jobs it sends.
_AFTER_THE_ORCHESTRATOR = 0.06
# Nobody wakes the router after a transaction of the application: so long it may take to notice.
_SECONDS_BETWEEN_GLANCES_AT_THE_LOG = 0.06
# Where the orchestrator can't be woken it is half a second before it looks: little is won by an earlier glance.
_SECONDS_IF_NOBODY_CAN_BE_WOKEN = 0.13
_SECONDS_BETWEEN_CLEANINGS = 1.0
_SECONDS_BETWEEN_CHECKS = 1.0
_SECONDS_BETWEEN_ARCHIVINGS = 10.0
_SECONDS_BETWEEN_REMOVALS = 10.0
_SECONDS_BETWEEN_RESCUES = 1.0
# Calls to endpoints that people ask for, at a time.
_CALLS = 8
TASK_WORKER, API = "task-worker", "api"


@dataclass(frozen=True)
class Process:
    """`work` makes the step out of an engine of this role, and tidies up after the last one. The API has no steps.

    With one session signs of life wait for the end of a step. Two: while work is claimed, results are stored.
    """

    role: str
    work: Callable[[Installation, Engine, str, Ring], AbstractAsyncContextManager[Work]] | None = None
    sessions: int = 1


def seconds_to_stop(settings: Settings) -> float:
    """What is under way ends within its lease, or its grace; a little more to say goodbye."""
    return max(settings.worker.lease_seconds, settings.tasks.task_grace) + 10


def everything(settings: Settings) -> list[str]:
    """All processes that can be run: a task worker needs an application whose handlers it runs."""
    return [name for name in PROCESSES if name != TASK_WORKER or settings.tasks.app]


def activities(found: Installation, names: list[str], router: str = DEFAULT_ROUTER) -> list[Activity]:
    """What is to be run, for the supervisor."""
    wakeups = Wakeups(names)
    steps = [name for name in names if name != API]
    routing = partial(_routing, router=router, is_orchestrator_here="orchestrator" in names)
    processes = PROCESSES | {"router": replace(PROCESSES["router"], work=routing)}
    wanted = [Activity(name, partial(_run, found, name, processes[name], wakeups)) for name in steps]
    if found.settings.database.notify != "off":
        wanted.append(Activity("wake-ups", partial(_wake_others, found, PROCESSES[names[0]].role, wakeups)))
    server = found.settings.server
    if server.metrics_port or API in names:
        shown = Exposition(partial(_read_depths, found))
        if server.metrics_port:
            wanted.append(Activity("metrics", partial(shown.serve, server.host, server.metrics_port)))
        if API in names:
            wanted.append(Activity(API, _serving(found, shown, wakeups)))
    return wanted


async def _run(found: Installation, name: str, process: Process, wakeups: Wakeups, stopping: asyncio.Event) -> None:
    worker_id, work_of = new_worker_id(name), process.work
    assert work_of is not None
    async with (
        found.engine(process.role, size=process.sessions) as engine,
        _present(engine, worker_id, name),
        work_of(found, engine, worker_id, wakeups.ring) as work,
    ):
        await keep_going(name, work, stopping, wakeups.bell(name))


def _serving(found: Installation, shown: Exposition, wakeups: Wakeups) -> Callable[[asyncio.Event], Awaitable[None]]:
    # Loaded here, so that no other command waits for it; and before anything runs, as it takes a second or two in which
    # nobody else would come to anything.
    from tidings.api.server import prepare, serve

    prepare()
    return partial(serve, found, shown.text, wakeups.ring)


async def _wake_others(found: Installation, role: str, wakeups: Wakeups, stopping: asyncio.Event) -> None:
    async with found.engine(role, size=1) as engine:
        if engine.can_notify:
            await wakeups.run(engine, found.names.schema, stopping)
    await stopping.wait()


async def _read_depths(found: Installation, metrics: Metrics) -> None:
    async with found.engine("observer", size=1) as engine:
        metrics.show_depths(await DepthObserver.step(engine, DepthObserver.depths))


@asynccontextmanager
async def _present(engine: Engine, worker_id: str, name: str) -> AsyncIterator[None]:
    """Seen by others until the end, also until that of a crash."""
    ended = asyncio.Event()
    showing = asyncio.create_task(show_presence(engine, worker_id, name, ended))
    try:
        yield
    finally:
        ended.set()
        # It may be waiting for a server that is away, and has nothing to say that is worth it.
        await asyncio.wait([showing], timeout=2 * SECONDS_TO_LEAVE)
        showing.cancel()
        await asyncio.wait([showing])


@asynccontextmanager
async def _routing(
    found: Installation,
    engine: Engine,
    worker_id: str,
    ring: Ring,
    router: str = DEFAULT_ROUTER,
    *,
    is_orchestrator_here: bool = False,
) -> AsyncIterator[Work]:
    wakes = is_orchestrator_here or engine.can_notify
    pace = Pace(_SECONDS_BETWEEN_GLANCES_AT_THE_LOG if wakes else _SECONDS_IF_NOBODY_CAN_BE_WOKEN)

    def on_routed(done: Pass) -> None:
        if done.sagas:
            ring("orchestrator")
        if done.tasks:
            ring(TASK_WORKER)

    one = Router(engine, router, on_routed=on_routed)

    async def step() -> int:
        done = await one.step()
        return max(done.read, done.did_work)

    try:
        yield Work(step, one.look, pace, gathering=True)
    finally:
        await one.close()


@asynccontextmanager
async def _orchestrating(found: Installation, engine: Engine, worker_id: str, ring: Ring) -> AsyncIterator[Work]:
    flow = found.settings.flow_control
    limits = FlowLimits(flow.active_jobs_max, flow.window_start, flow.window_max)
    one = Orchestrator(engine, retry_policy(found.settings), limits)

    async def step() -> int:
        done = await one.step()
        if done.started:
            ring("worker")
        return done.moves

    yield Work(step, one.look, gathering=True)


@asynccontextmanager
async def _working(found: Installation, engine: Engine, worker_id: str, ring: Ring) -> AsyncIterator[Work]:
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
    one = Worker(engine, courier, found.vault(), worker_id, limits, lambda: ring("orchestrator"))
    try:
        yield Work(one.step, one.look, Pace(phase=_AFTER_THE_ORCHESTRATOR))
    finally:
        await one.close()
        await courier.close()


@asynccontextmanager
async def _cleaning(found: Installation, engine: Engine, worker_id: str, ring: Ring) -> AsyncIterator[Work]:
    one = Cleaner(engine, found.settings.worker.max_lease_resets)

    async def step() -> bool:
        done = await one.step()
        if done.reset:
            ring("worker")
        if done.failed:
            ring("orchestrator")
        return done.did_work

    yield Work(step, one.look, Pace(_SECONDS_BETWEEN_CLEANINGS))


@asynccontextmanager
async def _archiving(found: Installation, engine: Engine, worker_id: str, ring: Ring) -> AsyncIterator[Work]:
    one = Archiver(engine, found.settings.tasks.archive_after)

    async def step() -> bool:
        return (await one.step()).did_work

    yield Work(step, pace=Pace(_SECONDS_BETWEEN_ARCHIVINGS))


@asynccontextmanager
async def _handling(found: Installation, engine: Engine, worker_id: str, ring: Ring) -> AsyncIterator[Work]:
    one = TaskWorker(engine, load_app(found.settings.tasks.app), worker_id, task_limits(found.settings))
    try:
        yield Work(one.step, one.look)
    finally:
        await one.close()


@asynccontextmanager
async def _rescuing(found: Installation, engine: Engine, worker_id: str, ring: Ring) -> AsyncIterator[Work]:
    tasks = found.settings.tasks
    one = Rescuer(engine, tasks.visibility_timeout, visibility_timeouts(found.settings), every=tasks.rescue_every)

    async def step() -> bool:
        done = await one.step()
        if done.tasks > done.given_up:
            ring(TASK_WORKER)
        return done.did_work

    yield Work(step, pace=Pace(_SECONDS_BETWEEN_RESCUES))


def task_limits(settings: Settings) -> TaskLimits:
    """Of a task worker, and the terms of types that say nothing themselves."""
    tasks = settings.tasks
    backoff = Backoff(tasks.task_base_delay, tasks.task_max_delay, settings.retries.jitter)
    terms = Terms(tasks.task_slots, tasks.handler_timeout, tasks.visibility_timeout, backoff)
    return TaskLimits(tasks.task_slots, tasks.task_threads, tasks.task_grace, terms)


def visibility_timeouts(settings: Settings) -> dict[str, float]:
    """By type, as the application's handlers say; HandlerInvalid if there is something wrong with them."""
    if not settings.tasks.app:
        return {}
    terms = task_limits(settings).terms
    return {handler.biz_type: handler.terms(terms).visibility_timeout for handler in load_app(settings.tasks.app)}


@asynccontextmanager
async def _verifying(found: Installation, engine: Engine, worker_id: str, ring: Ring) -> AsyncIterator[Work]:
    courier = Courier(guard(found), connections=_CALLS, per_host=_CALLS, excerpt_size=LONGEST_ANSWER + 1)
    caller = EndpointCaller(engine, courier, found.vault(), found.settings.sending.timeout_seconds)
    one = TaskWorker(engine, endpoint_calls(caller), worker_id, task_limits(found.settings))
    try:
        yield Work(one.step, one.look, Pace(_SECONDS_BETWEEN_CHECKS))
    finally:
        await one.close()
        await courier.close()


def endpoint_calls(caller: EndpointCaller) -> Handlers:
    """The handlers of the tasks that call one endpoint."""

    async def call(payload: dict[str, int], context: TaskContext) -> None:
        await caller.run(payload["check"], context.correlation_id)

    handlers = Handlers()
    for biz_type in TASK_OF.values():
        handlers.task(biz_type, concurrency=_CALLS, base_delay=1)(call)
    return handlers


@asynccontextmanager
async def _retaining(found: Installation, engine: Engine, worker_id: str, ring: Ring) -> AsyncIterator[Work]:
    one = Retention(engine, found.settings.retention.keep_finished)
    yield Work(one.step, pace=Pace(_SECONDS_BETWEEN_REMOVALS))


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
    "worker": Process("job_worker", _working, sessions=2),
    "cleaner": Process("lease_cleaner", _cleaning),
    TASK_WORKER: Process("task_worker", _handling, sessions=2),
    "rescuer": Process("task_rescuer", _rescuing),
    "archiver": Process("task_archiver", _archiving),
    "retention": Process("retention", _retaining),
    "verifier": Process("subscription_verifier", _verifying),
    API: Process("key_checker"),
}
