"""Lists and single things on the command line: tables that fit the terminal, or JSON."""

import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from tidings.cli.output import out, say, show_json
from tidings.errors import InputRefused
from tidings.roles.observer.listing import Place, Shown
from tidings.settings.values import BadValue, read_duration

HEADINGS = {
    "event_id": "event",
    "event_type": "type",
    "event_domain": "domain",
    "event_stream": "stream",
    "worker_name": "router",
    "route_id": "route",
    "route_kind": "kind",
    "attempt_no": "try",
    "task_biz_type": "task",
    "created_at": "created",
    "subscription_id": "sub",
    "saga_id": "saga",
    "final_error_code": "error",
    "error_code": "error",
    "attempt_count": "tries",
    "next_attempt_at": "due",
    "failed_at": "given up",
    "requested_by": "by",
    "response_status": "http",
    "biz_type": "type",
    "biz_key": "key",
    "retry_count": "retries",
    "next_run_time": "due",
    "result_msg": "result",
    "task_id": "task",
}

_STORED = {"payload", "event_snapshot", "last_run_summary", "payload_snapshot", "filter"}

AsJson = Annotated[bool, typer.Option("--json", help="For machines.")]
Limit = Annotated[int, typer.Option(min=1, max=1000, help="How many at most.")]
Reason = Annotated[str, typer.Option(help="Why; it is kept with the audit log.")]


def show_list(items: Sequence[Shown], columns: Sequence[str], *, as_json: bool, nothing: str) -> None:
    """The columns that are named, for people; everything, for machines."""
    if as_json:
        show_json([_plain(item) for item in items])
    elif not items:
        say(nothing)
    else:
        out.print(_table(items, columns), soft_wrap=False)


def show_one(item: Shown, *, as_json: bool) -> None:
    """One thing: a line for each of its values."""
    if as_json:
        show_json(_plain(item))
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in item.items():
        table.add_row(name, Text(text_of(value)))
    out.print(table, soft_wrap=False)


def say_more(next: Place | None, option: str) -> None:
    """Where the next page begins: behind the row that its place names last."""
    if next:
        say(f"There may be more: {option} {next[-1]}")


def text_of(value: object) -> str:
    match value:
        case None | "":
            return "–"
        case bool():
            return "yes" if value else "no"
        case datetime.datetime():
            return f"{value:%Y-%m-%d %H:%M:%SZ}"
        case float():
            return f"{value:.1f}"
    return str(value)


def duration(text: str, field: str) -> float:
    """In seconds."""
    try:
        return read_duration(text)
    except BadValue as bad:
        raise InputRefused(f"{field}: {bad}.", field=field) from None


def moment(text: str | None, field: str) -> datetime.datetime | None:
    """`2026-01-31`, `2026-01-31T10:00:00+01:00` (UTC where no zone is said), or how long ago: `15m`, `2h`, `3d`."""
    if text is None:
        return None
    try:
        return datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=read_duration(text))
    except (BadValue, OverflowError):
        pass
    try:
        read = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise InputRefused(
            f"{field} {text!r} is no moment.", "Write 2026-01-31T10:00:00Z, or how long ago: 15m, 2h, 3d.", field=field
        ) from None
    return read if read.tzinfo else read.replace(tzinfo=datetime.UTC)


def _table(items: Sequence[Shown], columns: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        kinds = {type(item[name]) for item in items} - {type(None)}
        table.add_column(
            HEADINGS.get(name, name.replace("_", " ")),
            justify="right" if kinds == {int} else "left",
            overflow="fold",
            no_wrap=kinds <= {int, bool, datetime.datetime},
        )
    for item in items:
        table.add_row(*(Text(text_of(item[name])) for name in columns))
    return table


def _plain(value: Any) -> Any:
    """As JSON has it: moments as text, stored JSON as what it says."""
    match value:
        case datetime.datetime():
            return value.isoformat()
        case Mapping():
            return {name: _stored(item) if name in _STORED else _plain(item) for name, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
    return value


def _stored(text: str | None) -> Any:
    return None if text is None else json.loads(text)
