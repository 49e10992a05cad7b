"""`run`: the processes of the product, each as its own database user, until they are told to stop."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from dataclasses import asdict
from typing import Annotated, Any, TypeVar

import typer

from tidings.cli.context import installation, settings
from tidings.cli.output import out, say, show_json
from tidings.errors import SettingsInvalid
from tidings.model.route import DEFAULT_ROUTER
from tidings.processes import (
    API,
    PROCESSES,
    TASK_WORKER,
    activities,
    everything,
    seconds_to_stop,
    visibility_timeouts,
)
from tidings.roles.router.passes import Outcome, Pass
from tidings.roles.router.router import Router
from tidings.runtime import several
from tidings.runtime.several import stop_without_leader
from tidings.runtime.supervisor import supervise, told_to_stop, unless_stopped
from tidings.settings import Settings
from tidings.wiring import Installation

T = TypeVar("T")

ROUTER, WORKER, RESCUER, VERIFIER = "router", "worker", "rescuer", "verifier"
ALL = "all"
LED, PROCESSES_OPTION = "--led", "--processes"
# So much longer than its processes it waits for them.
SECONDS_FOR_THE_LEADER = 10
# How long a single pass waits for open transactions that may still fill holes; a router that keeps running never does.
PATIENCE = 1.0


def add_to(app: typer.Typer) -> None:
    app.command()(run)


def run(
    roles: Annotated[list[str], typer.Argument(help=f"Which processes to run: {', '.join(PROCESSES)}, or {ALL}.")],
    name: Annotated[str, typer.Option(help="Which router, for `router`.")] = DEFAULT_ROUTER,
    once: Annotated[
        bool, typer.Option("--once", help="One pass of the router, then end; for those who schedule it.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="With --once: what was done, for machines.")] = False,
    processes: Annotated[
        int, typer.Option(min=1, max=64, help="So many processes with these roles, to use more than one core.")
    ] = 1,
    # For one of several: it ends when its leader does. Nobody else has a use for it.
    led: Annotated[bool, typer.Option(LED, hidden=True)] = False,
) -> None:
    """Run roles until Ctrl-C or SIGTERM; what was begun is finished, a second signal ends at once.

    `task-worker` runs the handlers of your application: `tidings run task-worker --app myapp.tasks`.

    With `--processes` each one that crashes is begun again; the second shows its metrics at the next port, and so on.
    """
    names = chosen(roles, once, settings(), processes)
    with installation(must_exist=True) as found:
        if once:
            show_pass(run_in_loop(route_once(found, name)), json)
        elif processes > 1:
            run_in_loop(lead(found, names, commands(found.settings, processes)))
        else:
            run_in_loop(run_until_told(found, names, name, led=led))


def chosen(roles: list[str], once: bool, settings: Settings, processes: int = 1) -> list[str]:
    """Each process once; SettingsInvalid where there is no such one."""
    names = list(dict.fromkeys(name for role in roles for name in (everything(settings) if role == ALL else [role])))
    wrong = [
        f"{name!r} can't be run; there are {', '.join(PROCESSES)} and {ALL}" for name in names if name not in PROCESSES
    ]
    if once and not wrong and names != [ROUTER]:
        wrong = [f"--once is for {ROUTER} alone; the others keep running"]
    if processes > 1 and once:
        wrong.append("--processes is for those that keep running, and --once does not")
    if processes > 1 and API in names:
        wrong.append(f"--processes: only one can listen at the port of {API}; run that one by itself")
    if TASK_WORKER in names and not settings.tasks.app:
        wrong.append(f"{TASK_WORKER} needs the module with your handlers: --app myapp.tasks")
    if wrong:
        raise SettingsInvalid(wrong)
    return names


async def run_until_told(
    found: Installation,
    names: list[str],
    router: str = DEFAULT_ROUTER,
    *,
    stopping: asyncio.Event | None = None,
    led: bool = False,
) -> None:
    """What a person must mend ends it before it has begun; afterwards everything is tried again and again."""
    stopping = stopping or told_to_stop()
    if led:
        stop_without_leader(stopping)
    await unless_stopped(refuse_unless_ready(found, names), stopping)
    await supervise(activities(found, names, router), stopping, seconds_to_stop(found.settings))


async def lead(found: Installation, names: list[str], commands: list[list[str]]) -> None:
    """Several processes do it, and this one keeps them going."""
    stopping = told_to_stop()
    await unless_stopped(refuse_unless_ready(found, names), stopping)
    seconds = seconds_to_stop(found.settings) + SECONDS_FOR_THE_LEADER
    await supervise(several.processes("+".join(names), commands), stopping, seconds)


def commands(settings: Settings, processes: int) -> list[list[str]]:
    """What this process was asked for, once for each: without the number, and each with a port for its metrics."""
    given = iter(sys.argv[1:])
    same = ["-m", _program()]
    for word in given:
        if word == PROCESSES_OPTION:
            next(given, None)
        elif not word.startswith(f"{PROCESSES_OPTION}="):
            same.append(word)
    port = settings.server.metrics_port
    return [[*same, LED, *([f"--metrics-port={port + number}"] if port else [])] for number in range(processes)]


def _program() -> str:
    """The module that Python was started with; ours, where it was a script."""
    spec = sys.modules["__main__"].__spec__
    return spec.name.removesuffix(".__main__") if spec else "tidings"


async def refuse_unless_ready(found: Installation, names: list[str]) -> None:
    if {WORKER, VERIFIER} & {*names}:
        found.vault().seal(b"", b"")
    if {TASK_WORKER, RESCUER} & {*names}:
        visibility_timeouts(found.settings)
    for name in names:
        await found.refuse_unless_ready(PROCESSES[name].role)


async def route_once(found: Installation, name: str) -> Pass:
    async with found.engine("event_router") as engine:
        router = Router(engine, name)
        try:
            await router.outwait_writers(PATIENCE)
            return await router.step()
        finally:
            await router.close()


def run_in_loop(work: Coroutine[Any, Any, T]) -> T:
    """On uvloop, where there is one."""
    with asyncio.Runner(loop_factory=_new_loop()) as runner:
        return runner.run(work)


def _new_loop() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        from uvloop import new_event_loop
    except ImportError:
        return asyncio.new_event_loop
    return new_event_loop


def show_pass(done: Pass, json: bool) -> None:
    if json:
        show_json(asdict(done))
    else:
        counts = ", ".join(f"{count} {status}" for status, count in done.counts.items() if count)
        says = f": {done.read} events, {done.sagas} sagas, {done.tasks} tasks ({counts})" if done.read else ""
        out.print(f"{done.outcome}{says}{f' – {done.reason}' if done.reason else ''}", markup=False)
        if done.remedy:
            say(f"  → {done.remedy}")
    if done.outcome is Outcome.HELD:
        raise typer.Exit(1)
