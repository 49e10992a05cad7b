"""Calls to one endpoint that a person asks for: waits for the verdict, and shows no more than that."""

import asyncio
import time
from typing import Any

import typer

from tidings.cli.output import out, say, show_json
from tidings.db.engine import Engine
from tidings.decisions.verifying import status_class
from tidings.model.endpoint_check import CheckOutcome
from tidings.roles.verifier.operations import Verdict, VerifierOperations
from tidings.settings.values import duration_text

_SECONDS_BETWEEN_LOOKS = 0.1
_VERIFICATION_WORDS = {
    CheckOutcome.PASSED: "The endpoint answered the challenge.",
    CheckOutcome.FAILED: "The endpoint did not answer the challenge rightly.",
    CheckOutcome.TIMEOUT: "The endpoint did not answer in time.",
    CheckOutcome.BLOCKED: "The endpoint's address must not be called.",
    CheckOutcome.OUTDATED: "The URL, or the way it is verified, was changed meanwhile: ask again.",
}


async def awaited(engine: Engine, check_id: int, seconds: float) -> Verdict:
    """The verdict, or none if there is none by then."""
    until = time.monotonic() + seconds
    while True:
        verdict = await VerifierOperations.step(engine, lambda operations: operations.verdict(check_id))
        if verdict.outcome is not None or time.monotonic() >= until:
            return verdict
        await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)


def tell_verification(verdict: Verdict, seconds: float) -> None:
    if verdict.outcome is None:
        _say_unfinished(seconds)
    else:
        say(_VERIFICATION_WORDS[verdict.outcome])


def show_test(id: int, verdict: Verdict, seconds: float, json: bool) -> None:
    """Exit 1 unless the endpoint took it."""
    status = status_class(verdict.outcome, verdict.error_code) if verdict.outcome else None
    if json:
        show_json(_test_json(id, verdict, status))
    elif verdict.outcome is None:
        _say_unfinished(seconds)
    else:
        took = "" if verdict.duration_ms is None else f" in {verdict.duration_ms} ms"
        answered = f"answered {status}{took}" if status else f"did not take it{took}"
        code = f" ({verdict.error_code})" if verdict.error_code else ""
        out.print(f"The endpoint of subscription {id} {answered}{code}.", markup=False)
    if verdict.outcome is not CheckOutcome.PASSED:
        raise typer.Exit(1)


def _test_json(id: int, verdict: Verdict, status: str | None) -> dict[str, Any]:
    return {
        "id": id,
        "outcome": verdict.outcome and str(verdict.outcome),
        "status_class": status,
        "error_code": verdict.error_code,
        "duration_ms": verdict.duration_ms,
    }


def _say_unfinished(seconds: float) -> None:
    say(f"There is no verdict after {duration_text(seconds)}; the call is still to be made.")
    say("  → Is a verifier running? `tidings up` and `tidings run verifier` start one.")
