"""`demo`: a throwaway database, four receivers, a thousand events, and accounts that are settled at the end."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.live import Live

from tidings.cli.database import Roles, run_migrations
from tidings.cli.flags import FLAGS
from tidings.cli.output import err, out, say
from tidings.cli.reconcile import show_ledger
from tidings.cli.running import run_in_loop
from tidings.cli.up import let_events_flow
from tidings.db.accounts import ALL_ROLES
from tidings.db.embedded import EmbeddedServer, hold
from tidings.demo.certificates import make_certificates
from tidings.demo.receivers import ADDRESS
from tidings.demo.scoreboard import picture
from tidings.demo.story import Story
from tidings.model.ledger import Ledger
from tidings.settings import Settings, load_settings
from tidings.telemetry.log_lines import start_logging
from tidings.wiring import Installation, rules_of

STOP_DEADLINE = 30.0
# Receivers on this machine may be called, failures are tried again soon, and given up soon.
FOR_A_DEMO = {
    "allow_networks": f"{ADDRESS}/32",
    "base_delay_seconds": "100ms",
    "max_retry_limit": "3",
    "lease_seconds": "10s",
    "log_level": "error",
}


def add_to(app: typer.Typer) -> None:
    app.command()(demo)


def demo(
    events: Annotated[int, typer.Option(min=10, max=100_000, help="How many events to publish.")] = 1_000,
) -> None:
    """Deliver events to a healthy, a slow, a flaky and a dead receiver; requeue; settle the accounts; clean up."""
    settings = throwaway_settings()
    began = time.monotonic()
    with throwaway_directory() as directory, throwaway_server(directory) as server:
        story, ledger = run_in_loop(play(Installation(settings, server), events, directory))
    show_ledger(ledger)
    out.print(
        f"{story.board.failures:,} attempts failed on the way. {story.duplicates:,} deliveries came twice."
        f" {time.monotonic() - began:.0f} s in all, and everything has been removed."
    )
    if not ledger.adds_up:
        raise typer.Exit(1)


async def play(found: Installation, events: int, directory: Path) -> tuple[Story, Ledger]:
    certificate = await prepare(found, directory)
    with Live(console=err, refresh_per_second=8, transient=not err.is_terminal) as live:

        def show(story: Story, doing: str) -> None:
            rows = [(id, receiver, story.wanted(receiver)) for id, receiver in story.receivers]
            live.update(picture(story.board, rows, doing))

        story = Story(found, rules_of(found.settings), events, show)
        return story, await story.tell(certificate)


async def prepare(found: Installation, directory: Path) -> Path:
    """A database through which events flow, and what receivers on this machine show to be trusted."""
    await run_migrations(found, Roles.CREATE, about_gates=False)
    await let_events_flow(found)
    certificates = make_certificates(directory, ADDRESS)
    # As for every program that uses OpenSSL: whom to trust besides, or instead of, the system's authorities.
    os.environ["SSL_CERT_FILE"] = str(certificates.authority)
    return certificates.receiver


def throwaway_settings() -> Settings:
    """Those of a demo, but for what was set by a flag; the log keeps to them from now on."""
    settings = load_settings(flags={**FOR_A_DEMO, **FLAGS}, roles=ALL_ROLES)
    start_logging(settings.log.log_format, settings.log.log_level)
    return settings


@contextmanager
def throwaway_directory() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="tidings-demo-"))
    # When root runs the demo, the server runs as somebody else, who must be able to enter.
    directory.chmod(0o711)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def throwaway_server(directory: Path) -> Iterator[EmbeddedServer]:
    with hold(directory / "data", progress=say) as server:
        yield server
    deadline = time.monotonic() + STOP_DEADLINE
    while server.running and time.monotonic() < deadline:
        time.sleep(0.05)
