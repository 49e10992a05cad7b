"""`url`: the way to the database, for other tools."""

import signal
from typing import Annotated

import typer

from tidings.cli.context import settings
from tidings.cli.output import out, say
from tidings.db.accounts import ALL_ROLES
from tidings.errors import SettingsInvalid
from tidings.flow import OWNER
from tidings.wiring import Installation

_ENDING = {signal.SIGINT, signal.SIGTERM}


def add_to(app: typer.Typer) -> None:
    app.command()(url)


def url(
    role: Annotated[str, typer.Argument(help="Whose login to use.")] = OWNER,
    hold: Annotated[bool, typer.Option("--hold", help="Keep the embedded database running until Ctrl-C.")] = False,
) -> None:
    """Print the database URL of a role, for psql and other tools."""
    if role not in ALL_ROLES:
        raise SettingsInvalid([f"{role!r} is no role; the roles are {', '.join(ALL_ROLES)}"])
    chosen = settings()
    found = Installation.look(chosen)
    if hold:
        with Installation.find(chosen, progress=say) as held:
            signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
            out.out(held.access(role).url, highlight=False)
            say("The database runs until Ctrl-C.")
            signal.sigwait(_ENDING)
        return
    out.out(found.access(role).url, highlight=False)
    if found.embedded is not None and not found.embedded.running:
        say("The embedded database is not running now; `tidings url --hold` starts and keeps it.")
