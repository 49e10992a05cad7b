"""Makes the call that was asked for and stores the verdict; a challenge that is no longer current changes nothing.

No transaction is open during the request. What an endpoint answered is told to the operator's log and to nobody else.
"""

from tidings.courier import Courier, Request, Result
from tidings.courier.signing import signature_headers
from tidings.db.engine import Engine
from tidings.decisions.verifying import (
    SECONDS_TO_ANSWER,
    TEST_TYPE,
    VERIFICATION_TYPE,
    body_of_test,
    challenge_body,
    is_right_answer,
    outcome_of,
)
from tidings.errors import SecretsUnusable
from tidings.model.endpoint_check import CheckKind, CheckOutcome
from tidings.roles.verifier.operations import Check, Verdict, VerifierOperations
from tidings.telemetry.bus import tell
from tidings.telemetry.notices import EndpointChecked, EndpointUnusable
from tidings.vault import Vault, open_headers, valid_secrets

ACTOR = "verifier"
# The whole challenge would be too long for an id, and is in the body.
_ID_LENGTH = 26


class EndpointCaller:
    """`engine` is one of the role subscription_verifier; `timeout` is that of deliveries, for tests."""

    def __init__(self, engine: Engine, courier: Courier, vault: Vault, timeout: float) -> None:
        self._engine = engine
        self._courier = courier
        self._vault = vault
        self._timeout = timeout

    async def run(self, check_id: int, correlation_id: str) -> CheckOutcome:
        """Run again after a crash it makes the call again, unless a verdict was stored."""
        check = await VerifierOperations.step(self._engine, lambda operations: operations.check_to_run(check_id))
        if check is None:
            return CheckOutcome.OUTDATED
        verdict, status = Verdict(CheckOutcome.OUTDATED), None
        if check.is_current:
            verdict, status = await self._called(check, correlation_id)
        stored = await VerifierOperations.step(self._engine, lambda operations: settle(operations, check, verdict))
        told = (status, verdict.error_code, verdict.duration_ms)
        tell(EndpointChecked(check.subscription_id, check.kind.value, stored.value, *told))
        return stored

    async def _called(self, check: Check, correlation_id: str) -> tuple[Verdict, int | None]:
        try:
            secrets = valid_secrets(self._vault, check.subscription_id, check.secrets, check.asked_at.timestamp())
            request = self._test(check, secrets, correlation_id) if _is_test(check) else _challenge(check, secrets)
        except SecretsUnusable as error:
            tell(EndpointUnusable(check.subscription_id, error.what))
            return Verdict(CheckOutcome.FAILED), None
        result = await self._courier.send(request)
        outcome = outcome_of(result.error_code, _is_test(check) or _answers(check, secrets, result))
        return Verdict(outcome, result.error_code, result.duration_ms), result.status

    def _test(self, check: Check, secrets: list[str], correlation_id: str) -> Request:
        """As a delivery would be, headers of the subscription included."""
        body = body_of_test(check.subscription_id)
        headers = open_headers(self._vault, check.subscription_id, check.headers)
        return Request(
            check.url,
            body,
            (
                *_signed(check, "tst", TEST_TYPE, body, secrets),
                ("tidings-correlation-id", correlation_id),
                ("tidings-attempt", "1"),
                *headers.items(),
            ),
            check.timeout_seconds or self._timeout,
        )


async def settle(operations: VerifierOperations, check: Check, verdict: Verdict) -> CheckOutcome:
    """Stores the verdict, once. Who edits or asks anew takes turns with it at the subscription."""
    await operations.subscription_to_judge(check.subscription_id)
    if _is_test(check):
        await operations.finish_check(check.id, verdict)
    elif verdict.outcome is CheckOutcome.PASSED and await operations.put_in_force_if_current(check):
        await operations.finish_check(check.id, Verdict(CheckOutcome.PASSED))
        detail = {"callback_url": check.url}
        await operations.audit(ACTOR, "subscription.verified", f"subscription:{check.subscription_id}", detail)
    else:
        late = verdict.outcome is CheckOutcome.PASSED
        told = Verdict(CheckOutcome.OUTDATED if late else verdict.outcome)
        await operations.finish_check(check.id, told)
    return (await operations.verdict(check.id)).outcome or CheckOutcome.OUTDATED


def _challenge(check: Check, secrets: list[str]) -> Request:
    """Without the headers of the subscription: they are secret, and nobody knows yet who will read them."""
    body = challenge_body(check.subscription_id, check.challenge, int(check.asked_at.timestamp()))
    headers = _signed(check, "vrf", VERIFICATION_TYPE, body, secrets)
    return Request(check.url, body, headers, SECONDS_TO_ANSWER)


def _signed(check: Check, kind: str, event_type: str, body: bytes, secrets: list[str]) -> tuple[tuple[str, str], ...]:
    message = f"{kind}_{check.challenge[:_ID_LENGTH]}"
    return (
        ("content-type", "application/json"),
        *signature_headers(message, int(check.asked_at.timestamp()), body, secrets),
        ("tidings-event-type", event_type),
    )


def _answers(check: Check, secrets: list[str], result: Result) -> bool:
    return is_right_answer(check.verification, check.challenge, secrets, result.excerpt)


def _is_test(check: Check) -> bool:
    return check.kind is CheckKind.TEST
