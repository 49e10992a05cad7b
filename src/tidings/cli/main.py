"""The command `tidings`: its commands, its flags, and how it ends."""

import sys
from typing import NoReturn

import typer

import tidings
from tidings.cli.commands import LazyGroup, own_flags
from tidings.cli.flags import take_setting_flags
from tidings.errors import DatabaseUrlInvalid, InputRefused, SettingsInvalid, TidingsError

app = typer.Typer(
    name="tidings",
    cls=LazyGroup,
    help="Events from your own database transaction to signed webhooks and tasks.",
    epilog="Every setting is a flag too, for example --data-dir ./here or --lease-seconds 30s."
    " Exit codes: 0 done; 1 it is not so, or could not be done; 2 asked wrongly; 130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Boxes and colours for people; what makes them takes as long to load as everything else.
    rich_markup_mode="rich" if sys.stdout.isatty() else None,
)


@app.callback(invoke_without_command=True)
def root(version: bool = typer.Option(False, "--version", help="Show the version and exit.")) -> None:
    if version:
        typer.echo(f"tidings {tidings.__version__}")
        raise typer.Exit


def main(arguments: list[str] | None = None) -> NoReturn:
    """Runs one command; 1 when what was asked is not so or could not be done, 2 when it was asked wrongly."""
    try:
        given = sys.argv[1:] if arguments is None else arguments
        app(args=take_setting_flags(given, own_flags), prog_name="tidings")
        sys.exit(0)
    except TidingsError as error:
        from tidings.cli.output import show_error

        show_error(error)
        sys.exit(2 if isinstance(error, SettingsInvalid | DatabaseUrlInvalid | InputRefused) else 1)
    except KeyboardInterrupt:
        sys.exit(130)
