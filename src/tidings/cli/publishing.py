"""`publish`: one event from the command line."""

import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tidings.cli.acting import as_role
from tidings.cli.context import settings
from tidings.cli.output import out, show_json
from tidings.db.engine import Engine
from tidings.decisions.accepting import accept
from tidings.errors import EventRefused
from tidings.ids import new_correlation_id
from tidings.model.event import EventLimits, NewEvent, Published
from tidings.roles.ingest.service import Ingest

ROLE = "event_ingest_writer"


def add_to(app: typer.Typer) -> None:
    app.command()(publish)


def publish(
    event_type: Annotated[str, typer.Argument(metavar="TYPE", help="Such as order.paid.")],
    payload: Annotated[
        str, typer.Argument(metavar="[PAYLOAD|-|@FILE]", help="JSON text, - for standard input, or @ and a file.")
    ] = "{}",
    external_id: Annotated[str | None, typer.Option(help="The same one again is the same event.")] = None,
    domain: Annotated[str, typer.Option(help="The event's domain.")] = "default",
    stream: Annotated[str, typer.Option(help="The event's stream.")] = "",
    correlation_id: Annotated[str | None, typer.Option(help="Made when none is given.")] = None,
    json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Publish one event and print its id. The payload is kept byte for byte."""
    ingest = settings().ingest
    event = accept(
        event_type,
        read_payload(payload, ingest.max_payload),
        external_id=external_id,
        event_domain=domain,
        event_stream=stream,
        correlation_id=new_correlation_id() if correlation_id is None else correlation_id,
        limits=EventLimits(ingest.max_payload, ingest.max_nesting),
    )
    show(as_role(ROLE, lambda engine: store(engine, event), wakes="router"), json)


def read_payload(given: str, most: int) -> bytes:
    """The bytes themselves; of what is too long, only as much as it takes to see that."""
    if given == "-":
        return sys.stdin.buffer.read(most + 1)
    if not given.startswith("@"):
        return os.fsencode(given)
    try:
        with Path(given[1:]).open("rb") as file:
            return file.read(most + 1)
    except OSError as error:
        raise EventRefused(f"The file {given[1:]} can't be read: {error.strerror}.", field="payload") from error


async def store(engine: Engine, event: NewEvent) -> Published:
    (published,) = await Ingest(engine).publish([event])
    return published


def show(published: Published, json: bool) -> None:
    if json:
        show_json(asdict(published))
        return
    differs = ", with another payload" if published.payload_differs else ""
    was = f" (duplicate: published before under this external id{differs})" if published.duplicate else ""
    out.print(f"event {published.id}{was}", markup=False)
