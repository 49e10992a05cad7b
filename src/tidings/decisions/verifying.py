"""How an endpoint proves that it wants events: the challenge, what answers it rightly, and how often it may be asked.

A challenge has no dot in it, so that the proof for one is never the signature of a message.
"""

import hmac
import json
import re
from binascii import b2a_base64
from collections.abc import Iterable
from dataclasses import dataclass

from tidings.decisions.secret_keys import key_of
from tidings.errors import LimitReached
from tidings.model.endpoint_check import CheckKind, CheckOutcome
from tidings.model.subscription import Verification

VERIFICATION_TYPE, TEST_TYPE = "endpoint.verification", "tidings.test"
SECONDS_TO_ANSWER = 10.0
SECONDS_VALID = 600.0
LONGEST_ANSWER = 4096
WINDOW = 3600.0

_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{16,64}")
# What else went wrong is not told: it would show who listens where in our networks.
_TOLD = {"timeout": CheckOutcome.TIMEOUT, "blocked_address": CheckOutcome.BLOCKED}


@dataclass(frozen=True)
class Allowance:
    """How often within the window; nobody shall use us to flood others."""

    of_subscription: int
    of_host: int


ALLOWANCES = {CheckKind.VERIFICATION: Allowance(5, 30), CheckKind.TEST: Allowance(30, 120)}


def refuse_if_too_often(kind: CheckKind, of_subscription: int, of_host: int, host: str) -> None:
    """Both count what was asked for within the window."""
    most = ALLOWANCES[kind]
    if of_subscription >= most.of_subscription:
        what = f"This subscription had {of_subscription} calls of this kind within the hour, as many as it may have."
        raise LimitReached(what, "Look at the endpoint, and ask again later.")
    if of_host >= most.of_host:
        what = f"{host} had {of_host} calls of this kind within the hour, as many as one host may have."
        raise LimitReached(what, "Ask again later.")


def challenge_body(subscription_id: int, challenge: str, timestamp: int) -> bytes:
    """What is posted to the endpoint."""
    data = {"subscription": subscription_id, "challenge": challenge}
    return json.dumps({"type": VERIFICATION_TYPE, "timestamp": timestamp, "data": data}).encode()


def proof_of(challenge: str, secret: str) -> str:
    """Only who knows the secret can say this."""
    return b2a_base64(hmac.digest(key_of(secret), b"verify." + challenge.encode(), "sha256"), newline=False).decode()


def answer_challenge(body: bytes | str, secret: str | None = None) -> str | None:
    """For receivers: the JSON with which to answer, status 200, if the body is a challenge; otherwise None.

    Check the signature of the request first, with `verify`. Without a secret only the mode `echo` is answered.
    """
    challenge = _challenge_in(body)
    if challenge is None:
        return None
    return json.dumps({"challenge": challenge} | ({} if secret is None else {"proof": proof_of(challenge, secret)}))


def is_right_answer(mode: Verification, challenge: str, secrets: Iterable[str], answer: bytes) -> bool:
    """Whether this body, of a response with success, answers the challenge. Compared in constant time."""
    if len(answer) > LONGEST_ANSWER:
        return False
    if mode is Verification.PROOF:
        matches = [_same(_field(answer, "proof"), proof_of(challenge, secret)) for secret in secrets]
        return any(matches)
    if mode is Verification.ECHO:
        return _same(answer.strip().decode("latin-1"), challenge) or _same(_field(answer, "challenge"), challenge)
    return False


def outcome_of(error_code: str | None, is_right: bool) -> CheckOutcome:
    """What is told of a call: no more than this."""
    if error_code is None:
        return CheckOutcome.PASSED if is_right else CheckOutcome.FAILED
    return _TOLD.get(error_code, CheckOutcome.FAILED)


def body_of_test(subscription_id: int) -> bytes:
    """The payload of a test, as one of an event."""
    return json.dumps({"test": True, "subscription": subscription_id}).encode()


def status_class(outcome: CheckOutcome, error_code: str | None) -> str | None:
    """`2xx` and so on, where the endpoint answered at all."""
    if outcome is CheckOutcome.PASSED:
        return "2xx"
    return f"{error_code[5]}xx" if error_code and error_code.startswith("http_") else None


def _challenge_in(body: bytes | str) -> str | None:
    whole = _parsed(body)
    if whole.get("type") != VERIFICATION_TYPE or not isinstance(data := whole.get("data"), dict):
        return None
    challenge = data.get("challenge")
    return challenge if isinstance(challenge, str) and _CHALLENGE.fullmatch(challenge) else None


def _field(answer: bytes, name: str) -> str:
    value = _parsed(answer).get(name)
    return value if isinstance(value, str) else ""


def _parsed(body: bytes | str) -> dict[str, object]:
    """Empty for all that is no JSON object."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(errors="backslashreplace"), expected.encode())
