"""`listen`: a local receiver that verifies and prints what is sent to it, until Ctrl-C."""

import datetime
import json as json_text
import sys
from typing import Annotated, Any

import typer

from tidings.cli.listing import AsJson
from tidings.cli.output import say
from tidings.cli.running import run_in_loop
from tidings.decisions.subscribing import check_secret
from tidings.listener import Heard, Listener
from tidings.runtime.supervisor import told_to_stop

OWN_FLAGS = ("--host", "--port")
"""Settings have the same names: after the word `listen` they mean the receiver."""

_LONGEST = 200
_MARKS = {True: "✓", False: "✗", None: "·"}


def add_to(app: typer.Typer) -> None:
    app.command()(listen)


def listen(
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Where to listen; 0 takes a free one.")] = 8421,
    secret: Annotated[
        list[str] | None, typer.Option(help="whsec_…, to check signatures; repeat it, or - for standard input.")
    ] = None,
    answer: Annotated[int, typer.Option(min=200, max=599, help="The status with which events are answered.")] = 200,
    json: AsJson = False,
) -> None:
    """Receive events here and print each on one line; Ctrl-C ends it. For trials: it keeps nothing."""
    secrets = [check_secret(sys.stdin.readline().strip() if text == "-" else text) for text in secret or []]
    run_in_loop(_listen(host, port, secrets, answer, json))


async def _listen(host: str, port: int, secrets: list[str], answer: int, json: bool) -> None:
    stopping = told_to_stop()
    listener = Listener(_show_json if json else _show, secrets, answer)
    await listener.listen(host, port)
    try:
        say(f"Listening at http://{f'[{host}]' if ':' in host else host}:{listener.port}/ – Ctrl-C ends it.")
        if not secrets:
            say("Signatures are not checked: give --secret whsec_… to check them.")
        say("Tidings calls it only if TIDINGS_ALLOW_HTTP_HOSTS and TIDINGS_ALLOW_NETWORKS name this host.")
        await stopping.wait()
    finally:
        await listener.close()


def _show(heard: Heard) -> None:
    about = heard.headers.get
    words = [
        f"{datetime.datetime.now():%H:%M:%S}",
        _MARKS[heard.is_signed],
        heard.kind if heard.kind != "delivery" else about("tidings-event-type", "?"),
        about("webhook-id", "no webhook-id"),
        f"attempt {about('tidings-attempt')}" if about("tidings-attempt") else "",
        f"→ {heard.answered}",
        "again" if heard.is_repeated else "",
        heard.problem or heard.body.decode(errors="replace"),
    ]
    typer.echo(_plain("  ".join(word for word in words if word)))


def _plain(text: str) -> str:
    """One line that can do nothing to a terminal, whoever sent it."""
    shown = "".join(sign if sign.isprintable() else " " for sign in text)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"


def _show_json(heard: Heard) -> None:
    about = heard.headers.get
    told: dict[str, Any] = {
        "at": datetime.datetime.now(datetime.UTC).isoformat(),
        "path": heard.path,
        "kind": heard.kind,
        "webhook_id": about("webhook-id"),
        "event_type": about("tidings-event-type"),
        "correlation_id": about("tidings-correlation-id"),
        "attempt": about("tidings-attempt"),
        "signed": heard.is_signed,
        "problem": heard.problem or None,
        "repeated": heard.is_repeated,
        "answered": int(heard.answered),
        "body": heard.body.decode(errors="replace"),
    }
    typer.echo(json_text.dumps(told))
