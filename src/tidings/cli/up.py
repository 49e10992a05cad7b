"""`up`: everything in one command, from an empty folder or on a database of one's own, until Ctrl-C."""

from contextlib import suppress

import typer

from tidings.cli.acting import person
from tidings.cli.context import installation
from tidings.cli.database import Roles, run_migrations
from tidings.cli.gates import ALL as ALL_GATES
from tidings.cli.output import out, say
from tidings.cli.running import run_in_loop, run_until_told
from tidings.errors import RouteRefused
from tidings.processes import everything
from tidings.roles.keys import actions as keys
from tidings.roles.routes import gates, routes
from tidings.runtime.supervisor import told_to_stop
from tidings.wiring import Installation

REASON = "the first start of `tidings up`"


def add_to(app: typer.Typer) -> None:
    app.command()(up)


def up() -> None:
    """Start everything there is: database, migrations, all roles. Ctrl-C stops cleanly, a second one at once."""
    with installation(must_exist=False) as found:
        run_in_loop(start_and_run(found))


async def start_and_run(found: Installation) -> None:
    if await has_to_migrate(found) and await run_migrations(found, Roles.CREATE, about_gates=False):
        await let_events_flow(found)
    await show_first_key(found)
    stopping = told_to_stop()  # from here on, for the next words promise it
    show_where(found)
    await run_until_told(found, everything(found.settings), stopping=stopping)
    say("Stopped.")


async def has_to_migrate(found: Installation) -> bool:
    """Where everything is there, the logins of the roles are enough to start."""
    async with found.migrator() as migrator:
        return bool(await migrator.missing_steps())


async def let_events_flow(found: Installation) -> None:
    """A new installation delivers what is published to whoever subscribes, without another word."""
    async with found.engine("route_admin") as engine:
        with suppress(RouteRefused):  # somebody else was started at the same moment
            await routes.add(engine, routes.CATCH_ALL, person())
        for name in ALL_GATES:
            await gates.open(engine, name, REASON, person())
    say("The gates are open, and a route sends every event to the webhooks that subscribe to it.")


async def show_first_key(found: Installation) -> None:
    """Once: it is kept nowhere but with whoever reads this."""
    if found.settings.server.admin_key:
        return
    async with found.engine("key_admin", size=1) as engine:
        made = await keys.add_first(engine, person())
    if made:
        out.print(f"The first admin key, shown only now: {made.key}", markup=False)


def show_where(found: Installation) -> None:
    place = f"an embedded PostgreSQL in {found.settings.installation.data_dir}" if found.embedded else "your own server"
    out.print(f"Tidings is up: {', '.join(everything(found.settings))}, on {place}.", markup=False)
    server = found.settings.server
    url = f"http://{server.host}:{server.port or '(see below)'}"
    for what, command in (
        ("the console", url),
        ("the HTTP API", f"{url}/docs"),
        ("send events somewhere", "tidings subscriptions add --type '*' --url https://…"),
        ("publish one", "tidings publish order.paid '{\"id\": 1}'"),
        ("look at routing", "tidings routers list"),
        ("see whether all is well", "tidings doctor"),
    ):
        out.print(f"  {what:<24} {command}", markup=False)
    say("Ctrl-C stops everything.")
