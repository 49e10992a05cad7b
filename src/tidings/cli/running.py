"""`run`: the processes of the product, each as its own database user, until they are told to stop."""

import asyncio
import signal
from dataclasses import asdict
from typing import Annotated

import typer

from tidings.cli.context import installation
from tidings.cli.output import out, show_json
from tidings.errors import SettingsInvalid
from tidings.model.route import DEFAULT_ROUTER
from tidings.roles.router.router import Outcome, Pass, Router
from tidings.runtime.loop import keep_going
from tidings.wiring import Installation

ROUTER = "router"


def add_to(app: typer.Typer) -> None:
    app.command()(run)


def run(
    roles: Annotated[list[str], typer.Argument(help="Which processes to run; so far: router.")],
    name: Annotated[str, typer.Option(help="Which router, for `router`.")] = DEFAULT_ROUTER,
    once: Annotated[bool, typer.Option("--once", help="One pass, then end; for those who schedule it.")] = False,
    json: Annotated[bool, typer.Option("--json", help="With --once: what was done, for machines.")] = False,
) -> None:
    """Run roles until Ctrl-C or SIGTERM; a step that was begun is finished."""
    unknown = [role for role in roles if role != ROUTER]
    if unknown:
        raise SettingsInvalid([f"{role!r} can't be run; there is {ROUTER}" for role in unknown])
    with installation(must_exist=True) as found:
        if once:
            show_pass(asyncio.run(route_once(found, name)), json)
        else:
            asyncio.run(route(found, name))


async def route_once(found: Installation, name: str) -> Pass:
    async with found.engine("event_router") as engine:
        router = Router(engine, name)
        try:
            return await router.step()
        finally:
            await router.close()


async def route(found: Installation, name: str) -> None:
    async with found.engine("event_router") as engine:
        router = Router(engine, name)

        async def step() -> bool:
            return (await router.step()).did_work

        try:
            await keep_going(ROUTER, step, told_to_stop())
        finally:
            await router.close()


def told_to_stop() -> asyncio.Event:
    """Set by the first SIGTERM or Ctrl-C."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    return stopping


def show_pass(done: Pass, json: bool) -> None:
    if json:
        show_json(asdict(done))
    else:
        counts = ", ".join(f"{count} {status}" for status, count in done.counts.items() if count)
        says = f": {done.read} events, {done.sagas} sagas, {done.tasks} tasks ({counts})" if done.read else ""
        out.print(f"{done.outcome}{says}{f' – {done.reason}' if done.reason else ''}", markup=False)
    if done.outcome is Outcome.HELD:
        raise typer.Exit(1)
