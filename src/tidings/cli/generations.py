"""How the command line words what a requeue or a resend came to."""

from collections.abc import Sequence
from typing import Any

import typer

from tidings.cli.listing import show_list
from tidings.model.dead_letter import Requeued, RequeueOutcome

_COLUMNS = ("id", "saga_id", "says")
_WORDS = {
    RequeueOutcome.STARTED: "will be sent again",
    RequeueOutcome.ALREADY_STARTED: "was sent again before, as this saga",
    RequeueOutcome.NOT_FOUND: "there is none with this id",
    RequeueOutcome.NOT_ENDED_SO: "refused: it is not completed",
    RequeueOutcome.SUBSCRIPTION_INACTIVE: "refused: its subscription is inactive",
    RequeueOutcome.SUBSCRIPTION_UNVERIFIED: "refused: its subscription is not verified",
}


def show_generations(done: Sequence[Requeued], *, as_json: bool) -> None:
    """Ends with 1 if anything was refused."""
    show_list([_told(one) for one in done], _COLUMNS, as_json=as_json, nothing="")
    if not all(one.outcome.is_done for one in done):
        raise typer.Exit(1)


def _told(one: Requeued) -> dict[str, Any]:
    return {
        "id": one.id,
        "saga_id": one.saga_id,
        "generation": one.generation,
        "outcome": str(one.outcome),
        "already_requeued": one.outcome is RequeueOutcome.ALREADY_STARTED,
        "says": _WORDS[one.outcome],
    }
