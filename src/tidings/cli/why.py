"""`why`: where something is, what it waits for and since when, and what can be done."""

import datetime
from typing import Annotated

import typer
from rich.text import Text

from tidings.cli.acting import as_role
from tidings.cli.context import settings
from tidings.cli.listing import AsJson, show_one
from tidings.cli.output import out
from tidings.model.explanation import Explanation
from tidings.roles.observer.why import why


def add_to(root: typer.Typer) -> None:
    root.command("why")(why_)


def why_(
    subject: Annotated[str, typer.Argument(metavar="event:ID|saga:ID|task:ID", help="What is asked about.")],
    json: AsJson = False,
) -> None:
    """Say where an event, a delivery or a task is, what it waits for, and what would change it."""
    limit = settings().retries.max_retry_limit
    answer = as_role("observer", lambda engine: why(engine, subject, limit))
    if json:
        show_one(answer.as_dict(), as_json=True)
    else:
        _show(answer, "")


def _show(answer: Explanation, indent: str) -> None:
    sign = ("●", "green") if answer.is_over else ("○", "yellow")
    out.print(Text.assemble(indent, sign, " ", (answer.subject, "bold"), f"  {answer.headline}"))
    for reason in answer.reasons:
        since = (" ", (_since(reason.since), "dim")) if reason.since else ()
        out.print(Text.assemble(f"{indent}    {reason.text}", *since))
        if reason.remedy:
            out.print(Text.assemble(f"{indent}    ", (f"→ {reason.remedy}", "cyan")))
    for part in answer.parts:
        _show(part, f"{indent}  ")


def _since(moment: datetime.datetime) -> str:
    return moment.astimezone(datetime.UTC).strftime("since %Y-%m-%d %H:%M:%S UTC")
