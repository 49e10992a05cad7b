"""`demo`: everything there is so far, on a throwaway database, from nothing to a clean end."""

import asyncio
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from tidings.cli.context import settings
from tidings.cli.database import Roles, collect, run_migrations, show_findings
from tidings.cli.flow import show_flow
from tidings.cli.output import out, say
from tidings.db.embedded import EmbeddedServer, hold
from tidings.decisions.diagnosing import is_well
from tidings.wiring import Installation

STOP_DEADLINE = 30.0


def add_to(app: typer.Typer) -> None:
    app.command()(demo)


def demo() -> None:
    """Start a throwaway database, migrate it, show the flow and what `doctor` says; then remove it all."""
    with throwaway_server() as server:
        found = Installation(settings(), server)
        asyncio.run(run_migrations(found, Roles.CREATE))
        out.rule("the flow")
        show_flow()
        out.rule("doctor")
        findings = asyncio.run(collect(found))
        show_findings(findings)
    if not is_well(findings):
        raise typer.Exit(1)


@contextmanager
def throwaway_server() -> Iterator[EmbeddedServer]:
    directory = Path(tempfile.mkdtemp(prefix="tidings-demo-"))
    # When root runs the demo, the server runs as somebody else, who must be able to enter.
    directory.chmod(0o711)
    try:
        with hold(directory, progress=say) as server:
            yield server
        deadline = time.monotonic() + STOP_DEADLINE
        while server.running and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
