"""The command `tidings`: its commands, its flags, and how it ends."""

import sys
from typing import NoReturn

import typer

import tidings
from tidings.cli import (
    database,
    dead_letters,
    demo,
    events,
    flow,
    gates,
    keys,
    listen,
    publishing,
    reconcile,
    route_dead_letters,
    routers,
    routes,
    running,
    sagas,
    subscriptions,
    tasks,
    up,
    why,
)
from tidings.cli.context import take_setting_flags
from tidings.cli.output import show_error
from tidings.errors import DatabaseUrlInvalid, InputRefused, SettingsInvalid, TidingsError

app = typer.Typer(
    name="tidings",
    help="Events from your own database transaction to signed webhooks and tasks.",
    epilog="Every setting is a flag too, for example --data-dir ./here or --lease-seconds 30s.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
database.add_to(app)
up.add_to(app)
running.add_to(app)
publishing.add_to(app)
for part in (events, routes, routers, gates, route_dead_letters, sagas, dead_letters, tasks, keys):
    part.add_to(app)
why.add_to(app)
reconcile.add_to(app)
demo.add_to(app)
listen.add_to(app)
flow.add_to(app)
subscriptions.add_to(app)


@app.callback(invoke_without_command=True)
def root(version: bool = typer.Option(False, "--version", help="Show the version and exit.")) -> None:
    if version:
        typer.echo(f"tidings {tidings.__version__}")
        raise typer.Exit


def main(arguments: list[str] | None = None) -> NoReturn:
    """Runs one command; 1 when what was asked is not so or could not be done, 2 when it was asked wrongly."""
    try:
        given = sys.argv[1:] if arguments is None else arguments
        own = {"subscriptions": subscriptions.OWN_FLAGS, "listen": listen.OWN_FLAGS}
        app(args=take_setting_flags(given, own), prog_name="tidings")
        sys.exit(0)
    except TidingsError as error:
        show_error(error)
        sys.exit(2 if isinstance(error, SettingsInvalid | DatabaseUrlInvalid | InputRefused) else 1)
    except KeyboardInterrupt:
        sys.exit(130)
